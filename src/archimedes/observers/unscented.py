"""The unscented Kalman filter: moments from points, without derivatives.

Symbols: X sigma points (2n+1, n), w their weights (2n+1,). Julier, Uhlmann, "Unscented filtering
and nonlinear estimation", Proc. IEEE 92 (2004), eq. 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import symmetric_matrix, vector
from archimedes.function import holds_traced
from archimedes.observers.checks import check_function, returned_vector
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_gate,
    checked,
    correct_mean,
    gated,
    present,
    symmetric,
    without,
)
from archimedes.tree import field, struct

__all__ = ["UnscentedKalmanFilter"]


@struct
class UnscentedKalmanFilter(Filter):
    """x+ = dyn(t, x, *args) + w, y = obs(t, x, *args) + v, covariances Q (n, n), R (m, m).

    As `ExtendedKalmanFilter`, with means and covariances of 2n+1 points instead of Jacobians.
    ``kappa`` > -n spreads the points: they lie sqrt(n + kappa) deviations from the mean
    (kappa = 3 - n matches the fourth moment of a normal distribution). Covariances of states
    must be positive definite.

    >>> ukf = UnscentedKalmanFilter(lambda t, x: np.sin(x), lambda t, x: x**2, [[0.1]], [[0.1]])
    >>> x, P, innovation = ukf.step(0.0, [1.0], [0.5], [[0.2]])
    >>> x.round(3), P.round(3), innovation.round(3)
    (array([0.64]), array([[0.034]]), array([-0.23]))
    """

    dyn: Callable[..., Any] = field(static=True)
    obs: Callable[..., Any] = field(static=True)
    Q: Any
    R: Any
    kappa: float = field(static=True, default=0.0)
    missing: float | None = field(static=True, default=np.nan)
    gate: float | None = field(static=True, default=None)

    def __post_init__(self) -> None:
        check_gate(self.gate)
        check_function(self.dyn, "dyn")
        check_function(self.obs, "obs")
        object.__setattr__(self, "Q", symmetric_matrix(self.Q, "Q", eigenvalues="not negative"))
        object.__setattr__(self, "R", symmetric_matrix(self.R, "R", eigenvalues="positive"))
        if not self.kappa > -self.Q.shape[0]:
            n = self.Q.shape[0]
            raise ValueError(f"kappa must be above -n = {-n} for {n} states, got {self.kappa}")

    def _points(self, x: Any, P: Any) -> tuple[Any, Any]:
        """Return sigma points (2n+1, n) and weights (2n+1,)."""
        n = x.shape[0]
        if not holds_traced(P):
            symmetric_matrix(P, "P", n, eigenvalues="positive")
        away = np.linalg.cholesky((n + self.kappa) * P).T
        w = np.full(2 * n + 1, 0.5 / (n + self.kappa))
        w[0] = self.kappa / (n + self.kappa)
        return np.concatenate([x[None, :], x + away, x - away]), w

    def predict(self, t: Any, x: Any, P: Any, args: Any = None) -> Prediction:
        """Return the state and covariance after a step of the model."""
        n = self.Q.shape[0]
        x, P, args = checked(x, P, args, n)
        X, w = self._points(x, P)
        ahead = np.stack([returned_vector(self.dyn, "dyn", t, point, args, n) for point in X])
        mean = w @ ahead
        spread = ahead - mean
        cross = (X - x).T @ (w[:, None] * spread)
        return Prediction(mean, symmetric(spread.T @ (w[:, None] * spread)) + self.Q, cross)

    def correct(self, t: Any, x: Any, y: Any, P: Any, args: Any = None) -> Estimate:
        """Return the estimate after a measurement, without a step of the model."""
        m = self.R.shape[0]
        x, P, args = checked(x, P, args, self.Q.shape[0])
        y = vector(y, "y", m)
        X, w = self._points(x, P)
        Y = np.stack([returned_vector(self.obs, "obs", t, point, args, m) for point in X])
        expected = w @ Y
        there = present(y, self.missing)
        spread, R = without(there, Y - expected, self.R)
        weighted = w[:, None] * spread
        C, S = (X - x).T @ weighted, symmetric(spread.T @ weighted) + R
        after, K, e, nis = correct_mean(x, y, expected, there, C, S)
        found = Estimate(after, symmetric(P - K @ S @ K.T), e, S, nis)
        return gated(found, x, P, self.gate)
