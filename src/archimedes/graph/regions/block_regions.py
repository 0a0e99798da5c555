"""Regions of blocks: ``Nest`` (loops), ``Pack`` (of pieces), ``Accumulate`` (by index), ``Sort``.

A ``Nest`` is loops over an index space, with a scalar body, and sums (or the like) over some axes.
Elementwise programs, reductions, matrix products and gathers of arrays that are blocks are such
loops: one node and one short body, however long the arrays are. A value is read as it is (None: a
scalar, or a block that the body reads ``element`` by ``element``), or one element of a block for
each point of the index space: at an affine position, or at positions listed in a table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.digests import LONG_TABLE, frozen, table_digest
from archimedes.graph.dtypes import DTYPES, I64, block_type, item_type
from archimedes.graph.ops import BY_NAME
from archimedes.graph.program import Graph
from archimedes.graph.regions import base
from archimedes.graph.regions.base import OneBody, Region, Run, Through
from archimedes.graph.regions.interval_sets import Rows, Sets, fill, join, merge, union_of, unite
from archimedes.records import record


class Affine(NamedTuple):
    """Element ``offset + sum(strides[k] * index[k])``.

    >>> positions(Affine(1, (3, 1)), (2, 2)).tolist()
    [[1, 2], [4, 5]]
    """

    offset: int
    strides: tuple[int, ...]


class Gather:
    """Elements at listed positions, one for each point of the index space in C order."""

    __slots__ = ("digest", "table")

    def __init__(self, table: np.ndarray) -> None:
        flat = table if np.ndim(table) == 1 else np.reshape(table, -1)
        self.table = frozen(flat, np.dtype(np.int64))
        self.digest = table_digest(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gather) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Gather({self.digest})"


Read = Affine | Gather | None


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an array in C order, in elements.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def positions(read: Affine | Gather, shape: Sequence[int]) -> np.ndarray:
    """Return the positions that are read, as an array over the index space."""
    if isinstance(read, Gather):
        return read.table.reshape(tuple(shape))
    at = np.full(tuple(shape), read.offset, dtype=np.int64)
    for axis, (n, stride) in enumerate(zip(shape, read.strides)):
        line = np.arange(n, dtype=np.int64) * stride
        at += line.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return at


#: Partial results of a long reduction.
PARTIALS = 16
#: Points of the index space that the interpreter computes at once.
_AT_ONCE = 1 << 20


@record
class Nest(OneBody):
    """Run a body at every point of an index space, and combine what it gives along some axes.

    ``shape`` is the index space; the first ``kept`` of its axes are those of the results, along
    the others values are combined by the op ``combine`` (add, mul, min, max, and, or, xor; empty
    where there are none). ``reads`` says for each input what the body gets of it. Body:
    (inputs, then the int64 index along each axis if it takes them) -> outs, all scalars. Outputs:
    a block for each out, in C order over the kept axes; a scalar where no axis is kept.

    The order of a reduction: the points along the reduced axes are counted in C order. With
    ``partials`` 1 they are combined one after the other, ascending. With more, partial result j
    takes the points with number j modulo ``partials``, ascending; then the second half of the
    partial results is combined into the first, until one is left. No result depends on anything
    else: not on backend, lanes or threads.
    """

    shape: tuple[int, ...]
    reads: tuple[Read, ...]
    kept: int
    combine: str = ""
    partials: int = 1

    over_index_space = True

    @property
    def out_dtypes(self) -> list[int]:
        codes = self.body.output_dtypes
        return [block_type(code, self.length) for code in codes] if self.kept else codes

    @property
    def length(self) -> int:
        """Number of elements of each result."""
        return math.prod(self.shape[: self.kept])

    @property
    def reduced(self) -> int:
        """Number of points that are combined for each element."""
        return math.prod(self.shape[self.kept :])

    @property
    def indexed(self) -> bool:
        """Whether the body takes the index along each axis."""
        return len(self.body.inputs) > len(self.inputs)

    def settings(self, lasting: bool = False, data: bool = True) -> tuple[Any, ...]:
        shape, reads, *rest = super().settings()
        long = [isinstance(r, Gather) and r.table.size >= LONG_TABLE for r in reads]
        if not data:
            reads = tuple("gather" if x else read for x, read in zip(long, reads))
        return (shape, reads, *rest)

    @property
    def tables(self) -> Sequence[np.ndarray]:
        return [read.table for read in self.reads if isinstance(read, Gather)]

    def summary(self) -> str:
        text = " x ".join(map(str, self.shape))
        if self.kept == len(self.shape):
            return text
        order = f" in {self.partials} partial results" if self.partials > 1 else ""
        return f"{text}, the last {len(self.shape) - self.kept} by {self.combine}{order}"

    def prune(self, pruner: base.Pruner, used: list[int]) -> base.Pruning:
        outs, count = tuple(used), len(self.inputs)
        read = pruner.reads(self.body, outs)
        inputs = tuple(k for k in range(count) if k in read)
        axes = tuple(range(count, len(self.body.inputs)))
        body = pruner.part(self.body, (*inputs, *axes), outs)
        reads = tuple(self.reads[k] for k in inputs)

        def make(ids: np.ndarray) -> Region:
            return replace(self, inputs=ids, body=body, reads=reads)

        return base.Pruning(inputs, make, base.new_numbers(outs))

    # ---- what it computes --------------------------------------------------------------

    def evaluate(self, values: list[Any], run: Run) -> list[Any]:
        outs = []
        step = max(1, _AT_ONCE // max(1, math.prod(self.shape[1:])))
        rows = self.shape[0] if self.shape and self.kept else 1
        for first in range(0, rows, step):
            last = min(first + step, rows) if self.kept else None
            outs.append(self._evaluate(values, run, first, last))
        if not self.kept:
            return outs[0]
        return [np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*outs)]

    def _evaluate(self, values: list[Any], run: Run, first: int, last: int | None) -> list[Any]:
        """Compute the rows from ``first`` to ``last`` of the first axis (None: all of it)."""
        shape = self.shape if last is None else (last - first, *self.shape[1:])
        operands = []
        for value, read in zip(values, self.reads):
            if read is None:
                operands.append(value)
            elif isinstance(read, Affine):
                offset = read.offset + (first * read.strides[0] if shape else 0)
                operands.append(value[positions(read._replace(offset=offset), shape)])
            else:
                operands.append(value[read.table.reshape(self.shape)[first:last]])
        if self.indexed:
            lines = [np.arange(n, dtype=np.int64) for n in shape]
            if last is not None:
                lines[0] = lines[0] + first
            operands += np.meshgrid(*lines, indexing="ij")
        results = []
        for out in run(self.body, operands):
            flat = np.broadcast_to(out, shape).reshape(math.prod(shape[: self.kept]), self.reduced)
            column = self._combine_rows(flat) if self.combine else flat[:, 0].copy()
            results.append(column if self.kept else column[0])
        return results

    def _combine_rows(self, rows: np.ndarray) -> np.ndarray:
        """Combine each row in the order of the region."""
        combine: Any = BY_NAME[self.combine].numpy
        if self.partials == 1 or self.reduced <= self.partials:
            return _chain(combine, rows)
        whole = self.reduced // self.partials * self.partials
        columns = rows[:, :whole].reshape(len(rows), -1, self.partials)
        totals = _chain(combine, np.moveaxis(columns, 1, -1))
        for j in range(self.reduced - whole):
            totals[:, j] = combine(totals[:, j], rows[:, whole + j])
        half = self.partials // 2
        while half:
            totals = combine(totals[:, :half], totals[:, half : 2 * half])
            half //= 2
        return totals[:, 0]

    @property
    def runs(self) -> int:
        return math.prod(self.shape)

    def count(self, operations: base.CountOperations, weight: base.Weight) -> Counter[str]:
        total = super().count(operations, weight)
        if self.combine:
            total[self.combine] += self.length * (self.reduced - 1) * len(self.body.outputs)
        return total

    def work(self, body: Callable[[Graph], int], rounds: int) -> int:
        return self.runs * (1 + body(self.body))

    def dependence(self, sets: list[Sets], through: Through) -> list[Sets]:
        if not any(sets):
            return [0] * len(self.body.outputs)
        # Which inputs each output of the body depends on: bit k stands for input k.
        bits = [1 << k for k in range(len(self.inputs))]
        extra = [0] * (len(self.body.inputs) - len(bits))
        masks = through(self.body, [*bits, *extra])
        return [self._dependence(mask, sets) for mask in masks]

    def _dependence(self, mask: int, sets: list[Sets]) -> Sets:
        """Return the sets of the elements of one output."""
        parts: list[Sets] = []
        for k, (mine, read) in enumerate(zip(sets, self.reads)):
            if not (mask >> k & 1 and mine):
                continue
            if read is None or not isinstance(mine, Rows):
                parts.append(fill(union_of(mine), self.length))
            else:
                parts.append(self._read_sets(mine, read))
        rows = unite(parts, self.length)
        return rows if self.kept or not rows else rows[0]

    def _read_sets(self, sets: Rows, read: Affine | Gather) -> Rows:
        """Return what the elements of an output depend on through one input."""
        out_axes, shape = self.kept, self.shape
        if self.reduced == 1:
            return sets.take(positions(read, shape).ravel())
        spread = None
        if isinstance(read, Affine):
            # Along axes that do not move it, the same elements are read again.
            moving = [bool(stride) for stride in read.strides]
            sizes = tuple(n if m else 1 for n, m in zip(shape[:out_axes], moving))
            steps = tuple(s if m else 0 for s, m in zip(row_major(sizes), moving))
            spread = positions(Affine(0, steps), shape[:out_axes]).ravel()
            shape = tuple(n if m else 1 for n, m in zip(shape, moving))
        at = positions(read, shape)
        terms = sets.take(at.ravel())
        length = math.prod(shape[:out_axes])
        rows = terms.rows() // (at.size // length)
        sums = merge([(rows, terms.low, terms.high)], length)
        return sums if spread is None else sums.take(spread)


def _chain(combine: Any, rows: np.ndarray) -> np.ndarray:
    """Combine along the last axis, one after the other."""
    if isinstance(combine, np.ufunc):  # which accumulates in this order
        return combine.accumulate(rows, axis=-1)[..., -1].copy()
    # Left are the least and the greatest, which are the same in any order, but for zeros.
    find = np.min if combine is BY_NAME["min"].numpy else np.max
    total = np.asarray(find(rows, axis=-1))
    if total.dtype.kind == "f":
        zero = rows == 0
        last = rows.shape[-1] - 1 - np.argmax(zero[..., ::-1], axis=-1)
        there = np.take_along_axis(rows, last[..., None], axis=-1)[..., 0]
        total = np.where((total == 0) & zero.any(axis=-1), there, total)
    return np.asarray(total)


class Move(NamedTuple):
    """A box of elements: input ``source`` at ``start`` is copied to ``to``, over ``shape``.

    ``start`` is None for a scalar, which fills the box.
    """

    source: int
    shape: tuple[int, ...]
    to: Affine
    start: Affine | None


@record
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


@record
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


@record
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


@record
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

    def push_forward(self, dst: Graph, tangents: base.Tangents) -> tuple[Any, base.Tangents]:
        return dst.region(self), [{}]

    def record(self, dst: Graph) -> tuple[np.ndarray, Any]:
        return dst.region(self), None

    def pull_back(
        self, dst: Graph, adjoints: base.Adjoints, saved: Any, wanted: base.Wanted
    ) -> base.Adjoints:
        return [{} for _ in self.inputs]
