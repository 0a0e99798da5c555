"""Linear algebra on traced matrices."""
