"""Derivatives of graphs: rules of ops and regions, sweeps, sparsity, colouring, Jacobians.

Whatever is imported from here, the derivatives of all regions are registered.
"""

from archimedes.graph.derivatives import block_rules, control_flow_rules, solve_rules
