"""Optimal control: one description of a problem, direct collocation and multiple shooting."""
