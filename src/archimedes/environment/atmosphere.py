"""Atmospheres: the U.S. Standard Atmosphere 1976, a smooth stand-in, and an exponential one.

Legend: z is geometric height, H geopotential height, both in m; T_M the molecular-scale
temperature. Up to 86 km the standard atmosphere is made of seven layers in which T_M is linear in
H; above, temperature is given piecewise and pressure comes from the diffusion of six species.
Source: U.S. Standard Atmosphere, 1976, NOAA-S/T 76-1562.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from archimedes.checks import as_finite, check_struct, concrete
from archimedes.function import interpolant
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar

__all__ = ["Air", "ExponentialAtmosphere", "SmoothAtmosphere", "StandardAtmosphere1976"]

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
    def of(cls, temperature: Scalar, pressure: Scalar, density: Scalar) -> Air:
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
        speed_of_sound = np.sqrt(GAMMA * pressure / density)
        viscosity = beta * temperature * np.sqrt(temperature) / (temperature + S)
        return cls(temperature, pressure, density, speed_of_sound, viscosity)


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
        check_struct(self, positive="density scale_height temperature")

    def __call__(self, alt: ArrayLike) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = as_finite(alt, "alt")
        rho = self.density * np.exp(-z / self.scale_height)
        T = self.temperature + np.zeros_like(rho)
        # The speed of sound is that of the gas, also where no density is left.
        some = np.where(rho == 0.0, 1.0, rho)
        air: Any = Air.of(T, some * GAS_CONSTANT * T, some)
        return air.replace(pressure=rho * GAS_CONSTANT * T, density=rho)


EARTH_RADIUS = 6356766.0
#: What exponentials, which are plain numbers, are multiples of.
PASCAL = KG_PER_M3 = 1.0
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


def read_columns(name: str) -> list[np.ndarray]:
    """Return the columns of a table that lies beside this module."""
    text = resources.files("archimedes.environment").joinpath(name).read_text("utf-8")
    return [*np.loadtxt(text.splitlines(), unpack=True)]


def read_splines(name: str) -> list[Any]:
    """Return cubic splines over the first column of such a table."""
    height, *columns = read_columns(name)
    return [interpolant(height, column, method="cubic") for column in columns]


_log_pressure, _molar_mass = read_splines("upper_atmosphere.txt")


def geopotential_height(z: Scalar) -> Any:
    """Return the geopotential height in m for a geometric height in m, as USSA 1976 defines it."""
    return EARTH_RADIUS * z / (EARTH_RADIUS + z)


def layer_state(z: Scalar) -> tuple[Any, Any, Any]:
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


def upper_temperature(z: Scalar) -> Any:
    """Return the kinetic temperature in K from 86 to 1,000 km (section 1.2.5)."""
    km = 1e-3 * z
    low = np.clip(km, 91.0, 110.0)
    ellipse = 263.1905 - 76.3232 * np.sqrt(1.0 - ((low - 91.0) / 19.9429) ** 2)
    high = np.maximum(km, 120.0)
    xi = (high - 120.0) * (6356.766 + 120.0) / (6356.766 + high)
    exponential = 1000.0 - 640.0 * np.exp(-0.01875 * xi)
    linear = 240.0 + 12.0 * (km - 110.0)
    above = np.where(km < 110.0, ellipse, np.where(km < 120.0, linear, exponential))
    return np.where(km < 91.0, 186.8673, above)


#: Pressure at the top of the layers, where the upper part takes over.
TOP_PRESSURE = 0.3733804618310577


def diffusive(z: Scalar) -> tuple[Any, Any, Any]:
    """Return temperature, pressure and density from 86 km up."""
    T, km = upper_temperature(z), 1e-3 * z
    p = TOP_PRESSURE * np.exp(_log_pressure(km))
    return T, p, p * _molar_mass(km) / (8314.32 * T)


#: In K; neither atmosphere is anywhere colder: 186.87 K near 90 km, 186.70 K where it is smooth.
COLDEST = 186.6


@struct
class OffsetAtmosphere:
    """An atmosphere whose temperature may be raised at the same pressure: a hot or cold day."""

    temperature_offset: Scalar = field(units="K", default=0.0)

    def __post_init__(self) -> None:
        """Raise if a known offset takes the coldest air to absolute zero, or is not finite."""
        values = concrete(self.temperature_offset)
        if values is not None and not np.all((values > -COLDEST) & np.isfinite(values)):
            raise ValueError(
                f"{type(self).__name__}.temperature_offset must be finite and above -{COLDEST} K, "
                f"got {values}: it is added to the standard temperature, which is 288.15 K at sea "
                "level and 187 K at its coldest, near 90 km. A temperature in degrees Celsius at "
                "sea level is the offset plus 15"
            )

    def shift_temperature(self, T: Scalar, p: Scalar, rho: Scalar) -> Air:
        """Return the air with its temperature raised.

        Parameters
        ----------
        T : float
            Temperature of the standard in K.
        p : float
            Pressure in Pa.
        rho : float
            Density of the standard in kg/m^3.
        """
        warm = T + self.temperature_offset
        if concrete(self.temperature_offset) is None:  # a known offset has been checked
            warm = np.where(warm > 0.0, warm, np.nan)
        return Air.of(warm, p, rho * T / warm)


@struct
class StandardAtmosphere1976(OffsetAtmosphere):
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

    def __call__(self, alt: ArrayLike) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = np.clip(as_finite(alt, "alt"), LOWEST, HIGHEST)
        low = layer_state(np.minimum(z, TOP_OF_LAYERS))
        high = diffusive(np.maximum(z, TOP_OF_LAYERS))
        T, p, rho = (np.where(z < TOP_OF_LAYERS, a, b) for a, b in zip(low, high))
        return self.shift_temperature(T, p, rho)


_temperature, _smooth_log_pressure, _smooth_log_density = read_splines("smooth_atmosphere.txt")


@struct
class SmoothAtmosphere(OffsetAtmosphere):
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

    def __call__(self, alt: ArrayLike) -> Air:
        """Return the air at altitudes `alt` in m."""
        z = as_finite(alt, "alt")
        rho = KG_PER_M3 * np.exp(_smooth_log_density(z))
        p = PASCAL * np.exp(_smooth_log_pressure(z))
        return self.shift_temperature(_temperature(z), p, rho)
