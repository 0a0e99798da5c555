"""Bodies that touch: shapes, distances, compliant forces, steps with a friction cone."""
