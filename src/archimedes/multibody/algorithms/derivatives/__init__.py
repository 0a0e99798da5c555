"""Analytic derivatives of the algorithms, and the rules that make `arc.jac` use them."""
