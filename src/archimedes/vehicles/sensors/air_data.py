"""Air data: static and impact pressure, temperature, and the angles of the flow.

Impact pressure is that of isentropic flow below Mach 1; behind the shock of supersonic flight the
model does not hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import check_struct
from archimedes.tree import field, struct
from archimedes.typing import Array
from archimedes.vehicles.worlds import Surroundings

__all__ = ["AirData"]


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
