"""The Kalman filter of a linear system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archimedes.control.matrix_checks import matrix, vector
from archimedes.observers.charts import Args, Chart
from archimedes.observers.corrections import (
    Estimate,
    Filter,
    Prediction,
    check_filter,
    correct_linear,
    predict_linear,
)
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

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
        n, put = matrix(self.A, "A").shape[0], object.__setattr__
        put(self, "A", matrix(self.A, "A", n, n, finite=True))
        put(self, "C", matrix(self.C, "C", None, n, finite=True))
        check_filter(self)
        matrix(self.Q, "Q", n, n)
        matrix(self.R, "R", *2 * self.C.shape[:1])
        if self.B is not None:
            put(self, "B", matrix(self.B, "B", n, finite=True))

    def _predict(self, chart: Chart, t: Scalar, x: Array, P: Array, args: Args) -> Prediction:
        if len(args) != (self.B is not None):
            raise ValueError("args must be (u,) where there is B, and empty where there is none")
        ahead = self.A @ x
        if args:
            ahead = ahead + self.B @ vector(args[0], "args[0]", self.B.shape[1])
        return predict_linear(ahead, self.A, P, self.Q, self.square_root)

    def _correct(
        self, chart: Chart, t: Scalar, x: Array, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        expected = self.C @ x
        return correct_linear(P, y, expected, self.C, self.R, self.missing, self.square_root)

    def _check_inputs(
        self, x: Tree, P: ArrayLike, args: Args | None
    ) -> tuple[Chart, Any, Any, Args]:
        return super()._check_inputs(vector(x, "x", self.Q.shape[0]), P, args)
