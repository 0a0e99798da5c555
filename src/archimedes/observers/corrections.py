"""What filters return, and the correction that all of them share.

Symbols: x state (n,), P its covariance (n, n), y measurement (m,), e innovation (m,), S its
covariance (m, m), C covariance of state and measurement (n, m), K gain (n, m). Simon, "Optimal
state estimation", 2006, ch. 5, 13, 14.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import symmetric_matrix, vector
from archimedes.tree import struct

__all__ = [
    "Estimate",
    "Filter",
    "Prediction",
    "check_gate",
    "checked",
    "correct_linear",
    "correct_mean",
    "gated",
    "present",
    "symmetric",
    "without",
]


@struct
class Prediction:
    """State and covariance after a step of the model, before a measurement.

    ``cross`` (n, n) is the covariance of the state before and the state after the step, which
    smoothers need.
    """

    x: Any
    P: Any
    cross: Any


@struct
class Estimate:
    """State and covariance after a measurement; unpacks as ``x, P, innovation``.

    ``innovation`` (m,) is measured less expected (zero where missing), ``S`` (m, m) its
    covariance (the identity where missing), ``nis`` the normalised innovation squared, which is
    chi-square distributed with as many degrees of freedom as there were measurements.
    """

    x: Any
    P: Any
    innovation: Any
    S: Any
    nis: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.P, self.innovation))


class Filter:
    """What filters have in common: a step predicts, then corrects."""

    def predict(self, t: Any, x: Any, P: Any, args: Any = None) -> Prediction:
        """Return the state and covariance after a step of the model."""
        raise NotImplementedError

    def correct(self, t: Any, x: Any, y: Any, P: Any, args: Any = None) -> Estimate:
        """Return the estimate after a measurement, without a step of the model."""
        raise NotImplementedError

    def step(self, t: Any, x: Any, y: Any, P: Any, args: Any = None) -> Estimate:
        """Predict, then correct: from the estimate at the last sample to that at this one.

        ``t`` and ``args`` (a tuple) are handed to ``dyn`` and ``obs``; entries of ``y`` that are
        missing (nan) do not correct anything.
        """
        before = self.predict(t, x, P, args)
        return self.correct(t, before.x, y, before.P, args)


def gated(found: Estimate, x: Any, P: Any, gate: Any) -> Estimate:
    """Return the estimate; beyond the gate, with state and covariance as they were before."""
    if gate is None:
        return found
    near = found.nis <= gate
    x, P = np.where(near, found.x, x), np.where(near, found.P, P)
    return Estimate(x, P, found.innovation, found.S, found.nis)


def check_gate(gate: Any) -> None:
    """Raise where a gate would let nothing through."""
    if gate is not None and not gate > 0.0:
        raise ValueError(f"gate must be above zero (None for no gate), got {gate}")


def symmetric(P: Any) -> Any:
    """Return the symmetric part: rounding would make covariances drift from it."""
    return 0.5 * (P + P.T)


def present(y: Any, missing: Any) -> Any:
    """Tell which measurements there are, (m,); None where none can be missing."""
    if missing is None:
        return None
    return ~(np.isnan(y) if np.isnan(missing) else y == missing)


def without(there: Any, C: Any, R: Any) -> tuple[Any, Any]:
    """Return C (any, m) and R (m, m) with missing measurements uncorrelated, of variance one."""
    if there is None:
        return C, R
    both = there[:, None] & there[None, :]
    return np.where(there[None, :], C, 0.0), np.where(both, R, np.eye(R.shape[0]))


def correct_mean(x: Any, y: Any, expected: Any, there: Any, C: Any, S: Any) -> tuple[Any, ...]:
    """Return the corrected state, gain, innovation and its normalised square."""
    seen = y if there is None else np.where(there, y, expected)
    e = seen - expected
    solved = np.linalg.solve(S, np.concatenate([C.T, e[:, None]], axis=1))
    K = solved[:, :-1].T
    return x + K @ e, K, e, e @ solved[:, -1]


def checked(x: Any, P: Any, args: Any, size: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return state, covariance and arguments as filters use them."""
    if args is None:
        args = ()
    if not isinstance(args, tuple | list):
        raise TypeError(f"args must be a tuple of further arguments, got {args!r}; write (value,)")
    return (
        vector(x, "x", size),
        symmetric_matrix(P, "P", size, eigenvalues="not negative"),
        tuple(args),
    )


def correct_linear(x: Any, P: Any, y: Any, expected: Any, H: Any, R: Any, missing: Any) -> Estimate:
    """Correct by a measurement that is H x near x, with the covariance in Joseph's form."""
    there = present(y, missing)
    Ht, R = without(there, H.T, R)
    C = P @ Ht
    S = symmetric(Ht.T @ C) + R
    x, K, e, nis = correct_mean(x, y, expected, there, C, S)
    left = np.eye(P.shape[0]) - K @ Ht.T
    return Estimate(x, symmetric(left @ P @ left.T + K @ R @ K.T), e, S, nis)
