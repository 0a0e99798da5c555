"""Jacobians of programs on blocks: their entries are one block, and their program does not grow.

Columns that share no row are differentiated together, as one direction (rows, in reverse mode).
A few directions are swept at once; many are the steps of a loop, before which is computed what
they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from archimedes.graph.blocks.building import loops, pack, scalar_loop
from archimedes.graph.derivatives.coloring import by_symmetry, column_colors, star_colors
from archimedes.graph.derivatives.forward import forward_sweep
from archimedes.graph.derivatives.hoisting import hoisted
from archimedes.graph.derivatives.reverse import reverse_sweep
from archimedes.graph.derivatives.sparsity import pattern
from archimedes.graph.dtypes import DTYPES, I64, is_float, item_type, length_of
from archimedes.graph.ops import CODES
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Gather, Scan
from archimedes.graph.regions.base import Directions
from archimedes.graph.regions.pack import Move

__all__ = ["WideEntries", "wide_entries"]

#: So many directions are swept at once.
TOGETHER = 8
_EQ, _SELECT = CODES["eq"], CODES["select"]
_LINE = Affine(0, (1,))


@dataclass(frozen=True)
class WideEntries:
    """A program whose one output is the block of a matrix's structurally non-zero entries.

    Entry k is at (``rows[k]``, ``columns[k]``) of a matrix of ``shape``, in the order of columns.
    A matrix without entries has no output.
    """

    graph: Graph
    rows: np.ndarray
    columns: np.ndarray
    shape: tuple[int, int]
    mode: str
    colors: int


def wide_entries(
    src: Graph, wrt: Sequence[int], *, symmetric: bool = False, triangle: bool = False
) -> WideEntries | None:
    """Return the entries of d(outputs)/d(inputs at ``wrt``); None where dtypes are mixed.

    ``symmetric`` says that the matrix is a Hessian, ``triangle`` that its lower one is wanted.
    """
    kinds = [src.input_dtypes[p] for p in wrt]
    dtypes = {item_type(kind) for kind in (*kinds, *src.output_dtypes)}
    if len(dtypes) != 1 or not is_float(dtype := dtypes.pop()):
        return None
    near, far = _Side(kinds), _Side(src.output_dtypes)
    found = pattern(src, wrt)
    mode, sweep = "forward", _forward(src, wrt)
    colors = star_colors(found.symmetric) if symmetric else column_colors(found)
    if not symmetric and colors.max(initial=0) >= TOGETHER:
        across = column_colors(found.transposed)
        if 2 * across.max(initial=0) < colors.max(initial=0):
            sweep, mode, colors, near, far = _reverse(src, wrt), "reverse", across, far, near
    other, at = by_symmetry(found, colors) if symmetric else (found.rows, found.columns)
    if mode == "reverse":
        other, at = at, other
    order = np.lexsort((found.rows, found.columns))
    if triangle:
        order = order[found.rows[order] >= found.columns[order]]
    rows, columns, at, other = found.rows[order], found.columns[order], at[order], other[order]
    count = int(colors.max(initial=-1)) + 1
    write = _together if count <= TOGETHER else _one_by_one
    g = Graph()
    inputs = [g.input(kind) for kind in src.input_dtypes]
    places, made = write(g, inputs, sweep, near, far, colors, dtype)
    where = places(colors[at], other)
    there = where >= 0
    if made >= 0 and there.any():
        g.outputs = [_gathered(g, made, where[there])]
    return WideEntries(prune(g), rows[there], columns[there], found.shape, mode, count)


class _Side:
    """The elements of some values, scalars and blocks, one behind the other."""

    def __init__(self, kinds: Sequence[int]) -> None:
        self.lengths = [length_of(kind) for kind in kinds]
        counts = [length or 1 for length in self.lengths]
        self.starts = [sum(counts[:k]) for k in range(len(counts))]
        self.size = sum(counts)


#: A derivative sweep in a graph with the inputs there: directions on one side give the other's.
Sweep = Callable[[Graph, Sequence[int], Sequence[Directions]], list[Directions]]


def _forward(src: Graph, wrt: Sequence[int]) -> Sweep:
    def sweep(g: Graph, inputs: Sequence[int], seeds: Sequence[Directions]) -> list[Directions]:
        every: list[Directions] = [{} for _ in inputs]
        for position, mine in zip(wrt, seeds):
            every[position] = mine
        return forward_sweep(g, src, list(inputs), every)[1]

    return sweep


def _reverse(src: Graph, wrt: Sequence[int]) -> Sweep:
    def sweep(g: Graph, inputs: Sequence[int], seeds: Sequence[Directions]) -> list[Directions]:
        wanted = [False] * len(inputs)
        for position in wrt:
            wanted[position] = True
        back = reverse_sweep(g, src, list(inputs), list(seeds), wanted)[1]
        return [back[position] for position in wrt]

    return sweep


#: Positions, in a block, of the entries with given colours and numbers on the far side; -1: none.
Places = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _together(
    g: Graph,
    inputs: Sequence[int],
    sweep: Sweep,
    near: _Side,
    far: _Side,
    colors: np.ndarray,
    dtype: int,
) -> tuple[Places, int]:
    """Sweep all directions at once."""
    seeds: list[Directions] = []
    for start, length in zip(near.starts, near.lengths):
        own = colors[start : start + (length or 1)]
        masks = {int(c): (own == c).astype(DTYPES[dtype]) for c in np.unique(own) if c >= 0}
        one = {c: g.block(mask) if length else g.const(1.0, dtype) for c, mask in masks.items()}
        seeds.append(one)
    found = sweep(g, inputs, seeds)
    begins = np.full((int(colors.max(initial=-1)) + 1, far.size), -1, dtype=np.int64)
    ids: list[int] = []
    at = 0
    for mine, start, length in zip(found, far.starts, far.lengths):
        count = length or 1
        for color, i in mine.items():
            begins[color, start : start + count] = np.arange(at, at + count)
            ids.append(i)
            at += count
    return (lambda color, k: begins[color, k]), _packed(g, ids, dtype)


def _one_by_one(
    g: Graph,
    inputs: Sequence[int],
    sweep: Sweep,
    near: _Side,
    far: _Side,
    colors: np.ndarray,
    dtype: int,
) -> tuple[Places, int]:
    """Sweep one direction in each step of a loop."""
    body = Graph()
    step = body.input(I64)
    own = [body.input(g.dtype[i]) for i in inputs]
    seeds: list[Directions] = []

    def chosen(e: Graph, color: int, direction: int) -> int:
        here = e.emit(_EQ, color, direction)
        return e.emit(_SELECT, here, e.const(1.0, dtype), e.const(0.0, dtype))

    for start, length in zip(near.starts, near.lengths):
        if length:
            table = body.block(colors[start : start + length].astype(np.int64))
            seed = scalar_loop(body, [table, step], chosen, (length,), (_LINE, None))
        else:
            seed = chosen(body, body.const(int(colors[start]), I64), step)
        seeds.append({0: seed})
    found = sweep(body, own, seeds)
    begins = np.full(far.size, -1, dtype=np.int64)
    ids: list[int] = []
    at = 0
    for mine, start, length in zip(found, far.starts, far.lengths):
        if 0 in mine:
            count = length or 1
            begins[start : start + count] = np.arange(at, at + count)
            ids.append(mine[0])
            at += count
    if not ids:
        return (lambda color, k: np.full(k.shape, -1)), -1
    body.outputs = [_packed(body, ids, dtype)]
    steps = int(colors.max()) + 1
    body, shared = hoisted(g, prune(body), 1, inputs)
    count = g.block(np.arange(steps))
    made = g.region(Scan([count, *shared], body, steps, 0, 1, stacked=True))

    def places(color: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.where(begins[k] < 0, -1, color * at + begins[k])

    return places, int(made[0])


def _packed(g: Graph, ids: Sequence[int], dtype: int) -> int:
    """Append a block of values, one behind the other; -1 if there are none."""
    moves, at = [], 0
    for k, i in enumerate(ids):
        length = length_of(g.dtype[i])
        start = _LINE if length else None
        moves.append(Move(k, (length or 1,), Affine(at, (1,)), start))
        at += length or 1
    return pack(g, at, dtype, ids, moves) if ids else -1


def _gathered(g: Graph, block: int, places: np.ndarray) -> int:
    """Append the elements of a block at some places."""
    if np.array_equal(places, np.arange(length_of(g.dtype[block]))):
        return block
    body = Graph()
    body.outputs = [body.input(item_type(g.dtype[block]))]
    return loops(g, [block], [Gather(places)], body, (places.size,))[0]
