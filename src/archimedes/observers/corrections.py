"""Covariances as triangular factors: P = L L', which cannot lose their sign to rounding.

Symbols: D deviations (n, k) with D D' a covariance. Of several, side by side, the triangular factor
L of the sum comes from an orthogonal transformation: L = R' with Q R = D' (T. Kailath, A. Sayed,
B. Hassibi, "Linear estimation", 2000, 12.1 and 12.3, array algorithms).

What filters return, and the steps that all of them share.

Symbols: x state, P covariance of its error (n, n) or a factor L of it, y measurement (m,), e
innovation (m,), S its covariance (m, m), C covariance of state and measurement (n, m), K gain.
Simon, "Optimal state estimation", 2006, ch. 5, 13, 14; array form: Kailath, Sayed, Hassibi, 12.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.control.matrix_checks import matrix, symmetric_matrix, vector
from archimedes.function.reproducible import call
from archimedes.observers.charts import Chart, chart_of
from archimedes.tree import struct

__all__ = ["Estimate", "Prediction"]


def joined(*deviations: Any) -> Any:
    """Return L (n, n), lower triangular, with L L' the sum of D D' over all D (n, k)."""
    D = np.concatenate(deviations, axis=1)
    n, k = D.shape
    if k < n:
        D = np.concatenate([D, np.zeros((n, n - k))], axis=1)
    R: Any = np.linalg.qr(D.T, mode="r")
    # The sign of each column is free: one with a diagonal that is not negative is unique.
    return (R * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None]).T


def root_of(P: Any) -> Any:
    """Return L with L L' = P; of numbers P may be singular, in recorded code it is definite.

    >>> root_of(np.diag([4.0, 9.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    try:
        return call(np.linalg.cholesky, P)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(P)
        return joined(vectors * np.sqrt(np.maximum(values, 0.0)))


def covariance(L: Any) -> Any:
    """Return L L'."""
    return L @ L.T


def check_root(L: Any, n: int) -> Any:
    """Return a factor (n, n), lower triangular where it is known."""
    found = matrix(L, "P", n, n)
    if not is_traced(found):
        if not np.all(np.isfinite(found)):
            raise ValueError(f"P must hold finite numbers, got {found}")
        if np.any(np.triu(found, 1) != 0.0):
            raise ValueError(
                "P must be a lower triangular factor with square_root=True: give "
                f"np.linalg.cholesky(P), got {found}"
            )
    return found


@struct
class Prediction:
    """State and covariance after a step of the model, before a measurement.

    Parameters
    ----------
    x : array (n,) or tree
        State.
    P : array (n, n)
        Its covariance, or a factor of it.
    cross : array (n, n)
        Covariance between the errors before and after the step, which smoothers need.

    Examples
    --------
    >>> from archimedes.observers import KalmanFilter
    >>> filter = KalmanFilter(A=[[0.5]], C=[[1.0]], Q=[[1.0]], R=[[1.0]])
    >>> ahead = filter.predict(0.0, [2.0], [[4.0]])
    >>> ahead.x, ahead.P, ahead.cross
    (array([1.]), array([[2.]]), array([[2.]]))
    """

    x: Any
    P: Any
    cross: Any


@struct
class Estimate:
    """State and covariance after a measurement; it unpacks as ``x, P, innovation``.

    Parameters
    ----------
    x : array (n,) or tree
        State.
    P : array (n, n)
        Its covariance, or a factor of it in filters with ``square_root=True``.
    innovation : array (m,)
        Measured minus expected, zero where missing.
    S : array (m, m)
        Covariance of the innovation, the identity where missing.
    nis : float
        Normalized innovation squared. It is chi-square distributed, with as many degrees of freedom
        as there were measurements.

    Examples
    --------
    >>> from archimedes.observers import KalmanFilter
    >>> filter = KalmanFilter(A=[[1.0]], C=[[1.0]], Q=[[0.0]], R=[[1.0]])
    >>> x, P, innovation = filter.correct(0.0, [0.0], [2.0], [[1.0]])
    >>> x, P, innovation
    (array([1.]), array([[0.5]]), array([2.]))
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

    square_root: bool = False

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

    def of_covariance(self, P: Any) -> Any:
        """Return what this filter takes for P: the covariance, or its factor."""
        return root_of(P) if self.square_root else P

    def to_covariance(self, P: Any) -> Any:
        """Return the covariance of what this filter gives for P."""
        return covariance(P) if self.square_root else P


def check_gate(gate: Any) -> None:
    """Raise where a gate would let nothing through."""
    if gate is not None and not gate > 0.0:
        raise ValueError(f"gate must be above zero (None for no gate), got {gate}")


def check_iterations(count: Any) -> None:
    """Raise where a correction would not be made, or not a whole number of times."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(
            f"iterations must be 1 (correct once) or more, a whole number, got {count}"
        )


def symmetric(P: Any) -> Any:
    """Return the symmetric part: rounding would make covariances drift from it."""
    return 0.5 * (P + P.T)


def present(y: Any, missing: Any) -> Any:
    """Tell which measurements there are, (m,); None where none can be missing."""
    if missing is None:
        return None
    return ~(np.isnan(y) if np.isnan(missing) else y == missing)


def given_measurement(y: Any, size: int, missing: Any) -> Any:
    """Return a measurement (size,), which is finite, or missing, where it is known."""
    y = vector(y, "y", size)
    if not is_traced(y):
        there = present(y, missing)
        good = np.isfinite(y) if there is None else np.isfinite(y) | ~there
        if not np.all(good):
            k = int(np.argmin(good))
            mark = "" if missing is None else f", or {missing} where it is missing"
            hint = "; make the filter with missing=np.nan" if missing is None else ""
            raise ValueError(f"y[{k}] is {y[k]}: a measurement is a finite number{mark}{hint}")
    return y


def without(there: Any, C: Any, R: Any) -> tuple[Any, Any]:
    """Return C (any, m) and R (m, m) with missing measurements uncorrelated, of variance one."""
    if there is None:
        return C, R
    both = there[:, None] & there[None, :]
    return np.where(there[None, :], C, 0.0), np.where(both, R, np.eye(R.shape[0]))


def _innovation(y: Any, expected: Any, there: Any) -> Any:
    return (y if there is None else np.where(there, y, expected)) - expected


def correct_mean(y: Any, expected: Any, there: Any, C: Any, S: Any) -> tuple[Any, ...]:
    """Return the correction of the state (n,), gain, innovation and its normalised square."""
    e = _innovation(y, expected, there)
    solved = np.linalg.solve(S, np.concatenate([C.T, e[:, None]], axis=1))
    K = solved[:, :-1].T
    return K @ e, K, e, e @ solved[:, -1]


def checked(x: Any, P: Any, args: Any, size: int, root: bool) -> tuple[Chart, Any, Any, tuple]:
    """Return the chart of a state, the state, its covariance and arguments as filters use them."""
    if args is None:
        args = ()
    if not isinstance(args, tuple | list):
        raise TypeError(f"args must be a tuple of further arguments, got {args!r}; write (value,)")
    chart, x = chart_of(x, size)
    if root:
        return chart, x, check_root(P, size), tuple(args)
    return chart, x, symmetric_matrix(P, "P", size, eigenvalues="not negative"), tuple(args)


def predict_linear(ahead: Any, F: Any, P: Any, Q: Any, root: bool) -> Prediction:
    """Return the prediction of a state that moves as F (n, n) does near it."""
    if root:
        moved = F @ P
        return Prediction(ahead, joined(moved, root_of(Q)), P @ moved.T)
    cross = P @ F.T
    return Prediction(ahead, symmetric(F @ cross) + Q, cross)


def correct_linear(
    P: Any, y: Any, expected: Any, H: Any, R: Any, missing: Any, root: bool
) -> tuple[Any, Estimate]:
    """Correct by a measurement that is H e for small errors e, in Joseph's form or by roots.

    Returns the correction (n,), and the estimate without its state.
    """
    there = present(y, missing)
    Ht, R = without(there, H.T, R)
    if root:
        return correct_roots(P, Ht.T @ P, y, expected, there, R)
    C = P @ Ht
    S = symmetric(Ht.T @ C) + R
    shift, K, e, nis = correct_mean(y, expected, there, C, S)
    left = np.eye(P.shape[0]) - K @ Ht.T
    return shift, Estimate(None, symmetric(left @ P @ left.T + K @ R @ K.T), e, S, nis)


def correct_roots(
    Dx: Any, Dy: Any, y: Any, expected: Any, there: Any, R: Any
) -> tuple[Any, Estimate]:
    """Correct by deviations of the state (n, k) and of the measurement (m, k), and its noise R.

    One triangular factor holds all: [[R^1/2, Dy], [0, Dx]] becomes [[S^1/2, 0], [K S^1/2, L]].
    """
    m, n = Dy.shape[0], Dx.shape[0]
    noise = np.concatenate([root_of(R), np.zeros((n, m))])
    whole = joined(noise, np.concatenate([Dy, Dx]))
    S_root, KS, L = whole[:m, :m], whole[m:, :m], whole[m:, m:]
    e = _innovation(y, expected, there)
    white = np.linalg.solve(S_root, e)
    return KS @ white, Estimate(None, L, e, S_root @ S_root.T, white @ white)


def finished(
    chart: Chart, x: Any, P: Any, shift: Any, found: Estimate, gate: Any, root: bool
) -> Estimate:
    """Return the estimate with its state; beyond the gate, state and covariance as before."""
    P_new, G = found.P, chart.moved(shift)
    if G is not None:
        P_new = joined(G @ P_new) if root else symmetric(G @ P_new @ G.T)
    x_new = chart.plus(x, shift)
    if gate is not None:
        near = found.nis <= gate
        x_new = tree.map(lambda new, old: np.where(near, new, old), x_new, x)
        P_new = np.where(near, P_new, P)
    return Estimate(x_new, P_new, found.innovation, found.S, found.nis)
