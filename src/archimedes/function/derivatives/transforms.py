"""``grad``, ``jac``, ``hess``, ``jvp``, ``vjp``, and whether a function is linear or quadratic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, TypedDict, TypeVar, Unpack, overload

import numpy as np

from archimedes import tree
from archimedes.errors import ShapeDtypeError, StructError
from archimedes.function.compiled import Compiled
from archimedes.function.derivatives.differentiation import Derivative, Point, as_dtype
from archimedes.function.derivatives.sparse import SparseDerivative
from archimedes.function.execution.shortcuts import P
from archimedes.function.leaf_specs import LeafSpec
from archimedes.function.recording import Recording, array_ids, read_array
from archimedes.function.signatures import Bound, Signature
from archimedes.graph import DTYPES, inline, is_float
from archimedes.graph.dead_code import inputs_read
from archimedes.graph.derivatives.jacobian_graphs import forward_graph, reverse_graph
from archimedes.graph.derivatives.sparsity import has_kinks
from archimedes.symbolic import SymbolicArray, Trace, current_trace, lift
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.typing import Array, Tree

__all__ = ["grad", "hess", "jac", "jvp", "vjp"]

A = TypeVar("A")


class _NameOptions(TypedDict, total=False):
    name: str | None
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None


class _Options(_NameOptions, total=False):
    flat: bool


@overload
def jac(
    func: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    *,
    sparse: Literal[False] = False,
    **options: Unpack[_Options],
) -> Compiled[Concatenate[Array, P], Array]: ...
@overload
def jac(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparse: Literal[True],
    **options: Unpack[_Options],
) -> SparseDerivative: ...
@overload
def jac(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparse: Literal[False] = False,
    **options: Unpack[_Options],
) -> Compiled[P, Any]: ...
def jac(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    *,
    flat: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the function that computes the Jacobian of a function.

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.
    flat : bool, optional
        Return one matrix over the ravelled trees.
    sparse : bool, optional
        Return a `scipy.sparse` matrix with the structural sparsity pattern. Implies `flat`.

    Returns
    -------
    callable
        Function of the same arguments. For arrays its result has shape ``output.shape +
        input.shape``. For trees it is the tree of the output in which each leaf is replaced by the
        tree of the input, filled with such blocks.

    Examples
    --------
    >>> import numpy as np
    >>> jac(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    derivative = Derivative(func, argnums, "jac", static_argnums, static_argnames, name)
    if sparse:
        return SparseDerivative(derivative, symmetric=False)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        outs, dense = point.float_outs(), point.dense_jacobian()
        if flat:
            rows = [point.rows_of(dense, out) for out in outs]
            return as_dtype(np.concatenate(rows) if rows else dense, point.result_dtype(outs))
        leaves = [
            point.cut_blocks(point.rows_of(dense, out), out.shape, out.spec.code) for out in outs
        ]
        return point.recording.out_tree.unflatten(leaves)

    return derivative.compile(run)


@overload
def grad(
    func: Callable[Concatenate[A, P], Any],
    argnums: Literal[0] = 0,
    **options: Unpack[_NameOptions],
) -> Compiled[Concatenate[A, P], A]: ...
@overload
def grad(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    **options: Unpack[_NameOptions],
) -> Compiled[P, Any]: ...
def grad(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Return the function that computes the gradient of a scalar function.

    Parameters
    ----------
    func : callable
        A function that returns one number.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.

    Returns
    -------
    callable
        Function of the same arguments. Its result has the type of the argument: an array for an
        array, a struct for a struct; a tuple if `argnums` is one.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    derivative = Derivative(func, argnums, "grad", static_argnums, static_argnames, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        point.check_scalar()
        return point.gradient()

    return derivative.compile(run)


@overload
def hess(
    func: Callable[Concatenate[Array, P], Any],
    argnums: Literal[0] = 0,
    *,
    sparse: Literal[False] = False,
    **options: Unpack[_Options],
) -> Compiled[Concatenate[Array, P], Array]: ...
@overload
def hess(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparse: Literal[True],
    **options: Unpack[_Options],
) -> SparseDerivative: ...
@overload
def hess(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    sparse: Literal[False] = False,
    **options: Unpack[_Options],
) -> Compiled[P, Any]: ...
def hess(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    *,
    flat: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the function that computes the Hessian of a scalar function.

    Parameters
    ----------
    func : callable
        A function that returns one number.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.
    flat : bool, optional
        Return one matrix over the ravelled trees.
    sparse : bool, optional
        Return a `scipy.sparse` matrix with the structural sparsity pattern. Implies `flat`.

    Returns
    -------
    callable
        Function of the same arguments. For an array argument its result has shape ``x.shape +
        x.shape``; for a tree it is the tree of trees of such blocks.

    Examples
    --------
    >>> import numpy as np
    >>> hess(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    derivative = Derivative(func, argnums, "hess", static_argnums, static_argnames, name)
    if sparse:
        return SparseDerivative(derivative, symmetric=True)

    def run(*args: Any, **kwargs: Any) -> Any:
        point = derivative.point(args, kwargs)
        point.check_scalar()
        dense = point.dense_jacobian(gradient=True)
        if flat:
            return as_dtype(dense, point.result_dtype())
        leaves = point.recording.leaves
        blocks = [
            point.cut_blocks(dense[span], leaves[k].shape, leaves[k].code)
            for k, span in point.spans()
        ]
        return point.put_in_argument(blocks)

    return derivative.compile(run)


def is_linear(func: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that tells whether ``func`` is linear, plus a constant, in its first.

    It is asked with the arguments of ``func``, whose values do not matter: the program is linear
    if its Jacobian does not read x, and if x decides about nothing (``np.where``, ``np.floor``).
    What a loop decides inside is not seen.

    >>> import numpy as np
    >>> is_linear(lambda x, a: a * x[0] - x[1])(np.zeros(2), 2.0)
    True
    >>> is_linear(lambda x: np.maximum(x[0], x[1]))(np.zeros(2))
    False
    """
    return lambda *args: not (_reads(jac(func), args) or _has_kinks(func, args))


