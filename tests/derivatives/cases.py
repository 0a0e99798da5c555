"""What a derivative case is, and the oracles of its first and second derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from tests.fuzz import plain

from .multiprecision import MpNumpy, lift

__all__ = ["Case", "agree", "hessian", "jacobian", "value", "weights"]

DIGITS = 60
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Case:
    """A function of one array, written against ``np`` and possibly ``arc`` parameters.

    ``fn(np, x)`` or ``fn(np, arc, x)``: the test passes NumPy and the package, the oracle passes
    60-digit NumPy and plain Python loops. ``oracle``, where given, replaces ``fn`` in the oracle.
    ``smooth`` is False where second derivatives do not exist; ``jax`` where JAX can check as well.
    """

    name: str
    fn: Callable[..., Any]
    x: np.ndarray
    smooth: bool = True
    jax: bool = False
    oracle: Callable[..., Any] | None = None

    def bind(self, namespace: Any, regions: Any) -> Callable[[Any], Any]:
        """``x -> fn(...)`` with the given ``np`` and ``arc``."""
        return _bind(self.fn, namespace, regions)


def _bind(fn: Callable[..., Any], namespace: Any, regions: Any) -> Callable[[Any], Any]:
    if len(inspect.signature(fn).parameters) == 3:
        return lambda x: fn(namespace, regions, x)
    return lambda x: fn(namespace, x)


def _flat(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """The 60-digit function from a flat argument to a flat result."""
    fn = _bind(case.oracle or case.fn, MpNumpy(), plain)
    return lambda v: np.ravel(np.asarray(fn(v.reshape(case.x.shape)), dtype=object))


def _step(case: Case, k: int, h: Any) -> np.ndarray:
    step = lift(np.zeros(case.x.size))
    step[k] = h
    return step


def value(case: Case) -> np.ndarray:
    """The function itself at 60 digits, rounded to double, flat."""
    with mp.workdps(DIGITS):
        return _flat(case)(lift(case.x.ravel())).astype(float)


def jacobian(case: Case) -> np.ndarray:
    """(outputs, inputs), by central differences at 60 digits: good to about 1e-38."""
    with mp.workdps(DIGITS):
        f, x, h = _flat(case), lift(case.x.ravel()), mp.mpf(10) ** -20
        steps = [_step(case, k, h) for k in range(x.size)]
        return np.array([((f(x + d) - f(x - d)) / (2 * h)).astype(float) for d in steps]).T


def weights(count: int) -> np.ndarray:
    """Fixed weights without symmetry, to make one scalar of several outputs."""
    return np.cos(1.0 + np.arange(count))


def hessian(case: Case) -> np.ndarray:
    """(inputs, inputs) of the weighted sum of outputs, by differences: good to about 1e-28."""
    with mp.workdps(DIGITS):
        f, x, h = _flat(case), lift(case.x.ravel()), mp.mpf(10) ** -15
        w = lift(weights(f(x).size))
        steps = [_step(case, k, h) for k in range(x.size)]
        out = np.empty((x.size, x.size))
        for i, a in enumerate(steps):
            for j, b in enumerate(steps[: i + 1]):
                d = f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b)
                out[i, j] = out[j, i] = float(np.sum(w * d) / (4 * h * h))
        return out


def agree(got: Any, want: Any, name: str, tolerance: float = TOLERANCE) -> None:
    """Fails unless ``got`` equals ``want`` relative to the largest entry of ``want``."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape} in place of {want.shape}"
    scale = max(np.max(np.abs(want), initial=0.0), 1e-3)
    error = np.max(np.abs(got - want), initial=0.0) / scale
    assert error <= tolerance, f"{name}: relative error {error:.1e}\ngot  {got}\nwant {want}"
