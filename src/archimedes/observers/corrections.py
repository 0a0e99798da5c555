"""What filters return, and the steps that all of them share.

Symbols: x state, P covariance of its error (n, n) or a lower triangular factor L of it, P = L L',
which cannot lose its sign to rounding; y measurement (m,), e innovation (m,), S its covariance
(m, m), C covariance of state and measurement (n, m), K gain, D deviations (n, k) with D D' a
covariance. Simon, "Optimal state estimation", 2006, ch. 5, 13, 14; factors: Kailath, Sayed,
Hassibi, "Linear estimation", 2000, 12.1 and 12.3, array algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_whole, is_traced
from archimedes.control.matrix_checks import matrix, symmetric_matrix, vector
from archimedes.display import Readable
from archimedes.function.reproducible import call
from archimedes.observers.charts import Args, Chart, chart_of, ravel_measurement
from archimedes.tree import struct

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["Estimate", "Prediction"]


@struct
class Prediction(Readable):
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
class Estimate(Readable):
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
    """What filters have in common: a step predicts, then corrects.

    A filter has the covariances Q and R of its noise, and defines ``_predict`` and ``_correct``.
    Without Q it only corrects.
    """

    Q: Any
    R: Any
    square_root: bool = False
    iterations: int = 1
    missing: float | None = None
    gate: float | None = None

    @property
    def nx(self) -> int | None:
        """Number of states, where an attitude counts 3; None for a filter without Q."""
        return None if self.Q is None else int(self.Q.shape[0])

    @property
    def ny(self) -> int:
        """Number of measurements."""
        return int(self.R.shape[0])

    def predict(self, t: Scalar, x: Tree, P: ArrayLike, args: Args | None = None) -> Prediction:
        """Return the state and covariance after a step of the model.

        Parameters
        ----------
        t : float
            Time in s.
        x : array (n,) or tree
            State.
        P : array (n, n)
            Covariance of the state, or its factor with `square_root`.
        args : tuple, optional
            Further arguments of the functions of the model.
        """
        model = "A" if hasattr(self, "A") else "dyn"
        if missing := [name for name in (model, "Q") if getattr(self, name) is None]:
            raise ValueError(
                f"this filter has no {' and no '.join(missing)}, so that it only corrects: give "
                f"{model} and Q to predict, or call correct in place of step"
            )
        chart, x, covariance, args = self._check_inputs(x, P, args)
        return self._predict(chart, t, x, covariance, args)

    def correct(
        self, t: Scalar, x: Tree, y: ArrayLike, P: ArrayLike, args: Args | None = None
    ) -> Estimate:
        """Return the estimate after a measurement, without a step of the model.

        Parameters
        ----------
        t : float
            Time in s.
        x : array (n,) or tree
            State.
        y : array (m,)
            Measurement.
        P : array (n, n)
            Covariance of the state, or its factor with `square_root`.
        args : tuple, optional
            Further arguments of the functions of the model.
        """
        chart, x, covariance, args = self._check_inputs(x, P, args)
        measurement = check_measurement(ravel_measurement(y), self.ny, self.missing)
        shift, estimate = self._correct(chart, t, x, measurement, covariance, args)
        P_new, G = estimate.P, chart.transport(shift)
        if G is not None:
            P_new = triangularize(G @ P_new) if self.square_root else symmetric(G @ P_new @ G.T)
        x_new = chart.plus(x, shift)
        if self.gate is not None:
            # Beyond the gate, state and covariance are as before.
            near = estimate.nis <= self.gate
            x_new = tree.map(lambda new, old: np.where(near, new, old), x_new, x)
            P_new = np.where(near, P_new, covariance)
        return tree.replace(estimate, x=x_new, P=P_new)

    def step(
        self, t: Scalar, x: Tree, y: ArrayLike, P: ArrayLike, args: Args | None = None
    ) -> Estimate:
        """Predict, then correct: from the estimate at the last sample to that at this one.

        ``t`` and ``args`` (a tuple) are handed to ``dyn`` and ``obs``; entries of ``y`` that are
        missing (nan) do not correct anything.
        """
        before = self.predict(t, x, P, args)
        return self.correct(t, before.x, y, before.P, args)

    def _predict(self, chart: Chart, t: Scalar, x: Tree, P: Array, args: Args) -> Prediction:
        """Return the prediction for inputs that are checked."""
        raise NotImplementedError

    def _correct(
        self, chart: Chart, t: Scalar, x: Tree, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        """Return the correction (n,) of the state, and the estimate without its state."""
        raise NotImplementedError

    def _check_inputs(
        self, x: Tree, P: ArrayLike, args: Args | None
    ) -> tuple[Chart, Any, Any, Args]:
        """Return the chart of a state, the state, its covariance and the arguments."""
        args = () if args is None else args
        if not isinstance(args, tuple | list):
            raise TypeError(
                f"args must be a tuple of further arguments, got {args!r}; write (value,)"
            )
        chart, x = chart_of(x, self.nx)
        size = chart.size
        if self.square_root:
            return chart, x, check_factor(P, size), tuple(args)
        return chart, x, symmetric_matrix(P, "P", size, eigenvalues="not negative"), tuple(args)

    def of_covariance(self, P: ArrayLike) -> Any:
        """Return what this filter takes for P: the covariance, or its factor."""
        return factor_covariance(P) if self.square_root else P

    def to_covariance(self, P: Array) -> Array:
        """Return the covariance of what this filter gives for P."""
        return P @ P.T if self.square_root else P


def check_settings(observer: Filter) -> None:
    """Check the gate of a filter and how often it iterates."""
    if observer.gate is not None and not observer.gate > 0.0:
        raise ValueError(f"gate must be above zero (None for no gate), got {observer.gate}")
    check_whole(observer.iterations, "iterations", 1)


def check_filter(observer: Filter) -> None:
    """Check the settings and the covariances of a filter, and store these as arrays."""
    check_settings(observer)
    for name, eigenvalues in (("Q", "not negative"), ("R", "positive")):
        value = getattr(observer, name)
        if value is None and name == "Q":
            continue
        if value is not None and np.ndim(value) == 0 and not isinstance(value, str):
            value = np.reshape(value, (1, 1))  # the variance of a single number
        covariance = symmetric_matrix(value, name, eigenvalues=eigenvalues)
        object.__setattr__(observer, name, covariance)


def symmetric(P: Array) -> Array:
    """Return the symmetric part: rounding would make covariances drift from it."""
    return 0.5 * (P + P.T)


def triangularize(*deviations: Array) -> Array:
    """Return L (n, n), lower triangular, with L L' the sum of D D' over all D (n, k).

    It comes from an orthogonal transformation: L = R' with Q R = D', all D side by side.
    """
    D = np.concatenate(deviations, axis=1)
    n, k = D.shape
    if k < n:
        D = np.concatenate([D, np.zeros((n, n - k))], axis=1)
    R: Any = np.linalg.qr(D.T, mode="r")
    # The sign of each column is free: one with a diagonal that is not negative is unique.
    return (R * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None]).T


def factor_covariance(P: Any) -> Any:
    """Return L with L L' = P; of numbers P may be singular, in recorded code it is definite.

    >>> factor_covariance(np.diag([4.0, 9.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    try:
        return call(np.linalg.cholesky, P)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(P)
        return triangularize(vectors * np.sqrt(np.maximum(values, 0.0)))


def check_factor(L: ArrayLike, n: int) -> Any:
    """Return a factor (n, n), lower triangular where it is known."""
    factor = matrix(L, "P", n, n, finite=True)
    if not is_traced(factor) and np.any(np.triu(factor, 1) != 0.0):
        raise ValueError(
            "P must be a lower triangular factor with square_root=True: give "
            f"np.linalg.cholesky(P), got {factor}"
        )
    return factor


def is_present(y: Array, missing: float | None) -> Any:
    """Return which measurements there are, (m,); None where none can be missing."""
    if missing is None:
        return None
    return ~(np.isnan(y) if np.isnan(missing) else y == missing)


def check_measurement(y: ArrayLike, size: int, missing: float | None) -> Any:
    """Return a measurement (size,), which is finite, or missing, where it is known."""
    measurement = vector(np.reshape(y, (1,)) if size == 1 and np.ndim(y) == 0 else y, "y", size)
    if not is_traced(measurement):
        present = is_present(measurement, missing)
        good = np.isfinite(measurement) | (False if present is None else ~present)
        if not np.all(good):
            k = int(np.argmin(good))
            mark = "" if missing is None else f", or {missing} where it is missing"
            hint = "; make the filter with missing=np.nan" if missing is None else ""
            raise ValueError(
                f"y[{k}] is {measurement[k]}: a measurement is a finite number{mark}{hint}"
            )
    return measurement


def mask_missing(present: Array | None, C: Array, R: Array) -> tuple[Array, Array]:
    """Return C (any, m) and R (m, m) with missing measurements uncorrelated, of variance one."""
    if present is None:
        return C, R
    both = present[:, None] & present[None, :]
    return np.where(present[None, :], C, 0.0), np.where(both, R, np.eye(R.shape[0]))


def _innovation(y: Array, expected: Array, present: Array | None) -> Array:
    return (y if present is None else np.where(present, y, expected)) - expected


def predict_linear(ahead: Tree, F: Array, P: Array, Q: Array, root: bool) -> Prediction:
    """Return the prediction of a state that moves as F (n, n) does near it."""
    if root:
        moved = F @ P
        return Prediction(ahead, triangularize(moved, factor_covariance(Q)), P @ moved.T)
    cross = P @ F.T
    return Prediction(ahead, symmetric(F @ cross) + Q, cross)


def correct_mean(
    y: Array, expected: Array, present: Array | None, C: Array, S: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the correction of the state (n,), gain, innovation and its normalised square."""
    e = _innovation(y, expected, present)
    solved = np.linalg.solve(S, np.concatenate([C.T, e[:, None]], axis=1))
    K = solved[:, :-1].T
    return K @ e, K, e, e @ solved[:, -1]


def correct_linear(
    P: Array, y: Array, expected: Array, H: Array, R: Array, missing: float | None, root: bool
) -> tuple[Array, Estimate]:
    """Correct by a measurement that is H e for small errors e, in Joseph's form or by factors.

    Returns the correction (n,), and the estimate without its state.
    """
    present = is_present(y, missing)
    Ht, R = mask_missing(present, H.T, R)
    if root:
        return correct_factors(P, Ht.T @ P, y, expected, present, R)
    C = P @ Ht
    S = symmetric(Ht.T @ C) + R
    shift, K, e, nis = correct_mean(y, expected, present, C, S)
    left = np.eye(P.shape[0]) - K @ Ht.T
    return shift, Estimate(None, symmetric(left @ P @ left.T + K @ R @ K.T), e, S, nis)


def correct_factors(
    Dx: Array, Dy: Array, y: Array, expected: Array, present: Array | None, R: Array
) -> tuple[Array, Estimate]:
    """Correct by deviations of the state (n, k) and of the measurement (m, k), and its noise R.

    One triangular factor holds all: [[R^1/2, Dy], [0, Dx]] becomes [[S^1/2, 0], [K S^1/2, L]].
    """
    m, n = Dy.shape[0], Dx.shape[0]
    noise = np.concatenate([factor_covariance(R), np.zeros((n, m))])
    whole = triangularize(noise, np.concatenate([Dy, Dx]))
    S_root, KS, L = whole[:m, :m], whole[m:, :m], whole[m:, m:]
    e = _innovation(y, expected, present)
    white = np.linalg.solve(S_root, e)
    return KS @ white, Estimate(None, L, e, S_root @ S_root.T, white @ white)
