"""What a vehicle meets at a place and time: air, gravity, and its motion through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.environment import Air, air_path_angles
from archimedes.tree import field, struct

__all__ = ["FlightState", "Surroundings"]


@struct
class FlightState:
    """Position and motion of a vehicle in the terms of flight.

    Parameters
    ----------
    lat : float
        Geodetic latitude in rad.
    lon : float
        Longitude in rad.
    alt : float
        Altitude in m.
    v_NED : array (3,)
        Velocity in m/s relative to the ground: north, east, down.
    rpy : array (3,)
        Roll, pitch and yaw in rad relative to north-east-down.
    w_B : array (3,)
        Angular velocity in rad/s relative to inertial axes, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlightState
    >>> v_NED, rpy = np.array([170.0, 0.0, 0.0]), np.zeros(3)
    >>> level = FlightState(0.6, -1.3, 3000.0, v_NED, rpy, np.zeros(3))
    >>> level.replace(alt=5000.0).alt
    5000.0
    """

    lat: Any = field(units="rad")
    lon: Any = field(units="rad")
    alt: Any = field(units="m")
    v_NED: Any = field(units="m/s")
    rpy: Any = field(units="rad")
    w_B: Any = field(units="rad/s")


@struct
class Surroundings:
    """Air and gravity at the vehicle, and its motion relative to the air.

    Parameters
    ----------
    air : Air
        State of the air.
    alt : float
        Altitude in m.
    v_air_B : array (3,)
        Velocity through the air in m/s, in body axes.
    w_air_B : array (3,)
        Angular velocity relative to the Earth in rad/s, in body axes.
    g_B : array (3,)
        Gravitational attraction in m/s^2, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import FlatEarth, FlightState
    >>> level = FlightState(0, 0, 0.0, np.array([100.0, 0, 0]), np.zeros(3), np.zeros(3))
    >>> world = FlatEarth()
    >>> around = world.surroundings(0.0, world.state(level))
    >>> float(around.airspeed), round(float(around.mach), 3), round(float(around.dynamic_pressure))
    (100.0, 0.294, 6125)
    """

    air: Air = field()
    alt: Any = field(units="m")
    v_air_B: Any = field(units="m/s")
    w_air_B: Any = field(units="rad/s")
    g_B: Any = field(units="m/s^2")

    @property
    def airspeed(self) -> Any:
        """True airspeed in m/s; its derivative at rest is zero."""
        v2 = np.sum(self.v_air_B * self.v_air_B, axis=-1)
        still = v2 == 0.0
        return np.where(still, 0.0, np.sqrt(np.where(still, 1.0, v2)))

    @property
    def mach(self) -> Any:
        """Mach number."""
        return self.airspeed / self.air.speed_of_sound

    @property
    def dynamic_pressure(self) -> Any:
        """Dynamic pressure in Pa."""
        return 0.5 * self.air.density * np.sum(self.v_air_B * self.v_air_B, axis=-1)

    @property
    def angles(self) -> tuple[Any, Any]:
        """Angle of attack and of sideslip in rad."""
        return air_path_angles(self.v_air_B)
