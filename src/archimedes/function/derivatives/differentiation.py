"""What derivative functions share: the point of differentiation, and the matrices that result.

A :class:`Point` is a function recorded at given arguments, with the leaves chosen. Derivative
matrices are cut into blocks in the shape of the trees of arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable
from archimedes.errors import ShapeDtypeError, TraceError, refer_to
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies.states import Dependencies, function_to_record
from archimedes.function.leaf_specs import describe_leaves
from archimedes.function.recording import OutLeaf, Recording, read_array, record
from archimedes.function.signatures import Bound, Signature
from archimedes.graph import CODES, Graph, inline, with_outputs
from archimedes.graph.blocks.building import loops
from archimedes.graph.blocks.references import any_reference, block_of, references
from archimedes.graph.derivatives.jacobian_graphs import Entries, jacobian_graph, reverse_graph
from archimedes.graph.dtypes import B8, DTYPES, F64, is_float, item_type
from archimedes.graph.regions import Affine, Gather
from archimedes.graph.regions.base import has_blocks
from archimedes.graph.regions.block_regions import Read
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.symbolic.core.conversion import cast, cast_ids
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Tree


@dataclass(eq=False, repr=False)
class Point:
    """A function recorded at given arguments, with the leaves it is differentiated in.

    ``wrt`` are the inputs of the scalar graph that belong to those leaves, ``block_wrt`` those of
    the recording's ``blocks``; ``wanted`` are the leaves' numbers; ``where`` is the tree of the
    chosen argument (or tuple of arguments), ``leaves`` are its leaves, ``all_leaves`` those of all
    arguments. ``what`` is the derivative that is asked for.
    """

    what: str
    recording: Recording
    wanted: list[int]
    where: TreeDef
    leaves: list[Any]
    all_leaves: list[Any]

    @property
    def wrt(self) -> list[int]:
        """The inputs of the recording's scalar graph that belong to the chosen leaves."""
        starts, specs = self.recording.offsets(), self.recording.leaves
        return [starts[k] + j for k in self.wanted for j in range(specs[k].size)]

    @property
    def block_wrt(self) -> list[int]:
        """The inputs of the recording's ``blocks`` that belong to the chosen leaves."""
        starts, forms = self.recording.block_offsets(), self.recording.forms()
        return [starts[k] + j for k in self.wanted for j in range(forms[k].width)]

    @property
    def inputs(self) -> list[int]:
        """Ids in the current trace for the inputs of the recording's ``blocks``."""
        return self.recording.inputs(self.all_leaves)

    def spans(self) -> Iterable[tuple[int, slice]]:
        """Yield the number of each chosen leaf, and where its numbers are among those of all."""
        start = 0
        for k in self.wanted:
            stop = start + self.recording.leaves[k].size
            yield k, slice(start, stop)
            start = stop

    # ---- results ---------------------------------------------------------------------------

    def float_outs(self) -> list[OutLeaf]:
        """Return the leaves of the result, or say which of them has no derivative."""
        for out, path in zip(self.recording.outs, self.recording.out_tree.paths("result")):
            code, value = out.spec.code, out.spec.value
            if not (out.spec.traced or isinstance(value, (int, float, np.ndarray, np.generic))):
                raise ShapeDtypeError(
                    f"{self.what}: {path} is a {type(value).__name__}, which has no derivative"
                )
            if out.spec.traced and not is_float(code):
                raise ShapeDtypeError(
                    f"{self.what}: {path} is {DTYPES[code]}, which has no derivative: return "
                    "floats, for example x.astype(float)"
                )
        return self.recording.outs

    def check_scalar(self) -> None:
        """Raise where the result is not one scalar."""
        shapes = [out.shape for out in self.float_outs()]
        if shapes != [()]:
            raise ShapeDtypeError(
                f"{self.what} needs a function with one scalar result, this one returns "
                f"{len(shapes)} of shape {shapes}: reduce it, for example with np.sum, or use "
                "arc.jac" + refer_to("gradient")
            )

    def result_dtype(self, outs: Sequence[OutLeaf] = ()) -> int:
        """Return the dtype that holds all chosen arguments and these results."""
        codes = {self.recording.leaves[k].code for k in self.wanted}
        codes |= {out.spec.code for out in outs if out.spec.traced}
        return F64 if F64 in codes else codes.pop()

    def dense_jacobian(self, *, gradient: bool = False) -> np.ndarray:
        """Return ids, in the current trace, of the Jacobian in the chosen leaves.

        ``gradient``: of the gradient, so that it is the Hessian.
        """
        source, wrt = self.recording.blocks, self.block_wrt
        symmetric = gradient and has_blocks(source)
        if gradient:
            source = gradient_graph(source, wrt)
        entries = jacobian_graph(source, wrt, symmetric=symmetric)
        g, shape = current_trace().graph, entries.shape
        if entries.places is not None and len(entries.rows) < shape[0] * shape[1]:
            return _with_zeros(g, entries, inline(g, entries.graph, self.inputs)[0])
        dense = np.full(shape, g.const(0.0, F64), dtype=np.int64)
        dense[entries.rows, entries.columns] = entry_ids(g, entries, self.inputs)
        return dense

    def rows_of(self, dense: np.ndarray, out: OutLeaf) -> np.ndarray:
        """Return the rows of one result leaf; zeros where it does not depend on the arguments."""
        if out.spec.traced:
            return dense[out.start : out.stop]
        zero = current_trace().graph.const(0.0, self.result_dtype())
        return np.full((int(np.size(out.spec.value)), dense.shape[1]), zero, dtype=np.int64)

    def cut_blocks(self, rows: np.ndarray, shape: tuple[int, ...], code: int) -> Tree:
        """Cut the rows of one result leaf of the given shape into a tree of blocks.

        Each has the dtype of its argument leaf, widened to ``code``.
        """
        blocks = []
        for k, span in self.spans():
            leaf = self.recording.leaves[k]
            ids = rows[:, span].reshape((*shape, *leaf.shape))
            blocks.append(as_dtype(ids, F64 if F64 in (code, leaf.code) else leaf.code))
        return self.put_in_argument(blocks)

    def put_in_argument(self, values: Iterable[Any]) -> Tree:
        """Return the chosen argument with these values in place of its floating-point leaves."""
        rest = iter(values)
        leaves = [
            next(rest) if isinstance(leaf, SymbolicArray) and is_float(leaf.code) else leaf
            for leaf in self.leaves
        ]
        return self.where.unflatten(leaves)

    def values_in_argument(self, ids: Iterable[int]) -> Tree:
        """Return the chosen argument with the values of these ids, as ``blocks`` gives them."""
        rest, leaves, forms = iter(ids), self.recording.leaves, self.recording.forms()
        arrays = [
            read_array(rest, leaves[k].shape, leaves[k].code, forms[k].block) for k in self.wanted
        ]
        return self.put_in_argument([as_dtype(a.ids, a.code) for a in arrays])

    def gradient(self) -> Tree:
        """Return the gradient of the single scalar output, in the shape of the chosen argument.

        A long leaf is differentiated as the block it is.
        """
        graph = gradient_graph(self.recording.blocks, self.block_wrt)
        return self.values_in_argument(inline(current_trace().graph, graph, self.inputs))


