"""Operating points of models: trim, and the linear system about one."""
