"""Solvers of others behind one task: IPOPT and those of SciPy."""
