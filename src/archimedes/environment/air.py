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
        """Make the rest of temperature, pressure and density, for a perfect gas."""
        beta, S = _SUTHERLAND
        return cls(
            temperature=temperature,
            pressure=pressure,
            density=density,
            speed_of_sound=np.sqrt(GAMMA * pressure / density),
            dynamic_viscosity=beta * temperature * np.sqrt(temperature) / (temperature + S),
        )
