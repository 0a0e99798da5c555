"""Sensors with three axes: an inertial measurement unit and a magnetometer, and their errors.

    reading = (1 + diag(scale) + misalignment) v + bias + drift + noise / sqrt(dt) n

with n standard normal numbers. Drift is a state that walks randomly; everything else is constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array, check_struct
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar, Tree, Vec3
from archimedes.vehicles.parts.actuators import limited

__all__ = ["Imu", "Magnetometer", "TriadErrors"]


@struct
class TriadErrors:
    """Errors of three sensors along the body axes.

    Parameters
    ----------
    bias : array (3,), optional
        Constant bias.
    scale : array (3,), optional
        Errors of scale.
    misalignment : array (3, 3), optional
        Cross-coupling of the axes.
    noise : float, optional
        Noise density per root hertz: the standard deviation is ``noise / sqrt(dt)`` for readings
        every dt seconds.
    walk : float, optional
        Random walk per root second: the drift grows by ``walk * sqrt(dt)``.
    limit : float, optional
        Largest reading. inf by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import TriadErrors
    >>> TriadErrors(bias=np.array([0.01, 0.0, 0.0]), noise=1e-3).bias
    array([0.01, 0.  , 0.  ])
    """

    bias: Any = field(default_factory=lambda: np.zeros(3))
    scale: Any = field(default_factory=lambda: np.zeros(3))
    misalignment: Any = field(default_factory=lambda: np.zeros((3, 3)))
    noise: Any = 0.0
    walk: Any = 0.0
    limit: Any = np.inf

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_struct(self, not_negative="noise walk")

    def initial(self) -> Any:
        """Return the drift (3,) at the start."""
        return np.zeros(3)

    def step(self, drift: Vec3, vector: Vec3, key: Array, dt: Scalar) -> tuple[Any, Any]:
        """Return the next drift and the reading of a true vector.

        Parameters
        ----------
        drift : array (3,)
            Drift.
        vector : array (3,)
            True vector.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        n = random.normal(key, (2, 3))
        drift = drift + self.walk * np.sqrt(dt) * n[0]
        turned = vector + as_array(self.scale) * vector + as_array(self.misalignment) @ vector
        reading = turned + as_array(self.bias) + drift + self.noise / np.sqrt(dt) * n[1]
        return drift, limited(reading, self.limit)


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

    def step(
        self, x: Tree, f_B: Vec3, w_B: Vec3, dw_B: Vec3, key: Array, dt: Scalar
    ) -> tuple[Any, Any]:
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


@struct
class Magnetometer:
    """A magnetometer, which reads the magnetic field in body axes.

    Parameters
    ----------
    errors : TriadErrors, optional
        Errors: hard iron is ``errors.bias``, soft iron the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import Magnetometer, TriadErrors
    >>> Magnetometer(TriadErrors(bias=np.array([1e-7, 0.0, 0.0]))).errors.bias
    array([1.e-07, 0.e+00, 0.e+00])
    """

    errors: TriadErrors = field(default_factory=TriadErrors)

    def initial(self) -> Any:
        """Return the drift (3,) at the start."""
        return self.errors.initial()

    def step(self, drift: Vec3, B_B: Vec3, key: Array, dt: Scalar) -> tuple[Any, Any]:
        """Return the next drift and a reading in T.

        Parameters
        ----------
        drift : array (3,)
            Drift.
        B_B : array (3,)
            Magnetic field in T, in body axes.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        return self.errors.step(drift, B_B, key, dt)
