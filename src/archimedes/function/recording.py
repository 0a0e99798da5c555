"""Recording: call a Python function once with traced leaves and keep the graph.

A *leaf* is what is left of the arguments when structs and containers are flattened. Numbers
and arrays of numbers are traced; Python bools, strings, functions and other objects are static:
they are part of what a recording is specialised for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.errors import TraceError
from archimedes.function.leaf_specs import LeafSpec
from archimedes.graph import Call, Graph, inline, prune
from archimedes.graph.blocks.interfaces import Form, forms_of, with_forms
from archimedes.graph.blocks.references import as_block, is_block_like, lies_in_blocks, references
from archimedes.graph.dtypes import DTYPES, F64, STATIC, block_type, code_of, length_of
from archimedes.graph.ops import ELEMENT
from archimedes.slow_notice import notify_if_slow
from archimedes.symbolic import SymbolicArray, Trace, current_trace, is_tracing, lift, wrap
from archimedes.symbolic.core.conversion import copy_in_order, refuse_subclass
from archimedes.symbolic.core.loop_nests import ALWAYS_FACTOR, is_long, loop_threshold
from archimedes.symbolic.numpy_functions.complex_pairs import ComplexPair
from archimedes.symbolic.recorded.recorded_array import RecordedArray
from archimedes.system.floating_point import in_default_environment
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree


def trace_leaf(trace: Trace, spec: LeafSpec) -> Any:
    """Append a leaf's inputs to a trace and return what stands for it in the function."""
    if not spec.traced:
        return spec.value
    if is_long(spec.size):
        block = trace.graph.input(block_type(spec.code, spec.size))
        ids = references(trace.graph, block).reshape(spec.shape)
    else:
        ids = trace.graph.add_inputs(spec.code, spec.size).reshape(spec.shape)
    if spec.shape:
        ids = copy_in_order(ids, spec.order)
    if spec.array:
        return SymbolicArray(ids, spec.code, trace)
    return wrap(ids, spec.code, trace, spec.weak)


class OutLeaf(NamedTuple):
    """One leaf of a result: a block of the graph's outputs, or a value known while recording."""

    spec: LeafSpec
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the leaf, traced or known."""
        return self.spec.shape if self.spec.traced else np.shape(self.spec.value)

    @property
    def stop(self) -> int:
        """End of the block in the graph's outputs."""
        return self.start + (self.spec.size if self.spec.traced else 0)


def lay_out(specs: Iterable[LeafSpec]) -> list[OutLeaf]:
    """Return the leaves of a result, whose outputs lie one behind the other."""
    outs: list[OutLeaf] = []
    for spec in specs:
        outs.append(OutLeaf(spec, outs[-1].stop if outs else 0))
    return outs


@dataclass(eq=False, repr=False)
class Recording:
    """A recorded function: graph, argument leaves, result leaves, values of enclosing traces.

    Inputs of the graph are the traced leaves, one after the other, then ``captured`` (ids in the
    graph of the enclosing trace). In ``blocks`` a long leaf is one input or output, a block;
    in ``graph`` every number of a leaf is one.
    """

    blocks: Graph
    leaves: tuple[LeafSpec, ...]
    out_tree: TreeDef
    outs: list[OutLeaf]
    captured: list[int]
    memo: dict[Any, Any] = field(default_factory=dict)
    #: The argument leaves as messages name them.
    names: Sequence[str] = ()

    @cached_property
    def graph(self) -> Graph:
        """The program with a scalar input or output for every number of the leaves."""
        graph = self.in_forms([False] * len(self.leaves), [False] * len(self.outs))
        if graph is not self.blocks and self.blocks.input_names is not None:
            graph.input_names = input_names(self.leaves, self.names, len(self.captured))
        return graph

    def forms(self) -> list[Form]:
        """Return how each leaf of the arguments is given to ``blocks``; static ones are empty."""
        return forms_of(self.blocks.input_dtypes, [_extent(spec) for spec in self.leaves])

    def out_forms(self) -> list[Form]:
        """Return how ``blocks`` gives each leaf of the result."""
        return forms_of(self.blocks.output_dtypes, [_extent(out.spec) for out in self.outs])

    def in_forms(self, leaves: Sequence[bool], outs: Sequence[bool]) -> Graph:
        """Return the program with some leaves of arguments and results as blocks."""
        inputs, outputs = zip(self.forms(), leaves), zip(self.out_forms(), outs)
        return with_forms(self.blocks, list(inputs), list(outputs))

    def offsets(self) -> list[int]:
        """Position of each leaf's first input in ``graph`` (static leaves take none)."""
        return _starts([_extent(spec)[0] for spec in self.leaves])

    def block_offsets(self) -> list[int]:
        """Position of each leaf's first input in ``blocks``."""
        return _starts([form.width for form in self.forms()])

    def inputs(self, leaves: Sequence[Any], scalar: bool = False) -> list[int]:
        """Return ids in the current trace for the inputs of ``blocks``, given all leaves.

        ``scalar``: for the inputs of ``graph``.
        """
        ids: list[int] = []
        for leaf, spec, form in zip(leaves, self.leaves, self.forms()):
            if form.size:
                ids += array_ids(_as_described(leaf, spec), form.block and not scalar)
        return ids + self.captured

    def result(self, outs: Iterable[int], scalar: bool = False) -> Tree:
        """Return the result tree from ids, in the current trace, of the outputs of ``blocks``.

        ``scalar``: of the outputs of ``graph``.
        """
        ids, blocks = iter(outs), (form.block and not scalar for form in self.out_forms())
        leaves = [
            read_array(ids, out.spec.shape, out.spec.code, block)
            if out.spec.traced
            else _copy(out.spec.value)
            for out, block in zip(self.outs, blocks)
        ]
        return self.out_tree.unflatten(leaves)

    def rebuild(self, values: Callable[[OutLeaf], Any]) -> Tree:
        """Build the result tree; ``values`` returns the traced leaves, in order."""
        return self.out_tree.unflatten(
            [values(out) if out.spec.traced else _copy(out.spec.value) for out in self.outs]
        )


