"""Regions that make one block: ``Pack`` (of pieces), ``Accumulate`` (scatter-add) and ``Sort``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import (
    Adjoints,
    OneBody,
    Region,
    Run,
    Tangents,
    Through,
    Wanted,
)
from archimedes.graph.regions.interval_sets import Rows, Sets, fill, join, union_of
from archimedes.graph.regions.nest import Affine, positions

__all__ = ["Accumulate", "Move", "Pack", "Sort"]


class Move(NamedTuple):
    """A box of elements: input ``source`` at ``start`` is copied to ``to``, over ``shape``.

    ``start`` is None for a scalar, which fills the box.
    """

    source: int
    shape: tuple[int, ...]
    to: Affine
    start: Affine | None


@dataclass(frozen=True, eq=False)
class OneBlock(Region):
    """A region that makes one block of ``length`` elements of dtype ``dtype``."""

    length: int
    dtype: int

    @property
    def out_dtypes(self) -> list[int]:
        return [block_type(self.dtype, self.length)]

    def retype(self, body: Callable[[Graph], Graph], dtype: Callable[[int], int]) -> Region:
        return replace(self, dtype=dtype(self.dtype))

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length


@dataclass(frozen=True, eq=False)
class Pack(OneBlock):
    """Make a block of ``length`` elements of dtype ``dtype`` by copying boxes, in order.

    What no box covers is zero. Boxes do not overlap in themselves; a later one overwrites (and
    derivatives are those of boxes that do not overlap each other, which is what programs have).
    """

    moves: tuple[Move, ...]

    def summary(self) -> str:
        return f"{self.length} elements, {len(self.moves)} boxes"

    @cached_property
    def _origins(self) -> tuple[np.ndarray, np.ndarray]:
        """By element: the number of the box it comes from (-1: none), its offset in the source."""
        boxes = np.full(self.length, -1, dtype=np.int64)
        offsets = np.zeros(self.length, dtype=np.int64)
        for k, (_, shape, to, start) in enumerate(self.moves):
            where = positions(to, shape)
            boxes[where] = k
            if start is not None:
                offsets[where] = positions(start, shape)
        return boxes, offsets

    def element(self, g: Graph, number: int, at: int) -> int | None:
        boxes, offsets = self._origins
        if boxes[at] < 0:
            return g.const(0, self.dtype)
        source, _, _, start = self.moves[boxes[at]]
        i = int(self.inputs[source])
        return i if start is None else g.element(i, g.const(int(offsets[at]), I64))

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        block = np.zeros(self.length, dtype=DTYPES[self.dtype])
        sources, offsets, boxes = self._copies
        block[offsets] = [values[k] for k in sources]
        for source, to, start in boxes:
            block[to] = values[source] if start is None else values[source][start]
        return [block]

    @cached_property
    def _copies(
        self,
    ) -> tuple[list[int], np.ndarray, list[tuple[int, np.ndarray, np.ndarray | None]]]:
        """Return the moves with their positions: first single numbers, then boxes."""
        single: dict[int, int] = {}
        boxes: list[tuple[int, np.ndarray, np.ndarray | None]] = []
        for source, shape, to, start in self.moves:
            if start is None and not boxes and all(n == 1 for n in shape):
                single[to.offset] = source
            else:
                where = None if start is None else positions(start, shape)
                boxes.append((source, positions(to, shape), where))
        return list(single.values()), np.array(list(single), dtype=np.int64), boxes

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        sources = [k for k, mine in enumerate(sets) if mine]
        if not sources or not self.moves:
            return [0]
        counts = [len(sets[k]) if isinstance(sets[k], Rows) else 1 for k in sources]
        every = join([*((sets[k], count) for k, count in zip(sources, counts)), (0, 1)])
        # Element of ``every`` that the first of each source is; its last one depends on nothing.
        begins = np.full(len(sets), -1, dtype=np.int64)
        begins[sources] = np.cumsum([0, *counts[:-1]])
        boxes, offsets = self._origins
        from_box = begins[[move.source for move in self.moves]]
        begin = np.where(boxes < 0, -1, from_box[boxes])
        return [every.take(np.where(begin < 0, len(every) - 1, begin + offsets))]


@dataclass(frozen=True, eq=False)
class Accumulate(OneBlock):
    """Add values to the elements of a block of ``length`` zeros, in order.

    Inputs: a block of values, a block of as many int64 indices (clamped to the block).
    Output: the block.
    """

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        block = np.zeros(self.length, dtype=DTYPES[item_type(self.dtype)])
        np.add.at(block, np.clip(values[1], 0, self.length - 1), values[0])
        return [block]

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        return [fill(union_of(sets[0]), self.length)]


@dataclass(frozen=True, eq=False)
class Sort(OneBody):
    """Find the positions that sort each of ``rows`` rows of ``length`` records, ascending.

    Inputs: the keys of all records, a block for each, the first one foremost; nan is greater than
    all numbers. Output: a block of positions in the row; equal records keep their order.

    The body says how it is done by code. NumPy's own sort gives the same positions: there is only
    one answer.
    """

    rows: int
    length: int

    @property
    def out_dtypes(self) -> list[int]:
        return [block_type(I64, self.rows * self.length)]

    def summary(self) -> str:
        return f"{self.rows} rows of {self.length}"

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        keys = [np.asarray(value).reshape(self.rows, self.length) for value in values]
        order = np.lexsort(keys[::-1], axis=-1)
        return [order.astype(np.int64, copy=False).reshape(-1)]

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        return [0]

    # Positions have no derivatives.

    def push_forward(self, dst: Graph, tangents: Tangents) -> tuple[Any, Tangents]:
        return dst.region(self), [{}]

    def record(self, dst: Graph) -> tuple[np.ndarray, Any]:
        return dst.region(self), None

    def pull_back(self, dst: Graph, adjoints: Adjoints, saved: Any, wanted: Wanted) -> Adjoints:
        return [{} for _ in self.inputs]
