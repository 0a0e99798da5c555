"""What derivative functions share: the point of differentiation, and the matrices that result.

A :class:`Point` is a function recorded at given arguments, with the leaves chosen. Derivative
matrices are cut into blocks in the shape of the trees of arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError, TraceError, explained
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies.states import Dependencies, function_to_record
from archimedes.function.leaf_specs import describe_leaves
from archimedes.function.recording import OutLeaf, Recording, leaf_ids, record
from archimedes.function.signatures import Bound, Signature
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import any_reference, block_of, references
from archimedes.graph.derivatives.jacobian_graphs import Entries, jacobian_graph, reverse_graph
from archimedes.graph.dtypes import B8, DTYPES, F64, is_float, item_type
from archimedes.graph.ops import CODES
from archimedes.graph.passes import inline, with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Affine, Gather
from archimedes.graph.regions.base import has_blocks
from archimedes.graph.regions.nest import Read
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.symbolic.core.conversion import cast, cast_ids
from archimedes.tree.treedef import TreeDef

__all__ = [
    "Derivative",
    "Point",
    "blocks_of",
    "dense_jacobian",
    "derivative_function",
    "differentiable",
    "differentiated",
    "entry_ids",
    "filled",
    "float_outs",
    "gradient",
    "gradient_of",
    "leaf_values",
    "named_after",
    "out_shape",
    "result_dtype",
    "rows_of",
    "scalar_out",
    "typed",
]


@dataclass
class Point:
    """A function recorded at given arguments, with the leaves it is differentiated in.

    ``wrt`` are the inputs of the graph that belong to those leaves; ``wanted`` the leaves'
    numbers; ``where`` the tree of the chosen argument (or tuple of arguments), ``leaves`` its
    leaves, ``all_leaves`` those of all arguments.
    """

    recording: Recording
    wanted: list[int]
    wrt: list[int]
    where: TreeDef
    leaves: list[Any]
    all_leaves: list[Any]

    @cached_property
    def inputs(self) -> list[int]:
        """Ids in the current trace for the inputs of the recording's scalar graph."""
        ids: list[int] = []
        for leaf, spec in zip(self.all_leaves, self.recording.leaves):
            if spec.traced:
                ids.extend(leaf_ids(leaf, spec))
        return ids + self.recording.captured

    @property
    def block_wrt(self) -> list[int]:
        """The inputs of the recording's ``blocks`` that belong to the leaves."""
        starts, forms = self.recording.block_offsets(), self.recording.forms()
        return [starts[k] + j for k in self.wanted for j in range(forms[k].width)]

    def block(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Start in ``wrt`` and shape of the leaf that is ``position``-th among the wanted."""
        start = 0
        for k in self.wanted[:position]:
            start += self.recording.leaves[k].size
        return start, self.recording.leaves[self.wanted[position]].shape


class Derivative:
    """What the derivative functions share: finding the function's recording and its inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        what: str,
        static_argnums: Any = None,
        static_argnames: Any = None,
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"{what} needs a function, got {type(function).__name__}: write arc.{what}(f)(x), "
                f"not arc.{what}(f(x))"
            )
        base = function.function if isinstance(function, Compiled) else function
        self.function = base
        #: Where recordings of the function are kept, if it is compiled: it is not called again.
        self.compiled = function if isinstance(function, Compiled) else None
        self.what = what
        #: What counts as part of the function, see ``Compiled``; its derivatives share it.
        self.watch = (
            function.dependencies
            if isinstance(function, Compiled)
            else Dependencies((base,), reads_in_place=True)
        )
        self.freeze = isinstance(function, Compiled) and function.dependencies.frozen
        self.backend = function.backend if isinstance(function, Compiled) else None
        self.loops_from = function.loops_from if isinstance(function, Compiled) else None
        self.numerics = function.numerics if isinstance(function, Compiled) else "strict"
        if isinstance(function, Compiled):
            self.signature = function.signature
        else:
            self.signature = Signature(base, static_argnums, static_argnames)
        numbers = argnums if isinstance(argnums, (list, tuple)) else (argnums,)
        if not all(isinstance(n, (int, np.integer)) for n in numbers):
            raise TypeError(
                f"{what}: argnums must be an int or a sequence of ints, got {argnums!r}: it counts "
                "the positional arguments from 0"
            )
        self.single = isinstance(argnums, (int, np.integer))
        self.argnums = (int(argnums),) if self.single else tuple(argnums)  # type: ignore[arg-type]
        if not self.argnums:
            raise ValueError(f"{what}: argnums is empty, so there is nothing to differentiate in")

    def point(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Point:
        """Record the function at these (traced) arguments."""
        values = self.signature.bind(args, kwargs)
        static = self.signature.static
        chosen = self._chosen(values)
        for name in chosen:
            if name in static:
                raise ValueError(
                    f"{self.what}: argument {name!r} is static, so it has no derivative: "
                    "choose another with argnums, or do not declare it static"
                )
            values[name] = tree.map(differentiable, values[name])
        # A default that is differentiated in is an argument like the others.
        defaulted: set[str] = getattr(values, "defaulted", set())
        values = Bound(values, defaulted - set(chosen))
        fixed = self.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in fixed}
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        recording = self._recording(values, dynamic, leaves, treedef)
        return self._locate(recording, leaves, dynamic, chosen, treedef)

    def _recording(
        self, values: dict[str, Any], dynamic: dict[str, Any], leaves: list[Any], treedef: TreeDef
    ) -> Recording:
        """Return the recording of a compiled function, or record a plain one."""
        if self.compiled is not None:
            return self.compiled.recording_of(values)
        specs = describe_leaves(leaves, treedef, list(dynamic))

        def build(symbols: list[Any]) -> Any:
            return self.signature.rebind(values, dict(zip(dynamic, treedef.unflatten(symbols))))

        return record(function_to_record(self.watch, self.function), specs, build)

    def _chosen(self, values: dict[str, Any]) -> list[str]:
        """Return the names of the arguments to differentiate in; ``argnums`` counts positions."""
        names = [name for name in values if self.signature.is_positional(name)]
        for number in self.argnums:
            if not -len(names) <= number < len(names):
                raise ValueError(
                    f"{self.what}: argnums={number} is out of range, {self.signature.name}() was "
                    f"given {len(names)} positional arguments {names}"
                )
        chosen = [names[number] for number in self.argnums]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"{self.what}: argnums={self.argnums} names {chosen[0]!r} twice")
        return chosen

    def _locate(
        self,
        recording: Recording,
        leaves: list[Any],
        dynamic: dict[str, Any],
        chosen: list[str],
        treedef: TreeDef,
    ) -> Point:
        spans, at = {}, 0
        for name, child in zip(dynamic, treedef.children):
            spans[name] = range(at, at + child.num_leaves)
            at += child.num_leaves
        offsets = recording.offsets()
        wanted: list[int] = []
        wrt: list[int] = []
        for name in chosen:
            for k in spans[name]:
                spec = recording.leaves[k]
                if spec.traced and is_float(spec.code):
                    wanted.append(k)
                    wrt.extend(range(offsets[k], offsets[k] + spec.size))
        if not wanted:
            raise TraceError(
                f"{self.what}: argument {chosen[0]!r} holds no numbers to differentiate in"
            )
        trees = [tree.structure(dynamic[name]) for name in chosen]
        where = trees[0] if self.single else tree.structure(tuple(dynamic[name] for name in chosen))
        chosen_leaves = leaves_of(dynamic, chosen)
        return Point(recording, wanted, wrt, where, chosen_leaves, leaves)


