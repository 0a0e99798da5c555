"""Arrays that can hold traced values: what ``np.zeros`` and its like give inside a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import TraceError
from archimedes.symbolic import is_tracing, lift
from archimedes.symbolic.recorded.recorded_array import as_recorded

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from archimedes.typing import Array, ArrayLike

__all__ = ["array", "eye", "ones", "ones_like", "sym", "sym_like", "zeros", "zeros_like"]


def array(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return a new array, which may hold traced values.

    Parameters
    ----------
    x : array_like
        Numbers, arrays, traced values, or nested lists of them.
    dtype : dtype, optional
        Type of the elements. By default that of `x`.

    Examples
    --------
    >>> array([1.0, 2.0])
    array([1., 2.])
    """
    if not is_tracing() or not is_traced(x):
        return as_recorded(np.array(x, dtype=dtype))
    traced = lift(x)
    return traced.copy() if dtype is None else traced.astype(dtype)


def zeros(shape: int | Sequence[int], dtype: DTypeLike = float) -> Array:
    """Return an array of zeros that traced values can be written to.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype, optional
        np.float64 (default), np.float32, np.int64 or bool.

    Examples
    --------
    >>> zeros(2)
    array([0., 0.])
    """
    return array(np.zeros(shape, dtype))


def ones(shape: int | Sequence[int], dtype: DTypeLike = float) -> Array:
    """Return an array of ones that traced values can be written to.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the array.
    dtype : dtype, optional
        np.float64 (default), np.float32, np.int64 or bool.

    Examples
    --------
    >>> ones((1, 2))
    array([[1., 1.]])
    """
    return array(np.ones(shape, dtype))


def eye(n: int, m: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Array:
    """Return an identity matrix that traced values can be written to.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int, optional
        Number of columns, `n` by default.
    k : int, optional
        Diagonal that holds the ones: 0 is the main diagonal, positive ones lie above it.
    dtype : dtype, optional
        np.float64 (default), np.float32, np.int64 or bool.

    Examples
    --------
    >>> eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return array(np.eye(n, m, k, dtype))


def zeros_like(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return an array of zeros like another array.

    Parameters
    ----------
    x : array_like
        Array whose shape the result has.
    dtype : dtype, optional
        Type of the elements. By default that of `x`.

    Examples
    --------
    >>> zeros_like([1, 2])
    array([0, 0])
    """
    return np.zeros_like(x, dtype=dtype)


def ones_like(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Return an array of ones like another array.

    Parameters
    ----------
    x : array_like
        Array whose shape the result has.
    dtype : dtype, optional
        Type of the elements. By default that of `x`.

    Examples
    --------
    >>> ones_like([1.0, 2.0])
    array([1., 1.])
    """
    return np.ones_like(x, dtype=dtype)


def sym(name: str = "x", shape: int | Sequence[int] = (), dtype: DTypeLike = float) -> Array:
    """Raise an error that says what to write instead.

    Symbolic values exist only inside functions that are being recorded.

    Parameters
    ----------
    name : str, optional
        Name of the symbol.
    shape : int or tuple of int, optional
        Shape of the symbol.
    dtype : dtype, optional
        np.float64 (default), np.float32, np.int64 or bool.

    Raises
    ------
    TraceError
        Always.

    Examples
    --------
    >>> sym("x", shape=(2,))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    archimedes.errors.TraceError: sym('x', (2,)): symbolic values exist only inside a function...
    """
    raise TraceError(
        f"sym({name!r}, {shape!r}): symbolic values exist only inside a function that is being "
        f"recorded. Write the expression as a function, f = arc.compile(lambda {name}: ...), and "
        f"look at it with f.graph({name}) or f.statistics({name}), given an array of that shape "
        "and dtype; its derivatives are arc.grad(f), arc.jac(f), arc.hess(f)"
    )


def sym_like(x: ArrayLike, name: str = "x") -> Array:
    """Raise an error that says what to write instead; see :func:`sym`.

    Parameters
    ----------
    x : array_like
        Array whose shape the symbol would have.
    name : str, optional
        Name of the symbol.

    Raises
    ------
    TraceError
        Always.

    Examples
    --------
    >>> sym_like([1.0, 2.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    archimedes.errors.TraceError: sym('x', (2,)): symbolic values exist only inside a function...
    """
    return sym(name, np.shape(x))