class Derivative:
    """What the derivative functions share: finding the function's recording and its inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        argnums: int | Sequence[int],
        what: str,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        remedy = f"write arc.{what}(f)(x), not arc.{what}(f(x))"
        check_callable(function, f"{what}: func", remedy=remedy)
        self.what = what
        self.name = name or f"{what}_{getattr(function, '__name__', 'function')}"
        #: Where recordings of the function are kept, if it is compiled: it is not called again.
        self.compiled = compiled = function if isinstance(function, Compiled) else None
        #: Options of the function that its derivatives share, and what counts as part of it.
        self.options: dict[str, Any] = {}
        if compiled is None:
            self.function = function
            self.watch = Dependencies((function,), reads_in_place=True)
            self.signature = Signature(function, static_argnums, static_argnames)
        else:
            self.function, self.watch = compiled.function, compiled.dependencies
            self.signature = compiled.signature
            self.options = {
                "backend": compiled.backend,
                "numerics": compiled.numerics,
                "freeze": compiled.dependencies.frozen,
                "loops_from": compiled.loops_from,
            }
        numbers = argnums if isinstance(argnums, (list, tuple)) else (argnums,)
        if not all(isinstance(n, (int, np.integer)) for n in numbers):
            raise TypeError(
                f"{what}: argnums must be an int or a sequence of ints, got {argnums!r}: it counts "
                "the positional arguments from 0"
            )
        self.single = isinstance(argnums, (int, np.integer))
        self.argnums = tuple(map(int, numbers))
        if not self.argnums:
            raise ValueError(
                f"{what}: argnums is empty, so there is nothing to differentiate with respect to"
            )

    def point(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Point:
        """Record the function at these (traced) arguments."""
        values = self.signature.bind(args, kwargs)
        chosen = self._chosen(values)
        for name in chosen:
            if name in self.signature.static:
                raise ValueError(
                    f"{self.what}: argument {name!r} is static, so it has no derivative: "
                    "choose another with argnums, or do not declare it static"
                )
            values[name] = tree.map(_as_float, values[name])
        # A default that is differentiated in is an argument like the others.
        defaulted: set[str] = getattr(values, "defaulted", set())
        values = Bound(values, defaulted - set(chosen))
        fixed = self.signature.fixed(values)
        dynamic = {k: v for k, v in values.items() if k not in fixed}
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        recording = self._recording(values, dynamic, leaves, treedef)
        numbers = iter(range(len(leaves)))
        spans = {
            name: [next(numbers) for _ in range(child.num_leaves)]
            for name, child in zip(dynamic, treedef.children)
        }
        specs = recording.leaves
        wanted = [
            k for name in chosen for k in spans[name] if specs[k].traced and is_float(specs[k].code)
        ]
        if not wanted:
            raise TraceError(
                f"{self.what}: argument {chosen[0]!r} holds no numbers to differentiate with "
                "respect to"
            )
        parts = tuple(dynamic[name] for name in chosen)
        own, where = tree.flatten(parts[0] if self.single else parts)
        return Point(self.what, recording, wanted, where, own, leaves)

    def _recording(
        self, values: dict[str, Any], dynamic: dict[str, Any], leaves: list[Any], treedef: TreeDef
    ) -> Recording:
        """Return the recording of a compiled function, or record a plain one."""
        if self.compiled is not None:
            return self.compiled.recording_of(values)
        specs = describe_leaves(leaves, treedef, list(dynamic))

        def build(symbols: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
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

    def compile(self, run: Callable[..., Any], signature: Signature | None = None) -> Compiled:
        """Return the function that users get for ``run``, which computes the derivative."""
        compiled = Compiled(run, name=self.name, watch=self.watch, **self.options)
        compiled.__doc__ = f"{self.what} of {self.signature.name}."
        if signature is None:
            compiled.__signature__ = self.signature.parameters
        compiled.signature = signature or self.signature
        return compiled


def _as_float(x: Any) -> Any:
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


def as_dtype(ids: np.ndarray, code: int) -> SymbolicArray:
    """Wrap ids of floats as an array of one dtype; a sweep mixes those of arguments and results."""
    g = current_trace().graph
    block = block_of(g, ids) if any_reference(ids) else None
    if block is not None:
        return wrap(cast_ids(g, ids, item_type(g.dtype[block]), code), code)
    flat = [cast(g, i, code) for i in ids.ravel().tolist()]
    return wrap(np.array(flat, dtype=np.int64).reshape(ids.shape), code)


def entry_ids(g: Graph, entries: Entries, inputs: Sequence[int]) -> np.ndarray:
    """Append a program of entries to a graph, and return their ids."""
    outs = inline(g, entries.graph, inputs)
    if entries.places is None:
        return np.array(outs, dtype=np.int64)
    return references(g, outs[0])[entries.places]


def _with_zeros(g: Graph, entries: Entries, block: int) -> np.ndarray:
    """Return the ids of a dense matrix, some of whose entries are elements of a block."""
    shape, kind = entries.shape, item_type(g.dtype[block])
    index, is_entry = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    index[entries.rows, entries.columns] = [] if entries.places is None else entries.places
    is_entry[entries.rows, entries.columns] = True
    body = Graph()
    value, known = body.input(kind), body.input(B8)
    body.outputs = [body.emit(CODES["select"], known, value, body.const(0.0, kind))]
    reads: list[Read] = [Gather(index.ravel()), Affine(0, (1,))]
    blocks = loops(g, [block, g.block(is_entry.ravel())], reads, body, (index.size,))
    return references(g, blocks[0]).reshape(shape)


def gradient_graph(graph: Graph, wrt: Sequence[int]) -> Graph:
    """Return the graph inputs -> gradient in the inputs ``wrt`` of a graph's single output."""
    inner = Graph.with_inputs(graph.input_dtypes)
    if not graph.outputs:
        inner.outputs = [inner.const(0.0, graph.input_dtypes[p]) for p in wrt]
        return inner
    both = reverse_graph(graph, wrt)
    outs = inline(inner, both, [*inner.inputs, inner.const(1.0, graph.output_dtypes[0])])
    return with_outputs(inner, outs[1:])
