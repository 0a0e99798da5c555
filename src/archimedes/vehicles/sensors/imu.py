"""An inertial measurement unit: accelerometers and gyroscopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.vehicles.sensors.triad_errors import TriadErrors

__all__ = ["Imu"]


@struct
class Imu:
    """An inertial measurement unit: specific force and angular velocity in body axes.

    Parameters
    ----------
    accelerometer : TriadErrors, optional
        Errors of the accelerometers.
    gyroscope : TriadErrors, optional
        Errors of the gyroscopes.
    position : array (3,), optional
        Position in m from the origin of the body.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> from archimedes.vehicles.sensors import Imu
    >>> imu = Imu()
    >>> still = np.array([0.0, 0.0, -9.81]), np.zeros(3), np.zeros(3)
    >>> _, reading = imu.step(imu.initial(), *still, arc.random.key(0), 0.01)
    >>> reading.force
    array([ 0.  ,  0.  , -9.81])
    """

    accelerometer: TriadErrors = field(default_factory=TriadErrors)
    gyroscope: TriadErrors = field(default_factory=TriadErrors)
    position: Any = field(units="m", default_factory=lambda: np.zeros(3))

    @struct
    class State:
        """Drifts of both.

        Parameters
        ----------
        force : array (3,)
            Drift of the accelerometers in m/s^2.
        rate : array (3,)
            Drift of the gyroscopes in rad/s.
        """

        force: Any = field(units="m/s^2")
        rate: Any = field(units="rad/s")

    @struct
    class Reading:
        """Specific force (what an accelerometer feels, gravity not included) and rate.

        Parameters
        ----------
        force : array (3,)
            Specific force in m/s^2, in body axes.
        rate : array (3,)
            Angular velocity in rad/s, in body axes.
        """

        force: Any = field(units="m/s^2")
        rate: Any = field(units="rad/s")

    def initial(self) -> Any:
        """Return the state without drift."""
        return Imu.State(self.accelerometer.initial(), self.gyroscope.initial())

    def step(self, x: Any, f_B: Any, w_B: Any, dw_B: Any, key: Any, dt: Any) -> tuple[Any, Any]:
        """Return the next state and a reading.

        Parameters
        ----------
        x : Imu.State
            State.
        f_B : array (3,)
            Force without gravity divided by mass, at the origin, in m/s^2, in body axes.
        w_B : array (3,)
            Angular velocity in rad/s, in body axes.
        dw_B : array (3,)
            Angular acceleration in rad/s^2, in body axes.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        keys, r = random.split(key, 2), as_array(self.position)
        f_B = f_B + cross(dw_B, r) + cross(w_B, cross(w_B, r))
        force, felt = self.accelerometer.step(x.force, f_B, keys[0], dt)
        rate, turned = self.gyroscope.step(x.rate, w_B, keys[1], dt)
        return Imu.State(force, rate), Imu.Reading(felt, turned)
