"""What turns a spacecraft: thrusters, magnetorquers and reaction wheels.

Thrusters are fixed to the body: force, moment and what they burn. The dipole of a magnetorquer
turns the body in the Earth's magnetic field. Reaction wheels are spinning masses in the body.
Legend: a_k is the axis of wheel k, h_k = I Omega_k its angular momentum relative to the body, tau_k
the torque of its motor on it; J_B is the inertia of the whole with wheels locked, w_B the body's
angular velocity. Then, exactly,
    (J_B - I A^T A) dw_B = M_B - w_B x (J_B w_B + A^T h) - A^T tau,    dh = tau - I A dw_B.
Source: Wie, Space Vehicle Dynamics and Control, 2nd edition, section 7.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct, check_vector
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Vec3, Vector
from archimedes.vehicles.parts.actuators import check_axes, limited

__all__ = ["Magnetorquers", "ReactionWheels", "Thrusters"]

STANDARD_GRAVITY = 9.80665


@struct
class Thrusters:
    """Thrusters that push the body along given directions.

    Parameters
    ----------
    positions : array (n, 3)
        Positions in m, in body axes.
    directions : array (n, 3)
        Unit vectors of the forces on the body.
    thrust : array (n,)
        Thrust at full throttle in N.
    specific_impulse : float, optional
        Specific impulse in vacuum in s.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import Thrusters
    >>> jets = Thrusters(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), thrust=5.0)
    >>> jets.thrust
    5.0
    """

    positions: Matrix = field(units="m")
    directions: Matrix = field()
    thrust: Scalar = field(units="N")
    specific_impulse: Scalar = field(units="s", default=220.0)

    def __post_init__(self) -> None:
        """Check shapes and sizes where they are known."""
        directions = check_axes(self.directions, "Thrusters.directions")
        if as_array(self.positions, "positions").shape != directions.shape:
            raise ValueError("Thrusters: positions and directions must both have shape (n, 3)")
        check_struct(self, not_negative="thrust specific_impulse")

    def wrench(self, throttle: Scalar, p_B: Vec3 | None = None) -> tuple[Any, Any, Any]:
        """Return force, moment and mass flow.

        Parameters
        ----------
        throttle : array (n,)
            Throttles, limited to 0 to 1.
        p_B : array (3,), optional
            Centre of mass in m, in body axes. The origin by default.

        Returns
        -------
        (array (3,), array (3,), float)
            Force in N, moment in N m about the centre of mass, and mass flow in kg/s, positive for
            what leaves.
        """
        size = as_array(self.thrust) * np.clip(as_array(throttle, "throttle"), 0.0, 1.0)
        forces = size[:, None] * as_array(self.directions)
        arms = as_array(self.positions) - (np.zeros(3) if p_B is None else p_B)
        flow = np.sum(size / (STANDARD_GRAVITY * as_array(self.specific_impulse)))
        return np.sum(forces, axis=0), np.sum(cross(arms, forces), axis=0), flow


@struct
class Magnetorquers:
    """Magnetic coils.

    Parameters
    ----------
    axes : array (n, 3), optional
        Unit vectors of the axes, in body axes.
    max_dipole : float, optional
        Largest dipole in A m^2. inf by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import Magnetorquers
    >>> coils = Magnetorquers(max_dipole=0.2)
    >>> coils.max_dipole
    0.2
    """

    axes: Matrix = field(default_factory=lambda: np.eye(3))
    max_dipole: Scalar = field(units="A m^2", default=np.inf)

    def __post_init__(self) -> None:
        """Check axes and limit where they are known."""
        check_axes(self.axes, "Magnetorquers.axes")
        check_struct(self, not_negative="max_dipole")

    def moment(self, dipole: Vector, B_B: Vec3) -> Any:
        """Return the moment (3,) in N m of dipoles in a magnetic field.

        Parameters
        ----------
        dipole : array (n,)
            Dipoles of the coils in A m^2.
        B_B : array (3,)
            Magnetic field in T, in body axes.
        """
        return cross(limited(dipole, self.max_dipole) @ as_array(self.axes), B_B)


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

    axes: Matrix = field(default_factory=lambda: np.eye(3))
    inertia: Scalar = field(units="kg m^2", default=0.0)
    max_torque: Scalar = field(units="N m", default=np.inf)
    max_momentum: Scalar = field(units="N m s", default=np.inf)

    def __post_init__(self) -> None:
        """Check axes and limits where they are known."""
        check_axes(self.axes, "ReactionWheels.axes")
        check_struct(self, not_negative="inertia max_torque max_momentum")

    def torque(self, h: Vector, command: Scalar) -> Any:
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

    def rates(
        self, J_B: Matrix, w_B: Vec3, h: Vector, M_B: Vec3, command: Scalar
    ) -> tuple[Any, Any]:
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

    def distribute(self, M_B: Vec3) -> Any:
        """Return the smallest motor torques (n,) in N m that turn the body with a given moment.

        Parameters
        ----------
        M_B : array (3,)
            Moment on the body in N m, in body axes.
        """
        A = as_array(self.axes)
        return -A @ np.linalg.solve(matmul(A.T, A), M_B)
