"""Nonlinear programs as users write them: trees, named constraints, places."""
