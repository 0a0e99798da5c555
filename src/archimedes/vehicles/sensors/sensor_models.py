"""Sensors and their errors: inertial, magnetic, air data, satellite navigation, stars.

Sensors with three axes (`TriadErrors`) read

    reading = (1 + diag(scale) + misalignment) v + bias + drift + noise / sqrt(dt) n

with n standard normal numbers. Drift is a state that walks randomly; everything else is constant.
The impact pressure of air data is that of isentropic flow below Mach 1; behind the shock of
supersonic flight the model does not hold. The receiver of satellite navigation gives position and
velocity with slow and fast errors, the star tracker the attitude itself with a small rotation as
error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array, check_struct
from archimedes.environment import WGS84, ecef_to_geodetic, ned
from archimedes.spatial import Quaternion, quaternion_exp, quaternion_multiply
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar, Tree, Vec3
from archimedes.vehicles.parts.actuators import limited
from archimedes.vehicles.worlds import Surroundings

__all__ = ["AirData", "Gnss", "Imu", "Magnetometer", "StarTracker", "TriadErrors"]


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
    scale: Any = field(units="", default_factory=lambda: np.zeros(3))
    misalignment: Any = field(units="rad", default_factory=lambda: np.zeros((3, 3)))
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


@struct
class AirData:
    """Air data sensors, with constant biases and noise that is new in each reading.

    Parameters
    ----------
    pressure_noise : float, optional
        Standard deviation of the pressures in Pa, new in each reading.
    pressure_bias : float, optional
        Bias of the pressures in Pa.
    angle_noise : float, optional
        Standard deviation of the flow angles in rad.
    angle_bias : float, optional
        Bias of the flow angles in rad.
    temperature_noise : float, optional
        Standard deviation of the temperature in K.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import AirData
    >>> AirData(pressure_noise=2.0).pressure_noise
    2.0
    """

    pressure_noise: Any = field(units="Pa", default=5.0)
    pressure_bias: Any = field(units="Pa", default=0.0)
    angle_noise: Any = field(units="rad", default=2e-3)
    angle_bias: Any = field(units="rad", default=0.0)
    temperature_noise: Any = field(units="K", default=0.3)

    @struct
    class Reading:
        """Pressures, temperature of the air at rest, flow angles.

        Parameters
        ----------
        static_pressure : float
            Static pressure in Pa.
        impact_pressure : float
            Impact pressure in Pa.
        temperature : float
            Total temperature in K.
        alpha : float
            Angle of attack in rad.
        beta : float
            Angle of sideslip in rad.
        """

        static_pressure: Any = field(units="Pa")
        impact_pressure: Any = field(units="Pa")
        temperature: Any = field(units="K")
        alpha: Any = field(units="rad")
        beta: Any = field(units="rad")

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_struct(self, not_negative="pressure_noise angle_noise temperature_noise")

    def measure(self, around: Surroundings, key: Array) -> Any:
        """Return a reading of the surroundings of a vehicle.

        Parameters
        ----------
        around : Surroundings
            Air, and motion relative to it.
        key : array (2,)
            Random key of `arc.random`.
        """
        n = random.normal(key, (5,))
        p, mach = around.air.pressure, around.mach
        impact = p * ((1.0 + 0.2 * mach**2) ** 3.5 - 1.0)
        alpha, beta = around.angles
        return AirData.Reading(
            static_pressure=p + self.pressure_bias + self.pressure_noise * n[0],
            impact_pressure=impact + self.pressure_noise * n[1],
            temperature=around.air.temperature + self.temperature_noise * n[2],
            alpha=alpha + self.angle_bias + self.angle_noise * n[3],
            beta=beta + self.angle_bias + self.angle_noise * n[4],
        )

    @staticmethod
    def mach(reading: Any) -> Any:
        """Return the Mach number of a reading.

        Parameters
        ----------
        reading : AirData.Reading
            The reading.
        """
        ratio = np.maximum(reading.impact_pressure / reading.static_pressure, 0.0)
        return np.sqrt(5.0 * ((ratio + 1.0) ** (2.0 / 7.0) - 1.0))


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
