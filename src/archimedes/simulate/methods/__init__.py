"""Methods: how one step is made, one file per family."""
