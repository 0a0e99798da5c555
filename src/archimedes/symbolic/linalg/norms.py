"""Norms of traced vectors and matrices, and the condition number.

Derivatives at the origin, where a norm has a corner, are zero: the least subgradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from archimedes.symbolic.core.conversion import floats
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.traced_value import Axis, Operand, Traced
from archimedes.symbolic.linalg.matrices import check_stacked
from archimedes.symbolic.numpy_functions.structural import full_like
from archimedes.symbolic.recorded.numpy_source import implement_by_source

__all__: list[str] = []

Axes = tuple[int, ...]


def _away_from_zero(function: Callable[[Any], Any], x: Traced) -> Traced:
    """f(x) for an f with f(0) = 0 whose derivative is infinite there: made zero."""
    at_zero = x == 0
    safe = np.where(at_zero, 1.0, x).astype(x.dtype)
    return np.where(at_zero, 0.0, function(safe)).astype(x.dtype)


def _euclidean(x: Traced, axes: Axes) -> Traced:
    return _away_from_zero(np.sqrt, np.sum(x * x, axis=axes))


def _power_sum(x: Traced, axes: Axes, order: float) -> Traced:
    total = np.sum(np.abs(x) ** order, axis=axes)
    if order < 0:
        return total ** (1.0 / order)
    return _away_from_zero(lambda t: t ** (1.0 / order), total)


_VECTOR: dict[float, Callable[[Any, Axes], Any]] = {
    np.inf: lambda x, axes: np.max(np.abs(x), axis=axes),
    -np.inf: lambda x, axes: np.min(np.abs(x), axis=axes),
    0: lambda x, axes: np.sum((x != 0).astype(x.dtype), axis=axes),
    1: lambda x, axes: np.sum(np.abs(x), axis=axes),
    2: _euclidean,
}


def _vector(x: Traced, order: float | str | None, axes: Axes) -> Traced:
    if order is None:
        order = 2
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order in _VECTOR:
        return _VECTOR[order](x, axes)
    return _power_sum(x, axes, order)


def _sums(across: int, choose: Callable[..., Any]) -> Callable[[Any], Any]:
    """Largest or smallest of the sums of magnitudes along rows (-1) or columns (-2)."""
    return lambda x: choose(np.sum(np.abs(x), axis=across), axis=-1)


_MATRIX: dict[Any, Callable[[Any], Any]] = {
    1: _sums(-2, np.max),
    -1: _sums(-2, np.min),
    np.inf: _sums(-1, np.max),
    -np.inf: _sums(-1, np.min),
    2: lambda x: np.linalg.svdvals(x)[..., 0],
    -2: lambda x: np.linalg.svdvals(x)[..., -1],
    "nuc": lambda x: np.sum(np.linalg.svdvals(x), axis=-1),
    "fro": lambda x: _euclidean(x, (-2, -1)),
    "f": lambda x: _euclidean(x, (-2, -1)),
    None: lambda x: _euclidean(x, (-2, -1)),
}


def _matrix(x: Traced, order: float | str | None, axes: Axes) -> Traced:
    if order not in _MATRIX:
        raise ValueError("Invalid norm order for matrices.")
    return _MATRIX[order](np.moveaxis(x, axes, (-2, -1)))


def _axes(axis: Any, ndim: int) -> Axes:
    if axis is None:
        return tuple(range(ndim))
    axes = np.lib.array_utils.normalize_axis_tuple(axis, ndim, allow_duplicate=True)
    if len(set(axes)) != len(axes):
        raise ValueError("Duplicate axes given.")
    return axes


def _keep(result: Traced, axes: Axes, keepdims: bool) -> Traced:
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result


@implements(np.linalg.norm)
def _norm(
    x: Operand, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Traced:
    (x,) = floats(x)
    axes = _axes(axis, x.ndim)
    if axis is None and ord is None:
        result = _euclidean(x, axes)
    elif len(axes) == 1:
        result = _vector(x, ord, axes)
    elif len(axes) == 2:
        result = _matrix(x, ord, axes)
    else:
        raise ValueError("Improper number of dimensions to norm.")
    return _keep(result, axes, keepdims)


implement_by_source(np.linalg.vector_norm, np.linalg.matrix_norm)


@implements(np.linalg.cond)
def _cond(x: Operand, p: Operand = None) -> Traced:
    """Condition number; inf for a singular matrix."""
    (x,) = floats(x)
    if x.size == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    check_stacked(x)
    if p in (None, 2, -2):
        values = np.linalg.svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        result = smallest / largest if p == -2 else largest / smallest
    else:
        axes = x.ndim - 2, x.ndim - 1
        result = _matrix(x, p, axes) * _matrix(np.linalg.inv(x), p, axes)
    healthy = np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    infinite = full_like(x, np.inf, shape=())
    return np.where(np.isnan(result) & healthy, infinite, result)
