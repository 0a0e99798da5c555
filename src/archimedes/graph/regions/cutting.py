"""How regions are cut down to what is read of them: the answers of ``Region.cut``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.graph.regions.base import Region

__all__ = ["Cut", "Cutter", "Numbers", "carried", "new_numbers", "same_number"]

Numbers = tuple[int, ...]


class Cutter(Protocol):
    """What a region asks about its bodies (``graph/trimming.py`` answers)."""

    def reads(self, g: Graph, outputs: Sequence[int]) -> set[int]:
        """Return the numbers of the inputs that some outputs of a body depend on."""
        ...

    def part(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        """Return the part of a body that computes some outputs, with some inputs only."""
        ...

    def once(self, body: Graph) -> bool:
        """Tell whether the program has one call of a body only."""
        ...


class Cut(NamedTuple):
    """How a region is cut: positions of the inputs it keeps, and how it is made of their ids.

    ``outputs`` gives the new number of an output. ``region`` is None for loops of no step, and for
    calls that only hand values on: ``outputs`` then gives the number of an input.
    """

    inputs: Numbers
    region: Callable[[np.ndarray], Region] | None
    outputs: Callable[[int], int]


def same_number(number: int) -> int:
    """Return the number of an output that keeps its place."""
    return number


def new_numbers(numbers: Sequence[int]) -> Callable[[int], int]:
    """Return what gives the new number of those that stay, in this order."""
    return {old: new for new, old in enumerate(numbers)}.__getitem__


def carried(
    cutter: Cutter, body: Graph, count: int, wanted: set[int], also: Sequence[int]
) -> tuple[Numbers, set[int]]:
    """Return which carried values matter over any number of steps, and the inputs they read.

    Of ``count`` values carried those ``wanted`` do, and all that ``also``, other outputs, read.
    """
    alive = set(wanted)
    while True:
        reads = cutter.reads(body, [*sorted(alive), *also])
        more = {k for k in reads if k < count} - alive
        if not more:
            return tuple(sorted(alive)), reads
        alive |= more