def array_ids(array: SymbolicArray, block: bool) -> list[int]:
    """Return ids of an array in the current trace: that of its block, or those of its numbers."""
    trace = current_trace()
    if block:
        return [as_block(trace.graph, trace.elements_of(array), array.code)]
    return trace.ids_of(array).ravel().tolist()


def read_array(
    ids: Iterator[int], shape: tuple[int, ...], code: int, block: bool, weak: bool = False
) -> SymbolicArray:
    """Return the traced array whose ids come next: that of its block, or those of its numbers."""
    if block:
        elements = references(current_trace().graph, next(ids))
    else:
        elements = np.array(list(itertools.islice(ids, math.prod(shape))), dtype=np.int64)
    return wrap(elements.reshape(shape), code, weak=weak)


def _extent(spec: LeafSpec) -> tuple[int, int]:
    return (spec.size, spec.code) if spec.traced else (0, F64)


def _starts(counts: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(counts)][: len(counts)]


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


@in_default_environment
def record(
    function: Callable[..., Any],
    leaves: Sequence[LeafSpec],
    build: Callable[[list[Any]], tuple[tuple[Any, ...], dict[str, Any]]],
    names: Sequence[str] | None = None,
) -> Recording:
    """Call ``function`` with traced leaves; ``build`` makes its arguments from them."""
    what = f"recording {getattr(function, '__name__', type(function).__name__)}()"
    with Trace() as trace, notify_if_slow(what, lambda: _explain_slowness(trace.graph)):
        args, kwargs = build([trace_leaf(trace, spec) for spec in leaves])
        result = function(*args, **kwargs)
        out_leaves, out_tree = tree.flatten(result)
        ids: list[int] = []
        paths = out_tree.paths("result")
        specs = [_record_out(trace, leaf, ids, path) for leaf, path in zip(out_leaves, paths)]
    trace.graph.outputs = ids
    graph = _scalarize_inputs(prune(trace.graph), len(trace.captured))
    if names is not None:
        graph.input_names = input_names(leaves, names, len(trace.captured), graph.input_dtypes)
    outs = lay_out(specs)
    return Recording(graph, tuple(leaves), out_tree, outs, trace.captured, names=names or ())


def _explain_slowness(graph: Graph) -> str:
    return (
        f"its Python code runs once, and has made {len(graph):,} operations. What it does element "
        "by element is recorded so: shorter with operations on whole arrays, arc.vmap or arc.scan"
    )


def _scalarize_inputs(graph: Graph, captured: int) -> Graph:
    """Scalarize those blocks among the arguments that are only read element by element."""
    inputs = graph.inputs[: len(graph.inputs) - captured]
    whole = {i for region in graph.regions.values() for i in region.inputs.tolist()}
    whole.update(graph.outputs)
    short = loop_threshold() * ALWAYS_FACTOR
    scalars = {i for i in inputs if i not in whole and 0 < length_of(graph.dtype[i]) < short}
    for i in range(len(graph)) if scalars else ():
        if graph.op[i] == ELEMENT and graph.b[i] not in graph.value:
            scalars.discard(graph.a[i])
    if not scalars:
        return graph
    kinds = graph.input_dtypes[: len(inputs)]
    forms = [Form(max(1, length_of(kind)), kind & 3, length_of(kind) > 0) for kind in kinds]
    return with_forms(graph, [(f, f.block and i not in scalars) for i, f in zip(inputs, forms)], ())


