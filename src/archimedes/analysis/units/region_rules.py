"""Units through regions: calls, branches, loops, loops over blocks, linear systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.analysis.units.propagation import Block, Known, Propagation
from archimedes.analysis.units.recording import Origin
from archimedes.analysis.units.unification import Expr
from archimedes.graph.dtypes import B8, item_type, length_of
from archimedes.graph.regions import (
    Accumulate,
    Call,
    Map,
    Nest,
    Pack,
    Region,
    Scan,
    Solve,
    Switch,
    While,
)
from archimedes.graph.regions.block_regions import positions

#: A loop over blocks whose elements have this many combinations of units is left open.
_MANY = 4096


def region_units(
    every: Propagation, region: Region, units: list[Known], origin: Origin | None
) -> list[Known]:
    """Return the units of the outputs of a region from those of its inputs."""
    rule = _RULES.get(type(region))
    if rule is None:  # a call back into Python, positions that sort
        return [every.fresh(dtype) for dtype in region.out_dtypes]
    return rule(every, region, units, origin)


def _call(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    return every.inside(origin, region.body, units)


def _switch(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    rows = [every.inside(origin, body, units[1:]) for body in region.branches]
    return [every.join("branches", column, origin) for column in zip(*rows)]


def _over_steps(every: Propagation, values: Sequence[Known]) -> Known:
    """Return the unit of a slice in all steps; an unknown one where it differs."""
    first = values[0]
    if first is None:
        return None
    for other in values[1:]:
        if other is not first and not _same(every, first, other):
            return Block([every.new()]) if isinstance(first, Block) else every.new()
    return first


def _same(every: Propagation, a: Known, b: Known) -> bool:
    if isinstance(a, Block):
        return a.index is None and b.index is None and every.unknowns.equate(a.units[0], b.units[0])
    return every.unknowns.equate(a, b)


def _split_steps(every: Propagation, region: Any, values: list[Known]) -> list[Known]:
    """Return the units of the slices in a step of a stacked loop, whose slices hold all steps."""
    n, result = region.carry, []
    for value, kind in zip(values, region.body.input_dtypes[n : n + region.slices]):
        width = length_of(kind)
        if value is None or value.index is None:
            result.append(value if value is None or width else value.units[0])
            continue
        rows = value.index.reshape(region.length, width or 1)
        alike = bool((rows == rows[0]).all())
        if width:
            result.append(Block(value.units, rows[0]) if alike else Block([every.new()]))
        else:
            result.append(value.units[rows[0, 0]] if alike else every.new())
    return result


def _loop(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    n, m = region.carry, region.rows * region.slices
    carry, shared = units[:n], units[n + m :]
    if region.length == 0:
        return [every.fresh(dtype) for dtype in region.out_dtypes] if not n else carry
    if region.stacked:
        slices = _split_steps(every, region, units[n : n + m])
    else:
        rows = [units[n + k : n + m : region.slices] for k in range(region.slices)]
        slices = [_over_steps(every, row) for row in rows]
    out = every.inside(origin, region.body, [*carry, *slices, *shared])
    carry = [every.join("carry", pair, origin) for pair in zip(carry, out[:n])]
    if not region.stacked:
        return carry + out[n:] * region.rows
    return carry + [_stack(value, region.length) for value in out[n:]]


def _stack(value: Known, length: int) -> Known:
    if value is None:
        return None
    if not isinstance(value, Block):
        return Block([value])
    return Block(value.units, None if value.index is None else np.tile(value.index, length))


def _map(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    s, known, outs = region.slices, dict[Any, list[Known]](), list[Known]()
    shared = units[region.length * s :]
    for k in range(region.length):
        row = units[k * s : (k + 1) * s]
        key = tuple(id(x) if isinstance(x, Block) else x for x in row)
        if key not in known:
            known[key] = every.inside(origin, region.body, [*row, *shared])
        outs += known[key]
    return outs


def _while(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    n = region.carry
    every.inside(origin, region.condition, units)
    out = every.inside(origin, region.body, units)
    return [every.join("carry", pair, origin) for pair in zip(units[:n], out)]


def _nest(every: Propagation, region: Nest, units: list[Known], origin: Any) -> list[Known]:
    points = math.prod(region.shape)
    columns, choices = [], []
    for value, read in zip(units, region.reads):
        if read is None or value is None:
            choices.append([value])
        else:
            choices.append(value.units)
            if value.index is not None and len(value.units) > 1:
                columns.append((len(choices) - 1, value.at(positions(read, region.shape)).ravel()))
    extra = [every.new() for _ in range(len(region.body.inputs) - len(region.inputs))]
    if not columns or not points:
        first = [choice[0] for choice in choices]
        outs = every.inside(origin, region.body, [*first, *extra])
        return [_kept(region, out) for out in outs]
    table = np.stack([column for _, column in columns], axis=1)
    rows, index = np.unique(table, axis=0, return_inverse=True)
    if len(rows) > _MANY:
        return [every.fresh(dtype) for dtype in region.out_dtypes]
    results = []
    for row in rows.tolist():
        operands = [choice[0] for choice in choices]
        for (k, _), number in zip(columns, row):
            operands[k] = choices[k][number]
        results.append(every.inside(origin, region.body, [*operands, *extra]))
    index = index.reshape(-1, region.reduced)
    return [_reduce(every, region, column, index, origin) for column in zip(*results)]


def _kept(region: Nest, unit: Known) -> Known:
    """Return the unit of a result all of whose points have one."""
    if unit is None:
        return None
    unit = unit**region.reduced if region.combine == "mul" else unit
    return Block([unit]) if region.kept else unit


def _reduce(
    every: Propagation, region: Nest, units: Sequence[Known], index: np.ndarray, origin: Any
) -> Known:
    """Combine the units of points along the reduced axes; ``index`` has a row for each element."""
    if units[0] is None:
        return None
    rows, which = np.unique(index, axis=0, return_inverse=True)
    results = []
    for first, *others in rows.tolist():
        unit = units[first]
        for k in others if region.combine == "mul" else dict.fromkeys(others):
            if region.combine == "mul":
                unit = unit * units[k]
            else:
                unit = every.equate(region.combine or "add", unit, units[k], origin)
        results.append(unit)
    return Block(results, which.ravel()) if region.kept else results[0]


def _pack(every: Propagation, region: Pack, units: list[Known], origin: Any) -> list[Known]:
    if item_type(region.dtype) == B8:
        return [None]
    boxes, offsets = region._origins
    sources = [units[move.source] for move in region.moves]
    uniform = {id(s): s for s in sources}
    if len(uniform) == 1 and boxes.min(initial=0) >= 0:
        only = sources[0]
        if not isinstance(only, Block):
            return [Block([only])]
        if only.index is None:
            return [Block(only.units)]
    empty = every.new()  # what no box covers is zero
    elements: list[Expr] = []
    for box, offset in zip(boxes.tolist(), offsets.tolist()):
        source = empty if box < 0 else sources[box]
        if isinstance(source, Block):
            source = source.units[int(source.at(np.array(offset)))]
        elements.append(source)
    return [Block.of(elements)]


def _accumulate(every: Propagation, region: Any, units: list[Known], origin: Any) -> list[Known]:
    return [Block([every.one_unit(units[0], "add", origin)])]


def _solve(every: Propagation, region: Solve, units: list[Known], origin: Any) -> list[Known]:
    n, m = region.size, region.columns
    if region.blocks:
        a, b = units
        if a.index is None and b.index is None:
            return [Block([b.units[0] / a.units[0]])]
        matrix, right = a.elements(n * n), b.elements(n * m)
    else:
        matrix, right = units[: n * n], units[n * n :]
    solution = [every.new() for _ in range(n * m)]
    for i in range(n):
        for j in range(n):
            for k in range(m):
                every.equate(
                    "solve", matrix[i * n + j] * solution[j * m + k], right[i * m + k], origin
                )
    solution = [every.unknowns.resolve(x) for x in solution]
    return [Block.of(solution)] if region.blocks else solution


_RULES: dict[type[Region], Callable[..., list[Known]]] = {
    Call: _call,
    Switch: _switch,
    Scan: _loop,
    Map: _map,
    While: _while,
    Nest: _nest,
    Pack: _pack,
    Accumulate: _accumulate,
    Solve: _solve,
}
