"""Derivatives of functions of trees, dense and sparse, and rules of one's own."""