def named_after(function: Callable[..., Any], what: str, name: str | None) -> str:
    """Return a name for the derivative ``what`` of a function, unless one was given."""
    return name or f"{what}_{getattr(function, '__name__', 'function')}"


def derivative_function(
    run: Callable[..., Any], derivative: Derivative, name: str, signature: Signature | None = None
) -> Compiled:
    """Return the function that users get for what computes a derivative."""
    compiled = Compiled(
        run,
        name=name,
        backend=derivative.backend,
        numerics=derivative.numerics,
        freeze=derivative.freeze,
        loops_from=derivative.loops_from,
        watch=derivative.watch,
    )
    compiled.__doc__ = f"{derivative.what} of {derivative.signature.name}."
    if signature is None:
        compiled.__signature__ = derivative.signature.parameters
    compiled.signature = signature or derivative.signature
    return compiled


def leaves_of(dynamic: dict[str, Any], chosen: list[str]) -> list[Any]:
    """Return the leaves of the chosen arguments."""
    return [leaf for name in chosen for leaf in tree.leaves(dynamic[name])]


def differentiable(x: Any) -> Any:
    """Return a leaf as floating point where it is a number; other leaves unchanged."""
    if isinstance(x, bool) or (isinstance(x, SymbolicArray) and is_float(x.code)):
        return x
    if isinstance(x, (int, float, np.ndarray, np.generic, SymbolicArray)):
        weak = type(x) in (int, float) or getattr(x, "weak", False)
        x = lift(x)
        if x.code == B8:
            return x
        if not is_float(x.code):
            x = x.astype(np.float64)
        return wrap(current_trace().elements_of(x), x.code, weak=weak)
    return x


