"""``grad``, ``jac``, ``hess``, ``jvp``, ``vjp``: functions of functions, Graph to Graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.compiled import Compiled, Signature
from archimedes.function.recording import (
    LeafSpec,
    OutLeaf,
    Recording,
    describe_leaves,
    leaf_ids,
    record,
)
from archimedes.graph.derivatives.jacobians import (
    Entries,
    forward_graph,
    jacobian_graph,
    reverse_graph,
)
from archimedes.graph.dtypes import DTYPES, F64, is_float
from archimedes.graph.passes import inline, with_outputs
from archimedes.graph.program import Graph
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.tree.treedef import TreeDef

__all__ = ["differentiable", "grad", "hess", "jac", "jvp", "vjp"]


@dataclass
class Point:
    """A function recorded at given arguments, with the leaves it is differentiated in.

    ``wrt`` are the inputs of the graph that belong to those leaves; ``wanted`` the leaves'
    numbers; ``where`` the tree of the chosen argument (or tuple of arguments).
    """

    recording: Recording
    inputs: list[int]
    wanted: list[int]
    wrt: list[int]
    where: TreeDef
    leaves: list[Any]

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
        self.what = what
        if isinstance(function, Compiled):
            self.signature = function.signature
        else:
            self.signature = Signature(base, static_argnums, static_argnames)
        self.single = isinstance(argnums, (int, np.integer))
        self.argnums = (int(argnums),) if self.single else tuple(argnums)  # type: ignore[arg-type]
        if not self.argnums:
            raise ValueError(f"{what}: argnums is empty, so there is nothing to differentiate in")

    def point(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Point:
        """Record the function at these (traced) arguments."""
        values = self.signature.bind(args, kwargs)
        static = self.signature.static
        names = list(values)
        chosen = []
        for number in self.argnums:
            if not -len(names) <= number < len(names):
                raise ValueError(
                    f"{self.what}: argnums={number} is out of range, "
                    f"{self.signature.name}() was given {len(names)} arguments {names}"
                )
            chosen.append(names[number])
        for name in chosen:
            if name in static:
                raise ValueError(
                    f"{self.what}: argument {name!r} is static, so it has no derivative: "
                    "choose another with argnums, or do not declare it static"
                )
            values[name] = tree.map(differentiable, values[name])
        dynamic = {k: v for k, v in values.items() if k not in static}
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        specs = describe_leaves(leaves, treedef, list(dynamic))

        def build(symbols: list[Any]) -> Any:
            rebuilt = dict(zip(dynamic, treedef.unflatten(symbols)))
            return self.signature.unbind({k: rebuilt.get(k, v) for k, v in values.items()})

        recording = record(self.function, specs, build)
        return self._locate(recording, leaves, dynamic, chosen, treedef)

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
                if spec.code >= 0 and is_float(spec.code):
                    wanted.append(k)
                    wrt.extend(range(offsets[k], offsets[k] + spec.size))
        if not wanted:
            raise TraceError(
                f"{self.what}: argument {chosen[0]!r} holds no numbers to differentiate in"
            )
        inputs: list[int] = []
        for leaf, spec in zip(leaves, recording.leaves):
            if spec.code >= 0:
                inputs.extend(leaf_ids(leaf, spec))
        inputs.extend(recording.captured)
        trees = [tree.structure(dynamic[name]) for name in chosen]
        where = trees[0] if self.single else tree.structure(tuple(dynamic[name] for name in chosen))
        return Point(recording, inputs, wanted, wrt, where, leaves_of(dynamic, chosen))


def leaves_of(dynamic: dict[str, Any], chosen: list[str]) -> list[Any]:
    """Return the leaves of the chosen arguments."""
    return [leaf for name in chosen for leaf in tree.leaves(dynamic[name])]


def differentiable(x: Any) -> Any:
    """Return a leaf as floating point where it is a number; other leaves unchanged."""
    if isinstance(x, bool):
        return x
    if isinstance(x, (int, float, np.ndarray, np.generic, SymbolicArray)):
        x = lift(x)
        if not is_float(x.code):
            return x.astype(np.float64) if x.code != 3 else x
        return wrap(current_trace().ids_of(x), x.code)
    return x


def _float_outs(point: Point, what: str) -> list[OutLeaf]:
    outs = []
    for out, path in zip(point.recording.outs, point.recording.out_tree.paths("result")):
        code = out.spec.code
        if code < 0 and not isinstance(out.spec.value, (int, float, np.ndarray, np.generic)):
            raise TraceError(
                f"{what}: {path} is a {type(out.spec.value).__name__}, which has no derivative"
            )
        if code >= 0 and not is_float(code):
            raise TraceError(
                f"{what}: {path} is {DTYPES[code]}, which has no derivative: return floats, for "
                "example x.astype(float)"
            )
        outs.append(out)
    return outs


def _matrix(entries: Entries, ids: Sequence[int], code: int) -> np.ndarray:
    """Spread entries over a dense array of ids."""
    zero = current_trace().graph.const(0.0, code)
    dense = np.full(entries.shape, zero, dtype=np.int64)
    dense[entries.rows, entries.columns] = ids
    return dense


def _dtype(point: Point) -> int:
    codes = {point.recording.leaves[k].code for k in point.wanted}
    return F64 if F64 in codes or len(codes) > 1 else codes.pop()


def _blocks(point: Point, rows: np.ndarray, shape: tuple[int, ...]) -> Any:
    """Cut the rows of one result leaf of the given shape into a tree of blocks."""
    blocks = {}
    for position, k in enumerate(point.wanted):
        start, leaf_shape = point.block(position)
        size = point.recording.leaves[k].size
        ids = rows[:, start : start + size].reshape((*shape, *leaf_shape))
        blocks[k] = wrap(ids, current_trace().graph.dtype[ids.flat[0]] if ids.size else F64)
    return _fill(point, blocks)


def _fill(point: Point, blocks: dict[int, Any]) -> Any:
    """Put blocks in the place of the wanted leaves of the chosen arguments."""
    filled = []
    ready = iter([blocks[k] for k in point.wanted])
    for leaf in point.leaves:
        differentiated = isinstance(leaf, SymbolicArray) and is_float(leaf.code)
        filled.append(next(ready) if differentiated else leaf)
    return point.where.unflatten(filled)


def _jacobian(point: Point, graph: Graph, symmetric: bool = False) -> np.ndarray:
    entries = jacobian_graph(graph, point.wrt, symmetric=symmetric)
    ids = inline(current_trace().graph, entries.graph, point.inputs)
    return _matrix(entries, ids, _dtype(point))


def _named(function: Callable[..., Any], what: str, name: str | None) -> str:
    return name or f"{what}_{getattr(function, '__name__', 'function')}"


def jac(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the function that computes the Jacobian of ``func``.

    For arrays the result has shape ``output.shape + input.shape``. For trees it is the output's
    tree with, in place of each leaf, the input's tree of such blocks; ``flat=True`` gives one
    matrix over the ravelled trees. ``argnums`` chooses the argument (a tuple: several).
    ``sparse=True`` returns a ``scipy.sparse`` matrix with the structural pattern (implies flat).

    >>> import numpy as np
    >>> jac(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    derivative = Derivative(func, argnums, "jac", static_argnums, static_argnames)
    if sparse:
        from archimedes.function.sparse import SparseDerivative

        return SparseDerivative(derivative, _named(func, "jac", name), symmetric=False)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        outs = _float_outs(point, "jac")
        dense = _jacobian(point, point.recording.graph)
        if flat:
            rows = [_rows_of(point, dense, out) for out in outs]
            return wrap(np.concatenate(rows) if rows else dense, _dtype(point))
        leaves = [_blocks(point, _rows_of(point, dense, out), _out_shape(out)) for out in outs]
        return point.recording.out_tree.unflatten(leaves)

    return _as_compiled(run, derivative, _named(func, "jac", name))


def _out_shape(out: OutLeaf) -> tuple[int, ...]:
    return out.spec.shape if out.spec.code >= 0 else np.shape(out.spec.value)


def _rows_of(point: Point, dense: np.ndarray, out: OutLeaf) -> np.ndarray:
    """Rows of one result leaf; zeros where it does not depend on the arguments at all."""
    if out.spec.code >= 0:
        return dense[out.start : out.stop]
    zero = current_trace().graph.const(0.0, _dtype(point))
    return np.full((int(np.size(out.spec.value)), dense.shape[1]), zero, dtype=np.int64)


def _as_compiled(run: Callable[..., Any], derivative: Derivative, name: str) -> Compiled:
    compiled = Compiled(run, name=name)
    compiled.__doc__ = f"{derivative.what} of {derivative.signature.name}."
    compiled.signature = derivative.signature
    compiled.__signature__ = derivative.signature.parameters
    return compiled


def _scalar_out(point: Point, what: str) -> OutLeaf:
    outs = _float_outs(point, what)
    shapes = [_out_shape(out) for out in outs]
    if shapes != [()]:
        raise TraceError(
            f"{what} needs a function with one scalar result, this one returns {len(outs)} of "
            f"shape {shapes}: reduce it, for example with np.sum, or use arc.jac"
        )
    return outs[0]


def _gradient_graph(point: Point) -> Graph:
    """Return the graph inputs -> gradient in ``wrt`` of the single scalar output."""
    graph = point.recording.graph
    if not graph.outputs:
        zeros = Graph()
        for dtype in graph.input_dtypes:
            zeros.input(dtype)
        zeros.outputs = [zeros.const(0.0, graph.input_dtypes[p]) for p in point.wrt]
        return zeros
    both = reverse_graph(graph, point.wrt)
    inner = Graph()
    inputs = [inner.input(dtype) for dtype in graph.input_dtypes]
    outs = inline(inner, both, [*inputs, inner.const(1.0, graph.output_dtypes[0])])
    return with_outputs(inner, outs[1:])


def grad(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Any:
    """Return the function that computes the gradient of a scalar function.

    The result has the type of the argument: an array for an array, a struct for a struct.

    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    derivative = Derivative(func, argnums, "grad", static_argnums, static_argnames)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        _scalar_out(point, "grad")
        ids = inline(current_trace().graph, _gradient_graph(point), point.inputs)
        return _blocks(point, np.array([ids], dtype=np.int64), ())

    return _as_compiled(run, derivative, _named(func, "grad", name))


