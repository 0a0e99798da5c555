"""What runs a graph. The interpreter is the reference that every other backend must equal."""
