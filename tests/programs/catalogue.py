"""Every program, for every backend."""

from __future__ import annotations

from functools import cache

from archimedes.graph.regions import Region

from .blocks import blocks
from .branches import branches
from .callbacks import callbacks
from .linear_algebra import linear_algebra
from .loops import loops
from .program import Program

__all__ = ["callback_programs", "programs", "regions_of"]


@cache
def programs() -> tuple[Program, ...]:
    """Programs that need nothing but a computer."""
    return (*loops(), *branches(), *linear_algebra(), *blocks())


@cache
def callback_programs() -> tuple[Program, ...]:
    """Programs that call Python."""
    return tuple(callbacks())


def regions_of(graph) -> set[type[Region]]:
    """The kinds of regions in a graph, bodies included."""
    found: set[type[Region]] = set()
    for region in graph.regions.values():
        found.add(type(region))
        for body in region.bodies:
            found |= regions_of(body)
    return found