def is_quadratic(func: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that tells whether ``func``, a number, is quadratic in its first.

    >>> import numpy as np
    >>> is_quadratic(lambda x: x @ x)(np.zeros(2)), is_quadratic(np.linalg.norm)(np.zeros(2))
    (True, False)
    """
    return lambda *args: (
        not (_reads(hess(func), args) or _has_kinks(jac(func), args) or _has_kinks(func, args))
    )


def _reads(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Return whether a result needs the value of the first argument."""
    with Trace():
        point = Derivative(func, 0, "linearity").point(args, {})
        return not inputs_read(point.recording.blocks).isdisjoint(point.block_wrt)


def _has_kinks(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    with Trace():
        point = Derivative(func, 0, "linearity").point(args, {})
        return has_kinks(point.recording.blocks, point.block_wrt)


# ---- products with Jacobians: jvp and vjp --------------------------------------------------------


def _tangent_ids(point: Point, tangent: Tree) -> list[int]:
    """Return ids of a tangent: a block where the recording takes one."""
    leaves = _parts_like(point.where, tangent, "tangent", "argument")
    parts = zip(leaves, point.leaves, point.where.paths("tangent"))
    numbers = [
        (x, path) for x, old, path in parts if isinstance(old, SymbolicArray) and is_float(old.code)
    ]
    specs, forms = point.recording.leaves, point.recording.forms()
    return [
        i
        for (leaf, path), k in zip(numbers, point.wanted)
        for i in array_ids(_check_like(leaf, specs[k], path), forms[k].block)
    ]


def _cotangent_ids(point: Point, cotangent: Tree) -> list[int]:
    """Return ids of a cotangent: a block where the recording gives one."""
    recording = point.recording
    leaves = _parts_like(recording.out_tree, cotangent, "cotangent", "result")
    paths = recording.out_tree.paths("cotangent")
    return [
        i
        for leaf, out, form, path in zip(leaves, recording.outs, recording.out_forms(), paths)
        if out.spec.traced
        for i in array_ids(_check_like(leaf, out.spec, path), form.block)
    ]


def _parts_like(like: TreeDef, vector: Tree, what: str, whose: str) -> list[Any]:
    """Return the parts of a (co)tangent that belong to the leaves of a structure."""
    try:
        return tree.flatten_up_to(like, vector, what)
    except StructError:
        raise ShapeDtypeError(
            f"the {what} must have the structure of the {whose} it belongs to, {like!r}, but it "
            f"has {tree.structure(vector)!r}"
        ) from None


def _check_like(leaf: Any, spec: LeafSpec, what: str) -> SymbolicArray:
    """Return a part of a (co)tangent as an array of the dtype of what it belongs to."""
    if not isinstance(leaf, (int, float, list, tuple, np.ndarray, np.generic, SymbolicArray)):
        raise ShapeDtypeError(f"the {what} is {leaf!r}, but numbers are needed")
    array = lift(leaf).astype(DTYPES[spec.code])
    if array.shape != spec.shape:
        raise ShapeDtypeError(
            f"the {what} has shape {array.shape}, but {spec.shape} is needed: the shape of what it "
            "belongs to"
        )
    return array


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
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Return the function that multiplies the Jacobian by a tangent (forward mode).

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.

    Returns
    -------
    callable
        ``g(*args, v)``. The tangent ``v`` has the structure of the argument, or is a tuple if
        `argnums` is one. The result has the structure of the output.

    Examples
    --------
    >>> import numpy as np
    >>> jvp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([2., 4.])
    """
    derivative = Derivative(func, argnums, "jvp", static_argnums, static_argnames, name)

    def run(*args_and_tangent: Any, **kwargs: Any) -> Any:
        *args, tangent = args_and_tangent
        point = derivative.point(tuple(args), kwargs)
        point.float_outs()
        blocks = point.recording.blocks
        graph = forward_graph(blocks, point.block_wrt)
        inputs = point.inputs + _tangent_ids(point, tangent)
        outs = inline(current_trace().graph, graph, inputs)
        return _tangent_tree(point.recording, outs[len(blocks.outputs) :])

    signature = FollowedSignature(derivative.signature, "jvp", "tangent")
    return derivative.compile(run, signature)


def _tangent_tree(recording: Recording, ids: Iterable[int]) -> Tree:
    """Build the result's tree of the tangents of the outputs of ``blocks``."""
    rest = iter(ids)
    leaves = [
        read_array(rest, out.spec.shape, out.spec.code, form.block)
        if out.spec.traced
        else np.zeros(np.shape(out.spec.value))[()]
        for out, form in zip(recording.outs, recording.out_forms())
    ]
    return recording.out_tree.unflatten(leaves)


def vjp(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    name: str | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Return the function that multiplies a cotangent by the Jacobian (reverse mode).

    Parameters
    ----------
    func : callable
        The function to differentiate, plain NumPy.
    argnums : int or sequence of int, optional
        Position of the argument to differentiate with respect to, or of several. The first by
        default.
    name : str, optional
        Name in messages and listings. By default it is made from that of `func`.
    static_argnums : int or sequence of int, optional
        Positions of arguments that are part of the compiled program.
    static_argnames : str or sequence of str, optional
        Names of such arguments.

    Returns
    -------
    callable
        ``g(*args, w)``. The cotangent ``w`` has the structure of the output, the result that of the
        argument.

    Examples
    --------
    >>> import numpy as np
    >>> vjp(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([2., 0.])
    """
    derivative = Derivative(func, argnums, "vjp", static_argnums, static_argnames, name)

    def run(*args_and_cotangent: Any, **kwargs: Any) -> Any:
        *args, cotangent = args_and_cotangent
        point = derivative.point(tuple(args), kwargs)
        point.float_outs()
        blocks = point.recording.blocks
        seeds = _cotangent_ids(point, cotangent)
        graph = reverse_graph(blocks, point.block_wrt)
        ids = inline(current_trace().graph, graph, point.inputs + seeds)
        return point.values_in_argument(ids[len(blocks.outputs) :])

    signature = FollowedSignature(derivative.signature, "vjp", "cotangent")
    return derivative.compile(run, signature)
