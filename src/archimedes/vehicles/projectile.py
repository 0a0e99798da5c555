"""A rigid body with drag and rate damping alone: balls, bricks, shells and debris."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.spatial.components import as_array, matvec
from archimedes.spatial.validation import check_inertia, check_mass
from archimedes.tree import field, struct
from archimedes.vehicles.surroundings import FlightState
from archimedes.vehicles.worlds import RotatingEarth

__all__ = ["Projectile"]


@struct
class Projectile:
    """A body of constant mass whose drag acts along its velocity through the air.

    `area` in m^2 and `drag` (a coefficient) give the drag; `damping` (3, 3) holds the derivatives
    of the moment coefficients in ``w * lengths / (2 V)``, with `lengths` (3,) in m for roll, pitch
    and yaw (NASA/TM-2015-218675, check case 3). The state is that of the `world`; there are no
    controls, `u` is ignored.

    >>> import numpy as np
    >>> from archimedes.vehicles import Projectile
    >>> ball = Projectile(mass=0.4, inertia=1e-3 * np.eye(3), area=0.04, drag=0.47)
    >>> ball.drag
    0.47
    """

    mass: Any = field(units="kg")
    inertia: Any = field(units="kg m^2")
    area: Any = field(units="m^2", default=0.0)
    drag: Any = 0.0
    lengths: Any = field(units="m", default_factory=lambda: np.ones(3))
    damping: Any = field(default_factory=lambda: np.zeros((3, 3)))
    world: Any = field(default_factory=RotatingEarth)

    @struct
    class Output:
        """Speed through the air, dynamic pressure and altitude."""

        airspeed: Any = field(units="m/s")
        mach: Any = field()
        dynamic_pressure: Any = field(units="Pa")
        alt: Any = field(units="m")

    def __post_init__(self) -> None:
        """Check mass and inertia where they are known."""
        check_mass(self.mass, "Projectile.mass")
        check_inertia(self.inertia, "Projectile.inertia")

    def state(self, flight: FlightState) -> Any:
        """Return the state for a place, a velocity and an attitude."""
        return self.world.state(flight)

    def dynamics(self, t: Any, x: Any, u: Any = None) -> Any:
        """Return the derivative of the world's state."""
        around = self.world.surroundings(t, x)
        speed = around.airspeed
        half = 0.5 * around.air.density * self.area * speed
        F_B = -(half * self.drag)[..., None] * around.v_air_B
        # q S d C (w d / 2 V) with one speed cancelled, so that a body at rest is no 0 / 0.
        lengths = as_array(self.lengths)
        turning = matvec(as_array(self.damping), lengths * around.w_air_B)
        M_B = (0.5 * half)[..., None] * lengths * turning
        return self.world.rates(t, x, F_B, M_B, self.mass, as_array(self.inertia))

    def outputs(self, t: Any, x: Any, u: Any = None) -> Any:
        """Return what an observer would note."""
        around = self.world.surroundings(t, x)
        return Projectile.Output(around.airspeed, around.mach, around.dynamic_pressure, around.alt)