def float_outs(point: Point, what: str) -> list[OutLeaf]:
    """Return the leaves of the result, or say which of them has no derivative."""
    outs = []
    for out, path in zip(point.recording.outs, point.recording.out_tree.paths("result")):
        code, value = out.spec.code, out.spec.value
        numbers = out.spec.traced or isinstance(value, (int, float, np.ndarray, np.generic))
        if not numbers:
            raise ShapeDtypeError(
                f"{what}: {path} is a {type(value).__name__}, which has no derivative"
            )
        if out.spec.traced and not is_float(code):
            raise ShapeDtypeError(
                f"{what}: {path} is {DTYPES[code]}, which has no derivative: return floats, for "
                "example x.astype(float)"
            )
        outs.append(out)
    return outs


def result_dtype(point: Point, outs: Sequence[OutLeaf] = ()) -> int:
    """Return the dtype that holds all chosen arguments and the given results."""
    codes = {point.recording.leaves[k].code for k in point.wanted}
    codes |= {out.spec.code for out in outs if out.spec.traced}
    return F64 if F64 in codes else codes.pop()


def typed(ids: np.ndarray, code: int) -> Any:
    """Wrap ids of floats as an array of one dtype; a sweep mixes those of arguments and results."""
    g = current_trace().graph
    block = block_of(g, ids) if any_reference(ids) else None
    if block is not None:
        return wrap(cast_ids(g, ids, item_type(g.dtype[block]), code), code)
    flat = [cast(g, i, code) for i in ids.ravel().tolist()]
    return wrap(np.array(flat, dtype=np.int64).reshape(ids.shape), code)


def blocks_of(point: Point, rows: np.ndarray, shape: tuple[int, ...], code: int = -1) -> Any:
    """Cut the rows of one result leaf of the given shape into a tree of blocks.

    Each has the dtype of its argument leaf, widened to ``code`` where given.
    """
    blocks = {}
    for position, k in enumerate(point.wanted):
        start, leaf_shape = point.block(position)
        leaf = point.recording.leaves[k]
        ids = rows[:, start : start + leaf.size].reshape((*shape, *leaf_shape))
        blocks[k] = typed(ids, F64 if F64 in (code, leaf.code) else leaf.code)
    return filled(point, blocks)


def filled(point: Point, blocks: dict[int, Any]) -> Any:
    """Put blocks in the place of the wanted leaves of the chosen arguments."""
    filled = []
    ready = iter([blocks[k] for k in point.wanted])
    for leaf in point.leaves:
        differentiated = isinstance(leaf, SymbolicArray) and is_float(leaf.code)
        filled.append(next(ready) if differentiated else leaf)
    return point.where.unflatten(filled)


def dense_jacobian(point: Point, *, gradient: bool = False) -> np.ndarray:
    """Return ids, in the current trace, of the Jacobian in the chosen leaves.

    ``gradient``: of the gradient, so that it is the Hessian.
    """
    source, wrt, inputs = differentiated(point)
    wide = has_blocks(source)
    if gradient:
        source = gradient_of(source, wrt)
    entries = jacobian_graph(source, wrt, symmetric=gradient and wide)
    g, shape = current_trace().graph, entries.shape
    if entries.places is not None and len(entries.rows) < shape[0] * shape[1]:
        return _with_zeros(g, entries, inline(g, entries.graph, inputs)[0])
    dense = np.full(shape, g.const(0.0, F64), dtype=np.int64)
    dense[entries.rows, entries.columns] = entry_ids(g, entries, inputs)
    return dense


