"""Ranges of a graph's outputs, by sweeps over smaller and smaller boxes of its inputs.

The overestimation of affine arithmetic falls with the square of the width of a box. So the boxes
that decide the ends of the results are halved, along the input whose halving helps most, until
they are as tight as sampled results, or the given number of boxes is used up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archimedes.analysis.ranges.regions import run_region
from archimedes.analysis.ranges.rounding import INF, Ends
from archimedes.analysis.ranges.sweep import Problem, Sweep
from archimedes.analysis.ranges.values import constant
from archimedes.backends.interpreter import run
from archimedes.graph.dtypes import DTYPES, is_float
from archimedes.graph.program import Graph
from archimedes.graph.regions import While
from archimedes.graph.regions.base import has_blocks

Array = np.ndarray

#: Boxes of one sweep.
_AT_ONCE = 128
#: Boxes by which comparisons may increase them.
_SPLIT_BOXES = 512
#: Inputs whose halving is tried.
_TRIED = 64
#: An overestimation that is not worth more boxes, as a share of the sampled range.
_TIGHT = 0.02
#: Operations that loops may take in a sweep, and after which boxes are no longer halved.
UNROLL, _ENOUGH = 30_000, 120_000


class Ranges(NamedTuple):
    """What is certain of the outputs of a graph: ``ends`` (2, outputs), ``nan`` (outputs,).

    ``problems`` are what could not be excluded, ``boxes`` how many boxes were computed.
    """

    ends: Ends
    nan: Array
    problems: list[Problem]
    boxes: int


class _Boxes:
    """Boxes of inputs (2, inputs, boxes) with the ranges of outputs, and problems by box."""

    def __init__(self, inputs: Array, ends: Array, nan: Array, problems: list[list[Problem]]):
        self.inputs, self.ends, self.nan, self.problems = inputs, ends, nan, problems

    def __len__(self) -> int:
        return len(self.problems)

    def take(self, at: Array) -> _Boxes:
        """Return some of the boxes."""
        problems = [self.problems[k] for k in at.tolist()]
        return _Boxes(self.inputs[..., at], self.ends[..., at], self.nan[..., at], problems)

    def join(self, other: _Boxes) -> _Boxes:
        """Return the boxes of two sets."""
        arrays = ((self.inputs, other.inputs), (self.ends, other.ends), (self.nan, other.nan))
        inputs, ends, nan = (np.concatenate(pair, axis=-1) for pair in arrays)
        return _Boxes(inputs, ends, nan, self.problems + other.problems)


def bound_graph(
    graph: Graph, ends: Ends, boxes: int = 256, unroll: int = UNROLL, division_error: float = 0.0
) -> Ranges:
    """Return certified ranges of the outputs of a graph whose inputs, all scalars, have `ends`.

    Parameters
    ----------
    graph : Graph
        The program; in float32 where it is of that type.
    ends : array (2, inputs)
        Lower and upper ends of the inputs.
    boxes : int
        How many boxes may be computed.
    unroll : int
        How many operations loops may take in one sweep before they are summarized.
    division_error : float
        How many roundoffs more than one a division may be off.
    """
    with np.errstate(all="ignore"):
        return _Subdivision(graph, np.asarray(ends, float), boxes, unroll, division_error).run()


class _Subdivision:
    def __init__(
        self, graph: Graph, ends: Ends, boxes: int, unroll: int, division_error: float
    ) -> None:
        self.graph, self.ends, self.budget = graph, ends, boxes
        self.unroll, self.division_error = unroll, division_error
        self.kinds = graph.input_dtypes
        floats = np.array([is_float(kind) for kind in self.kinds], dtype=bool)
        narrow = np.isfinite(ends).all(axis=0) & (ends[0] < ends[1])
        #: Inputs that can be halved.
        self.free = np.flatnonzero(narrow & floats)
        self.used = self.evaluated = 0

    # ---- one sweep ---------------------------------------------------------------------

    def compute(self, inputs: Array) -> _Boxes:
        """Return the ranges of the outputs on boxes."""
        parts = [
            self._compute(inputs[..., k : k + _AT_ONCE])
            for k in range(0, inputs.shape[-1], _AT_ONCE)
        ]
        result = parts[0]
        for part in parts[1:]:
            result = result.join(part)
        return result

    def _compute(self, inputs: Array) -> _Boxes:
        count = inputs.shape[-1]
        self.used += count
        limit = count + _SPLIT_BOXES
        sweep = Sweep(count, limit, self.unroll, run_region, self.division_error)
        # All boxes have the same symbols, those of inputs that vary.
        values = []
        for k, kind in enumerate(self.kinds):
            if self.ends[0, k] == self.ends[1, k]:
                value = constant(DTYPES[kind].type(self.ends[0, k]))
                # Zero is in a range with its sign or without.
                value.ends[0] = np.where(value.low == 0.0, -0.0, value.low)
                value.ends[1] = np.where(value.high == 0.0, 0.0, value.high)
                values.append(value)
            else:
                values.append(sweep.input(inputs[:, k], is_float(kind)))
        outs = sweep.run(self.graph, values)
        self.evaluated += sweep.evaluated
        origin = np.arange(count)
        for narrowing in sweep.history:
            origin = origin[narrowing.parents]
        return self._collect(sweep, outs, inputs, origin)

    def _collect(self, sweep: Sweep, outs: list, inputs: Array, origin: Array) -> _Boxes:
        """Put the boxes of a sweep together again that were one when it began."""
        count, alive = inputs.shape[-1], ~sweep.dead
        ends = np.empty((2, len(outs), count))
        ends[0], ends[1] = INF, -INF
        nan = np.zeros((len(outs), count), dtype=bool)
        at = origin[alive]
        for k, out in enumerate(outs):
            low, high = (np.broadcast_to(x, (sweep.count,))[alive] for x in out.ends)
            np.minimum.at(ends[0, k], at, low)
            np.maximum.at(ends[1, k], at, high)
            if out.nan is not None:
                np.logical_or.at(nan[k], at, np.broadcast_to(out.nan, (sweep.count,))[alive])
        problems: list[list[Problem]] = [[] for _ in range(count)]
        for _, problem in sweep.problems:
            mask = sweep.mask_now(problem.boxes, problem.version)
            for k in np.unique(origin[mask & alive]).tolist():
                problems[k].append(problem)
        return _Boxes(inputs, ends, nan, problems)

    # ---- which boxes to halve ----------------------------------------------------------

    def run(self) -> Ranges:
        """Return the ranges of the outputs over all boxes."""
        root = self.compute(self.ends[..., None])
        frontier = root
        if len(self.free) and self.graph.outputs and self.budget > 1:
            weights = self._try_halving(root)
            inner = self._sample()
            while self.used < self.budget and self.evaluated < _ENOUGH:
                worst = self._worst(frontier, inner, (self.budget - self.used + 1) // 2)
                if not len(worst):
                    break
                rest = np.setdiff1d(np.arange(len(frontier)), worst)
                parents = frontier.take(worst)
                halves = self.compute(self._halve(parents.inputs, weights))
                self._inherit(halves, parents)
                frontier = frontier.take(rest).join(halves)
        low, high = frontier.ends[0].min(axis=-1), frontier.ends[1].max(axis=-1)
        problems = [problem for box in frontier.problems for problem in box]
        nan = np.asarray(frontier.nan.any(axis=-1))
        return Ranges(np.stack([low, high]), nan, problems, self.used)

    def _try_halving(self, root: _Boxes) -> Array:
        """Return how much it helps to halve the box of all inputs along each of them."""
        weights = np.zeros(len(self.kinds))
        tried = self.free
        if len(tried) > _TRIED:
            wide = np.argsort(-(self.ends[1] - self.ends[0])[tried], kind="stable")
            weights[tried], tried = 1e-9, tried[wide[:_TRIED]]
        boxes = np.repeat(self.ends[..., None], 2 * len(tried), axis=-1)
        for k, i in enumerate(tried.tolist()):
            middle = _middle(self.ends[0, i], self.ends[1, i])
            boxes[1, i, 2 * k] = boxes[0, i, 2 * k + 1] = middle
        if len(tried) == 1:
            weights[tried] = 1.0
            return weights
        used = self.used
        halves = self.compute(boxes)
        self.used = used
        width = root.ends[1] - root.ends[0]
        for k, i in enumerate(tried.tolist()):
            pair = halves.ends[..., 2 * k : 2 * k + 2]
            ratio = (pair[1].max(axis=-1) - pair[0].min(axis=-1)) / width[:, 0]
            gain = -np.log(np.clip(ratio, 1e-3, 1.0))
            fewer = len(root.problems[0]) - 0.5 * sum(map(len, halves.problems[2 * k : 2 * k + 2]))
            weights[i] = np.nansum(gain) + max(fewer, 0.0) + 1e-9
        return weights

    def _sample(self) -> Ends:
        """Return the range of the outputs at some points: what no bound can be inside of."""
        few = 16 if has_blocks(self.graph) else 512
        if self.graph.effects() or _longest_loop(self.graph) > UNROLL:
            return np.full((2, len(self.graph.outputs)), np.nan)
        rng = np.random.default_rng(0)
        share = rng.random((len(self.kinds), few))
        share[:, ::2] = np.round(share[:, ::2])  # corners
        low, high = (np.nan_to_num(x, posinf=1e300, neginf=-1e300)[:, None] for x in self.ends)
        points = np.clip(low * (1.0 - share) + high * share, low, high)
        columns = [x.astype(DTYPES[kind]) for x, kind in zip(points, self.kinds)]
        if few == 16:
            results = [run(self.graph, [c[k] for c in columns]) for k in range(few)]
            rows = np.array(results, dtype=float).T
        else:
            outs = run(self.graph, columns)
            rows = np.array([np.broadcast_to(out, (few,)) for out in outs], dtype=float)
        rows = np.where(np.isfinite(rows), rows, np.nan)
        return np.stack([np.fmin.reduce(rows, axis=1), np.fmax.reduce(rows, axis=1)])

    def _worst(self, frontier: _Boxes, inner: Ends, most: int) -> Array:
        """Return the boxes whose ranges reach furthest beyond what was sampled."""
        span = inner[1] - inner[0]
        span = np.where(span > 0.0, span, np.maximum(np.abs(inner[0]), 1e-300) * 1e-9)[:, None]
        beyond = np.maximum(
            inner[0][:, None] - frontier.ends[0], frontier.ends[1] - inner[1][:, None]
        )
        excess = beyond / span
        excess = np.where(np.isnan(excess), INF, excess).max(axis=0)
        excess = np.where([len(p) > 0 for p in frontier.problems], INF, excess)
        width = (frontier.inputs[1] - frontier.inputs[0])[self.free]
        size = np.maximum(np.abs(frontier.inputs), 1e-300).max(axis=0)[self.free]
        divisible = (width > 1e-9 * size).any(axis=0)
        order = np.argsort(-excess, kind="stable")
        order = order[(excess[order] > _TIGHT) & divisible[order]]
        return np.sort(order[: min(most, _AT_ONCE // 2)])

    def _halve(self, inputs: Array, weights: Array) -> Array:
        """Return both halves of boxes, the lower ones first."""
        share = (inputs[1] - inputs[0]) / (self.ends[1] - self.ends[0])[:, None]
        chosen = np.argmax(np.nan_to_num(share) * weights[:, None], axis=0)
        rows = np.arange(inputs.shape[-1])
        middle = _middle(inputs[0, chosen, rows], inputs[1, chosen, rows])
        lower, upper = inputs.copy(), inputs.copy()
        lower[1, chosen, rows] = upper[0, chosen, rows] = middle
        return np.concatenate([lower, upper], axis=-1)

    def _inherit(self, halves: _Boxes, parents: _Boxes) -> None:
        """Halves of a box have no results that the box has not."""
        of_parents = np.concatenate([parents.ends, parents.ends], axis=-1)
        low = np.maximum(halves.ends[0], of_parents[0])
        high = np.minimum(halves.ends[1], of_parents[1])
        empty = low > high
        halves.ends = np.where(empty, halves.ends, np.stack([low, high]))


def _longest_loop(graph: Graph) -> int:
    """Return the most rounds that a loop with a condition may take."""
    own = (r.limit for r in graph.regions.values() if isinstance(r, While))
    inner = (_longest_loop(b) for r in graph.regions.values() for b in r.bodies)
    return max([0, *own, *inner])


def _middle(low: Array, high: Array) -> Array:
    """Return the middle of intervals that may be too wide for their width."""
    return 0.5 * low + 0.5 * high
