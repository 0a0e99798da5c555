"""Which programs have values of many elements: they run one instance at a time in NumPy."""

from __future__ import annotations

from archimedes.graph.dtypes import length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.nest import Nest

__all__ = ["has_blocks"]


def has_blocks(graph: Graph) -> bool:
    """Tell whether a program has blocks, or loops over index spaces, in bodies too."""
    if any(map(length_of, graph.dtype)):
        return True
    regions = graph.regions.values()
    return any(isinstance(r, Nest) or any(map(has_blocks, r.bodies)) for r in regions)
