"""Where values are: in an operand, in an element of an array, in the text as a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from archimedes.graph.program import Graph

__all__ = ["Binding", "Instances", "Place", "Store", "places_by_id"]


class Place(NamedTuple):
    """Element ``offset`` of an array of values of one dtype.

    ``array`` is what the dialect calls the array: something that can be compared and hashed.

    >>> Place("s1", 2, 0).at(3)
    Place(array='s1', offset=5, dtype=0)
    """

    array: Any
    offset: int
    dtype: int

    def at(self, k: int) -> Place:
        """Return the place ``k`` elements further."""
        return self._replace(offset=self.offset + k)


class Binding(NamedTuple):
    """What is known of a value: an operand, its place in memory, its constant; one of them.

    A constant is a Python number and its dtype.
    """

    operand: str | None = None
    place: Place | None = None
    constant: tuple[Any, int] | None = None

    def is_like(self, other: Binding) -> bool:
        """Tell whether two bindings are of one value; as text, since 0.0 and -0.0 are equal."""
        if self.constant is not None:
            return repr(self.constant) == repr(other.constant)
        return self == other


class Instances(NamedTuple):
    """A body run for each of ``length`` instances: rows of the blocks ``rows``, then ``shared``.

    Both are ids of nodes; what instances give are rows of blocks too.
    """

    body: Graph
    length: int
    rows: Sequence[int]
    shared: Sequence[int]


#: An output of a graph by number, and where it goes.
Store = tuple[int, Place]


def places_by_id(g: Graph, stores: Sequence[Store]) -> dict[int, list[Place]]:
    """Return the places that want the value of each node."""
    waiting: dict[int, list[Place]] = {}
    for k, to in stores:
        waiting.setdefault(g.outputs[k], []).append(to)
    return waiting
