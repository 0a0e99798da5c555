"""Recording the bodies of regions: functions of trees become graphs with shared inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.recording import LeafSpec, OutLeaf, Recording, record
from archimedes.graph.dtypes import DTYPES, code_of
from archimedes.graph.passes import inline, prune
from archimedes.graph.program import Graph
from archimedes.symbolic import SymbolicArray, current_trace, is_tracing, lift, wrap
from archimedes.symbolic.core.casting import cast, cast_ids
from archimedes.tree.treedef import TreeDef

__all__ = [
    "Flat",
    "align",
    "any_traced",
    "flatten_traced",
    "own_copy",
    "promoted_code",
    "record_body",
    "with_output_codes",
]


def any_traced(*trees: Any) -> bool:
    """Tell whether a call must be recorded: some leaf is traced, or a trace is under way."""
    return is_tracing() or any(
        isinstance(leaf, SymbolicArray) for t in trees for leaf in tree.leaves(t)
    )


def own_copy(value: Any) -> Any:
    """Return a tree with copies of its arrays, in C order: what the body of a region works on.

    A body may write to what it is given. Recorded, that changes values of its own; run as plain
    Python it must not change the caller's arrays, nor what an earlier step returned.
    """
    return tree.map(_own, value)


def _own(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, (np.ndarray, SymbolicArray.array)) else leaf


@dataclass
class Flat:
    """A tree lifted into the current trace: traced arrays for its leaves."""

    arrays: list[SymbolicArray]
    treedef: TreeDef

    def ids(self) -> list[int]:
        """Return the ids of all leaves, one after the other."""
        trace = current_trace()
        return [i for a in self.arrays for i in trace.ids_of(a).ravel().tolist()]

    def specs(self) -> list[LeafSpec]:
        """Describe the leaves."""
        return [LeafSpec(a.code, a.shape, a.weak) for a in self.arrays]

    def cast(self, codes: Sequence[int], weak: Sequence[bool]) -> Flat:
        """Return the leaves converted to other dtypes; those marked ``weak`` are Python numbers."""
        g = current_trace().graph
        trace = current_trace()
        arrays = [
            wrap(cast_ids(g, trace.ids_of(a), a.code, code), code, weak=number)
            for a, code, number in zip(self.arrays, codes, weak)
        ]
        return Flat(arrays, self.treedef)

    def rebuild(self, ids: Sequence[int]) -> Any:
        """Return the tree with leaves of these ids."""
        arrays, at = [], 0
        for a in self.arrays:
            block = np.array(ids[at : at + a.size], dtype=np.int64).reshape(a.shape)
            arrays.append(wrap(block, a.code, weak=a.weak))
            at += a.size
        return self.treedef.unflatten(arrays)


def flatten_traced(value: Any, what: str) -> Flat:
    """Lift every leaf of a tree to a traced array; ``what`` names the tree in errors."""
    leaves, treedef = tree.flatten(value)
    arrays = []
    for leaf, path in zip(leaves, treedef.paths(what)):
        if not isinstance(leaf, (int, float, np.ndarray, np.generic, SymbolicArray)):
            raise TraceError(
                f"{path} is a {type(leaf).__name__}: loops and branches carry numbers and arrays "
                "only; use a closure for other things"
            )
        array = lift(leaf)
        weak = type(leaf) in (int, float) or getattr(leaf, "weak", False)
        arrays.append(wrap(array.ids, array.code, array.owner, weak))
    return Flat(arrays, treedef)


def record_body(
    function: Callable[..., Any], groups: Sequence[Flat | tuple[list[LeafSpec], TreeDef]]
) -> Recording:
    """Record a function whose arguments are trees of the given leaves."""
    described = [
        (group.specs(), group.treedef) if isinstance(group, Flat) else group for group in groups
    ]
    leaves = [spec for specs, _ in described for spec in specs]

    def build(symbols: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, at = [], 0
        for specs, treedef in described:
            args.append(treedef.unflatten(symbols[at : at + len(specs)]))
            at += len(specs)
        return tuple(args), {}

    return record(function, leaves, build)


def static_out_graph(recording: Recording) -> Recording:
    """Turn numbers known while recording into outputs, so that all leaves are in the graph."""
    if all(out.spec.traced for out in recording.outs):
        return recording
    g = Graph()
    inputs = [g.input(dtype) for dtype in recording.graph.input_dtypes]
    ids = inline(g, recording.graph, inputs)
    outs: list[OutLeaf] = []
    outputs: list[int] = []
    for out, path in zip(recording.outs, recording.out_tree.paths("result")):
        start = len(outputs)
        if out.spec.traced:
            outputs.extend(ids[out.start : out.stop])
            outs.append(OutLeaf(out.spec, start))
            continue
        value = np.asarray(out.spec.value)
        code = code_of(value.dtype)
        if code is None:
            raise TraceError(
                f"{path} is a {type(out.spec.value).__name__}: bodies of loops and branches "
                "return numbers and arrays only"
            )
        outputs.extend(g.constants(value).ravel().tolist())
        weak = type(out.spec.value) in (bool, int, float)
        outs.append(OutLeaf(LeafSpec(code, value.shape, weak), start))
    g.outputs = outputs
    return Recording(g, recording.leaves, recording.out_tree, outs, recording.captured)


def promoted_code(a: int, b: int, weak: bool = False) -> int:
    """Return the dtype that holds both; a ``weak`` first one is a Python number's."""
    number = DTYPES[a].type(0).item() if weak else DTYPES[a]
    code = code_of(np.result_type(number, DTYPES[b]))
    assert code is not None
    return code


def with_output_codes(graph: Graph, codes: Sequence[int]) -> Graph:
    """Return the graph with its outputs converted to these dtypes."""
    if graph.output_dtypes == list(codes):
        return graph
    g = Graph()
    inputs = [g.input(dtype) for dtype in graph.input_dtypes]
    outs = inline(g, graph, inputs)
    g.outputs = [cast(g, i, code) for i, code in zip(outs, codes)]
    return prune(g)


def align(recordings: Sequence[Recording], own: int) -> tuple[list[Graph], list[int]]:
    """Give several bodies the same inputs: the first ``own``, then the union of their captures."""
    union = list(dict.fromkeys(i for r in recordings for i in r.captured))
    source = current_trace().graph
    graphs = []
    for recording in recordings:
        if recording.captured == union:
            graphs.append(recording.graph)
            continue
        g = Graph()
        inputs = [g.input(dtype) for dtype in recording.graph.input_dtypes[:own]]
        shared = {i: g.input(source.dtype[i]) for i in union}
        g.outputs = inline(g, recording.graph, [*inputs, *(shared[i] for i in recording.captured)])
        graphs.append(prune(g))
    return graphs, union
