"""Reaction wheels: torque on the body by spinning masses in it.

Legend: a_k is the axis of wheel k, h_k = I Omega_k its angular momentum relative to the body, tau_k
the torque of its motor on it; J_B is the inertia of the whole with wheels locked, w_B the body's
angular velocity. Then, exactly,
    (J_B - I A^T A) dw_B = M_B - w_B x (J_B w_B + A^T h) - A^T tau,    dh = tau - I A dw_B.
Source: Wie, Space Vehicle Dynamics and Control, 2nd edition, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_vector
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import check_axes, check_not_negative, limited

__all__ = ["ReactionWheels"]


@struct
class ReactionWheels:
    """Reaction wheels. Their state is the angular momentum h (n,).

    Parameters
    ----------
    axes : array (n, 3), optional
        Unit vectors of the axes, in body axes.
    inertia : float, optional
        Spin inertia of each wheel in kg m^2.
    max_torque : float, optional
        Largest torque of a motor in N m.
    max_momentum : float, optional
        Angular momentum in N m s beyond which the torque does not accelerate a wheel.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import ReactionWheels
    >>> wheels = ReactionWheels(axes=np.eye(3), inertia=0.01, max_torque=0.1)
    >>> wheels.torque(np.zeros(3), np.array([0.05, -0.3, 0.0]))
    array([ 0.05, -0.1 ,  0.  ])
    """

    axes: Any = field(default_factory=lambda: np.eye(3))
    inertia: Any = field(units="kg m^2", default=0.0)
    max_torque: Any = field(units="N m", default=np.inf)
    max_momentum: Any = field(units="N m s", default=np.inf)

    def __post_init__(self) -> None:
        """Check axes and limits where they are known."""
        check_axes(self.axes, "ReactionWheels.axes")
        check_not_negative(self.inertia, "ReactionWheels.inertia", "kg m^2")
        check_not_negative(self.max_torque, "ReactionWheels.max_torque", "N m")
        check_not_negative(self.max_momentum, "ReactionWheels.max_momentum", "N m s")

    def torque(self, h: Any, command: Any) -> Any:
        """Return the torques (n,) of the motors in N m, within the limits.

        Parameters
        ----------
        h : array (n,)
            Angular momenta of the wheels in N m s.
        command : array (n,)
            Commanded torques in N m.
        """
        count = as_array(self.axes).shape[0]
        h, command = check_vector(h, count, "h"), check_vector(command, count, "command")
        tau = limited(command, self.max_torque)
        driven_out = (np.abs(h) >= self.max_momentum) & (tau * h > 0.0)
        return np.where(driven_out, 0.0, tau)

    def rates(self, J_B: Any, w_B: Any, h: Any, M_B: Any, command: Any) -> tuple[Any, Any]:
        """Return the angular acceleration (3,) of the body and the rate of momenta (n,).

        Parameters
        ----------
        J_B : array (3, 3)
            Inertia in kg m^2 about the centre of mass, in body axes.
        w_B : array (3,)
            Angular velocity in rad/s relative to inertial axes, in body axes.
        h : array (n,)
            Angular momenta of the wheels in N m s.
        M_B : array (3,)
            External moment in N m, in body axes.
        command : array (n,)
            Commanded torques in N m.
        """
        A, tau = as_array(self.axes), self.torque(h, command)
        moment = M_B - cross(w_B, J_B @ w_B + h @ A) - tau @ A
        dw_B = np.linalg.solve(J_B - self.inertia * matmul(A.T, A), moment)
        return dw_B, tau - self.inertia * (A @ dw_B)

    def distribute(self, M_B: Any) -> Any:
        """Return the smallest motor torques (n,) in N m that turn the body with a given moment.

        Parameters
        ----------
        M_B : array (3,)
            Moment on the body in N m, in body axes.
        """
        A = as_array(self.axes)
        return -A @ np.linalg.solve(matmul(A.T, A), M_B)