def hess(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the function that computes the Hessian of a scalar function.

    For an array argument the result has shape ``x.shape + x.shape``; for a tree it is the tree
    of trees of blocks; ``flat`` and ``sparse`` are as in :func:`jac`.

    >>> import numpy as np
    >>> hess(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    derivative = Derivative(func, argnums, "hess", static_argnums, static_argnames)
    if sparse:
        from archimedes.function.sparse import SparseDerivative

        return SparseDerivative(derivative, _named(func, "hess", name), symmetric=True)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        _scalar_out(point, "hess")
        dense = _jacobian(point, _gradient_graph(point))
        if flat:
            return wrap(dense, _dtype(point))
        blocks = {}
        for position, k in enumerate(point.wanted):
            start, shape = point.block(position)
            size = point.recording.leaves[k].size
            blocks[k] = _blocks(point, dense[start : start + size], shape)
        return _fill(point, blocks)

    return _as_compiled(run, derivative, _named(func, "hess", name))


def _tangent_ids(point: Point, given: Any, what: str, like: TreeDef) -> list[int]:
    leaves = tree.flatten_up_to(like, given, what)
    ids: list[int] = []
    numbers = [x for x, old in zip(leaves, point.leaves) if isinstance(old, SymbolicArray)]
    for leaf, k in zip(numbers, point.wanted):
        spec = point.recording.leaves[k]
        ids.extend(_matching(leaf, spec, what))
    return ids


def _matching(leaf: Any, spec: LeafSpec, what: str) -> list[int]:
    array = lift(leaf).astype(DTYPES[spec.code])
    if array.shape != spec.shape:
        raise ValueError(f"{what} has shape {array.shape}, but {spec.shape} is needed")
    return current_trace().ids_of(array).ravel().tolist()


def _split_last(args: tuple[Any, ...], what: str, item: str) -> tuple[tuple[Any, ...], Any]:
    if len(args) < 2:
        raise TypeError(f"{what}(f)(*args, {item}): give the arguments of f, then the {item}")
    return args[:-1], args[-1]


def jvp(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Any:
    """Return ``g(*args, v)``: the Jacobian of ``func`` times the tangent ``v``.

    ``v`` has the structure of the argument chosen by ``argnums`` (a tuple of them for several);
    the result has the structure of the output.

    >>> import numpy as np
    >>> jvp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """
    derivative = Derivative(func, argnums, "jvp", static_argnums, static_argnames)

    def run(*args: Any, **kwargs: Any) -> Any:
        args, tangent = _split_last(args, "jvp", "tangent")
        point = derivative.point(args, kwargs)
        _float_outs(point, "jvp")
        graph = forward_graph(point.recording.graph, point.wrt)
        inputs = point.inputs + _tangent_ids(point, tangent, "tangent", point.where)
        outs = inline(current_trace().graph, graph, inputs)
        return _rebuild(point, outs[len(point.recording.graph.outputs) :])

    return Compiled(run, name=_named(func, "jvp", name))


def _rebuild(point: Point, ids: Sequence[int]) -> Any:
    leaves = []
    for out in point.recording.outs:
        if out.spec.code < 0:
            leaves.append(np.zeros(np.shape(out.spec.value))[()])
        else:
            block = np.array(ids[out.start : out.stop], dtype=np.int64)
            leaves.append(wrap(block.reshape(out.spec.shape), out.spec.code))
    return point.recording.out_tree.unflatten(leaves)


def vjp(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Any:
    """Return ``g(*args, w)``: the cotangent ``w`` times the Jacobian of ``func``.

    ``w`` has the structure of the output; the result that of the argument.

    >>> import numpy as np
    >>> vjp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([2., 0.])
    """
    derivative = Derivative(func, argnums, "vjp", static_argnums, static_argnames)

    def run(*args: Any, **kwargs: Any) -> Any:
        args, cotangent = _split_last(args, "vjp", "cotangent")
        point = derivative.point(args, kwargs)
        outs = _float_outs(point, "vjp")
        given = tree.flatten_up_to(point.recording.out_tree, cotangent, "cotangent")
        seeds: list[int] = []
        for leaf, out in zip(given, outs):
            if out.spec.code >= 0:
                seeds.extend(_matching(leaf, out.spec, "cotangent"))
        graph = reverse_graph(point.recording.graph, point.wrt)
        ids = inline(current_trace().graph, graph, point.inputs + seeds)
        row = np.array([ids[len(point.recording.graph.outputs) :]], dtype=np.int64)
        return _blocks(point, row, ())

    return Compiled(run, name=_named(func, "vjp", name))
