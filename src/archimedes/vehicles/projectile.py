"""A rigid body with drag and rate damping alone: balls, bricks, shells and debris."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.spatial.components import matvec
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Tree
from archimedes.vehicles.parts.actuators import check_body
from archimedes.vehicles.worlds import FlightState, RotatingEarth

__all__ = ["Projectile"]


@struct
class Projectile:
    """A body of constant mass whose drag acts along its velocity through the air.

    The state is that of the world. There are no controls.

    Parameters
    ----------
    mass : float
        Mass in kg.
    inertia : array (3, 3)
        Inertia in kg m^2 about the centre of mass, in body axes.
    area : float, optional
        Reference area in m^2, 0 by default.
    drag : float, optional
        Drag coefficient, 0 by default.
    lengths : array (3,), optional
        Reference lengths in m for roll, pitch and yaw.
    damping : array (3, 3), optional
        Derivatives of the moment coefficients with respect to ``w * lengths / (2 V)``
        (NASA/TM-2015-218675, check case 3).
    world : FlatEarth or RotatingEarth, optional
        World with gravity, air and wind.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import Projectile
    >>> ball = Projectile(mass=0.4, inertia=1e-3 * np.eye(3), area=0.04, drag=0.47)
    >>> ball.drag
    0.47
    """

    mass: Any = field(units="kg")
    inertia: Any = field(units="kg m^2")
    area: Any = field(units="m^2", default=0.0)
    drag: Any = field(units="", default=0.0)
    lengths: Any = field(units="m", default_factory=lambda: np.ones(3))
    damping: Any = field(units="", default_factory=lambda: np.zeros((3, 3)))
    world: Any = field(default_factory=RotatingEarth)

    @struct
    class Output:
        """Speed through the air, dynamic pressure and altitude.

        Parameters
        ----------
        airspeed : float
            Airspeed in m/s.
        mach : float
            Mach number.
        dynamic_pressure : float
            Dynamic pressure in Pa.
        alt : float
            Altitude in m.
        """

        airspeed: Any = field(units="m/s")
        mach: Any = field(units="")
        dynamic_pressure: Any = field(units="Pa")
        alt: Any = field(units="m")

    def __post_init__(self) -> None:
        """Check mass and inertia where they are known."""
        check_body(self)

    def state(self, flight: FlightState) -> Any:
        """Return the state for a position, a velocity and an attitude.

        Parameters
        ----------
        flight : FlightState
            Position, velocity and attitude.
        """
        return self.world.state(flight)

    def dynamics(self, t: Scalar, x: Tree, u: Tree | None = None) -> Any:
        """Return the derivative of the world's state.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u
            Not used: there are no controls.
        """
        around = self.world.surroundings(t, x)
        speed = around.airspeed
        half = 0.5 * around.air.density * self.area * speed
        F_B = -(half * self.drag)[..., None] * around.v_air_B
        # q S d C (w d / 2 V) with one speed cancelled, so that a body at rest is no 0 / 0.
        lengths = as_array(self.lengths)
        turning = matvec(as_array(self.damping), lengths * around.w_air_B)
        M_B = (0.5 * half)[..., None] * lengths * turning
        return self.world.rates(t, x, F_B, M_B, self.mass, as_array(self.inertia))

    def outputs(self, t: Scalar, x: Tree, u: Tree | None = None) -> Any:
        """Return what an observer would note.

        Parameters
        ----------
        t : float
            Time in s.
        x : State
            State of the vehicle.
        u
            Not used.
        """
        around = self.world.surroundings(t, x)
        return Projectile.Output(around.airspeed, around.mach, around.dynamic_pressure, around.alt)
