"""Which programs have values of many elements: they run one instance at a time in NumPy."""

from __future__ import annotations

from archimedes.graph.dtypes import length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.nest import Nest

__all__ = ["has_blocks", "longest_block"]


def has_blocks(graph: Graph) -> bool:
    """Tell whether a program has blocks, or loops over index spaces, in bodies too."""
    if any(map(length_of, graph.dtype)):
        return True
    regions = graph.regions.values()
    return any(isinstance(r, Nest) or any(map(has_blocks, r.bodies)) for r in regions)


def longest_block(graph: Graph) -> int:
    """Return the number of elements of the longest block of a program, in bodies too.

    >>> longest_block(Graph())
    0
    """
    own = max(map(length_of, graph.dtype), default=0)
    bodies = (body for region in graph.regions.values() for body in region.bodies)
    return max([own, *map(longest_block, bodies)])
