"""The U.S. Standard Atmosphere 1976, from 5 km below sea level to 1,000 km above.

Legend: z is geometric height, H geopotential height, both in m; T_M the molecular-scale
temperature. Up to 86 km the atmosphere is made of seven layers in which T_M is linear in H; above,
temperature is given piecewise and pressure comes from the diffusion of six species.
Source: U.S. Standard Atmosphere, 1976, NOAA-S/T 76-1562.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, concrete
from archimedes.environment import smooth_atmosphere_table as smooth
from archimedes.environment import upper_atmosphere_table as table
from archimedes.environment.air import GAS_CONSTANT, Air
from archimedes.function import interpolant
from archimedes.tree import field, struct

__all__ = ["SmoothAtmosphere", "StandardAtmosphere1976"]

EARTH_RADIUS = 6356766.0
LOWEST, TOP_OF_LAYERS, HIGHEST = -5000.0, 86000.0, 1e6
#: g0 M0 / R* in K/m: how quickly pressure falls with geopotential height at 1 K.
HYDROSTATIC = 9.80665 / GAS_CONSTANT

#: Base of each layer: geopotential height in m, gradient of T_M in K/m (table 4).
LAYERS = (
    (0.0, -6.5e-3),
    (11000.0, 0.0),
    (20000.0, 1e-3),
    (32000.0, 2.8e-3),
    (47000.0, 0.0),
    (51000.0, -2.8e-3),
    (71000.0, -2e-3),
)

#: Ratio of the molar mass to that at sea level between 80 and 86 km, every 500 m (table 8).
MASS_RATIO_HEIGHTS = np.arange(80000.0, 86001.0, 500.0)
MASS_RATIOS = np.array(
    [
        *(1.0, 0.999996, 0.999989, 0.999971, 0.999941, 0.999909, 0.999870),
        *(0.999829, 0.999786, 0.999741, 0.999694, 0.999641, 0.999579),
    ]
)


BASE_HEIGHT = np.array([base for base, _ in LAYERS])
GRADIENT = np.array([slope for _, slope in LAYERS])
#: In K and Pa at the base of each layer, from sea level up (equations 23, 33a and 33b).
BASE_TEMPERATURE = np.array([288.15, 216.65, 216.65, 228.65, 270.65, 270.65, 214.65])
BASE_PRESSURE = np.array(
    [
        *(101325.0, 22632.06397346293, 5474.88866967778, 868.0186847552274),
        *(110.90630555496588, 66.93887311868727, 3.9564204280407287),
    ]
)

_log_pressure = interpolant(table.HEIGHT, table.LOG_PRESSURE, method="cubic")
_molar_mass = interpolant(table.HEIGHT, table.MOLAR_MASS, method="cubic")


def geopotential_height(z: Any) -> Any:
    """Return the geopotential height in m for a geometric height in m, as USSA 1976 defines it."""
    return EARTH_RADIUS * z / (EARTH_RADIUS + z)


def layered(z: Any) -> tuple[Any, Any, Any]:
    """Return temperature, pressure and density up to 86 km."""
    H = geopotential_height(z)
    layer = sum((base <= H).astype(np.int64) for base in BASE_HEIGHT[1:])
    T0, slope = np.take(BASE_TEMPERATURE, layer), np.take(GRADIENT, layer)
    rise = H - np.take(BASE_HEIGHT, layer)
    T_M = T0 + slope * rise
    # The integral of dH / T_M over the layer, rise / T0 * log1p(x) / x, with its limit at x = 0.
    x = slope * rise / T0
    flat = slope == 0.0
    safe = np.where(flat, 1.0, x)
    safe = np.where(safe == 0.0, 1.0, safe)
    shrink = np.where(flat | (x == 0.0), 1.0 - 0.5 * x, np.log1p(safe) / safe)
    p = np.take(BASE_PRESSURE, layer) * np.exp(-HYDROSTATIC * shrink * rise / T0)
    T = T_M * np.interp(z, MASS_RATIO_HEIGHTS, MASS_RATIOS)
    return T, p, p / (GAS_CONSTANT * T_M)


def upper_temperature(z: Any) -> Any:
    """Return the kinetic temperature in K from 86 to 1,000 km (section 1.2.5)."""
    km = 1e-3 * z
    low = np.clip(km, 91.0, 110.0)
    ellipse = 263.1905 - 76.3232 * np.sqrt(1.0 - ((low - 91.0) / 19.9429) ** 2)
    high = np.maximum(km, 120.0)
    xi = (high - 120.0) * (6356.766 + 120.0) / (6356.766 + high)
    exponential = 1000.0 - 640.0 * np.exp(-0.01875 * xi)
    linear = 240.0 + 12.0 * (km - 110.0)
    return np.where(
        km < 91.0,
        186.8673,
        np.where(km < 110.0, ellipse, np.where(km < 120.0, linear, exponential)),
    )


#: Pressure at the top of the layers, where the upper part takes over.
TOP_PRESSURE = 0.3733804618310577


def diffusive(z: Any) -> tuple[Any, Any, Any]:
    """Return temperature, pressure and density from 86 km up."""
    T, km = upper_temperature(z), 1e-3 * z
    p = TOP_PRESSURE * np.exp(_log_pressure(km))
    return T, p, p * _molar_mass(km) / (8314.32 * T)


#: In K; neither atmosphere is anywhere colder: 186.87 K near 90 km, 186.70 K where it is smooth.
COLDEST = 186.6


def check_temperature_offset(offset: Any, name: str) -> None:
    """Raise where a known offset takes the coldest air to absolute zero, or is not finite."""
    values = concrete(offset)
    if values is not None and not np.all((values > -COLDEST) & np.isfinite(values)):
        raise ValueError(
            f"{name} must be finite and above -{COLDEST} K, got {offset}: it is added to the "
            "standard temperature, which is 288.15 K at sea level and 187 K at its coldest, near "
            "90 km. A temperature in degrees Celsius at sea level is the offset plus 15"
        )


def warmed(T: Any, p: Any, rho: Any, offset: Any) -> Air:
    """Return the air with its temperature raised at the same pressure: a hot or cold day."""
    warm = T + offset
    if concrete(offset) is None:  # a known offset has been checked
        warm = np.where(warm > 0.0, warm, np.nan)
    return Air.of(warm, p, rho * T / warm)


def check_altitude(alt: Any) -> Any:
    """Return altitudes as an array within the range of the model; beyond it the ends hold."""
    alt = as_array(alt, "alt")
    check_finite(alt, "alt")
    return np.clip(alt, LOWEST, HIGHEST)


@struct
class StandardAtmosphere1976:
    """The U.S. Standard Atmosphere 1976, as a function of the geometric altitude in m.

    Below -5 km and above 1,000 km the values at the ends hold. Speed of sound and viscosity are
    defined up to 86 km; above, the same formulas are continued.

    Parameters
    ----------
    temperature_offset : float, optional
        Temperature above the standard in K, for a hot or cold day; above -186.6 K. The pressure
        stays that of the standard at each altitude, and the density follows. Inside a compiled
        function, where the offset may not be known yet, air at or below absolute zero is nan.

    Examples
    --------
    >>> from archimedes.environment import StandardAtmosphere1976
    >>> air = StandardAtmosphere1976()(10000.0)
    >>> print(f"{air.temperature:.3f} K, {air.pressure:.1f} Pa, {air.density:.5f} kg/m^3")
    223.252 K, 26499.9 Pa, 0.41351 kg/m^3
    """

    temperature_offset: float = field(units="K", default=0.0)

    def __post_init__(self) -> None:
        """Check the offset where it is known."""
        check_temperature_offset(
            self.temperature_offset, "StandardAtmosphere1976.temperature_offset"
        )

    def __call__(self, alt: Any) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = check_altitude(alt)
        low = layered(np.minimum(z, TOP_OF_LAYERS))
        high = diffusive(np.maximum(z, TOP_OF_LAYERS))
        T, p, rho = (np.where(z < TOP_OF_LAYERS, a, b) for a, b in zip(low, high))
        return warmed(T, p, rho, self.temperature_offset)


_temperature = interpolant(smooth.HEIGHT, smooth.TEMPERATURE, method="cubic")
_smooth_log_pressure = interpolant(smooth.HEIGHT, smooth.LOG_PRESSURE, method="cubic")
_smooth_log_density = interpolant(smooth.HEIGHT, smooth.LOG_DENSITY, method="cubic")


@struct
class SmoothAtmosphere:
    """A smooth stand-in for the standard atmosphere, for optimisers: not the standard itself.

    Twice continuously differentiable cubic splines through `StandardAtmosphere1976` at whole
    kilometres from -5 to 100 km, held beyond. It differs from the standard by up to 0.7 K and 0.3 %
    in density where the standard has a corner.

    Parameters
    ----------
    temperature_offset : float, optional
        Temperature above the standard in K, for a hot or cold day. 0 by default.

    Examples
    --------
    >>> from archimedes.environment import SmoothAtmosphere
    >>> round(float(SmoothAtmosphere()(5000.0).density), 3)
    0.736
    """

    temperature_offset: float = field(units="K", default=0.0)

    def __post_init__(self) -> None:
        """Check the offset where it is known."""
        check_temperature_offset(self.temperature_offset, "SmoothAtmosphere.temperature_offset")

    def __call__(self, alt: Any) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = as_array(alt, "alt")
        check_finite(z, "alt")
        T, p = _temperature(z), np.exp(_smooth_log_pressure(z))
        return warmed(T, p, np.exp(_smooth_log_density(z)), self.temperature_offset)
