"""Matrices that a linear algebra routine has to get right, and how to compare results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import archimedes as arc

__all__ = ["SQUARE", "backward_error", "check_like_numpy", "random", "symmetric", "traced"]


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def symmetric(seed: int, n: int) -> np.ndarray:
    a = random(seed, n, n)
    return a + a.T


def _graded(n: int) -> np.ndarray:
    """Singular values from 1 down to 1e-10, in no special direction."""
    q1, q2 = np.linalg.qr(random(1, n, n))[0], np.linalg.qr(random(2, n, n))[0]
    return q1 @ np.diag(np.logspace(0, -10, n)) @ q2


def _permutation(n: int) -> np.ndarray:
    return np.eye(n)[np.random.default_rng(3).permutation(n)]


#: name -> n -> matrix, none of them singular.
SQUARE: dict[str, Callable[[int], np.ndarray]] = {
    "random": lambda n: random(0, n, n),
    "identity": lambda n: np.eye(n),
    "permutation": _permutation,
    "permuted triangular": lambda n: _permutation(n) @ (np.tril(random(5, n, n)) + 3 * np.eye(n)),
    "lower triangular": lambda n: np.tril(random(6, n, n)) + 3 * np.eye(n),
    "upper triangular": lambda n: np.triu(random(7, n, n)) - 3 * np.eye(n),
    "zero diagonal": lambda n: random(8, n, n) * (1 - np.eye(n)) if n > 1 else np.ones((1, 1)),
    "ill-conditioned": _graded,
    "hilbert": lambda n: scipy.linalg.hilbert(n),
    "badly scaled": lambda n: np.diag(np.logspace(-8, 8, n)) @ random(9, n, n),
    "ties": lambda n: np.where(np.arange(n) <= np.arange(n)[:, None], 1.0, -1.0),
}


def traced(function: Callable[..., Any], *args: Any) -> Any:
    """Result of a function recorded and run, the arguments (defaults are not) being traced."""
    return arc.compile(lambda *given: function(*given))(*args)


def backward_error(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """Size of the change in a (relative) that makes x exact, in multiples of its eps."""
    x, b = (v if v.ndim == a.ndim else v[..., None] for v in (x, b))
    residual = np.linalg.norm(a @ x - b, axis=(-2, -1))
    size = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(x, axis=(-2, -1))
    return float(np.max(residual / (size * np.finfo(a.dtype).eps)))


def check_like_numpy(function: Callable[..., Any], *args: Any, rtol: float = 1e-12) -> None:
    """Compare values (relative to the largest), shapes and dtypes with plain NumPy's."""
    want, got = function(*args), traced(function, *args)
    several = isinstance(want, tuple)
    for w, g in zip(want if several else (want,), got if several else (got,)):
        w, g = np.asarray(w), np.asarray(g)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        size = float(np.max(np.abs(w), initial=0.0))
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * size)
