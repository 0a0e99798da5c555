"""The extended Kalman filter: a linear one along the estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.observers.charts import Args, Chart, check_functions, jacobian, measure
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_filter,
    check_iterations,
    correct_linear,
    predict_linear,
)
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

__all__ = ["ExtendedKalmanFilter"]


@struct
class ExtendedKalmanFilter(Filter):
    """Extended Kalman filter of ``x+ = dyn(t, x, *args) + w``, ``y = obs(t, x, *args) + v``.

    ``step(t, x, y, P, args=None)`` predicts, then corrects, and returns an `Estimate`, which
    unpacks as ``x, P, innovation``. The Jacobians are exact. x is a vector (n,), or a tree of
    numbers and attitudes: the error of an attitude is a small rotation in body axes, 3 numbers in P
    and Q. Q and R are leaves, with derivatives. Compile the step (``arc.compile(ekf.step)``), or
    scan it, map it, and generate C from it.

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
    missing : float or None, optional
        Value that marks missing measurements, nan by default. None: no measurement is ever missing.
    gate : float or None, optional
        Measurements whose normalized innovation squared exceeds this are not used. None, the
        default, uses all.
    square_root : bool, optional
        Propagate a lower triangular factor of the covariance instead of the covariance. P is that
        factor, going in and coming out. False by default.
    iterations : int, optional
        Number of Gauss-Newton iterations of a correction, 1 by default (Bell and Cathey, IEEE
        Trans. Autom. Control 38, 1993). More help if the correction is so large that the
        measurement is not linear over it.

    Examples
    --------
    >>> ekf = ExtendedKalmanFilter(lambda t, x: np.sin(x), lambda t, x: x**2, [[0.1]], [[0.1]])
    >>> x, P, innovation = ekf.step(0.0, [1.0], [0.5], [[0.2]])
    >>> x.round(3), P.round(3), innovation.round(3)
    (array([0.74]), array([[0.029]]), array([-0.208]))
    """

    dyn: Callable[..., Any] = field(static=True)
    obs: Callable[..., Any] = field(static=True)
    Q: Any
    R: Any
    missing: float | None = field(static=True, default=np.nan)
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)
    iterations: int = field(static=True, default=1)

    def __post_init__(self) -> None:
        check_filter(self)
        check_iterations(self.iterations)
        check_functions(dyn=self.dyn, obs=self.obs)

    def _predict(self, chart: Chart, t: Scalar, x: Tree, P: Array, args: Args) -> Prediction:
        ahead = chart.check_state(self.dyn(t, x, *args), "dyn")
        F = jacobian(self.dyn, chart, t, x, args, state=True)
        return predict_linear(ahead, F, P, self.Q, self.square_root)

    def _correct(
        self, chart: Chart, t: Scalar, x: Tree, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        m, settings = self.R.shape[0], (self.R, self.missing, self.square_root)
        expected = measure(self.obs, t, x, args, m)
        H = jacobian(self.obs, chart, t, x, args, state=False)
        shift, estimate = correct_linear(P, y, expected, H, *settings)
        for _ in range(self.iterations - 1):
            near, G = chart.plus(x, shift), chart.transport(shift)
            H = jacobian(self.obs, chart, t, near, args, state=False)
            H = H if G is None else H @ G
            # All of it as seen from where the correction began.
            expected = measure(self.obs, t, near, args, m) - H @ shift
            shift, again = correct_linear(P, y, expected, H, *settings)
            estimate = replace(estimate, P=again.P)
        return shift, estimate
