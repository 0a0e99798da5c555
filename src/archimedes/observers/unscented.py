"""The unscented Kalman filter: moments from points, without derivatives.

Symbols: X sigma points (2n+1, n), w their weights (2n+1,). Julier, Uhlmann, "Unscented filtering
and nonlinear estimation", Proc. IEEE 92 (2004), eq. 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.matrix_checks import symmetric_matrix
from archimedes.observers.charts import Args, Chart, check_functions, measure
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_filter,
    correct_factors,
    correct_mean,
    factor_covariance,
    is_present,
    mask_missing,
    symmetric,
    triangularize,
)
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

__all__ = ["UnscentedKalmanFilter"]


@struct
class UnscentedKalmanFilter(Filter):
    """Unscented Kalman filter of ``x+ = dyn(t, x, *args) + w``, ``y = obs(t, x, *args) + v``.

    It is used like the `ExtendedKalmanFilter`, with means and covariances of 2n + 1 points instead
    of Jacobians. The covariance of the state must be positive definite.

    Parameters
    ----------
    dyn : callable
        Model ``dyn(t, x, *args)`` that returns the next state.
    obs : callable
        Measurement model ``obs(t, x, *args)`` that returns (m,).
    Q : array (n, n)
        Covariance of the process noise.
    R : array (m, m)
        Covariance of the measurement noise.
    kappa : float, optional
        Spread of the points, larger than -n: they lie sqrt(n + kappa) standard deviations from the
        mean. kappa = 3 - n matches the fourth moment of a normal distribution. With `square_root`
        it must not be negative.
    missing : float or None, optional
        Value that marks missing measurements, nan by default. None: no measurement is ever missing.
    gate : float or None, optional
        Measurements whose normalized innovation squared exceeds this are not used. None, the
        default, uses all.
    square_root : bool, optional
        Propagate a lower triangular factor of the covariance instead of the covariance. P is that
        factor, going in and coming out. False by default.

    Examples
    --------
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
    square_root: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        check_filter(self)
        check_functions(dyn=self.dyn, obs=self.obs)
        n = self.Q.shape[0]
        if not self.kappa > -n:
            raise ValueError(f"kappa must be above -n = {-n} for {n} states, got {self.kappa}")
        if self.square_root and self.kappa < 0.0:
            raise ValueError(
                f"kappa must not be negative with square_root=True, got {self.kappa}: the point in "
                "the middle would have a negative weight, which no factor has"
            )

    def _points(self, chart: Chart, x: Tree, P: Array) -> tuple[Any, list[Any], Any]:
        """Return errors (2n+1, n), the states that have them, and weights (2n+1,)."""
        n = chart.size
        if self.square_root:
            away = np.sqrt(n + self.kappa) * P.T
        else:
            if not is_traced(P):
                symmetric_matrix(P, "P", n, eigenvalues="positive")
            away = np.linalg.cholesky((n + self.kappa) * P).T
        w = np.full(2 * n + 1, 0.5 / (n + self.kappa))
        w[0] = self.kappa / (n + self.kappa)
        E = np.concatenate([np.zeros((1, n)), away, -away])
        return E, [x, *(chart.plus(x, e) for e in E[1:])], w

    def _predict(self, chart: Chart, t: Scalar, x: Tree, P: Array, args: Args) -> Prediction:
        E, points, w = self._points(chart, x, P)
        ahead = [chart.check_state(self.dyn(t, point, *args), "dyn") for point in points]
        mean = chart.mean(w, ahead)
        spread = np.stack([chart.minus(state, mean) for state in ahead])
        cross = E.T @ (w[:, None] * spread)
        if self.square_root:
            deviations = (np.sqrt(w)[:, None] * spread).T
            return Prediction(mean, triangularize(deviations, factor_covariance(self.Q)), cross)
        return Prediction(mean, symmetric(spread.T @ (w[:, None] * spread)) + self.Q, cross)

    def _correct(
        self, chart: Chart, t: Scalar, x: Tree, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        E, points, w = self._points(chart, x, P)
        Y = np.stack([measure(self.obs, t, point, args, self.R.shape[0]) for point in points])
        expected, present = w @ Y, is_present(y, self.missing)
        spread, R = mask_missing(present, Y - expected, self.R)
        if self.square_root:
            size = np.sqrt(w)[:, None]
            return correct_factors((size * E).T, (size * spread).T, y, expected, present, R)
        weighted = w[:, None] * spread
        C, S = E.T @ weighted, symmetric(spread.T @ weighted) + R
        shift, K, e, nis = correct_mean(y, expected, present, C, S)
        return shift, Estimate(None, symmetric(P - K @ S @ K.T), e, S, nis)
