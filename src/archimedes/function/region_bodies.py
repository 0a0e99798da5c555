"""Recording the bodies of regions: functions of trees become graphs with shared inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, array_ids, lay_out, read_array, record
from archimedes.graph import Graph, inline, prune
from archimedes.graph.blocks.references import as_block, references
from archimedes.graph.dtypes import DTYPES, code_of, item_type, length_of
from archimedes.symbolic import SymbolicArray, current_trace, is_tracing, lift, wrap
from archimedes.symbolic.core.conversion import cast, cast_ids
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree


def must_record(*trees: Any) -> bool:
    """Return whether a call must be recorded: some leaf is traced, or a trace is under way."""
    return is_tracing() or any(
        isinstance(leaf, SymbolicArray) for t in trees for leaf in tree.leaves(t)
    )


def copy_arrays(value: Any) -> Any:
    """Return a tree with copies of its arrays, in C order, for the body of a region to work on.

    A body may write to what it is given. Recorded, that changes values of its own; run as plain
    Python it must not change the caller's arrays, nor what an earlier step returned.
    """
    return tree.map(_own, value)


def _own(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, (np.ndarray, SymbolicArray.array)) else leaf


@dataclass(eq=False, repr=False)
class Flat:
    """A tree lifted into the current trace: traced arrays for its leaves."""

    arrays: list[SymbolicArray]
    treedef: TreeDef

    def ids(self, blocks: Sequence[bool] | None = None) -> list[int]:
        """Return the ids of all leaves; of a leaf marked in ``blocks`` that of its block."""
        marks = [False] * len(self.arrays) if blocks is None else blocks
        return [i for a, block in zip(self.arrays, marks) for i in array_ids(a, block)]

    def specs(self) -> list[LeafSpec]:
        """Describe the leaves."""
        return [LeafSpec(a.code, a.shape, a.weak) for a in self.arrays]

    def cast(self, codes: Sequence[int], weak: Sequence[bool]) -> Flat:
        """Return the leaves converted to other dtypes; those marked ``weak`` are Python numbers."""
        trace = current_trace()
        arrays = [
            wrap(cast_ids(trace.graph, trace.elements_of(a), a.code, code), code, weak=number)
            for a, code, number in zip(self.arrays, codes, weak)
        ]
        return Flat(arrays, self.treedef)

    def rebuild(self, ids: Iterable[int], blocks: Sequence[bool]) -> Tree:
        """Return the tree with leaves of these ids, as ``ids(blocks)`` gives them."""
        rest = iter(ids)
        return self.treedef.unflatten(
            [
                read_array(rest, a.shape, a.code, block, a.weak)
                for a, block in zip(self.arrays, blocks)
            ]
        )


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
        rest = iter(symbols)
        return tuple(t.unflatten([next(rest) for _ in specs]) for specs, t in described), {}

    return record(function, leaves, build)


def trace_static_results(recording: Recording) -> Recording:
    """Turn numbers known while recording into outputs, so that all leaves are in the graph."""
    if all(out.spec.traced for out in recording.outs):
        return recording
    g = Graph.with_inputs(recording.blocks.input_dtypes)
    ids = inline(g, recording.blocks, g.inputs)
    rest, specs = iter(ids), []
    paths = recording.out_tree.paths("result")
    for out, form, path in zip(recording.outs, recording.out_forms(), paths):
        if out.spec.traced:
            g.outputs.extend(itertools.islice(rest, form.width))
            specs.append(out.spec)
            continue
        value = np.asarray(out.spec.value)
        code = code_of(value.dtype)
        if code is None:
            raise TraceError(
                f"{path} is a {type(out.spec.value).__name__}: bodies of loops and branches "
                "return numbers and arrays only"
            )
        g.outputs.extend(g.constants(value).ravel().tolist())
        weak = type(out.spec.value) in (bool, int, float)
        specs.append(LeafSpec(code, value.shape, weak))
    captured = recording.captured
    return Recording(g, recording.leaves, recording.out_tree, lay_out(specs), captured)


def promote_codes(a: int, b: int, weak: bool = False) -> int:
    """Return the dtype that holds both; a ``weak`` first one is a Python number's."""
    number = DTYPES[a].type(0).item() if weak else DTYPES[a]
    code = code_of(np.result_type(number, DTYPES[b]))
    assert code is not None
    return code


def with_output_codes(graph: Graph, codes: Sequence[int]) -> Graph:
    """Return the graph with its outputs, and the elements of blocks, converted to these dtypes."""
    if [item_type(kind) for kind in graph.output_dtypes] == list(codes):
        return graph
    g = Graph.with_inputs(graph.input_dtypes)
    outs = inline(g, graph, g.inputs)
    g.outputs = [_cast(g, i, code) for i, code in zip(outs, codes)]
    return prune(g)


def _cast(g: Graph, i: int, code: int) -> int:
    if not length_of(g.dtype[i]):
        return cast(g, i, code)
    ids = cast_ids(g, references(g, i), item_type(g.dtype[i]), code)
    return as_block(g, ids, code)


def align(bodies: Sequence[tuple[Graph, list[int]]], own: int) -> tuple[list[Graph], list[int]]:
    """Give several bodies the same inputs: the first ``own``, then the union of their captures.

    Bodies are graphs and what they capture of the current trace.
    """
    union = list(dict.fromkeys(i for _, captured in bodies for i in captured))
    source = current_trace().graph
    graphs = []
    for graph, captured in bodies:
        if captured == union:
            graphs.append(graph)
            continue
        g = Graph.with_inputs([*graph.input_dtypes[:own], *(source.dtype[i] for i in union)])
        shared = dict(zip(union, g.inputs[own:]))
        g.outputs = inline(g, graph, [*g.inputs[:own], *(shared[i] for i in captured)])
        graphs.append(prune(g))
    return graphs, union
