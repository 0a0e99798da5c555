"""What each operation did to the digits, from two executions of the same program.

All figures are over the executions of a node: the steps of the loops around it, the instances of a
batch, the samples of arguments. Relative errors are relative to the value that the more accurate
arithmetic has; of values of both signs, which pass through zero, to at least a part of the largest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.analysis.precision.arithmetics import Arithmetic
from archimedes.analysis.precision.conditions import condition_numbers
from archimedes.analysis.precision.execution import Execution, Executions, Key, Path
from archimedes.analysis.precision.sources import Sources
from archimedes.graph.dtypes import F64, is_float, length_of
from archimedes.graph.ops import ELEMENT, LOOKUP, OPERANDS, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest, Region, Scan, Solve, While
from archimedes.records import record

#: Values that pass through zero count as at least this part of the largest of them.
LEAST_PART = 0.03


@record
class NodeError:
    """What one operation did to the digits, over all its executions.

    ``error``: largest relative error of its value; ``jump``: the largest one that is ten times as
    large as those of the operands. ``amplification``: largest condition number by an operand that
    has an error. ``local``: largest relative error that operations of the same line made up to
    here, on the operands that the less accurate arithmetic has. ``absorbed``: part of the
    executions in which an addend left the sum as it was; ``lost``: what was lost of addends, as a
    part of them, on average, and ``often``: in a tenth of the executions at least so much;
    ``steady``: the addend is the same in all. ``overflows``,
    ``underflows``, ``invalid`` (nan in one arithmetic only) and ``flips`` (other truth values,
    other integers) are counted. ``worst`` is the execution with the largest error; ``values`` are
    operands and result there, as (accurate, less accurate); ``last`` are the
    operands of a sum in the last execution; ``size`` is the largest number.
    """

    graph: Graph
    key: Key
    node: int
    op: str
    source: int
    count: int
    error: float = 0.0
    jump: float = 0.0
    amplification: float = 0.0
    local: float = 0.0
    absorbed: float = 0.0
    lost: float = 0.0
    often: float = 0.0
    steady: bool = False
    overflows: int = 0
    underflows: int = 0
    invalid: int = 0
    flips: int = 0
    worst: int = 0
    values: tuple[tuple[float, float], ...] = ()
    last: tuple[float, ...] = ()
    size: float = 0.0

    @property
    def in_loop(self) -> bool:
        """Whether it ran more than once, in steps that follow each other."""
        return self.count > 1


@record
class Growth:
    """The error of a value that a loop carries: at these steps, absolute and relative."""

    graph: Graph
    key: Key
    node: int
    source: int
    steps: np.ndarray
    error: np.ndarray
    relative: np.ndarray


def relative_error(error: Any, accurate: Any, low: Any, least: Any = 0.0) -> np.ndarray:
    """Return |error / accurate|; the same nan, infinity or zero in both is no error.

    >>> relative_error(np.array([0.0, np.nan]), np.array([0.0, np.inf]), np.array([0.0, np.inf]))
    array([0., 0.])
    """
    with np.errstate(all="ignore"):
        relative = np.abs(error) / np.maximum(np.abs(accurate), least)
    # What is left of a double-double number may differ though its first part does not.
    same = ((low == accurate) & ~(np.abs(error) > 0)) | (np.isnan(low) & np.isnan(accurate))
    unlike = ~same & (~np.isfinite(low) | ~np.isfinite(accurate))
    result: np.ndarray = np.where(same, 0.0, np.where(unlike, np.inf, relative))
    return np.where(np.isnan(result), np.inf, result)


def split(value: Any) -> tuple[Any, Any]:
    """Return a value as float64 and what is left of it, which is 0 unless it is double-double."""
    if hasattr(value, "low"):
        return value.high, value.low
    return value, 0.0


class Pairs:
    """The executions of one body that both arithmetics have, as arrays over them."""

    def __init__(self, low: Executions, high: Executions) -> None:
        self.graph, self.live = low.graph, low.live
        paths = [path for path in low.rows if path in high.rows]
        self._rows = [low.rows[p] for p in paths], [high.rows[p] for p in paths]
        self.paths, self.steps = paths, low.steps
        #: The executions in all, of which some are kept.
        self.count = low.count if low.steps is None else int(low.steps[-1]) + 1
        numbers = [i for i in self.live if not length_of(self.graph.dtype[i])]
        numbers = [i for i in numbers if self.graph.op[i] != REGION]
        ends = self._rows[0][:1] + self._rows[0][-1:]
        self.axes = max((np.ndim(row[i]) for row in ends for i in numbers), default=0)
        self._known: dict[int, tuple[Any, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows[0])

    def raw(self, i: int) -> tuple[Any, Any]:
        """Return a node's values in both arithmetics, as they were computed, in arrays."""
        if i not in self._known:
            self._known[i] = tuple(self._column([row[i] for row in rows]) for rows in self._rows)
        return self._known[i]

    def __call__(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a node's values, less accurate and accurate, and the error, in float64."""
        low, high = self.raw(i)
        high, rest = split(high)
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        with np.errstate(all="ignore"):
            return low, high, (low - high) - rest

    def runs(self, *columns: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield for each run of a loop its steps, and the values of columns at them."""
        if self.steps is not None:
            shape = len(self.paths), len(self.steps)
            rows = [np.broadcast_to(x, shape) for x in columns]
            yield from ((self.steps, *(x[k] for x in rows)) for k in range(len(self.paths)))
            return
        runs: dict[Path, list[int]] = {}
        for k, path in enumerate(self.paths):
            runs.setdefault(path[:-1], []).append(k)
        for run in runs.values():
            steps = np.array([self.paths[k][-1] for k in run])
            yield (steps, *(x.reshape(len(self.paths))[run] for x in columns))

    def _column(self, values: list[Any]) -> Any:
        """Stack the values of all executions; batches are the last axes."""
        if len(values) == 1 and hasattr(values[0], "low"):
            return values[0][None] if self.axes == np.ndim(values[0]) else values[0]
        if all(np.ndim(x) == 0 for x in values):
            column = np.stack(values) if hasattr(values[0], "low") else np.array(values)
            return column.reshape(-1, *[1] * self.axes)
        column = np.stack(np.broadcast_arrays(*values))
        missing = self.axes + 1 - column.ndim
        return column.reshape(len(values), *[1] * max(0, missing), *column.shape[1:])


class Statistics:
    """The errors of all operations of a program, from an execution in each arithmetic."""

    def __init__(self, low: Execution, high: Execution, sources: Sources) -> None:
        self.low, self.high = low.arithmetic, high.arithmetic
        self.sources = sources
        self.nodes: list[NodeError] = []
        self.growth: list[Growth] = []
        #: Loops that ran another number of times: the source, and how often (accurate, less so).
        self.rounds: list[tuple[int, int, int]] = []
        regions = _regions_of(low)
        for key, executions in low.bodies.items():
            if key not in high.bodies:
                continue
            pairs = Pairs(executions, high.bodies[key])
            counts = high.bodies[key].count, executions.count
            region = regions.get(key)
            if isinstance(region, While) and counts[0] != counts[1] and key[-1][1] == 1:
                outer = low.bodies[key[:-1]].graph
                self.rounds.append((sources.of(outer, key[-1][0]), *counts))
            if pairs:
                self.nodes += _errors_in(pairs, key, self)
                self.growth += _growth_in(pairs, key, region, sources)


def _regions_of(execution: Execution) -> dict[Key, Region]:
    """Return the region that runs each body, by the body's key."""
    return {
        key: execution.bodies[key[:-1]].graph.regions[key[-1][0]]
        for key in execution.bodies
        if key and key[:-1] in execution.bodies
    }


def _errors_in(pairs: Pairs, key: Key, about: Statistics) -> Iterator[NodeError]:
    g, sources = pairs.graph, about.sources
    local = _LocalErrors(pairs, about)
    for i in pairs.live:
        code, source = g.op[i], sources.of(g, i)
        if code == OUT:
            region = g.regions[g.a[i]]
            if isinstance(region, Solve) or (isinstance(region, Nest) and region.combine == "add"):
                yield _region_error(pairs, key, i, region, source)
            continue
        if length_of(g.dtype[i]):
            continue
        if OPERANDS[code] and is_float(g.dtype[i]):
            yield _operation_error(pairs, key, i, source, local(i), about.low)
        elif OPERANDS[code] or code in (LOOKUP, ELEMENT):
            low, high = pairs.raw(i)
            high = split(high)[0]
            unlike = low != high
            if not is_float(g.dtype[i]) and np.any(unlike):
                at = int(np.argmax(unlike))
                pair = (float(high.flat[at]), float(low.flat[at]))
                flips, op = int(np.sum(unlike)), TABLE[code].name
                yield NodeError(
                    g, key, i, op, source, pairs.count, flips=flips, worst=at, values=(pair,)
                )


def _operation_error(
    pairs: Pairs, key: Key, i: int, source: int, local: float, arithmetic: Arithmetic
) -> NodeError:
    g = pairs.graph
    name = TABLE[g.op[i]].name
    operands = list(g.operands(i))
    low, high, error = pairs(i)
    least = _least(high)
    relative = relative_error(error, high, low, least)
    ins = [pairs(j) if is_float(g.dtype[j]) else None for j in operands]
    amplification, before = 0.0, np.zeros(())
    floats = [x for x in ins if x is not None]
    numbers = condition_numbers(name, high, *(x[1] for x in floats), least=least)
    for (a_low, a, a_error), number in zip(floats, numbers):
        own = relative_error(a_error, a, a_low, _least(a))
        inexact, before = own > 0, np.maximum(before, own)
        number = np.where(np.isfinite(number) & np.isfinite(high) & inexact, number, 0.0)
        amplification = max(amplification, float(np.max(number)))
    absorbed, lost, often, steady = 0.0, 0.0, 0.0, False
    if name in ("add", "sub") and pairs.count > 1:
        absorbed, lost, often, steady = _absorption(low, *(x[0] for x in floats))
    tiny = np.finfo(np.float32 if arithmetic.name == "float32" else np.float64).tiny
    finite: Any = True
    known: Any = True
    for a_low, _, _ in floats:
        finite, known = finite & np.isfinite(a_low), known & ~np.isnan(a_low)
    jumps = np.where((relative > 10.0 * before) & np.isfinite(relative), relative, 0.0)
    shape = np.broadcast_shapes(jumps.shape, *(x[0].shape for x in floats))
    worst = int(np.argmax(np.broadcast_to(jumps if np.any(jumps) else relative, shape)))
    values = tuple(
        (_item(x[1], shape, worst), _item(x[0], shape, worst))
        for x in (*floats, (low, high, error))
    )
    return NodeError(
        g,
        key,
        i,
        name,
        source,
        pairs.count,
        error=float(np.max(relative)),
        jump=float(np.max(jumps)),
        amplification=amplification,
        local=local,
        absorbed=absorbed,
        lost=lost,
        often=often,
        steady=steady,
        overflows=int(np.sum(np.isinf(low) & np.isfinite(high) & finite)),
        underflows=int(np.sum((np.abs(low) < tiny) & (low != high) & (np.abs(high) < tiny))),
        invalid=int(np.sum(np.isnan(low) & ~np.isnan(high) & known)),
        worst=worst,
        values=values,
        last=tuple(_item(x[0], shape, -1) for x in floats) if often else (),
        size=max(_size(x) for x in (high, *(x[1] for x in floats))),
    )


def _item(values: np.ndarray, shape: tuple[int, ...], at: int) -> float:
    """Return one of the values that broadcast to a shape."""
    whole = values if values.shape == shape else np.broadcast_to(values, shape)
    return float(whole.item(at) if whole is values else whole.flat[at])


def _size(values: np.ndarray) -> float:
    """Return the size of the largest number."""
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def _least(values: np.ndarray) -> Any:
    """Return the size below which values of both signs count as passing through zero."""
    numbers = values[np.isfinite(values)]
    if numbers.size < 2 or np.min(numbers) >= 0.0 or np.max(numbers) <= 0.0:
        return 0.0
    return LEAST_PART * float(np.max(np.abs(numbers)))


def _absorption(total: Any, a: Any, b: Any) -> tuple[float, float, float, bool]:
    """Return how often an addend left a sum as it was, and what part of addends was lost.

    Also what is lost of them in a tenth of the cases, and whether they are always the same.
    """
    a, b, total = np.broadcast_arrays(np.abs(a), np.abs(b), np.abs(total))
    large, small = np.maximum(a, b), np.minimum(a, b)
    there = (small > 0) & np.isfinite(large) & (small < large)
    if not np.any(there):
        return 0.0, 0.0, 0.0, False
    large, small, total = large[there], small[there], total[there]
    kept = np.abs(total - large)
    lost = np.minimum(np.abs(kept - small) / small, 1.0)
    often = float(np.quantile(lost, 0.9))
    return float(np.mean(kept == 0)), float(np.mean(lost)), often, bool(np.all(small == small[0]))


def _region_error(pairs: Pairs, key: Key, i: int, region: Region, source: int) -> NodeError:
    """Return the error of a sum over an array, or of a linear system."""
    g = pairs.graph

    def normwise(j: int) -> np.ndarray:
        _, high, error = pairs(j)
        axes = tuple(range(1, high.ndim))
        size = np.max(np.abs(high), axis=axes, initial=0.0)
        return relative_error(
            np.max(np.abs(error), axis=axes, initial=0.0), size, size + np.max(np.abs(error))
        )

    errors = normwise(i)
    inputs = [normwise(j) for j in region.inputs.tolist() if is_float(g.dtype[j])]
    before = max((float(np.max(x)) for x in inputs), default=0.0)
    error = float(np.max(errors))
    growth = error / before if before and np.isfinite(error) else 0.0
    low, high, _ = pairs(i)
    at = int(np.argmax(np.abs(low - high)))
    op = "solve" if isinstance(region, Solve) else "sum"
    pair = (float(high.flat[at]), float(low.flat[at]))
    return NodeError(
        g,
        key,
        i,
        op,
        source,
        pairs.count,
        error=error,
        jump=error if growth > 10.0 else 0.0,
        amplification=growth,
        values=(pair,),
    )


class _LocalErrors:
    """Relative errors that the operations of one line make, up to each of its nodes."""

    def __init__(self, pairs: Pairs, about: Statistics) -> None:
        self.pairs, self.about = pairs, about
        self.values: dict[int, Any] = {}

    def __call__(self, i: int) -> float:
        g, sources = self.pairs.graph, self.about.sources
        own = sources.of(g, i)
        operands = []
        for j in g.operands(i):
            if j in self.values and sources.of(g, j) == own:
                operands.append(self.values[j])
            else:
                low = self.pairs.raw(j)[0]
                operands.append(self.about.high.array(low) if g.dtype[j] == F64 else low)
        with np.errstate(all="ignore"):
            value = self.about.high.functions[g.op[i]](*operands)
            self.values[i] = value
            high, rest = split(value)
            low = self.pairs(i)[0]
            error = (low - high) - rest
        errors = relative_error(error, high, low, _least(np.asarray(high)))
        return float(np.max(errors[np.isfinite(errors)], initial=0.0))


def _growth_in(pairs: Pairs, key: Key, region: Region | None, sources: Sources) -> Iterator[Growth]:
    """Yield the errors of what a loop carries from step to step, of the sample with the largest."""
    g = pairs.graph
    if not isinstance(region, (Scan, While)) or g is not region.body:
        return
    if pairs.axes != (pairs.steps is not None):
        return  # a batch
    for i in g.outputs[: region.carry]:
        if g.dtype[i] != F64 or sources.of(g, i) < 0:
            continue
        low, high, error = pairs(i)
        runs = list(pairs.runs(np.abs(error), relative_error(error, high, low, _least(high))))
        yield Growth(g, key, i, sources.of(g, i), *max(runs, key=lambda run: run[2][-1]))
