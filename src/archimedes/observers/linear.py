"""The Kalman filter of a linear system."""

from __future__ import annotations

from typing import Any

from archimedes.control.matrix_checks import matrix, symmetric_matrix, vector
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_gate,
    checked,
    correct_linear,
    finished,
    given_measurement,
    predict_linear,
)
from archimedes.tree import field, struct

__all__ = ["KalmanFilter"]


@struct
class KalmanFilter(Filter):
    """Kalman filter of x+ = A x + B u + w, y = C x + v.

    ``step(t, x, y, P, args=None)`` predicts, then corrects, and returns an `Estimate`, which
    unpacks as ``x, P, innovation``. The matrices are leaves, with derivatives.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    C : array (m, n)
        Output matrix.
    Q : array (n, n)
        Covariance of the process noise.
    R : array (m, m)
        Covariance of the measurement noise.
    B : array (n, k), optional
        Input matrix. None, the default: no input.
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
    >>> import numpy as np
    >>> kf = KalmanFilter(A=[[1.0, 0.1], [0.0, 1.0]], C=[[1.0, 0.0]], Q=np.eye(2), R=[[1.0]])
    >>> found = kf.step(0.0, np.zeros(2), np.array([1.0]), np.eye(2))
    >>> found.x.round(3), found.nis.round(3)
    (array([0.668, 0.033]), np.float64(0.332))
    """

    A: Any
    C: Any
    Q: Any
    R: Any
    B: Any = None
    missing: float | None = field(static=True, default=float("nan"))
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        check_gate(self.gate)
        n = matrix(self.A, "A").shape[0]
        put = object.__setattr__
        put(self, "A", matrix(self.A, "A", n, n, finite=True))
        put(self, "C", matrix(self.C, "C", None, n, finite=True))
        put(self, "Q", symmetric_matrix(self.Q, "Q", n, eigenvalues="not negative"))
        put(self, "R", symmetric_matrix(self.R, "R", self.C.shape[0], eigenvalues="positive"))
        if self.B is not None:
            put(self, "B", matrix(self.B, "B", n, finite=True))

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
            ``(u,)``, the input, if the filter has `B`.
        """
        _, x, P, args = self._checked(x, P, args)
        if len(args) != (self.B is not None):
            raise ValueError("args must be (u,) where there is B, and empty where there is none")
        ahead = self.A @ x
        if args:
            ahead = ahead + self.B @ vector(args[0], "args[0]", self.B.shape[1])
        return predict_linear(ahead, self.A, P, self.Q, self.square_root)

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
            Not used.
        """
        chart, x, P, args = self._checked(x, P, args)
        y, root = given_measurement(y, self.R.shape[0], self.missing), self.square_root
        shift, found = correct_linear(P, y, self.C @ x, self.C, self.R, self.missing, root)
        return finished(chart, x, P, shift, found, self.gate, root)

    def _checked(self, x: Any, P: Any, args: Any) -> Any:
        n = self.Q.shape[0]
        return checked(vector(x, "x", n), P, args, n, self.square_root)
