"""The multiplicative extended Kalman filter: attitude and gyro bias from vectors seen in the body.

Symbols: w measured rate, b bias, sv and su the noise of the gyro and of its bias, dt the step.
Lefferts, Markley, Shuster, "Kalman filtering for spacecraft attitude estimation", J. Guidance 5
(1982); noise of a step: Markley, Crassidis, "Fundamentals of spacecraft attitude determination
and control", 2014, eq. 6.93 (Farrenkopf).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_struct
from archimedes.control.matrix_checks import matrix
from archimedes.observers.corrections import Prediction, check_settings
from archimedes.observers.filters import LinearizingFilter
from archimedes.spatial import Quaternion
from archimedes.tree import field, struct

if TYPE_CHECKING:
    from archimedes.observers.charts import Args, Chart
    from archimedes.typing import Array, Scalar, Tree

__all__ = ["AttitudeFilter"]


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
        check_settings(self)

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
