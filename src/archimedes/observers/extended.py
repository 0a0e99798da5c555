"""The extended Kalman filter: a linear one along the estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import symmetric_matrix
from archimedes.observers.charts import check_function, measured, slopes, vector_of
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_gate,
    check_iterations,
    checked,
    correct_linear,
    finished,
    given_measurement,
    predict_linear,
)
from archimedes.tree import field, struct

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
        check_gate(self.gate)
        check_iterations(self.iterations)
        check_function(self.dyn, "dyn")
        check_function(self.obs, "obs")
        object.__setattr__(self, "Q", symmetric_matrix(self.Q, "Q", eigenvalues="not negative"))
        object.__setattr__(self, "R", symmetric_matrix(self.R, "R", eigenvalues="positive"))

    def predict(self, t: Any, x: Any, P: Any, args: Any = None) -> Prediction:
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
        chart, x, P, args = checked(x, P, args, self.Q.shape[0], self.square_root)
        ahead = chart.returned(self.dyn(t, x, *args), "dyn")
        F = slopes(self.dyn, chart, t, x, args, state=True)
        return predict_linear(ahead, F, P, self.Q, self.square_root)

    def correct(self, t: Any, x: Any, y: Any, P: Any, args: Any = None) -> Estimate:
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
        m, root = self.R.shape[0], self.square_root
        chart, x, P, args = checked(x, P, args, self.Q.shape[0], root)
        y = given_measurement(vector_of(y), m, self.missing)
        expected = measured(self.obs, t, x, args, m)
        H = slopes(self.obs, chart, t, x, args, state=False)
        shift, found = correct_linear(P, y, expected, H, self.R, self.missing, root)
        for _ in range(self.iterations - 1):
            near, G = chart.plus(x, shift), chart.moved(shift)
            H = slopes(self.obs, chart, t, near, args, state=False)
            H = H if G is None else H @ G
            # All of it as seen from where the correction began.
            expected = measured(self.obs, t, near, args, m) - H @ shift
            shift, again = correct_linear(P, y, expected, H, self.R, self.missing, root)
            found = replace(found, P=again.P)
        return finished(chart, x, P, shift, found, self.gate, root)
