"""Polynomials given by their coefficients, highest power first: NumPy's poly functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import as_float, lift, lift_many
from archimedes.symbolic.core.registry import implements
from archimedes.symbolic.core.steps import stepped
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.wide import in_loops

__all__: list[str] = []


@implements(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    """Evaluate by Horner's rule."""
    p, x = lift(p), lift(x)
    y = np.zeros_like(x)
    trace = current_trace()
    if in_loops(trace.graph, p.size, trace.elements_of(p)):
        y = y.astype(np.result_type(p.dtype, x.dtype))
        return stepped(lambda y, c: ([y[0] * x + c[0]], []), [y], [p])[0][0]
    for coefficient in p:
        y = y * x + coefficient
    return y


def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Fill the shorter coefficient list with leading zeros."""
    a, b = lift_many([np.atleast_1d(a1), np.atleast_1d(a2)])
    n = max(a.size, b.size)
    a, b = (np.concatenate([np.zeros_like(x, shape=n - x.size), x]) for x in (a, b))
    return a, b


@implements(np.polyadd)
def _polyadd(a1: Any, a2: Any) -> Any:
    a, b = _aligned(a1, a2)
    return a + b


@implements(np.polysub)
def _polysub(a1: Any, a2: Any) -> Any:
    a, b = _aligned(a1, a2)
    return a - b


@implements(np.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    return np.convolve(lift(a1), lift(a2))


def _powers(n: int) -> np.ndarray:
    return np.arange(n, 0, -1)


@implements(np.polyder)
def _polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = lift(p)
    for _ in range(m):
        p = p[:-1] * _powers(len(p) - 1)
    return p


@implements(np.polyint)
def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = np.atleast_1d(lift(0.0 if k is None else k))
    if constants.size not in (1, m):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = lift(p)
    for step in range(m):
        constant = constants[step if constants.size > 1 else 0]
        p = np.concatenate([p / _powers(len(p)), constant[None]])
    return p


@implements(np.poly)
def _poly(seq_of_zeros: Any) -> Any:
    zeros = lift(seq_of_zeros)
    if zeros.ndim != 1:
        raise trace_error(
            "np.poly of a matrix needs its eigenvalues", "Give the roots as a 1-D array."
        )
    coefficients = np.ones_like(zeros, shape=1)
    for zero in zeros:
        coefficients = np.convolve(coefficients, np.stack([np.ones_like(zero), -zero]))
    return coefficients


@implements(np.polyfit)
def _polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Fit by least squares with scaled columns, as NumPy does; only the coefficients."""
    if full or cov:
        raise trace_error(
            "np.polyfit with full= or cov= cannot be traced", "Ask for the coefficients only."
        )
    x, y = as_float(x), as_float(y)
    if rcond is None:
        rcond = len(x) * np.finfo(x.dtype).eps
    columns = np.vander(x, deg + 1)
    if w is not None:
        weights = lift(w)
        columns = columns * weights[:, None]
        y = y * (weights if y.ndim == 1 else weights[:, None])
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    solution = np.linalg.lstsq(columns / scale, y, rcond)[0]
    return (solution.T / scale).T
