"""A satellite-navigation receiver and a star tracker.

The receiver gives position and velocity with slow and fast errors, the star tracker the attitude
itself with a small rotation as error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array, check_struct
from archimedes.environment import WGS84, ecef_to_geodetic, ned
from archimedes.spatial import Quaternion, quaternion_exp, quaternion_multiply
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar, Vec3

__all__ = ["Gnss", "StarTracker"]


@struct
class Gnss:
    """A satellite navigation receiver: position and velocity in Earth-fixed axes.

    Parameters
    ----------
    wander : array (3,), optional
        Standard deviation in m of the slow error of the position: north, east, down.
    time_constant : float, optional
        Correlation time of the slow error in s.
    noise : array (3,), optional
        Standard deviation in m of the position, new in each reading.
    velocity_noise : array (3,), optional
        Standard deviation in m/s of the velocity, new in each reading.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import Gnss
    >>> Gnss(noise=np.array([1.0, 1.0, 2.0])).noise
    array([1., 1., 2.])
    """

    wander: Any = field(units="m", default_factory=lambda: np.array([1.5, 1.5, 3.0]))
    time_constant: Any = field(units="s", default=300.0)
    noise: Any = field(units="m", default_factory=lambda: np.array([0.5, 0.5, 1.0]))
    velocity_noise: Any = field(units="m/s", default_factory=lambda: np.array([0.05, 0.05, 0.1]))

    @struct
    class Reading:
        """Position and velocity relative to the Earth, in its axes.

        Parameters
        ----------
        p_E : array (3,)
            Position in m, in Earth-fixed axes.
        v_E : array (3,)
            Velocity in m/s relative to the Earth, in Earth-fixed axes.
        """

        p_E: Any = field(units="m")
        v_E: Any = field(units="m/s")

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_struct(self, "time_constant", "wander noise velocity_noise")

    def initial(self, key: Array) -> Any:
        """Return a slow error (3,), drawn from its stationary distribution.

        Parameters
        ----------
        key : array (2,)
            Random key of `arc.random`.
        """
        return as_array(self.wander) * random.normal(key, (3,))

    def step(self, error: Scalar, p_E: Vec3, v_E: Vec3, key: Array, dt: Scalar) -> tuple[Any, Any]:
        """Return the next slow error and a reading.

        Parameters
        ----------
        error : array (3,)
            Slow error in m: north, east, down.
        p_E : array (3,)
            Position in m, in Earth-fixed axes.
        v_E : array (3,)
            Velocity in m/s relative to the Earth, in Earth-fixed axes.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        n = random.normal(key, (3, 3))
        keep = np.exp(-dt / self.time_constant)
        error = keep * error + np.sqrt(1.0 - keep * keep) * as_array(self.wander) * n[0]
        lat, lon, _ = ecef_to_geodetic(p_E, WGS84)
        local = ned(lat, lon)
        off = local.rotate(error + as_array(self.noise) * n[1], inverse=True)
        fast = local.rotate(as_array(self.velocity_noise) * n[2], inverse=True)
        return error, Gnss.Reading(p_E + off, v_E + fast)


@struct
class StarTracker:
    """A star tracker, which reads the attitude.

    Parameters
    ----------
    noise : array (3,), optional
        Standard deviation in rad of the error about each body axis, largest about the line of
        sight.
    misalignment : array (3,), optional
        Constant rotation in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import StarTracker
    >>> StarTracker(noise=np.array([1e-5, 1e-5, 8e-5])).noise
    array([1.e-05, 1.e-05, 8.e-05])
    """

    noise: Any = field(units="rad", default_factory=lambda: np.array([3e-5, 3e-5, 2e-4]))
    misalignment: Any = field(units="rad", default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_struct(self, not_negative="noise")

    def measure(self, att: Any, key: Array) -> Any:
        """Return the attitude that is read, as a `Quaternion`.

        Parameters
        ----------
        att : attitude
            True attitude.
        key : array (2,)
            Random key of `arc.random`.
        """
        error = as_array(self.misalignment) + as_array(self.noise) * random.normal(key, (3,))
        true = att.as_quat().array
        return Quaternion(quaternion_multiply(true, quaternion_exp(error)))
