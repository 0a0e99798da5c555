"""An atmosphere of one temperature, whose density falls exponentially with height."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_positive
from archimedes.environment.air import GAS_CONSTANT, Air
from archimedes.tree import field, struct

__all__ = ["ExponentialAtmosphere"]


@struct
class ExponentialAtmosphere:
    """Density ``density * exp(-alt / scale_height)`` at a constant temperature.

    Parameters
    ----------
    density : float, optional
        Density at altitude zero in kg/m^3.
    scale_height : float, optional
        Height in m over which the density falls by a factor of e.
    temperature : float, optional
        Temperature in K at every altitude.

    Examples
    --------
    >>> from archimedes.environment import ExponentialAtmosphere
    >>> round(float(ExponentialAtmosphere()(8500.0).density), 5)
    0.45065
    """

    density: float = field(units="kg/m^3", default=1.225)
    scale_height: float = field(units="m", default=8500.0)
    temperature: float = field(units="K", default=288.15)

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_positive(self.density, "ExponentialAtmosphere.density", "kg/m^3")
        check_positive(self.scale_height, "ExponentialAtmosphere.scale_height", "m")
        check_positive(self.temperature, "ExponentialAtmosphere.temperature", "K")

    def __call__(self, alt: Any) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = as_array(alt, "alt")
        check_finite(z, "alt")
        rho = self.density * np.exp(-z / self.scale_height)
        T = self.temperature + np.zeros_like(rho)
        return Air.of(T, rho * GAS_CONSTANT * T, rho)
