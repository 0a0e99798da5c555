"""Functions whose results come from maps, split: the map's body, and where it is used.

A large problem is often written as ``vmap`` over parts of its unknowns. Its derivatives are those
of the body at each place, so that only the body need be differentiated and compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.recording import Recording, leaf_ids
from archimedes.graph import F64, OUT, TABLE, Graph, inline, with_outputs
from archimedes.graph.regions.loop_regions import Map
from archimedes.symbolic import current_trace, lift, wrap

#: Maps over fewer instances are left where they are.
FEWEST = 16
#: Values shared by all instances may depend on this many unknowns.
MOST_SHARED = 32


@dataclass(eq=False)
class SplitMap:
    """The body of a map, as a function of z = x[index[k]] and data[k], for each instance k.

    ``rows`` (instances, results) says what each result is: number ``rows`` of the constraints, or
    a summand of the objective (-1).
    """

    body: Graph
    shared: Graph
    recording: Recording
    index: np.ndarray
    data: np.ndarray
    rows: np.ndarray
    outputs: list[int]
    slots: list[int]
    shared_x: list[int]
    weights: list[float]

    def __content__(self) -> tuple[()]:
        # It is made anew whenever the recording is: nothing in it needs watching.
        return ()

    def __call__(self, z: Any, data: Any, *args: Any) -> Any:
        """Return the results of one instance, recorded where it is called."""
        trace = current_trace()
        z_ids = trace.ids_of(lift(z)).tolist()
        data_ids = trace.ids_of(lift(data)).tolist()
        moving, fixed = iter(z_ids[: sum(self.slots)]), iter(data_ids)
        slices = [next(moving) if mine else next(fixed) for mine in self.slots]
        whole = _program_inputs(self.recording, self.shared_x, z_ids[sum(self.slots) :], args)
        around = inline(trace.graph, self.shared, whole)
        results = inline(trace.graph, self.body, [*slices, *around])
        values = wrap(np.array([results[j] for j in self.outputs], dtype=np.int64), F64)
        return values * np.array(self.weights)


def _program_inputs(
    recording: Recording, positions: Sequence[int], ids: Sequence[int], args: Any
) -> list[int]:
    """Return nodes for (x, *args), where it is called: of x some, the others are zero."""
    whole = [current_trace().graph.const(0.0, F64)] * recording.leaves[0].size
    for k, i in zip(positions, ids):
        whole[k] = i
    for leaf, spec in zip(tree.leaves(args), recording.leaves[1:]):
        if spec.traced:
            whole += leaf_ids(lift(leaf), spec)
    return whole


@dataclass(eq=False)
class Rest:
    """What is left: results that come from no map, as a function of z = x[index[0]]."""

    graph: Graph
    recording: Recording
    rows: np.ndarray
    index: np.ndarray
    weights: np.ndarray

    def __content__(self) -> tuple[()]:
        # It is made anew whenever the recording is: nothing in it needs watching.
        return ()

    def __call__(self, z: Any, *args: Any) -> Any:
        """Return the results, recorded where it is called."""
        trace = current_trace()
        ids = trace.ids_of(lift(z)).tolist()
        whole = _program_inputs(self.recording, self.index[0].tolist(), ids, args)
        results = inline(trace.graph, self.graph, whole)
        return wrap(np.array(results, dtype=np.int64), F64) * self.weights


def split_into_maps(recording: Recording) -> tuple[list[SplitMap], Rest | None] | None:
    """Split ``(x, *args) -> [f, *g]``, all float64; None if no map gives enough of it."""
    g = recording.graph
    if any(spec.code != F64 for spec in recording.leaves if spec.traced) or recording.captured:
        return None
    n = recording.leaves[0].size
    wanted = [(i, -1, w) for i, w in _summands(g, g.outputs[0])]
    wanted += [(o, k, 1.0) for k, o in enumerate(g.outputs[1:])]
    tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    left: list[tuple[int, int, float]] = []
    for node, row, weight in wanted:
        region = g.regions.get(g.a[node]) if g.op[node] == OUT else None
        if not isinstance(region, Map) or region.length < FEWEST:
            left.append((node, row, weight))
            continue
        shape = (region.length, len(region.body.outputs))
        rows, weights = tables.setdefault(g.a[node], (np.full(shape, -2), np.zeros(shape)))
        at = divmod(g.b[node], shape[1])
        if rows[at] != -2:
            return None  # used twice: rare, and not worth a way of its own
        rows[at], weights[at] = row, weight
    maps = [_split_map(recording, node, *table, n) for node, table in tables.items()]
    if not maps or any(m is None for m in maps):
        return None
    rest = _rest(recording, left, n) if left else None
    return [m for m in maps if m is not None], rest


def _summands(g: Graph, output: int) -> list[tuple[int, float]]:
    """Return nodes and factors whose weighted sum an output is."""
    summands, stack = [], [(output, 1.0)]
    while stack:
        i, weight = stack.pop()
        name = TABLE[g.op[i]].name
        operands = g.operands(i)
        if name == "add":
            stack.extend((j, weight) for j in operands)
        elif name == "mul" and any(j in g.value for j in operands):
            a, b = operands
            a, b = (b, a) if a in g.value else (a, b)
            stack.append((a, weight * float(g.value[b])))
        else:
            summands.append((i, weight))
    return summands


def _split_map(
    recording: Recording, node: int, table: np.ndarray, weights: np.ndarray, n: int
) -> SplitMap | None:
    g = recording.graph
    region = g.regions[node]
    assert isinstance(region, Map)
    used = [j for j in range(table.shape[1]) if not np.all(table[:, j] == -2)]
    is_one_kind = np.all(table >= 0, axis=0) | np.all(table == -1, axis=0)
    if not np.all((is_one_kind & np.all(weights == weights[0], axis=0))[used]):
        return None
    _, stacked, shared = region.parts()
    position = {i: k for k, i in enumerate(g.inputs[:n])}
    slots, index, data = [], [], []
    for column in stacked.T.tolist():
        if all(i in position for i in column):
            slots.append(1)
            index.append([position[i] for i in column])
        elif all(i in g.value for i in column):
            slots.append(0)
            data.append([float(g.value[i]) for i in column])
        else:
            return None
    around = with_outputs(g, shared.tolist())
    shared_x = _inputs_used(around, n)
    if len(shared_x) > MOST_SHARED or not (slots and sum(slots)):
        return None
    count = region.length
    moving = np.array(index).T.reshape(count, -1)
    whole = np.concatenate([moving, np.tile(shared_x, (count, 1)).reshape(count, -1)], axis=1)
    constants = np.array(data).T.reshape(count, -1) if data else np.zeros((count, 0))
    return SplitMap(
        region.body,
        around,
        recording,
        whole.astype(np.int64),
        constants,
        table[:, used],
        used,
        slots,
        shared_x,
        weights[0, used].tolist(),
    )


def _rest(recording: Recording, left: list[tuple[int, int, float]], n: int) -> Rest:
    graph = with_outputs(recording.graph, [node for node, _, _ in left])
    rows = np.array([row for _, row, _ in left])[None]
    weights = np.array([weight for _, _, weight in left])
    index = np.array([_inputs_used(graph, n)], dtype=np.int64)
    return Rest(graph, recording, rows, index, weights)


def _inputs_used(graph: Graph, n: int) -> list[int]:
    """Return which of the first n inputs the outputs depend on."""
    inside = set(graph.live(graph.outputs))
    return [k for k in range(n) if graph.inputs[k] in inside]
