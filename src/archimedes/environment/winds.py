"""Winds: callables ``v_NED = wind(t, where)``, in m/s, the velocity of the air over the ground.

`where` is an altitude in m (a number, or an array of any shape that does not end in 3) or a
position p_E (..., 3) in Earth-fixed axes, whose height is taken. Components are north, east and
down: a wind "from the west" blows east and has a positive second component. Winds add:
``Winds((shear, gust))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_increasing, check_struct, check_vector, concrete
from archimedes.environment.geodesy import ecef_to_geodetic
from archimedes.portable_numpy import log
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar

__all__ = ["ConstantWind", "LinearShear", "LogarithmicShear", "OneCosineGust", "TableWind", "Winds"]

#: Positions closer to the Earth's centre than this are altitudes in an array of three.
_NOT_A_POSITION = 1e6


def altitude_of(where: Array) -> Any:
    """Return altitudes in m for altitudes, or for positions p_E (..., 3)."""
    where = as_array(where, "where")
    if where.ndim == 0 or where.shape[-1] != 3:
        return where
    values = concrete(where)
    if values is not None and np.any(np.linalg.norm(values, axis=-1) < _NOT_A_POSITION):
        raise ValueError(
            "where has a last axis of 3 and is taken as a position in m from the Earth's centre, "
            f"but lies within 1000 km of it: {values}; for altitudes pass them one by one, or "
            "through arc.vmap"
        )
    # Where values are not known yet, three altitudes give nan and not some wind.
    near = np.sum(where * where, axis=-1) < _NOT_A_POSITION**2
    return np.where(near, np.nan, ecef_to_geodetic(where)[2])


def _blow(speed: Scalar, direction: Scalar) -> Any:
    """Return the velocity (..., 3) of a wind of some speed that blows towards `direction`."""
    speed, direction = np.broadcast_arrays(speed, as_array(direction, "direction"))
    north, east = speed * np.cos(direction), speed * np.sin(direction)
    return np.stack([north, east, np.zeros_like(speed)], axis=-1)


@struct
class ConstantWind:
    """The same wind everywhere.

    Parameters
    ----------
    v_NED : array (3,), optional
        Velocity of the air in m/s: north, east, down. Zero by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ConstantWind
    >>> ConstantWind(np.array([0.0, 6.0, 0.0]))(0.0, 1000.0)
    array([0., 6., 0.])
    """

    v_NED: Any = field(units="m/s", default_factory=lambda: np.zeros(3))

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the wind (..., 3) at time `t` and place `where`."""
        v = check_vector(self.v_NED, 3, "ConstantWind.v_NED")
        return v + np.zeros_like(altitude_of(where))[..., None]


@struct
class TableWind:
    """A wind that is tabulated by altitude: linear in between, constant beyond the ends.

    Parameters
    ----------
    alt : array (n,)
        Altitudes in m, increasing.
    v_NED : array (n, 3)
        Velocities of the air in m/s at these altitudes: north, east, down.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import TableWind
    >>> wind = TableWind(alt=[0.0, 1000.0], v_NED=[[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])
    >>> wind(0.0, 250.0)
    array([2.5, 0. , 0. ])
    """

    alt: Any = field(units="m")
    v_NED: Any = field(units="m/s")

    def __post_init__(self) -> None:
        """Check shapes, and that altitudes increase where they are known."""
        alt, v = as_array(self.alt, "alt"), as_array(self.v_NED, "v_NED")
        if alt.ndim != 1 or v.shape != (*alt.shape, 3):
            raise ValueError(
                f"TableWind: alt must be (n,) and v_NED (n, 3), got {alt.shape} and {v.shape}"
            )
        check_increasing(alt, "TableWind.alt", least=1)

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the wind (..., 3) at time `t` and place `where`."""
        alt, v = as_array(self.alt), as_array(self.v_NED)
        height = altitude_of(where)
        return np.stack([np.interp(height, alt, v[:, k]) for k in range(3)], axis=-1)


@struct
class LinearShear:
    """A wind that changes linearly with altitude: ``v_NED = v_0 + gradient * (alt - reference)``.

    Parameters
    ----------
    v_0 : array (3,), optional
        Velocity of the air in m/s at the reference altitude: north, east, down. Zero by default.
    gradient : array (3,), optional
        Change of the velocity with altitude in 1/s. Zero by default.
    reference : float, optional
        Reference altitude in m.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import LinearShear
    >>> wind = LinearShear(v_0=np.array([2.0, 0.0, 0.0]), gradient=np.array([0.01, 0.0, 0.0]))
    >>> wind(0.0, 500.0)
    array([7., 0., 0.])
    """

    v_0: Any = field(units="m/s", default_factory=lambda: np.zeros(3))
    gradient: Any = field(units="1/s", default_factory=lambda: np.zeros(3))
    reference: float = field(units="m", default=0.0)

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the wind (..., 3) at time `t` and place `where`."""
        v_0 = check_vector(self.v_0, 3, "LinearShear.v_0")
        gradient = check_vector(self.gradient, 3, "LinearShear.gradient")
        return v_0 + gradient * (altitude_of(where) - self.reference)[..., None]


