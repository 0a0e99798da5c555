"""``grad``, ``jac``, ``hess``, ``jvp``, ``vjp``: functions of functions, Graph to Graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function.compiled import Bound, Compiled, Signature
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
from archimedes.graph.dtypes import B8, DTYPES, F64, is_float
from archimedes.graph.passes import inline, with_outputs
from archimedes.graph.program import Graph
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.symbolic.dispatch import cast
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
        fixed = self.signature.fixed(values) - set(chosen)
        dynamic = {k: v for k, v in values.items() if k not in fixed}
        leaves, treedef = tree.flatten(tuple(dynamic.values()))
        specs = describe_leaves(leaves, treedef, list(dynamic))

        def build(symbols: list[Any]) -> Any:
            return self.signature.rebind(values, dict(zip(dynamic, treedef.unflatten(symbols))))

        recording = record(self.function, specs, build)
        return self._locate(recording, leaves, dynamic, chosen, treedef)

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
        weak = type(x) in (int, float) or getattr(x, "weak", False)
        x = lift(x)
        if x.code == B8:
            return x
        if not is_float(x.code):
            x = x.astype(np.float64)
        return wrap(current_trace().ids_of(x), x.code, weak=weak)
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


def _matrix(entries: Entries, ids: Sequence[int]) -> np.ndarray:
    """Spread entries over a dense array of ids, whose dtypes are those the sweep gave."""
    zero = current_trace().graph.const(0.0, F64)
    dense = np.full(entries.shape, zero, dtype=np.int64)
    dense[entries.rows, entries.columns] = ids
    return dense


def _dtype(point: Point, outs: Sequence[OutLeaf] = ()) -> int:
    """Return the dtype that holds all chosen arguments and the given results."""
    codes = {point.recording.leaves[k].code for k in point.wanted}
    codes |= {out.spec.code for out in outs if out.spec.code >= 0}
    return F64 if F64 in codes else codes.pop()


def _typed(ids: np.ndarray, code: int) -> Any:
    """Wrap ids of floats as an array of one dtype; a sweep mixes those of arguments and results."""
    g = current_trace().graph
    flat = [cast(g, i, code) for i in ids.ravel().tolist()]
    return wrap(np.array(flat, dtype=np.int64).reshape(ids.shape), code)


def _blocks(point: Point, rows: np.ndarray, shape: tuple[int, ...], code: int = -1) -> Any:
    """Cut the rows of one result leaf of the given shape into a tree of blocks.

    Each has the dtype of its argument leaf, widened to ``code`` where given.
    """
    blocks = {}
    for position, k in enumerate(point.wanted):
        start, leaf_shape = point.block(position)
        leaf = point.recording.leaves[k]
        ids = rows[:, start : start + leaf.size].reshape((*shape, *leaf_shape))
        blocks[k] = _typed(ids, F64 if F64 in (code, leaf.code) else leaf.code)
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
    return _matrix(entries, ids)


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
            return _typed(np.concatenate(rows) if rows else dense, _dtype(point, outs))
        leaves = [
            _blocks(point, _rows_of(point, dense, out), _out_shape(out), out.spec.code)
            for out in outs
        ]
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


def _as_compiled(
    run: Callable[..., Any], derivative: Derivative, name: str, signature: Signature | None = None
) -> Compiled:
    compiled = Compiled(run, name=name)
    compiled.__doc__ = f"{derivative.what} of {derivative.signature.name}."
    if signature is None:
        compiled.__signature__ = derivative.signature.parameters
    compiled.signature = signature or derivative.signature
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
            return _typed(dense, _dtype(point))
        blocks = {}
        for position, k in enumerate(point.wanted):
            start, shape = point.block(position)
            leaf = point.recording.leaves[k]
            blocks[k] = _blocks(point, dense[start : start + leaf.size], shape, leaf.code)
        return _fill(point, blocks)

    return _as_compiled(run, derivative, _named(func, "hess", name))


def _tangent_ids(point: Point, given: Any, what: str, like: TreeDef) -> list[int]:
    leaves = tree.flatten_up_to(like, given, what)
    ids: list[int] = []
    paths = like.paths(what)
    numbers = [
        (x, path)
        for x, old, path in zip(leaves, point.leaves, paths)
        if isinstance(old, SymbolicArray) and is_float(old.code)
    ]
    for (leaf, path), k in zip(numbers, point.wanted):
        ids.extend(_matching(leaf, point.recording.leaves[k], path))
    return ids


def _matching(leaf: Any, spec: LeafSpec, what: str) -> list[int]:
    array = lift(leaf).astype(DTYPES[spec.code])
    if array.shape != spec.shape:
        raise ValueError(f"{what} has shape {array.shape}, but {spec.shape} is needed")
    return current_trace().ids_of(array).ravel().tolist()


class FollowedSignature(Signature):
    """The signature of jvp and vjp: the function's own arguments, then one more."""

    def __init__(self, base: Signature, what: str, item: str) -> None:
        self.base = base
        self.name = base.name
        self.static = base.static
        self.positional = [*base.positional, item]
        self.plain = False
        self.parameters = base.parameters
        self.usage = f"{what}(f)(*args, {item}): give the arguments of f, then the {item}"
        self.last = item + "_" * (item in base.parameters.parameters)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, the last one as ``self.last``."""
        if len(args) < 2:
            raise TypeError(self.usage)
        values = self.base.bind(args[:-1], kwargs)
        return Bound({**values, self.last: args[-1]}, getattr(values, "defaulted", ()))

    def unbind(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments from values by name."""
        own = {name: value for name, value in values.items() if name != self.last}
        args, kwargs = self.base.unbind(own)
        return (*args, values[self.last]), kwargs


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

    def run(*given: Any, **kwargs: Any) -> Any:
        *args, tangent = given
        point = derivative.point(tuple(args), kwargs)
        _float_outs(point, "jvp")
        graph = forward_graph(point.recording.graph, point.wrt)
        inputs = point.inputs + _tangent_ids(point, tangent, "tangent", point.where)
        outs = inline(current_trace().graph, graph, inputs)
        return _rebuild(point, outs[len(point.recording.graph.outputs) :])

    signature = FollowedSignature(derivative.signature, "jvp", "tangent")
    return _as_compiled(run, derivative, _named(func, "jvp", name), signature)


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

    def run(*given: Any, **kwargs: Any) -> Any:
        *args, cotangent = given
        point = derivative.point(tuple(args), kwargs)
        outs = _float_outs(point, "vjp")
        out_tree = point.recording.out_tree
        weights = tree.flatten_up_to(out_tree, cotangent, "cotangent")
        seeds: list[int] = []
        for leaf, out, path in zip(weights, outs, out_tree.paths("cotangent")):
            if out.spec.code >= 0:
                seeds.extend(_matching(leaf, out.spec, path))
        graph = reverse_graph(point.recording.graph, point.wrt)
        ids = inline(current_trace().graph, graph, point.inputs + seeds)
        row = np.array([ids[len(point.recording.graph.outputs) :]], dtype=np.int64)
        return _blocks(point, row, ())

    signature = FollowedSignature(derivative.signature, "vjp", "cotangent")
    return _as_compiled(run, derivative, _named(func, "vjp", name), signature)