def _record_out(trace: Trace, leaf: Any, ids: list[int], path: str) -> LeafSpec:
    """Append the outputs of a result leaf, and describe it."""
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        refuse_subclass(leaf, lambda: path)
    # An array made while recording is a result like any other, also where it holds numbers only.
    traced = isinstance(leaf, RecordedArray) and code_of(leaf.dtype) is not None
    if traced or is_traced(leaf):
        array = lift(leaf)
        # A result made number by number, such as a robot's Jacobian, stays so: as a block it would
        # keep instances of a batch out of lanes.
        is_block = is_long(array.size) and lies_in_blocks(trace.graph, trace.elements_of(array))
        ids += array_ids(array, is_block)
        # Bodies of loops hand Python numbers on as such; results of whole functions are NumPy's.
        return LeafSpec(array.code, array.shape, getattr(leaf, "weak", False))
    if isinstance(leaf, ComplexPair):
        raise TraceError(
            f"{path} is complex, and results of recorded functions are real: return its .real and "
            ".imag"
        )
    if is_traced(*getattr(leaf, "__dict__", {}).values()):
        name = type(leaf).__name__
        raise TraceError(
            f"{path} is a {name}, which holds traced values but is not a struct, so they cannot "
            f"be taken out of it: decorate the class {name} with @arc.struct, or register it with "
            "arc.tree.register_dataclass or arc.tree.register_struct"
        )
    return LeafSpec(STATIC, value=leaf)


def input_names(
    leaves: Sequence[LeafSpec],
    names: Sequence[str],
    captured: int = 0,
    kinds: Sequence[int] | None = None,
) -> list[str] | None:
    """Name each input after its leaf (none for very long lists: they serve reading).

    Values of enclosing traces come last. With the types of inputs, a block is named as one.
    """
    if len(kinds) > 2000 if kinds is not None else sum(s.size for s in leaves if s.traced) > 2000:
        return None
    result: list[str] = []
    for spec, name in zip(leaves, names):
        if not spec.traced or not spec.size:
            continue
        if spec.shape == () or (kinds is not None and length_of(kinds[len(result)])):
            result.append(name)
        else:
            result.extend(name + "".join(f"[{k}]" for k in at) for at in np.ndindex(*spec.shape))
    return result + [f"closure[{k}]" for k in range(captured)]


def leaf_ids(leaf: Any, spec: LeafSpec) -> list[int]:
    """Return ids in the current trace of the numbers of a leaf that matches ``spec``."""
    return current_trace().ids_of(_as_described(leaf, spec)).ravel().tolist()


def leaf_elements(leaf: Any, spec: LeafSpec) -> np.ndarray:
    """Return the same in the leaf's shape, with references for elements of blocks."""
    return current_trace().elements_of(_as_described(leaf, spec))


def _as_described(leaf: Any, spec: LeafSpec) -> SymbolicArray:
    array = leaf if isinstance(leaf, SymbolicArray) else lift(leaf)
    return array if array.code == spec.code else array.astype(DTYPES[spec.code])


#: A recorded function called from another is copied into it up to this many operations.
INLINE_LIMIT = 1000


def is_part_of_recording(leaves: Sequence[Any]) -> bool:
    """Return whether a call with these leaves is part of a recording under way."""
    return is_tracing() and any(type(x) is RecordedArray or is_traced(x) for x in leaves)


def apply_recording(recording: Recording, leaves: Sequence[Any], limit: int = INLINE_LIMIT) -> Any:
    """Use a recording inside the current trace: copied up to ``limit`` nodes, else as a Call."""
    into = current_trace().graph
    if len(recording.blocks) <= limit:
        outs = inline(into, recording.blocks, recording.inputs(leaves))
    else:
        recording = _in_blocks(recording, leaves)
        outs = into.region(Call(np.array(recording.inputs(leaves)), recording.blocks)).tolist()
    return recording.result(outs)


def _in_blocks(recording: Recording, leaves: Sequence[Any]) -> Recording:
    """Return the recording with blocks for arrays that lie in blocks here, and then for results.

    Whatever is done inside: a caller that has blocks need not scalarize them for each call.
    """
    trace = current_trace()
    forms, out_forms = recording.forms(), recording.out_forms()
    blocks = tuple(
        form.block
        or (is_long(form.size) and is_block_like(trace.graph, trace.elements_of(lift(leaf))))
        for leaf, form in zip(leaves, forms)
    )
    if not any(blocks):
        return recording
    outs = tuple(form.block or is_long(form.size) for form in out_forms)
    if all(form.block == block for form, block in zip((*forms, *out_forms), blocks + outs)):
        return recording
    key = ("in blocks", blocks, outs)
    if key not in recording.memo:
        program = recording.in_forms(blocks, outs)
        recording.memo[key] = replace(recording, blocks=program, memo={})
    return recording.memo[key]
