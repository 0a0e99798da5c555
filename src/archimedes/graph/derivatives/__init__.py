"""Derivatives of graphs: rules of ops and regions, sweeps, sparsity, colouring, Jacobians.

Whatever is imported from here, the derivatives of all regions are registered.
"""

from archimedes.graph.derivatives import own_rules
from archimedes.graph.derivatives.region_rules import (
    call_derivative,
    map_derivative,
    nest_derivative,
    pack_derivative,
    scan_derivative,
    solve_derivative,
    switch_derivative,
    while_derivative,
)

__all__: list[str] = []

_ = (
    call_derivative,
    map_derivative,
    nest_derivative,
    own_rules,
    pack_derivative,
    scan_derivative,
    solve_derivative,
    switch_derivative,
    while_derivative,
)
