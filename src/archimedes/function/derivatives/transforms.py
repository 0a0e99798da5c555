"""``grad``, ``jac``, ``hess``, and whether a function is linear or quadratic in an argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, TypeAlias, TypedDict, TypeVar, Unpack, overload

import numpy as np

from archimedes.function.compiled import Compiled
from archimedes.function.derivatives.differentiation import Derivative, as_dtype
from archimedes.function.derivatives.sparse import SparseDerivative
from archimedes.function.recorded_function import P
from archimedes.graph.dead_code import inputs_read
from archimedes.graph.derivatives.sparsity import has_kinks
from archimedes.symbolic import Trace

__all__ = ["grad", "hess", "jac"]

A = TypeVar("A")
#: Arrays of numbers, for type checkers.
Array: TypeAlias = np.ndarray[Any, Any]


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