@struct
class LogarithmicShear:
    """The boundary layer over rough ground (MIL-F-8785C, section 3.7.3.4).

    Below twice the roughness the wind falls linearly to zero at the ground.

    Parameters
    ----------
    speed : float
        Wind speed in m/s at the reference height.
    direction : float, optional
        Direction in rad from north that the wind blows to.
    reference : float, optional
        Reference height in m, 20 ft by default.
    roughness : float, optional
        Roughness length in m: 0.15 ft near an airfield, 2 ft (default) elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import LogarithmicShear
    >>> wind = LogarithmicShear(speed=5.0, direction=np.pi / 2)
    >>> wind(0.0, 50.0).round(3)
    array([0.  , 9.57, 0.  ])
    """

    speed: float = field(units="m/s")
    direction: float = field(units="rad", default=0.0)
    reference: float = field(units="m", default=6.096)
    roughness: float = field(units="m", default=0.6096)

    def __post_init__(self) -> None:
        """Check the lengths where they are known."""
        check_struct(self, positive="reference roughness")

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the wind (..., 3) at time `t` and place `where`, altitudes over the ground."""
        height = altitude_of(where)
        low = 2.0 * self.roughness
        whole = log(self.reference / self.roughness)
        shape = np.log(np.maximum(height, low) / self.roughness) / whole
        ramp = np.clip(height / low, 0.0, 1.0)
        return _blow(self.speed * shape * ramp, self.direction)


@struct
class OneCosineGust:
    """A single gust in time, which grows as ``(1 - cos) / 2``.

    Parameters
    ----------
    v_NED : array (3,)
        Full gust in m/s: north, east, down.
    start : float, optional
        Time in s at which the gust begins.
    rise : float, optional
        Time in s that it takes to grow.
    hold : bool, optional
        Stay at the full gust. With False it decays again in the same time: the discrete gust of the
        airworthiness rules (CS 25.341), whose gradient distance is the airspeed times `rise`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import OneCosineGust
    >>> gust = OneCosineGust(v_NED=np.array([0.0, 8.0, 0.0]), start=1.0, rise=2.0)
    >>> gust(2.0, 0.0).round(6)
    array([0., 4., 0.])
    """

    v_NED: Any = field(units="m/s")
    start: float = field(units="s", default=0.0)
    rise: float = field(units="s", default=1.0)
    hold: bool = field(static=True, default=True)

    def __post_init__(self) -> None:
        """Check the rise time where it is known."""
        check_struct(self, positive="rise")

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the wind (..., 3) at time `t`; it is the same everywhere."""
        s = np.clip((as_array(t, "t") - self.start) / self.rise, 0.0, 1.0 if self.hold else 2.0)
        size = 0.5 * (1.0 - np.cos(np.pi * s)) + np.zeros_like(altitude_of(where))
        return size[..., None] * check_vector(self.v_NED, 3, "OneCosineGust.v_NED")


@struct
class Winds:
    """Several winds at once: their sum.

    Parameters
    ----------
    parts : sequence, optional
        Wind models, which are added up.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import ConstantWind, LinearShear, Winds
    >>> base = ConstantWind(np.array([3.0, 0.0, 0.0]))
    >>> shear = LinearShear(np.zeros(3), np.array([0.0, 0.01, 0.0]))
    >>> Winds((base, shear))(0.0, 100.0)
    array([3., 1., 0.])
    """

    parts: Any = field(default=())

    def __call__(self, t: Scalar, where: Array) -> Any:
        """Return the sum of the winds (..., 3) at time `t` and place `where`."""
        total = np.zeros(3) + np.zeros_like(altitude_of(where))[..., None]
        for part in self.parts:
            total = total + part(t, where)
        return total
