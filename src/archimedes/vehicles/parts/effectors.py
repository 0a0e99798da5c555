"""What pushes and turns a vehicle: rotors, thrusters, magnetorquers, reaction wheels, the ground.

Rotors have a fixed pitch: a_k is the direction of thrust of rotor k in body axes, s_k = +1 or -1
its sense of rotation about a_k, Omega_k > 0 its speed. The body feels the opposite of the torque
that turns the rotor. Source: Mahony, Kumar and Corke, Multirotor Aerial Vehicles, IEEE Robotics and
Automation Magazine 19 (2012) 20.

Thrusters are fixed to the body: force, moment and what they burn. The dipole of a magnetorquer
turns the body in the Earth's magnetic field. Reaction wheels are spinning masses in the body: a_k
is the axis of wheel k, h_k = I Omega_k its angular momentum relative to the body, tau_k the torque
of its motor on it; J_B is the inertia of the whole with wheels locked, w_B the body's angular
velocity. Then, exactly,
    (J_B - I A^T A) dw_B = M_B - w_B x (J_B w_B + A^T h) - A^T tau,    dh = tau - I A dw_B.
Source: Wie, Space Vehicle Dynamics and Control, 2nd edition, section 7.3.

Level ground pushes at every point of the body that is below it, along the vertical, with a spring
and a damper that never pull; friction opposes sliding and is smoothed below `slip` m/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct, check_vector
from archimedes.errors import refer_to
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Vec3, Vector
from archimedes.vehicles.parts.actuators import check_axes, limited

__all__ = ["GroundContact", "Magnetorquers", "ReactionWheels", "Rotors", "Thrusters"]


@struct
class Rotors:
    """A set of rotors. Its state is the speeds (n,) in rad/s.

    Parameters
    ----------
    positions : array (n, 3)
        Positions in m from the centre of mass, in body axes.
    spins : array (n,)
        1 or -1: sense of rotation.
    directions : array (n, 3), optional
        Unit vectors of the thrust, in body axes. By default -z.
    thrust : float, optional
        Thrust in N per squared speed of the rotor.
    torque : float, optional
        Torque in N m per squared speed of the rotor.
    inertia : float, optional
        Inertia of rotor and motor in kg m^2.
    time_constant : float, optional
        Time constant in s.
    max_speed : float, optional
        Largest speed in rad/s.
    inflow : float, optional
        Loss of thrust in N s^2/m per speed of the rotor and speed of the air against it.
    drag : float, optional
        Force across the axis in N s^2/m, likewise.
    density : float, optional
        Density of the air in kg/m^3 for which thrust and torque were measured.

    Examples
    --------
    >>> from archimedes.vehicles import ring
    >>> rotors = ring(4, 0.23)
    >>> rotors.positions.shape
    (4, 3)
    """

    positions: Any = field(units="m")
    spins: Any = field(units="")
    directions: Any = field(units="", default=None)
    thrust: Any = field(units="N s^2", default=1.0e-5)
    torque: Any = field(units="N m s^2", default=1.5e-7)
    inertia: Any = field(units="kg m^2", default=0.0)
    time_constant: Any = field(units="s", default=0.05)
    max_speed: Any = field(units="rad/s", default=1000.0)
    inflow: Any = field(units="N s^2/m", default=0.0)
    drag: Any = field(units="N s^2/m", default=0.0)
    density: Any = field(units="kg/m^3", default=1.225)

    def __post_init__(self) -> None:
        """Check shapes and sizes where they are known."""
        positions, spins = as_array(self.positions, "positions"), as_array(self.spins, "spins")
        if positions.ndim != 2 or positions.shape[1] != 3 or spins.shape != positions.shape[:1]:
            shapes = f"{tuple(positions.shape)} and {tuple(spins.shape)}"
            raise ValueError(f"Rotors: positions must be (n, 3), spins (n,), got {shapes}")
        check_axes(self.axes(), "Rotors.directions")
        check_struct(self, "thrust time_constant max_speed density", "torque inertia inflow drag")

    def axes(self) -> Any:
        """Return the directions of thrust (n, 3): up in body axes unless given."""
        if self.directions is not None:
            return as_array(self.directions, "directions")
        return np.zeros_like(as_array(self.positions)) - np.array([0.0, 0.0, 1.0])

    def rates(self, speeds: Vector, commands: Vector) -> Any:
        """Return the rates (n,) of the speeds in rad/s^2.

        Parameters
        ----------
        speeds : array (n,)
            Speeds of the rotors in rad/s.
        commands : array (n,)
            Commanded speeds in rad/s.
        """
        n = np.shape(self.positions)[0]
        for name, value in (("speeds", speeds), ("commands", commands)):
            if np.shape(value) not in ((), (n,)):
                raise ValueError(
                    f"Rotors: {name} must have shape ({n},), one speed in rad/s for each of the "
                    f"{n} rotors, got {np.shape(value)}" + refer_to("rotors")
                )
        goal = np.clip(commands, 0.0, as_array(self.max_speed))
        return (goal - speeds) / self.time_constant

    def wrench(
        self, speeds: Vector, rates: Vector, v_air_B: Vec3, w_B: Vec3, density: Scalar
    ) -> Any:
        """Return force (3,) and moment (3,) about the centre of mass, in body axes.

        Parameters
        ----------
        speeds : array (n,)
            Speeds of the rotors in rad/s.
        rates : array (n,)
            Rates of the speeds in rad/s^2.
        v_air_B : array (3,)
            Velocity through the air in m/s, in body axes.
        w_B : array (3,)
            Angular velocity in rad/s relative to inertial axes, in body axes.
        density : float
            Density of the air in kg/m^3.
        """
        axes, spins = self.axes(), as_array(self.spins)
        positions = as_array(self.positions)
        ratio = density / self.density
        at = v_air_B + cross(w_B, positions)  # velocity of each hub through the air
        along = np.sum(at * axes, axis=1)
        across = at - along[:, None] * axes
        lift = ratio * (self.thrust * speeds**2 - self.inflow * speeds * along)
        forces = lift[:, None] * axes - (ratio * self.drag * speeds)[:, None] * across
        reaction = -spins * (ratio * self.torque * speeds**2 + self.inertia * rates)
        momentum = np.sum((self.inertia * spins * speeds)[:, None] * axes, axis=0)
        moment = np.sum(cross(positions, forces) + reaction[:, None] * axes, axis=0)
        return np.sum(forces, axis=0), moment - cross(w_B, momentum)

    def allocation(self) -> Any:
        """Return the matrix (4, n) from squared speeds to thrust along -z and moment (3,)."""
        axes, spins = self.axes(), as_array(self.spins)
        arms = cross(as_array(self.positions), self.thrust * axes)
        turning = arms - (self.torque * spins)[:, None] * axes
        return np.concatenate([-(self.thrust * axes[:, 2])[None], turning.T])

    def distribute(self, thrust: Scalar, moment: Vec3, working: Vector | None = None) -> Any:
        """Return the smallest speeds (n,) in rad/s that give a thrust and a moment.

        What would need a negative thrust is cut off at zero.

        Parameters
        ----------
        thrust : float
            Thrust in N.
        moment : array (3,)
            Moment in N m, in body axes.
        working : array (n,), optional
            1 for rotors that work, 0 for rotors that failed. All work by default.
        """
        A = self.allocation()
        if working is not None:
            A = A * working
        # Moments as forces at the mean distance of the rotors: what is small is small in N.
        arm = np.sqrt(np.mean(np.sum(as_array(self.positions) ** 2, axis=1)))
        A = np.concatenate([A[:1], A[1:] / arm])
        wanted = np.concatenate([np.reshape(thrust, (1,)), moment / arm])
        # A little is added to the diagonal: with rotors missing, some moments cannot be made.
        square = matmul(A, A.T)
        squares = A.T @ np.linalg.solve(square + 1e-12 * np.trace(square) * np.eye(4), wanted)
        squares = np.clip(squares, 0.0, as_array(self.max_speed) ** 2)
        positive = squares > 0.0
        return np.where(positive, np.sqrt(np.where(positive, squares, 1.0)), 0.0)


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
    directions: Matrix = field(units="")
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

    axes: Matrix = field(units="", default_factory=lambda: np.eye(3))
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

    axes: Matrix = field(units="", default_factory=lambda: np.eye(3))
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


@struct
class GroundContact:
    """Points of a body that touch a plane: feet, wheels, skids.

    Parameters
    ----------
    points : array (n, 3)
        Points in m, in body axes.
    stiffness : float, optional
        Stiffness in N/m.
    damping : float, optional
        Damping in N s/m.
    friction : float, optional
        Coefficient of friction.
    slip : float, optional
        Speed in m/s below which friction is viscous.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import GroundContact
    >>> skids = GroundContact(np.array([[0.2, 0.1, 0.1], [0.2, -0.1, 0.1], [-0.2, 0.0, 0.1]]))
    >>> skids.friction
    0.7
    """

    points: Any = field(units="m")
    stiffness: Any = field(units="N/m", default=1e4)
    damping: Any = field(units="N s/m", default=1e3)
    friction: Any = field(units="", default=0.7)
    slip: Any = field(units="m/s", default=0.01)

    def __post_init__(self) -> None:
        """Check shapes and sizes where they are known."""
        points = as_array(self.points, "points")
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"GroundContact.points must have shape (n, 3), got {points.shape}")
        check_struct(self, "stiffness slip", "damping friction")

    def wrench(self, alt: Scalar, att: Any, v_B: Vec3, w_B: Vec3) -> tuple[Any, Any]:
        """Return force and moment on a body above ground at altitude zero.

        Parameters
        ----------
        alt : float
            Altitude of the origin of the body in m.
        att : attitude
            Attitude in NED axes.
        v_B : array (3,)
            Velocity over the ground in m/s, in body axes.
        w_B : array (3,)
            Angular velocity in rad/s, in body axes.

        Returns
        -------
        (array (3,), array (3,))
            Force in N and moment in N m, in body axes.
        """
        points = as_array(self.points)
        R = att.as_matrix()  # NED to body
        down = R[:, 2]
        depth = points @ down - alt
        v = v_B + cross(w_B, points)
        sinking = v @ down
        load = np.maximum(self.stiffness * depth + self.damping * sinking, 0.0)
        load = np.where(depth > 0.0, load, 0.0)
        sliding = v - sinking[:, None] * down
        speed = np.sqrt(np.sum(sliding * sliding, axis=1) + self.slip**2)
        forces = -load[:, None] * (down + (self.friction / speed)[:, None] * sliding)
        return np.sum(forces, axis=0), np.sum(cross(points, forces), axis=0)
