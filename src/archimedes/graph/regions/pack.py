"""``Pack``: a block put together from scalars and from parts of blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run, Through
from archimedes.graph.regions.interval_sets import Rows, joined
from archimedes.graph.regions.reads import Affine, positions
from archimedes.lazy_dataclasses import lazy_dataclass

__all__ = ["Move", "Pack"]


class Move(NamedTuple):
    """A box of elements: input ``source`` at ``start`` is copied to ``to``, over ``shape``.

    ``start`` is None for a scalar, which fills the box.
    """

    source: int
    shape: tuple[int, ...]
    to: Affine
    start: Affine | None


@lazy_dataclass(frozen=True, eq=False)
class Pack(Region):
    """Make a block of ``length`` elements of dtype ``dtype`` by copying boxes, in order.

    What no box covers is zero. Boxes do not overlap in themselves; a later one overwrites (and
    derivatives are those of boxes that do not overlap each other, which is what programs have).
    """

    length: int
    dtype: int
    moves: tuple[Move, ...]

    @property
    def out_dtypes(self) -> list[int]:
        return [block_type(self.dtype, self.length)]

    def settings(self) -> tuple[Any, ...]:
        return (self.length, self.dtype, self.moves)

    def summary(self) -> str:
        return f"{self.length} elements, {len(self.moves)} boxes"

    def faults(self, g: Graph) -> Iterator[str]:
        for source, shape, to, start in self.moves:
            kind = g.dtype[int(self.inputs[source])]
            if item_type(kind) != self.dtype:
                yield "copies elements of another dtype"
            if (start is None) != (not length_of(kind)):
                yield "reads a block as a scalar, or a scalar as a block"
            if min(shape, default=1) < 1:
                yield "has an empty box"
            elif not (to.last(shape)[0] >= 0 and to.last(shape)[1] < self.length):
                yield "writes outside its block"
            elif start is not None and not (
                start.last(shape)[0] >= 0 and start.last(shape)[1] < length_of(kind)
            ):
                yield "reads outside a block"

    def retyped(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtype=dtype(self.dtype))

    @cached_property
    def _origins(self) -> tuple[np.ndarray, np.ndarray]:
        """By element: the number of the box it comes from (-1: none), its place in the source."""
        boxes = np.full(self.length, -1, dtype=np.int64)
        places = np.zeros(self.length, dtype=np.int64)
        for k, (_, shape, to, start) in enumerate(self.moves):
            where = positions(to, shape)
            boxes[where] = k
            if start is not None:
                places[where] = positions(start, shape)
        return boxes, places

    def element(self, g: Graph, number: int, at: int) -> int | None:
        boxes, places = self._origins
        if boxes[at] < 0:
            return g.const(0, self.dtype)
        source, _, _, start = self.moves[boxes[at]]
        i = int(self.inputs[source])
        return i if start is None else g.element(i, g.const(int(places[at]), I64))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        made = np.zeros(self.length, dtype=DTYPES[self.dtype])
        numbers, places, boxes = self._copies
        made[places] = [values[k] for k in numbers]
        for source, to, start in boxes:
            made[to] = values[source] if start is None else values[source][start]
        return [made]

    @cached_property
    def _copies(
        self,
    ) -> tuple[list[int], np.ndarray, list[tuple[int, np.ndarray, np.ndarray | None]]]:
        """Return the moves with their positions: single numbers, which are first, and boxes."""
        single: dict[int, int] = {}
        boxes: list[tuple[int, np.ndarray, np.ndarray | None]] = []
        for source, shape, to, start in self.moves:
            if start is None and not boxes and all(n == 1 for n in shape):
                single[to.offset] = source
            else:
                where = None if start is None else positions(start, shape)
                boxes.append((source, positions(to, shape), where))
        return list(single.values()), np.array(list(single), dtype=np.int64), boxes

    def count(self, operations: Any, weight: Any) -> Counter[str]:
        return Counter()

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length

    def dependence(self, given: list[Any], through: Through) -> list[Any]:
        sources = [k for k, sets in enumerate(given) if sets]
        if not sources or not self.moves:
            return [0]
        counts = [len(given[k]) if isinstance(given[k], Rows) else 1 for k in sources]
        sets = joined([*((given[k], count) for k, count in zip(sources, counts)), (0, 1)])
        # Element of ``sets`` that the first of each source is; the last of them depends on nothing.
        begins = np.full(len(given), -1, dtype=np.int64)
        begins[sources] = np.cumsum([0, *counts[:-1]])
        boxes, places = self._origins
        from_box = begins[[move.source for move in self.moves]]
        begin = np.where(boxes < 0, -1, from_box[boxes])
        return [sets.take(np.where(begin < 0, len(sets) - 1, begin + places))]