def entry_ids(g: Graph, entries: Entries, inputs: Sequence[int]) -> np.ndarray:
    """Append a program of entries to a graph, and return their ids."""
    outs = inline(g, entries.graph, inputs)
    if entries.places is None:
        return np.array(outs, dtype=np.int64)
    return references(g, outs[0])[entries.places]


def _with_zeros(g: Graph, entries: Entries, block: int) -> np.ndarray:
    """Return the ids of a dense matrix, some of whose entries are elements of a block."""
    shape, kind = entries.shape, item_type(g.dtype[block])
    places, there = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    places[entries.rows, entries.columns] = [] if entries.places is None else entries.places
    there[entries.rows, entries.columns] = True
    body = Graph()
    value, known = body.input(kind), body.input(B8)
    body.outputs = [body.emit(CODES["select"], known, value, body.const(0.0, kind))]
    reads: list[Read] = [Gather(places.ravel()), Affine(0, (1,))]
    made = loops(g, [block, g.block(there.ravel())], reads, body, (places.size,))
    return references(g, made[0]).reshape(shape)


def differentiated(point: Point) -> tuple[Graph, Sequence[int], Sequence[int]]:
    """Return the program to differentiate, in which inputs, and what these are in the trace."""
    recording = point.recording
    if has_blocks(recording.blocks):
        return recording.blocks, point.block_wrt, recording.inputs(point.all_leaves)
    return recording.graph, point.wrt, point.inputs


def out_shape(out: OutLeaf) -> tuple[int, ...]:
    """Return the shape of a result leaf, traced or constant."""
    return out.spec.shape if out.spec.traced else np.shape(out.spec.value)


def rows_of(point: Point, dense: np.ndarray, out: OutLeaf) -> np.ndarray:
    """Rows of one result leaf; zeros where it does not depend on the arguments at all."""
    if out.spec.traced:
        return dense[out.start : out.stop]
    zero = current_trace().graph.const(0.0, result_dtype(point))
    return np.full((int(np.size(out.spec.value)), dense.shape[1]), zero, dtype=np.int64)


def scalar_out(point: Point, what: str) -> OutLeaf:
    """Return the only leaf of the result, or say that it is not one scalar."""
    outs = float_outs(point, what)
    shapes = [out_shape(out) for out in outs]
    if shapes != [()]:
        raise ShapeDtypeError(
            explained(
                "gradient",
                f"{what} needs a function with one scalar result, this one returns {len(outs)} of "
                f"shape {shapes}: reduce it, for example with np.sum, or use arc.jac",
            )
        )
    return outs[0]


def gradient(point: Point) -> Any:
    """Return the gradient of the single scalar output, in the shape of the chosen argument.

    A wide leaf is differentiated as the block it is.
    """
    recording, g = point.recording, current_trace().graph
    inputs = recording.inputs(point.all_leaves)
    return leaf_values(point, inline(g, gradient_of(recording.blocks, point.block_wrt), inputs))


def leaf_values(point: Point, ids: Sequence[int]) -> Any:
    """Return the chosen argument with these values, as ``blocks`` gives them, for its numbers."""
    recording, g = point.recording, current_trace().graph
    forms = recording.forms()
    blocks, at = {}, 0
    for k in point.wanted:
        spec, count = recording.leaves[k], forms[k].width
        mine = ids[at : at + count]
        own = references(g, mine[0]) if forms[k].block else np.array(mine, dtype=np.int64)
        if forms[k].block:
            own = cast_ids(g, own, item_type(g.dtype[mine[0]]), spec.code)
            blocks[k] = wrap(own.reshape(spec.shape), spec.code)
        else:
            blocks[k] = typed(own.reshape(spec.shape), spec.code)
        at += count
    return filled(point, blocks)


def gradient_of(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph inputs -> gradient in the inputs ``wrt`` of a graph's single output."""
    if not graph.outputs:
        zeros = Graph()
        for dtype in graph.input_dtypes:
            zeros.input(dtype)
        dtypes = graph.input_dtypes
        zeros.outputs = [zeros.const(0.0, dtypes[p]) for p in wrt]
        return zeros
    both = reverse_graph(graph, wrt)
    inner = Graph()
    inputs = [inner.input(dtype) for dtype in graph.input_dtypes]
    outs = inline(inner, both, [*inputs, inner.const(1.0, graph.output_dtypes[0])])
    return with_outputs(inner, outs[1:])
