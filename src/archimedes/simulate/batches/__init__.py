"""Many solves at once, in lanes and threads."""
