"""How long the arrays of blocks are needed: memory is used again after the last reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from archimedes.backends.lowering.values import Place
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import ELEMENT, OUT
from archimedes.graph.program import Graph

__all__ = ["Lifetimes", "stays_in_place"]


def stays_in_place(g: Graph, i: int) -> bool:
    """Tell whether a node is read where its block is: a block, or an element at a known index."""
    return bool(length_of(g.dtype[i])) or (g.op[i] == ELEMENT and g.b[i] in g.value)


class Lifetimes:
    """The blocks of a graph being written, in order.

    ``kept`` are nodes that are needed to the end. Places that the graph is given are not its own.
    """

    def __init__(
        self, g: Graph, order: Sequence[int], kept: Iterable[int], given: Iterable[Place]
    ) -> None:
        self.graph = g
        self._left: Counter[int] = Counter()
        self._kept = {self._root(i) for i in kept}
        self._foreign = {place.array for place in given}
        self._holders: dict[Place, set[int]] = {}
        #: Whether there are any blocks.
        self.active = any(map(length_of, g.dtype))
        if self.active:
            for i in order:
                self._left.update(self._roots(i))

    def _root(self, i: int) -> int | None:
        """Return the block whose array a node is read from."""
        g = self.graph
        if length_of(g.dtype[i]):
            return i
        return g.a[i] if g.op[i] == ELEMENT and g.b[i] in g.value else None

    def _roots(self, i: int) -> set[int]:
        if self.graph.op[i] == OUT:
            return set()
        roots = {self._root(j) for j in self.graph.operands(i)}
        return {root for root in roots if root is not None}

    def hold(self, i: int, place: Place) -> None:
        """Note that a node's block lies at a place."""
        if place.array not in self._foreign:
            self._holders.setdefault(place, set()).add(i)

    def pin(self, place: Place) -> None:
        """Keep the block that a value lies in to the end: it has readers of another name."""
        self._foreign.add(place.array)
        for held in [held for held in self._holders if held.array == place.array]:
            del self._holders[held]

    def passed(self, i: int) -> list[tuple[Place, int]]:
        """Note that a node is written: return places, and lengths, that nobody reads any more."""
        free: list[tuple[Place, int]] = []
        if not self._left:
            return free
        for root in self._roots(i):
            self._left[root] -= 1
            if self._left[root] or root in self._kept:
                continue
            for place, holders in list(self._holders.items()):
                if root in holders:
                    holders.discard(root)
                    if not holders:
                        del self._holders[place]
                        free.append((place, length_of(self.graph.dtype[root])))
        return free
