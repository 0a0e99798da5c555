"""``Nest`` as vectors: along which axis lanes go, rows together, and the loops around them."""
