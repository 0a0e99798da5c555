"""Rotors with fixed pitch: thrust, drag torque, gyroscopic moments, and the motors' lag.

Legend: a_k is the direction of thrust of rotor k in body axes, s_k = +1 or -1 its sense of rotation
about a_k, Omega_k > 0 its speed. The body feels the opposite of the torque that turns the rotor.
Source: Mahony, Kumar and Corke, Multirotor Aerial Vehicles, IEEE Robotics and Automation Magazine
19 (2012) 20.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Vec3, Vector
from archimedes.vehicles.parts.actuators import check_axes

__all__ = ["Rotors"]


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
    spins: Any = field()
    directions: Any = None
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
            raise ValueError(
                "Rotors: positions must have shape (n, 3) and spins (n,), got "
                f"{tuple(positions.shape)} and {tuple(spins.shape)}"
            )
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
        wanted = np.concatenate([np.reshape(thrust, (1,)), moment])
        # A little is added to the diagonal: with rotors missing, some moments cannot be made.
        square = matmul(A, A.T)
        squares = A.T @ np.linalg.solve(square + 1e-12 * np.trace(square) * np.eye(4), wanted)
        squares = np.clip(squares, 0.0, as_array(self.max_speed) ** 2)
        positive = squares > 0.0
        return np.where(positive, np.sqrt(np.where(positive, squares, 1.0)), 0.0)
