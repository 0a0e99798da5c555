"""Sparse Jacobians of large models, and linear systems with them."""
