"""What an atmosphere tells of the air at a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.tree import field, struct

__all__ = ["GAMMA", "GAS_CONSTANT", "Air"]

#: Ratio of specific heats of air, and its gas constant in J/(kg K), both of USSA 1976.
GAMMA = 1.4
GAS_CONSTANT = 8314.32 / 28.9644
#: Sutherland's constants of USSA 1976: kg/(s m K^(1/2)) and K.
_SUTHERLAND = (1.458e-6, 110.4)


@struct
class Air:
    """State of the air: scalars or arrays of one shape.

    Parameters
    ----------
    temperature : array_like
        Temperature in K.
    pressure : array_like
        Pressure in Pa.
    density : array_like
        Density in kg/m^3.
    speed_of_sound : array_like
        Speed of sound in m/s.
    dynamic_viscosity : array_like
        Dynamic viscosity in Pa s.

    Examples
    --------
    >>> from archimedes.environment import StandardAtmosphere1976
    >>> air = StandardAtmosphere1976()(0.0)
    >>> round(float(air.density), 4), round(float(air.pressure), 1)
    (1.225, 101325.0)
    """

    temperature: Any = field(units="K")
    pressure: Any = field(units="Pa")
    density: Any = field(units="kg/m^3")
    speed_of_sound: Any = field(units="m/s")
    dynamic_viscosity: Any = field(units="Pa s")

    @classmethod
    def of(cls, temperature: Any, pressure: Any, density: Any) -> Air:
        """Return the state of a perfect gas, from temperature, pressure and density.

        Parameters
        ----------
        temperature : array_like
            Temperature in K.
        pressure : array_like
            Pressure in Pa.
        density : array_like
            Density in kg/m^3.
        """
        beta, S = _SUTHERLAND
        return cls(
            temperature=temperature,
            pressure=pressure,
            density=density,
            speed_of_sound=np.sqrt(GAMMA * pressure / density),
            dynamic_viscosity=beta * temperature * np.sqrt(temperature) / (temperature + S),
        )
