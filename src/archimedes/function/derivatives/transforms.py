"""``grad``, ``jac``, ``hess``, ``jvp``, ``vjp``: functions of functions, Graph to Graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError, StructError
from archimedes.function.compiled import Compiled
from archimedes.function.derivatives.jacobian_blocks import (
    blocks_of,
    dense_jacobian,
    filled,
    float_outs,
    gradient_graph,
    out_shape,
    result_dtype,
    rows_of,
    scalar_out,
    typed,
)
from archimedes.function.derivatives.recorded_point import Derivative, Point
from archimedes.function.derivatives.sparse import SparseDerivative
from archimedes.function.recording import LeafSpec
from archimedes.function.signatures import Bound, Signature
from archimedes.graph.derivatives.jacobians import forward_graph, reverse_graph
from archimedes.graph.dtypes import DTYPES, is_float
from archimedes.graph.passes import inline
from archimedes.symbolic import SymbolicArray, current_trace, lift, wrap
from archimedes.tree.treedef import TreeDef

__all__ = ["grad", "hess", "jac", "jvp", "vjp"]


def _named(function: Callable[..., Any], what: str, name: str | None) -> str:
    return name or f"{what}_{getattr(function, '__name__', 'function')}"


P = ParamSpec("P")
A = TypeVar("A")
#: Arrays of numbers, for type checkers.
Array: TypeAlias = np.ndarray[Any, Any]


@overload
def jac(
    func: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[False] = False,
) -> Compiled[Concatenate[Array, P], Array]: ...
@overload
def jac(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[True],
) -> SparseDerivative: ...
@overload
def jac(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[False] = False,
) -> Compiled[P, Any]: ...
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
        return SparseDerivative(derivative, _named(func, "jac", name), symmetric=False)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        outs = float_outs(point, "jac")
        dense = dense_jacobian(point, point.recording.graph)
        if flat:
            rows = [rows_of(point, dense, out) for out in outs]
            return typed(np.concatenate(rows) if rows else dense, result_dtype(point, outs))
        leaves = [
            blocks_of(point, rows_of(point, dense, out), out_shape(out), out.spec.code)
            for out in outs
        ]
        return point.recording.out_tree.unflatten(leaves)

    return _as_compiled(run, derivative, _named(func, "jac", name))


def _as_compiled(
    run: Callable[..., Any], derivative: Derivative, name: str, signature: Signature | None = None
) -> Compiled:
    compiled = Compiled(
        run,
        name=name,
        backend=derivative.backend,
        numerics=derivative.numerics,
        freeze=derivative.freeze,
        watch=derivative.watch,
    )
    compiled.__doc__ = f"{derivative.what} of {derivative.signature.name}."
    if signature is None:
        compiled.__signature__ = derivative.signature.parameters
    compiled.signature = signature or derivative.signature
    return compiled


@overload
def grad(
    func: Callable[Concatenate[A, P], Any],
    argnums: Literal[0] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Compiled[Concatenate[A, P], A]: ...
@overload
def grad(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
) -> Compiled[P, Any]: ...
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
        scalar_out(point, "grad")
        ids = inline(current_trace().graph, gradient_graph(point), point.inputs)
        return blocks_of(point, np.array([ids], dtype=np.int64), ())

    return _as_compiled(run, derivative, _named(func, "grad", name))


@overload
def hess(
    func: Callable[Concatenate[Array, P], Any],
    argnums: Literal[0] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[False] = False,
) -> Compiled[Concatenate[Array, P], Array]: ...
@overload
def hess(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[True],
) -> SparseDerivative: ...
@overload
def hess(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    *,
    flat: bool = False,
    sparse: Literal[False] = False,
) -> Compiled[P, Any]: ...
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
        return SparseDerivative(derivative, _named(func, "hess", name), symmetric=True)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        scalar_out(point, "hess")
        dense = dense_jacobian(point, gradient_graph(point))
        if flat:
            return typed(dense, result_dtype(point))
        blocks = {}
        for position, k in enumerate(point.wanted):
            start, shape = point.block(position)
            leaf = point.recording.leaves[k]
            blocks[k] = blocks_of(point, dense[start : start + leaf.size], shape, leaf.code)
        return filled(point, blocks)

    return _as_compiled(run, derivative, _named(func, "hess", name))


def _tangent_ids(point: Point, given: Any, what: str, like: TreeDef) -> list[int]:
    leaves = _parts_like(like, given, what, "argument")
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


def _parts_like(like: TreeDef, given: Any, what: str, whose: str) -> list[Any]:
    """Return the parts of a (co)tangent in the places of the leaves of what it belongs to."""
    try:
        return tree.flatten_up_to(like, given, what)
    except StructError:
        raise ShapeDtypeError(
            f"the {what} must have the structure of the {whose} it belongs to, {like!r}, but it "
            f"has {tree.structure(given)!r}"
        ) from None


def _matching(leaf: Any, spec: LeafSpec, what: str) -> list[int]:
    if not isinstance(leaf, (int, float, list, tuple, np.ndarray, np.generic, SymbolicArray)):
        raise ShapeDtypeError(f"the {what} is {leaf!r}, but numbers are needed")
    array = lift(leaf).astype(DTYPES[spec.code])
    if array.shape != spec.shape:
        raise ShapeDtypeError(
            f"the {what} has shape {array.shape}, but {spec.shape} is needed: the shape of what it "
            "belongs to"
        )
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
        float_outs(point, "jvp")
        graph = forward_graph(point.recording.graph, point.wrt)
        inputs = point.inputs + _tangent_ids(point, tangent, "tangent", point.where)
        outs = inline(current_trace().graph, graph, inputs)
        return _rebuild(point, outs[len(point.recording.graph.outputs) :])

    signature = FollowedSignature(derivative.signature, "jvp", "tangent")
    return _as_compiled(run, derivative, _named(func, "jvp", name), signature)


def _rebuild(point: Point, ids: Sequence[int]) -> Any:
    leaves = []
    for out in point.recording.outs:
        if not out.spec.traced:
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
        outs = float_outs(point, "vjp")
        out_tree = point.recording.out_tree
        weights = _parts_like(out_tree, cotangent, "cotangent", "result")
        seeds: list[int] = []
        for leaf, out, path in zip(weights, outs, out_tree.paths("cotangent")):
            if out.spec.traced:
                seeds.extend(_matching(leaf, out.spec, path))
        graph = reverse_graph(point.recording.graph, point.wrt)
        ids = inline(current_trace().graph, graph, point.inputs + seeds)
        row = np.array([ids[len(point.recording.graph.outputs) :]], dtype=np.int64)
        return blocks_of(point, row, ())

    signature = FollowedSignature(derivative.signature, "vjp", "cotangent")
    return _as_compiled(run, derivative, _named(func, "vjp", name), signature)
