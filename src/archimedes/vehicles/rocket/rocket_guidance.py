"""Guidance of a rocket to orbit: up, over, along the path, then a linear tangent law.

The first stage rises, tips by `kick` and follows its own path (a gravity turn, which keeps the
angle of attack small); later stages pitch so that the tangent falls linearly with time, the optimum
for a flat Earth (Bryson and Ho, Applied Optimal Control, section 2.4). The engine is cut off at the
orbital energy wanted. Attitude is held by the gimbal, with gains per inertia.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment import ned
from archimedes.environment.geodesy import ecef_to_geodetic
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Tree, Vec3
from archimedes.vehicles.parts.actuators import check_part
from archimedes.vehicles.rocket.rocket import Rocket

__all__ = ["OrbitGuidance"]


@struct
class OrbitGuidance:
    """Guidance of a rocket on a `RotatingEarth` into an orbit, to the east.

    After the pitch-over the path is followed. The tangent of the pitch angle of later stages is
    ``tangent - tangent_rate * (t - 150)``.

    Parameters
    ----------
    kick : float, optional
        Pitch-over angle in rad.
    kick_start : float, optional
        Time in s at which the pitch-over begins.
    kick_end : float, optional
        Time in s at which it ends, and the path is followed.
    tangent : float, optional
        Tangent of the pitch angle of later stages at 150 s.
    tangent_rate : float, optional
        Decrease of that tangent in 1/s.
    radius : float, optional
        Semi-major axis in m at which the engine stops.
    stiffness : float, optional
        Attitude gain in 1/s^2.
    damping : float, optional
        Rate gain in 1/s.

    Examples
    --------
    >>> from archimedes.vehicles import OrbitGuidance
    >>> guidance = OrbitGuidance()  # guidance.command(rocket, t, x) is the rocket's input
    """

    kick: Any = field(units="rad", default=0.08)
    kick_start: Any = field(units="s", default=8.0)
    kick_end: Any = field(units="s", default=20.0)
    tangent: Any = 0.55
    tangent_rate: Any = field(units="1/s", default=0.0014)
    radius: Any = field(units="m", default=6.378137e6 + 400e3)
    stiffness: Any = field(units="1/s^2", default=4.0)
    damping: Any = field(units="1/s", default=3.5)

    def command(self, rocket: Rocket, t: Scalar, x: Tree) -> Any:
        """Return the inputs of the rocket.

        Parameters
        ----------
        rocket : Rocket
            The rocket.
        t : float
            Time in s.
        x : State
            State of the vehicle.
        """
        check_part(rocket.world, "OrbitGuidance.command: rocket.world", ("ellipsoid",))
        lat, lon, _ = ecef_to_geodetic(x.motion.pos, rocket.world.ellipsoid)
        local = ned(lat, lon)
        pitch = self.pitch(t, x, local.rotate(x.motion.v_E))
        wanted = np.stack([0.0 * pitch, np.cos(pitch), -np.sin(pitch)])
        wanted_B = x.motion.att.rotate(local.rotate(wanted, inverse=True))
        gimbal = self._gimbal(rocket, x, wanted_B)
        return Rocket.Input(np.where(self.energy(rocket, x) < self._goal(rocket), 1.0, 0.0), gimbal)

    def pitch(self, t: Scalar, x: Tree, v_NED: Vec3) -> Any:
        """Return the desired pitch angle in rad above the horizon.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        v_NED : array (3,)
            Velocity in m/s relative to the ground: north, east, down.
        """
        level = np.maximum(np.hypot(v_NED[0], v_NED[1]), 1e-3)
        path = np.arctan2(-v_NED[2], level)
        tip = np.clip((t - self.kick_start) / (0.5 * (self.kick_end - self.kick_start)), 0.0, 1.0)
        rising = np.where(t < self.kick_end, 0.5 * np.pi - self.kick * tip, path)
        later = np.arctan(self.tangent - self.tangent_rate * (t - 150.0))
        return np.where(x.attached[0] > 0.0, rising, later)

    def energy(self, rocket: Rocket, x: Tree) -> Any:
        """Return the orbital energy in J/kg, of the inertial motion.

        Parameters
        ----------
        rocket : Rocket
            The rocket.
        x : State
            State of the vehicle.
        """
        motion, planet = x.motion, rocket.world.ellipsoid
        v = motion.v_E + cross(planet.omega * np.array([0.0, 0.0, 1.0]), motion.pos)
        return 0.5 * np.sum(v * v) - planet.mu / np.sqrt(np.sum(motion.pos * motion.pos))

    def _goal(self, rocket: Rocket) -> Any:
        return -0.5 * rocket.world.ellipsoid.mu / self.radius

    def _gimbal(self, rocket: Rocket, x: Tree, wanted_B: Vec3) -> Any:
        whole = rocket.mass_properties(x)
        error = np.stack([0.0 * wanted_B[0], -wanted_B[2], wanted_B[1]])  # x_B cross wanted
        moment = whole.inertia @ (self.stiffness * error - self.damping * x.motion.w_B)
        fires = rocket.firing(x, 1.0 + 0.0 * whole.mass)
        lever = sum(
            fires[k] * stage.thrust * (whole.com[0] - stage.engine)
            for k, stage in enumerate(rocket.stages)
        )
        return moment[1:] / np.maximum(lever, 1.0)
