"""``Pack``: a block put together from scalars and from parts of blocks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type, length_of
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region, Run, Through
from archimedes.graph.regions.reads import Affine, positions

__all__ = ["Move", "Pack"]


class Move(NamedTuple):
    """A box of elements: input ``source`` at ``start`` is copied to ``to``, over ``shape``.

    ``start`` is None for a scalar, which fills the box.
    """

    source: int
    shape: tuple[int, ...]
    to: Affine
    start: Affine | None


@dataclass(frozen=True, eq=False)
class Pack(Region):
    """Make a block of ``length`` elements of dtype ``dtype`` by copying boxes, in order.

    What no box covers is zero. Boxes do not overlap in themselves; a later one overwrites.
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

    def element(self, g: Graph, number: int, at: int) -> int | None:
        for source, shape, to, start in reversed(self.moves):
            index = _index_of(at, shape, to)
            if index is None:
                continue
            i = int(self.inputs[source])
            if start is None:
                return i
            where = start.offset + sum(k * s for k, s in zip(index, start.strides))
            return g.element(i, g.const(where, I64))
        return g.const(0, self.dtype)

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        made = np.zeros(self.length, dtype=DTYPES[self.dtype])
        for source, shape, to, start in self.moves:
            value = values[source]
            made[positions(to, shape)] = value if start is None else value[positions(start, shape)]
        return [made]

    def count(self, operations: Any, weight: Any) -> Counter[str]:
        return Counter()

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.length

    def dependence(self, given: list[Any], through: Through) -> list[Any]:
        made: list[int] = [0] * self.length
        for source, shape, to, start in self.moves:
            sets = given[source]
            if not sets:
                continue
            places = positions(to, shape).ravel().tolist()
            if start is None:
                for k in places:
                    made[k] = sets
            else:
                for k, j in zip(places, positions(start, shape).ravel().tolist()):
                    made[k] = sets[j]
        return [made]


def _index_of(at: int, shape: tuple[int, ...], to: Affine) -> tuple[int, ...] | None:
    """Return the point of a box that is written to a place, if there is one."""
    left, index = at - to.offset, [0] * len(shape)
    order = sorted(range(len(shape)), key=lambda k: -abs(to.strides[k]))
    for k in order:
        stride, n = to.strides[k], shape[k]
        if n > 1 and stride:
            # Boxes do not overlap in themselves: smaller strides span less than one of these.
            index[k] = min(max(_toward(left, stride, shape, to, order, k), 0), n - 1)
            left -= index[k] * stride
    return tuple(index) if left == 0 else None


def _toward(
    left: int, stride: int, shape: tuple[int, ...], to: Affine, order: list[int], k: int
) -> int:
    """Return how often a stride goes into what is left, given what smaller ones may add."""
    rest = order[order.index(k) + 1 :]
    low = sum(min(0, to.strides[j] * (shape[j] - 1)) for j in rest)
    high = sum(max(0, to.strides[j] * (shape[j] - 1)) for j in rest)
    first = (left - high) / stride if stride > 0 else (left - low) / stride
    return math.ceil(first)
