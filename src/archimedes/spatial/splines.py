"""Twice continuously differentiable curves through attitudes and poses.

In each interval the attitude is q_i exp(v(tau)) with v a cubic in time; the angular velocities at
the knots are chosen such that the angular acceleration is continuous, which is a linear system
with a small nonlinear term, solved by Newton's method.
Legend: dt intervals, r_i turns from knot to knot (rotation vectors), w_i angular velocities in
body axes, Jr the right Jacobian at r_i. Without the Jacobians it is a clamped cubic spline.
Source: Kang and Park, Cubic spline algorithms for orientation interpolation, Int. J. Numer. Meth.
Eng. 46, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from archimedes.checks import as_finite, check_increasing, check_shape, check_vector
from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.attitudes.attitude_classes import Quaternion
from archimedes.spatial.attitudes.interpolation import quaternion_array
from archimedes.spatial.attitudes.rotvec import so3_right_jacobian
from archimedes.spatial.components import components, cross, dot, expand, matvec
from archimedes.spatial.spatial_vectors import Motion
from archimedes.spatial.stumpff import stumpff
from archimedes.spatial.transformation import Transformation
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Vec3, Vector

__all__ = ["PoseSpline", "QuaternionSpline"]

#: Newton steps for the nonlinear term, from the solution without it.
STEPS = 6
#: A quadratic form of the rates, which adds to the equations of a curve of attitudes.
Extra: TypeAlias = "Callable[[Any], Any] | None"


def rate_and_acceleration(v: Vec3, dv: Vec3, ddv: Vec3) -> tuple[Any, Any]:
    """Return the body rate and its derivative for a rotation vector and its derivatives.

    ``w = dv - c2 v x dv + c3 v x (v x dv)``, differentiated term by term.
    """
    square = dot(components(v, 3), components(v, 3))
    c2, c3, c4, c5 = (expand(c) for c in stumpff((2, 3, 4, 5), square))
    slope = 2.0 * expand(dot(components(v, 3), components(dv, 3)))
    dc2, dc3 = slope * (c4 - 0.5 * c3), slope * (1.5 * c5 - 0.5 * c4)
    v_dv, v_ddv = cross(v, dv), cross(v, ddv)
    v_v_dv, v_v_ddv = cross(v, v_dv), cross(v, v_ddv)
    rate = dv - c2 * v_dv + c3 * v_v_dv
    acceleration = (
        ddv - c2 * v_ddv + c3 * v_v_ddv - dc2 * v_dv + dc3 * v_v_dv + c3 * cross(dv, v_dv)
    )
    return rate, acceleration


def block_tridiagonal(lower: Array, diagonal: Array, upper: Array) -> Any:
    """Return the dense matrix (3n, 3n) of blocks (n, 3, 3); lower[0] and upper[-1] are unused."""
    bands, zero = {-1: lower, 0: diagonal, 1: upper}, np.zeros((3, 3))

    def block(i: int, j: int) -> Array:
        return bands[j - i][i] if j - i in bands else zero

    each = range(len(diagonal))
    return np.concatenate([np.concatenate([block(i, j) for j in each], axis=1) for i in each])


def knot_rates(
    dt: Vector, r: Array, start: Vec3, end: Vec3, J: Array, J_inv: Array, extra: Extra = None
) -> Any:
    """Return the rates (n, 3) at the knots for which the acceleration is continuous.

    At knot k, with a and b the intervals before and after it,
    ``2/dt_a J_a w[k-1] + 4 (1/dt_a + 1/dt_b) w[k] + 2/dt_b J_b^-1 w[k+1]
    = 6 (r_a/dt_a^2 + r_b/dt_b^2) - extra_a(w[k])``.
    """
    if len(dt) == 1:
        return np.stack([start, end])
    h = dt[:, None, None]
    a, b = h[:-1], h[1:]
    lower, upper = 2.0 / a * J[:-1], 2.0 / b * J_inv[1:]
    matrix = block_tridiagonal(lower, 4.0 * (1.0 / a + 1.0 / b) * np.eye(3), upper)
    scaled = 6.0 * r / (dt * dt)[:, None]
    known = scaled[:-1] + scaled[1:]
    first = known[:1] - matvec(lower[:1], start[None])
    known = np.concatenate([first, known[1:]], axis=0)
    last = known[-1:] - matvec(upper[-1:], end[None])
    known = np.concatenate([known[:-1], last], axis=0)
    inner = np.reshape(np.linalg.solve(matrix, np.reshape(known, (-1,))), known.shape)
    if extra is None:
        return np.concatenate([start[None], inner, end[None]], axis=0)
    unit = np.broadcast_to(np.eye(3)[:, None], (3, *inner.shape))
    alone = [extra(unit[k]) for k in range(3)]
    for _ in range(STEPS):
        value = extra(inner)
        # `extra` is a quadratic form, so its slope is extra(w + e) - extra(w) - extra(e).
        slope = [extra(inner + unit[k]) - value - alone[k] for k in range(3)]
        newton = matrix + block_tridiagonal(0.0 * lower, np.stack(slope, axis=-1), 0.0 * upper)
        error = np.matmul(matrix, np.reshape(inner, (-1,))) - np.reshape(known - value, (-1,))
        inner = inner - np.reshape(np.linalg.solve(newton, error), known.shape)
    return np.concatenate([start[None], inner, end[None]], axis=0)


def cubic(dt: Vector, step: Array, start: Vec3, end: Vec3) -> Any:
    """Return coefficients (n, 3, 3) of tau, tau^2, tau^3 for cubics with given steps and slopes."""
    h = dt[:, None]
    second = (3.0 * step / h - 2.0 * start - end) / h
    third = (start + end - 2.0 * step / h) / (h * h)
    return np.stack([start, second, third], axis=1)


def pick(table: Array, index: Array) -> Any:
    """Return rows of a table; np.array makes one that takes a traced index, where in a trace."""
    return np.array(table)[index]


def at_time(coefficients: Array, times: Vector, t: ArrayLike) -> tuple[Any, Any, Any, Any]:
    """Return the interval of `t`, and the cubic in it with two derivatives, each (..., 3)."""
    t = as_finite(t, "t")
    index = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    tau = (t - pick(times, index))[..., None]
    chosen = pick(coefficients, index)
    a, b, c = (chosen[..., k, :] for k in range(3))
    value = tau * (a + tau * (b + tau * c))
    return index, value, a + tau * (2.0 * b + tau * (3.0 * c)), 2.0 * b + tau * (6.0 * c)


def coefficient_units(coefficients: Any, per_time: str) -> Any:
    """Return the units of coefficients (n, 3, 3) that multiply tau, tau^2 and tau^3."""
    shape = np.shape(coefficients)
    powers = [per_time.format(power) for power in ("s", "s^2", "s^3") for _ in range(3)]
    return powers * shape[0] if len(shape) == 3 else "?"


def check_times(times: ArrayLike, count: int) -> Any:
    """Return knot times (n,), increasing and as many as there are knots."""
    times = check_increasing(times, "times")
    check_shape(times, "times, one for each knot,", (count,))
    return times


@struct
class QuaternionSpline:
    """A curve through attitudes at given times, with continuous rate and acceleration.

    Beyond the first and last knots the end pieces are continued.

    Parameters
    ----------
    times : array (n,)
        Times of the knots in s, increasing.
    attitudes : batch of n attitudes
        Attitudes at the knots, as an array (n, 4) of quaternions or of any class.
    start_rate : array (3,), optional
        Angular velocity at the first knot in rad/s, in body axes. By default that of the first
        rotation at constant speed.
    end_rate : array (3,), optional
        The same at the last knot.
    coefficients : tree, optional
        Coefficients of the pieces. They are computed if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import EulerAngles, QuaternionSpline
    >>> angles = EulerAngles(np.array([[0.0], [0.1], [0.2]]), "z")
    >>> QuaternionSpline(np.array([0.0, 1.0, 2.0]), angles).angular_velocity(0.7).round(12)
    array([0. , 0. , 0.1])
    """

    times: Any = field(units="s")
    attitudes: Any = field(units="")
    start_rate: Any = field(units="rad/s", default=None)
    end_rate: Any = field(units="rad/s", default=None)
    coefficients: Any = field(default=None)

    def __post_init__(self) -> None:
        """Find the coefficients, unless they are given with the rest."""
        if self.coefficients is not None:
            return
        q = quaternions.quaternion_normalize(quaternion_array(self.attitudes, "attitudes"))
        times = check_times(self.times, len(q))
        dt = times[1:] - times[:-1]
        r = quaternions.quaternion_difference(q[:-1], q[1:])
        J, J_inv = so3_right_jacobian(r), so3_right_jacobian(r, inverse=True)
        rates = [(self.start_rate, 0, "start_rate"), (self.end_rate, -1, "end_rate")]
        start, end = (
            r[k] / dt[k] if rate is None else check_vector(rate, 3, name) for rate, k, name in rates
        )

        def extra(w: Array) -> Any:
            dv = matvec(J_inv[:-1], w)
            return rate_and_acceleration(r[:-1], dv, np.zeros_like(dv))[1]

        w = knot_rates(dt, r, start, end, J, J_inv, extra)
        fields = self.__dict__
        fields["times"], fields["attitudes"] = times, Quaternion.make(q)
        fields["start_rate"], fields["end_rate"] = start, end
        fields["coefficients"] = cubic(dt, r, w[:-1], matvec(J_inv, w[1:]))

    def field_units(self) -> dict[str, Any]:
        """Return the units of the coefficients."""
        return {"coefficients": coefficient_units(self.coefficients, "1/{}")}

    def __call__(self, t: ArrayLike) -> Quaternion:
        """Return the attitude at time `t`, or a batch for an array of times."""
        index, v, _, _ = at_time(self.coefficients, self.times, t)
        start = pick(self.attitudes.array, index)
        return Quaternion.make(quaternions.quaternion_integrate(start, v))

    def angular_velocity(self, t: ArrayLike) -> Any:
        """Return the body rate (..., 3) in rad/s.

        Parameters
        ----------
        t : float or array
            Time in s.
        """
        return rate_and_acceleration(*at_time(self.coefficients, self.times, t)[1:])[0]

    def angular_acceleration(self, t: ArrayLike) -> Any:
        """Return the derivative (..., 3) of the body rate, in rad/s^2.

        Parameters
        ----------
        t : float or array
            Time in s.
        """
        return rate_and_acceleration(*at_time(self.coefficients, self.times, t)[1:])[1]


@struct
class PoseSpline:
    """A curve through poses at given times, twice continuously differentiable.

    Called with a time, it returns the pose as a `Transformation` from body to frame, as
    ``KinematicTree.add_frame(..., pose=spline)`` takes it.

    Parameters
    ----------
    times : array (n,)
        Times of the knots in s, increasing.
    positions : array (n, 3)
        Positions in m of the body in the frame.
    attitudes : batch of n attitudes
        Attitudes of the body in the frame, as an array (n, 4) of quaternions or of any class.
    coefficients : tree, optional
        Coefficients of the pieces. They are computed if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import PoseSpline, Quaternion
    >>> path = np.array([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    >>> spline = PoseSpline(np.arange(3.0), path, Quaternion(np.tile([1.0, 0, 0, 0], (3, 1))))
    >>> spline(0.5).apply(np.zeros(3))
    array([0.5, 0. , 0. ])
    """

    times: Any = field(units="s")
    positions: Any = field(units="m")
    attitudes: Any = field(units="")
    coefficients: Any = field(default=None)

    def __post_init__(self) -> None:
        """Find the coefficients, unless they are given with the rest."""
        if self.coefficients is not None:
            return
        fields = self.__dict__
        positions = fields["positions"] = check_vector(self.positions, 3, "positions")
        times = fields["times"] = check_times(self.times, len(positions))
        if not isinstance(self.attitudes, QuaternionSpline):
            fields["attitudes"] = QuaternionSpline(times, self.attitudes)
        dt, step = times[1:] - times[:-1], positions[1:] - positions[:-1]
        one = np.broadcast_to(np.eye(3), (len(dt), 3, 3))
        v = knot_rates(dt, step, step[0] / dt[0], step[-1] / dt[-1], one, one)
        fields["coefficients"] = cubic(dt, step, v[:-1], v[1:])

    def field_units(self) -> dict[str, Any]:
        """Return the units of the coefficients."""
        return {"coefficients": coefficient_units(self.coefficients, "m/{}")}

    def __call__(self, t: ArrayLike) -> Transformation:
        """Return the pose at time `t`: the transformation from body to frame."""
        index, p, _, _ = at_time(self.coefficients, self.times, t)
        return Transformation(pick(self.positions, index) + p, self.attitudes(t).inv())

    def twist(self, t: ArrayLike) -> Motion:
        """Return velocity and angular velocity of the body in the frame, in body axes.

        Parameters
        ----------
        t : float
            Time in s.
        """
        _, _, v, _ = at_time(self.coefficients, self.times, t)
        return Motion(self.attitudes(t).rotate(v), self.attitudes.angular_velocity(t))
