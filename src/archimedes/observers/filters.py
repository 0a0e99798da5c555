"""Kalman filters: of linear systems, along the estimate of nonlinear ones, by points, of attitudes.

The unscented filter has means and covariances of sigma points instead of Jacobians. Symbols: X
sigma points (2n+1, n), w their weights (2n+1,). Julier, Uhlmann, "Unscented filtering and nonlinear
estimation", Proc. IEEE 92 (2004), eq. 12.

The filter of attitude and gyro bias, from vectors seen in the body, is the multiplicative extended
one: Lefferts, Markley, Shuster, "Kalman filtering for spacecraft attitude estimation", J. Guidance
5 (1982); noise of a step: Markley, Crassidis, "Fundamentals of spacecraft attitude determination
and control", 2014, eq. 6.93 (Farrenkopf). Symbols: w measured rate, b bias, sv and su the noise of
the gyro and of its bias, dt the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_callable, check_struct, is_traced
from archimedes.control.matrix_checks import matrix, symmetric_matrix, vector
from archimedes.observers import corrections
from archimedes.observers.charts import Args, Chart, jacobian, measure
from archimedes.observers.corrections import Estimate, Filter, Prediction
from archimedes.spatial import Quaternion
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Scalar, Tree

__all__ = ["AttitudeFilter", "ExtendedKalmanFilter", "KalmanFilter", "UnscentedKalmanFilter"]


@struct
class KalmanFilter(Filter):
    """Kalman filter of x+ = A x + B u + w, y = C x + v.

    ``step(t, x, y, P, args=None)`` predicts, then corrects, and returns an `Estimate`, which
    unpacks as ``x, P, innovation``. The matrices are leaves, with derivatives. ``nx`` and ``ny``
    are the numbers of states and of measurements, as in all filters.

    Parameters
    ----------
    A : array (n, n), optional
        State matrix. Without it and `Q` the filter only corrects.
    C : array (m, n)
        Output matrix.
    Q : array (n, n), optional
        Covariance of the process noise.
    R : array (m, m) or float
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

    A: Any = None
    C: Any = None
    Q: Any = None
    R: Any = None
    B: Any = None
    missing: float | None = field(static=True, default=float("nan"))
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        name, put = "C" if self.A is None else "A", object.__setattr__
        n = matrix(getattr(self, name), name).shape[1]
        if self.A is not None:
            put(self, "A", matrix(self.A, "A", n, n, finite=True))
        put(self, "C", matrix(self.C, "C", None, n, finite=True))
        corrections.check_filter(self)
        if self.Q is not None:
            matrix(self.Q, "Q", n, n)
        matrix(self.R, "R", *2 * self.C.shape[:1])
        if self.B is not None:
            put(self, "B", matrix(self.B, "B", n, finite=True))

    @property
    def nx(self) -> int:
        """Number of states."""
        return int(self.C.shape[1])

    def _predict(self, chart: Chart, t: Scalar, x: Array, P: Array, args: Args) -> Prediction:
        if len(args) != (self.B is not None):
            raise ValueError("args must be (u,) if the filter has B, and () if it has none")
        ahead = self.A @ x
        if args:
            ahead = ahead + self.B @ vector(args[0], "args[0]", self.B.shape[1])
        return corrections.predict_linear(ahead, self.A, P, self.Q, self.square_root)

    def _correct(
        self, chart: Chart, t: Scalar, x: Array, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        settings = (self.R, self.missing, self.square_root)
        return corrections.correct_linear(P, y, self.C @ x, self.C, *settings)

    def _check_inputs(
        self, x: Tree, P: ArrayLike, args: Args | None
    ) -> tuple[Chart, Any, Any, Args]:
        return super()._check_inputs(vector(x, "x", self.nx), P, args)


class LinearizingFilter(Filter):
    """A filter that uses the Jacobians of its model along the estimate.

    A filter defines ``dyn`` and ``obs``.
    """

    dyn: Callable[..., Any] | None
    obs: Callable[..., Any]

    def _predict(self, chart: Chart, t: Scalar, x: Tree, P: Array, args: Args) -> Prediction:
        assert self.dyn is not None
        ahead = chart.check_state(self.dyn(t, x, *args), "dyn")
        F = jacobian(self.dyn, chart, t, x, args, state=True)
        return corrections.predict_linear(ahead, F, P, self.Q, self.square_root)

    def _correct(
        self, chart: Chart, t: Scalar, x: Tree, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        m, settings = self.R.shape[0], (self.R, self.missing, self.square_root)
        expected = measure(self.obs, t, x, args, m)
        H = jacobian(self.obs, chart, t, x, args, state=False)
        shift, estimate = corrections.correct_linear(P, y, expected, H, *settings)
        for _ in range(self.iterations - 1):
            near, G = chart.plus(x, shift), chart.transport(shift)
            H = jacobian(self.obs, chart, t, near, args, state=False)
            H = H if G is None else H @ G
            # All of it as seen from where the correction began.
            expected = measure(self.obs, t, near, args, m) - H @ shift
            shift, again = corrections.correct_linear(P, y, expected, H, *settings)
            estimate = replace(estimate, P=again.P)
        return shift, estimate


@struct
class ExtendedKalmanFilter(LinearizingFilter):
    """Extended Kalman filter of ``x+ = dyn(t, x, *args) + w``, ``y = obs(t, x, *args) + v``.

    ``step(t, x, y, P, args=None)`` predicts, then corrects, and returns an `Estimate`, which
    unpacks as ``x, P, innovation``. The Jacobians are exact. x is a vector (n,), or a tree of
    numbers and attitudes: the error of an attitude is a small rotation in body axes, 3 numbers in P
    and Q. Q and R are leaves, with derivatives. Compile the step (``arc.compile(ekf.step)``), or
    scan it, map it, and generate C from it.

    Parameters
    ----------
    dyn : callable, optional
        Model ``dyn(t, x, *args)`` that returns the next state. Without it and `Q` the filter
        only corrects.
    obs : callable
        Measurement model ``obs(t, x, *args)`` that returns (m,), or a number if m is 1.
    Q : array (n, n), optional
        Covariance of the process noise.
    R : array (m, m) or float
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
    >>> import numpy as np
    >>> ekf = ExtendedKalmanFilter(lambda t, x: np.sin(x), lambda t, x: x**2, [[0.1]], [[0.1]])
    >>> x, P, innovation = ekf.step(0.0, [1.0], [0.5], [[0.2]])
    >>> x.round(3), P.round(3), innovation.round(3)
    (array([0.74]), array([[0.029]]), array([-0.208]))
    """

    dyn: Callable[..., Any] | None = field(static=True, default=None)
    obs: Callable[..., Any] = field(static=True, default=None)
    Q: Any = None
    R: Any = None
    missing: float | None = field(static=True, default=np.nan)
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)
    iterations: int = field(static=True, default=1)

    def __post_init__(self) -> None:
        corrections.check_filter(self)
        if self.dyn is not None:
            check_callable(self.dyn, "dyn", "dyn(t, x, *args)")
        check_callable(self.obs, "obs", "obs(t, x, *args)")


@struct
class UnscentedKalmanFilter(Filter):
    """Unscented Kalman filter of ``x+ = dyn(t, x, *args) + w``, ``y = obs(t, x, *args) + v``.

    It is used like the `ExtendedKalmanFilter`, with means and covariances of 2n + 1 points instead
    of Jacobians. The covariance of the state must be positive definite.

    Parameters
    ----------
    dyn : callable, optional
        Model ``dyn(t, x, *args)`` that returns the next state. Without it and `Q` the filter
        only corrects.
    obs : callable
        Measurement model ``obs(t, x, *args)`` that returns (m,), or a number if m is 1.
    Q : array (n, n), optional
        Covariance of the process noise.
    R : array (m, m) or float
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
    >>> import numpy as np
    >>> ukf = UnscentedKalmanFilter(lambda t, x: np.sin(x), lambda t, x: x**2, [[0.1]], [[0.1]])
    >>> x, P, innovation = ukf.step(0.0, [1.0], [0.5], [[0.2]])
    >>> x.round(3), P.round(3), innovation.round(3)
    (array([0.64]), array([[0.034]]), array([-0.23]))
    """

    dyn: Callable[..., Any] | None = field(static=True, default=None)
    obs: Callable[..., Any] = field(static=True, default=None)
    Q: Any = None
    R: Any = None
    kappa: float = field(static=True, default=0.0)
    missing: float | None = field(static=True, default=np.nan)
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        corrections.check_filter(self)
        if self.dyn is not None:
            check_callable(self.dyn, "dyn", "dyn(t, x, *args)")
        check_callable(self.obs, "obs", "obs(t, x, *args)")
        n = self.nx or 1
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
        assert self.dyn is not None
        E, points, w = self._points(chart, x, P)
        ahead = [chart.check_state(self.dyn(t, point, *args), "dyn") for point in points]
        mean = chart.mean(w, ahead)
        spread = np.stack([chart.minus(state, mean) for state in ahead])
        cross = E.T @ (w[:, None] * spread)
        if self.square_root:
            deviations = (np.sqrt(w)[:, None] * spread).T
            ahead_P = corrections.triangularize(deviations, corrections.factor_covariance(self.Q))
        else:
            ahead_P = corrections.symmetric(spread.T @ (w[:, None] * spread)) + self.Q
        return Prediction(mean, ahead_P, cross)

    def _correct(
        self, chart: Chart, t: Scalar, x: Tree, y: Array, P: Array, args: Args
    ) -> tuple[Array, Estimate]:
        E, points, w = self._points(chart, x, P)
        Y = np.stack([measure(self.obs, t, point, args, self.R.shape[0]) for point in points])
        expected, present = w @ Y, corrections.is_present(y, self.missing)
        spread, R = corrections.mask_missing(present, Y - expected, self.R)
        if self.square_root:
            Dx, Dy = ((np.sqrt(w)[:, None] * D).T for D in (E, spread))
            return corrections.correct_factors(Dx, Dy, y, expected, present, R)
        weighted = w[:, None] * spread
        C, S = E.T @ weighted, corrections.symmetric(spread.T @ weighted) + R
        shift, K, e, nis = corrections.correct_mean(y, expected, present, C, S)
        return shift, Estimate(None, corrections.symmetric(P - K @ S @ K.T), e, S, nis)


@struct
class AttitudeFilter(LinearizingFilter):
    """A Kalman filter of attitude and gyro bias, from a gyro and known directions.

    The state is ``AttitudeFilter.State(att, bias)``, and P (6, 6) counts a rotation in body axes
    (rad) and the bias (rad/s). A measurement ``y`` (3 k,) holds the directions of `references` as
    the sensors in B see them; ``args=(w_B,)`` is the measured angular velocity. If the first guess
    is far off compared with `sight` (0.2 rad and 0.01), use ``iterations=3``.

    Parameters
    ----------
    references : array (k, 3)
        Known directions in E: a star, the Sun, the magnetic field.
    dt : float
        Length of a step in s.
    sight : float or array (k,)
        Standard deviation of the measured directions, in rad.
    gyro_noise : float, optional
        Angle random walk of the gyro in rad/s^0.5.
    bias_noise : float, optional
        Random walk of the bias in rad/s^1.5.
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
    >>> import numpy as np
    >>> down = AttitudeFilter([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], dt=0.1, sight=0.01)
    >>> x = AttitudeFilter.State(Quaternion.identity(), np.zeros(3))
    >>> y = np.array([0.0, 0.05, 1.0, 1.0, 0.0, 0.0])  # rolled by about 0.05 rad
    >>> x, P, _ = down.step(0.0, x, y, 0.1 * np.eye(6), args=(np.zeros(3),))
    >>> x.att.as_euler("xyz").array.round(3)
    array([0.05, 0.  , 0.  ])
    """

    @struct
    class State:
        """Attitude of the body and bias of the gyro.

        Parameters
        ----------
        att : attitude
            Attitude of the body.
        bias : array (3,)
            Bias of the gyro in rad/s.
        """

        att: Any
        bias: Any = field(units="rad/s")

    references: Any
    dt: Any = field(units="s")
    sight: Any
    gyro_noise: Any = field(default=1e-4, units="rad/s^0.5")
    bias_noise: Any = field(default=1e-6, units="rad/s^1.5")
    missing: float | None = field(static=True, default=np.nan)
    gate: float | None = field(static=True, default=None)
    square_root: bool = field(static=True, default=False)
    iterations: int = field(static=True, default=1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "references", matrix(self.references, "references", None, 3))
        check_struct(self, positive="dt sight", not_negative="gyro_noise bias_noise")
        corrections.check_settings(self)

    def noise(self) -> Any:
        """Return Q (6, 6): what a step adds to the covariance."""
        sv, su, dt = self.gyro_noise**2, self.bias_noise**2, self.dt
        turn = (sv * dt + su * dt**3 / 3.0) * np.eye(3)
        both, bias = (-0.5 * su * dt**2) * np.eye(3), (su * dt) * np.eye(3)
        return np.concatenate(
            [np.concatenate([turn, both], axis=1), np.concatenate([both, bias], axis=1)]
        )

    def dyn(self, t: Scalar, x: State, w_B: Array) -> State:
        """Return the state after a step with the measured rate.

        Parameters
        ----------
        t : float
            Time in s.
        x : AttitudeFilter.State
            State.
        w_B : array (3,)
            Measured angular velocity in rad/s, in body axes.
        """
        turn = Quaternion.exp((w_B - x.bias) * self.dt)
        return self.State(x.att.mul(turn), x.bias)

    def obs(self, t: Scalar, x: State, *args: Any) -> Any:
        """Return the references in body axes, (3 k,).

        Parameters
        ----------
        t : float
            Time in s.
        x : AttitudeFilter.State
            State.
        *args
            Not used.
        """
        return np.reshape((x.att.as_matrix() @ self.references.T).T, (-1,))

    @property
    def Q(self) -> Any:
        """Covariance (6, 6) of the process noise."""
        return self.noise()

    @property
    def R(self) -> Any:
        """Covariance (3 k, 3 k) of the measured directions."""
        each = np.zeros(self.references.shape[0]) + self.sight
        return np.diag(np.reshape(each[:, None] * np.ones(3), (-1,)) ** 2)

    def _predict(self, chart: Chart, t: Scalar, x: Tree, P: Array, args: Args) -> Prediction:
        if len(args) != 1:
            raise ValueError("args must be (w_B,): the measured rate (3,) in rad/s")
        return super()._predict(chart, t, x, P, args)
