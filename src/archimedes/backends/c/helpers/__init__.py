"""C text of small static functions that generated code calls."""
