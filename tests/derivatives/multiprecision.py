"""NumPy's namespace over object arrays of mpmath numbers, for oracles with 60 digits.

Structural functions, sums and products are NumPy's own (they work on objects); what NumPy would
compute in double precision is replaced by mpmath's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np

__all__ = ["MpNumpy", "lift"]


def lift(value: Any) -> np.ndarray:
    """An object array of mpmath numbers that holds exactly the given doubles."""
    array = np.asarray(value)
    out = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        out[index] = mp.mpf(array[index]) if array.dtype == object else mp.mpf(float(array[index]))
    return out


def _elementwise(function: Callable[..., Any], arity: int) -> Callable[..., Any]:
    return np.frompyfunc(lambda *a: function(*(mp.mpf(v) for v in a)), arity, 1)


def _cbrt(v: Any) -> Any:
    return mp.sign(v) * mp.cbrt(abs(v))


UNARY = {
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "exp": mp.exp,
    "exp2": lambda v: mp.mpf(2) ** v,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda v: mp.log(v, 2),
    "log10": mp.log10,
    "log1p": mp.log1p,
    "sqrt": mp.sqrt,
    "cbrt": _cbrt,
    "square": lambda v: v * v,
    "reciprocal": lambda v: 1 / v,
    "floor": mp.floor,
    "ceil": mp.ceil,
    "trunc": lambda v: mp.floor(abs(v)) * mp.sign(v),
    "rint": mp.nint,
    "round": mp.nint,
    "fabs": abs,
    "deg2rad": mp.radians,
    "rad2deg": mp.degrees,
    "sinc": lambda v: mp.sinc(mp.pi * v),
}
BINARY = {
    "arctan2": mp.atan2,
    "hypot": mp.hypot,
    "power": mp.power,
    "fmax": max,
    "fmin": min,
    "logaddexp": lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
    "logaddexp2": lambda a, b: mp.log(mp.mpf(2) ** a + mp.mpf(2) ** b, 2),
    "fmod": lambda a, b: a - b * mp.floor(abs(a / b)) * mp.sign(a / b),
    "remainder": lambda a, b: a - b * mp.floor(a / b),
    "floor_divide": lambda a, b: mp.floor(a / b),
    "copysign": lambda a, b: abs(a) * (mp.sign(b) or 1),
    "heaviside": lambda a, b: mp.mpf(1) if a > 0 else (b if a == 0 else mp.mpf(0)),
}


def _to_matrix(array: Any) -> Any:
    return mp.matrix(np.atleast_2d(array).tolist())


def _from_matrix(matrix: Any) -> np.ndarray:
    out = np.empty((matrix.rows, matrix.cols), dtype=object)
    for index in np.ndindex(out.shape):
        out[index] = matrix[index]
    return out


def _solve(a: Any, b: Any) -> np.ndarray:
    b = np.asarray(b, dtype=object)
    return (_inv(a) @ (b if b.ndim > 1 else b[:, None])).reshape(b.shape)


def _inv(a: Any) -> np.ndarray:
    if np.ndim(a) > 2:
        return np.stack([_inv(block) for block in a])
    return _from_matrix(_to_matrix(a) ** -1)


def _det(a: Any) -> Any:
    return mp.det(_to_matrix(a))


def _singular_values(a: Any) -> np.ndarray:
    small = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    return np.array([mp.sqrt(v) for v in mp.eigsy(_to_matrix(small), eigvals_only=True)])[::-1]


def _norm(x: Any, ord: Any = None, axis: int | None = None, keepdims: bool = False) -> Any:
    if axis is None and np.ndim(x) == 2 and ord is not None:
        rows, columns = (np.sum(np.abs(x), axis=k) for k in (1, 0))
        table = {
            "fro": lambda: mp.sqrt(np.sum(x * x)),
            1: lambda: max(columns),
            np.inf: lambda: max(rows),
            2: lambda: _singular_values(x)[0],
            "nuc": lambda: sum(_singular_values(x)),
        }
        return table[ord]()
    x = np.ravel(x) if axis is None else x
    order = mp.mpf(2 if ord is None or ord == "fro" else ord)
    if mp.isinf(order):
        return (np.max if order > 0 else np.min)(np.abs(x), axis=axis, keepdims=keepdims)
    total = np.sum(np.abs(x) ** order, axis=axis, keepdims=keepdims)
    return np.frompyfunc(lambda v: v ** (1 / order), 1, 1)(total)


def _pinv(a: Any) -> np.ndarray:
    return _inv(a.T @ a) @ a.T if a.shape[0] >= a.shape[1] else a.T @ _inv(a @ a.T)


LINALG = SimpleNamespace(
    solve=_solve,
    inv=_inv,
    det=_det,
    slogdet=lambda a: (mp.sign(_det(a)), mp.log(abs(_det(a)))),
    cholesky=lambda a: _from_matrix(mp.cholesky(_to_matrix(a))),
    eigvalsh=lambda a: np.array(list(mp.eigsy(_to_matrix(a), eigvals_only=True))),
    svd=lambda a, compute_uv: _singular_values(a),
    norm=_norm,
    matrix_power=lambda a, n: np.linalg.matrix_power(a if n > 0 else _inv(a), abs(n)),
    pinv=_pinv,
    lstsq=lambda a, b: (_pinv(a) @ b,),
    multi_dot=lambda arrays: arrays[0] @ arrays[1] @ arrays[2],
)


def _interp(x: Any, grid: Any, values: Any) -> Any:
    def at(v: Any) -> Any:
        if v <= grid[0] or v >= grid[-1]:
            return values[0] if v <= grid[0] else values[-1]
        k = max(i for i in range(len(grid) - 1) if grid[i] <= v)
        return values[k] + (values[k + 1] - values[k]) * (v - grid[k]) / (grid[k + 1] - grid[k])

    return np.frompyfunc(at, 1, 1)(x)


def _gradient(f: Any) -> np.ndarray:
    return np.concatenate([[f[1] - f[0]], (f[2:] - f[:-2]) / 2, [f[-1] - f[-2]]])


class MpNumpy:
    """``MpNumpy().sin(x)`` and so on; what is not replaced is NumPy's own."""

    linalg = LINALG
    interp = staticmethod(_interp)
    gradient = staticmethod(_gradient)

    def __init__(self) -> None:
        for table, arity in ((UNARY, 1), (BINARY, 2)):
            for name, function in table.items():
                setattr(self, name, _elementwise(function, arity))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any) -> np.ndarray:
        return lift(np.zeros(shape))

    def ones(self, shape: Any) -> np.ndarray:
        return lift(np.ones(shape))

    def eye(self, n: int) -> np.ndarray:
        return lift(np.eye(n))

    def zeros_like(self, x: Any) -> np.ndarray:
        return lift(np.zeros(np.shape(x)))

    def linspace(self, start: Any, stop: Any, num: int) -> np.ndarray:
        return np.array([start + (stop - start) * k / (num - 1) for k in range(num)])
