"""Continuous turbulence with Dryden's and von Karman's spectra, as filters of white noise.

Legend: s is time in units of L / V, the time a wave of the scale length L needs to pass at the
airspeed V; a filter is a sum of first-order lags, ``sum c_k / (lambda_k + s)``, driven by one
noise; its output is scaled to unit variance for the step that is taken, whatever its length.
Source: MIL-F-8785C, 1980, sections 3.7.2 and 3.7.3; MIL-HDBK-1797, appendix A, section 4.9.2. Von
Karman's spectra have no exact filter: the ones here follow them within 1.5 % from 0.01 to 1,000 rad
per scale length. Intensities and lengths depend on the altitude: below 1,000 ft the ground rules,
above 2,000 ft the free air, and in between values are interpolated. The specifications are in feet;
everything here is in SI.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from archimedes.checks import as_array, check_choice, check_struct, check_vector
from archimedes.environment.tables import read_tables
from archimedes.function import interpolant
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar, Vector

__all__ = ["DrydenTurbulence", "Gust", "VonKarmanTurbulence"]

FOOT = 0.3048
#: What multiplies L_v and L_w in the formulas of each specification. The handbook's lengths are
#: half of the older ones, and its spectra are written with 2 L_v and 2 L_w: the same curves.
CROSS_FACTOR = {"MIL-F-8785C": 1.0, "MIL-HDBK-1797": 2.0}
#: Scale length of the free air in ft: Dryden's and von Karman's spectra.
FREE_AIR = {"dryden": 1750.0, "von karman": 2500.0}

#: Probability that the intensity is exceeded, and the table's rows: altitude in ft, rms in ft/s
#: (MIL-F-8785C, figure 7).
EXCEEDANCE = (2e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
TABLES = read_tables("archimedes.environment", "turbulence_tables.toml")
#: The rms gust in m/s at an altitude in m that is exceeded with each probability.
CURVES = {
    p: interpolant(TABLES.INTENSITY[:, 0] * FOOT, TABLES.INTENSITY[:, k + 1] * FOOT)
    for k, p in enumerate(EXCEEDANCE)
}


def _blend(alt: Scalar, low: Scalar, high: Scalar) -> Any:
    """Go from the value at 1,000 ft to that at 2,000 ft linearly in altitude."""
    s = np.clip((alt / FOOT - 1000.0) / 1000.0, 0.0, 1.0)
    return (1.0 - s) * low + s * high


def _ground(alt: Scalar) -> tuple[Any, Any]:
    """Return the height over ground in ft, from 10 to 1,000, and the specification's divisor."""
    h = np.clip(alt / FOOT, 10.0, 1000.0)
    return h, 0.177 + 0.000823 * h


def lengths(alt: Scalar, spectrum: str, specification: str) -> tuple[Any, Any, Any]:
    """Return the scale lengths (L_u, L_v, L_w) in m at an altitude over ground in m."""
    h, divisor = _ground(alt)
    along, free = h / divisor**1.2, FREE_AIR[spectrum]
    factor = CROSS_FACTOR[specification]
    L_u = _blend(alt, along, free) * FOOT
    return L_u, L_u / factor, _blend(alt, h, free) * FOOT / factor


def intensities(alt: Scalar, wind_20ft: Scalar, probability: float) -> tuple[Any, Any, Any]:
    """Return the rms gusts (u, v, w) in m/s for the wind at 20 ft and the free air's intensity."""
    _, divisor = _ground(alt)
    vertical = 0.1 * wind_20ft
    horizontal = vertical / divisor**0.4
    free = CURVES[probability](np.maximum(alt, 2000.0 * FOOT))
    sigma_u = _blend(alt, horizontal, free)
    return sigma_u, sigma_u, _blend(alt, vertical, free)


@struct
class Gust:
    """Velocity and angular velocity of the air around a vehicle, in body axes.

    Parameters
    ----------
    v_B : array (3,)
        Velocity of the air in m/s, in body axes.
    w_B : array (3,)
        Angular velocity of the air in rad/s, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import Gust
    >>> gust = Gust(v_B=np.array([1.0, 0.0, -0.5]), w_B=np.zeros(3))
    >>> gust.v_B
    array([ 1. ,  0. , -0.5])
    """

    v_B: Any = field(units="m/s")
    w_B: Any = field(units="rad/s")


class Filter:
    """A sum of lags in scaled time: poles ``lambda_k`` and weights ``c_k``."""

    def __init__(self, poles: ArrayLike, weights: ArrayLike) -> None:
        self.poles, self.weights = np.array(poles), np.array(weights)

    def advance(self, x: Vector, noise: Vector, step: Scalar) -> tuple[Any, Any]:
        """Return the next state and the output of unit variance after a scaled time `step`.

        The noise is held over the step. The variance of the output follows from that and is divided
        out, so that it is one for any step; a step of zero (at rest) changes next to nothing.
        """
        step = np.maximum(step, 1e-12)
        decay = np.exp(-self.poles * step)
        gain = -np.expm1(-self.poles * step) / (self.poles * np.sqrt(step))
        x = decay * x + gain * noise
        c = self.weights * gain
        sums = self.poles[:, None] + self.poles
        variance = np.sum(c[:, None] * c / -np.expm1(-sums * step))
        return x, np.sum(self.weights * x) / np.sqrt(variance)


#: Dryden's cross-wind filter has a double pole at 1; split by 0.1 %, it is a sum of lags too, and
#: its spectrum changes by 1e-6.
_SPLIT = np.array([0.999, 1.001])
_CROSS = (1.0 - np.sqrt(3.0) * _SPLIT) / (_SPLIT[::-1] - _SPLIT)

FILTERS = {
    "dryden": (Filter([1.0], [1.0]), Filter(_SPLIT, _CROSS)),
    "von karman": (
        Filter(TABLES.ALONG_POLES, TABLES.ALONG_WEIGHTS),
        Filter(TABLES.CROSS_POLES, TABLES.CROSS_WEIGHTS),
    ),
}


@struct
class Turbulence:
    """What both spectra share: scales, intensities, and the step of the filters."""

    wingspan: float = field(units="m")
    wind_20ft: float = field(units="m/s", default=15.0)
    probability: float = field(static=True, default=1e-2)
    specification: str = field(static=True, default="MIL-F-8785C")

    spectrum: ClassVar[str]

    @struct
    class State:
        """States of the filters; zero is calm air, from which gusts build up.

        Of u, v, w and p they are relative to the intensity, of q and r smoothed gusts.
        """

        u: Any = field(units="")
        v: Any = field(units="")
        w: Any = field(units="")
        p: Any = field(units="")
        q: Any = field(units="m/s")
        r: Any = field(units="m/s")

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_struct(self, positive="wingspan")
        meaning = "the chance that the intensity of the free air is exceeded"
        check_choice(self.probability, "probability", EXCEEDANCE, meaning)
        check_choice(self.specification, "specification", CROSS_FACTOR)

    def initial(self) -> Any:
        """Return the state of calm air."""
        along, cross = (np.zeros(len(f.poles)) for f in FILTERS[self.spectrum])
        return Turbulence.State(along, cross, cross.copy(), 0.0, 0.0, 0.0)

    def lengths(self, alt: Scalar) -> tuple[Any, Any, Any]:
        """Return the scale lengths (L_u, L_v, L_w) in m at an altitude over ground in m.

        Those of MIL-HDBK-1797 across are half of those of MIL-F-8785C; its spectra, written with
        2 L_v and 2 L_w, are the same.
        """
        return lengths(as_array(alt, "alt"), self.spectrum, self.specification)

    def intensities(self, alt: Scalar) -> tuple[Any, Any, Any]:
        """Return the rms gusts (u, v, w) in m/s at an altitude over ground in m."""
        return intensities(as_array(alt, "alt"), self.wind_20ft, self.probability)

    def step(
        self, x: Turbulence.State, noise: Vector, airspeed: Scalar, alt: Scalar, dt: Scalar
    ) -> tuple[Any, Gust]:
        """Return the state and the gust after `dt` seconds at an airspeed in m/s.

        `noise` (4,) holds independent standard normal numbers, such as
        ``arc.random.normal(key, (4,))``; `alt` is the altitude over ground in m.
        """
        noise = check_vector(noise, 4, "noise")
        along, cross = FILTERS[self.spectrum]
        (L_u, L_v, L_w), sigma = self.lengths(alt), self.intensities(alt)
        factor = CROSS_FACTOR[self.specification]
        L = (L_u, factor * L_v, factor * L_w)  # as the formulas of the specification have them
        shapes = zip((along, cross, cross), (x.u, x.v, x.w), (noise[0], noise[1], noise[2]), L)
        moved = [f.advance(part, n, airspeed * dt / scale) for f, part, n, scale in shapes]
        u, v, w = (s * y for s, (_, y) in zip(sigma, moved))
        p, roll = self._roll(x.p, noise[3], airspeed, L[2], sigma[2], dt)
        q, pitch = self._turn(x.q, w, airspeed, 4.0, dt)
        r, yaw = self._turn(x.r, v, airspeed, 3.0, dt)
        state = Turbulence.State(moved[0][0], moved[1][0], moved[2][0], p, q, r)
        # Air that rises ahead turns about -y; air that moves right ahead turns about +z.
        return state, Gust(np.stack([u, v, w]), np.stack([roll, -pitch, yaw]))

    def _roll(
        self, p: Scalar, noise: Scalar, airspeed: Scalar, L: Scalar, sigma: Scalar, dt: Scalar
    ) -> Any:
        """Rolling gusts: a lag of 4 b / (pi V) with the variance of the specification."""
        b = self.wingspan
        decay = np.exp(-np.pi * airspeed * dt / (4.0 * b))
        p = decay * p + np.sqrt(1.0 - decay * decay) * noise
        # sigma_p^2 is the integral of sigma^2 0.8 (pi L / 4b)^(1/3) / (L V (1 + (4 b w / pi V)^2)),
        # with L = L_w, in the handbook 2 L_w.
        variance = 0.8 * (np.pi * L / (4.0 * b)) ** (1.0 / 3.0) / L * np.pi**2 / (8.0 * b)
        return p, sigma * np.sqrt(variance) * p

    def _turn(self, z: Scalar, gust: Scalar, airspeed: Scalar, factor: float, dt: Scalar) -> Any:
        """The slope of a gust along the flight, smoothed over ``factor b / pi``."""
        smoothing = factor * self.wingspan / np.pi
        step = np.maximum(airspeed * dt / smoothing, 1e-12)
        moved = -np.expm1(-step) * (gust - z)
        # The mean over the step, so that a gust that grows steadily has its slope for any step.
        return z + moved, moved / (step * smoothing)


@struct
class DrydenTurbulence(Turbulence):
    """Turbulence with Dryden's spectra.

    Parameters
    ----------
    wingspan : float
        Wing span in m. It determines the rotary gusts.
    wind_20ft : float, optional
        Wind speed in m/s at a height of 20 ft, which determines the intensity near the ground. 7.7,
        15.4 and 23.2 m/s (15, 30 and 45 kn) are light, moderate and severe.
    probability : float, optional
        Probability of exceedance, which determines the intensity in the free air. 0.01 by default.
    specification : {"MIL-F-8785C", "MIL-HDBK-1797"}, optional
        Specification that defines lengths and intensities.

    Examples
    --------
    >>> import numpy as np
    >>> import archimedes as arc
    >>> from archimedes.environment import DrydenTurbulence
    >>> air = DrydenTurbulence(wingspan=10.0)
    >>> x, gust = air.step(air.initial(), np.array([1.0, 0.0, 0.0, 0.0]), 50.0, 100.0, 0.01)
    >>> gust.v_B.round(4)
    array([0.1276, 0.    , 0.    ])
    """

    spectrum: ClassVar[str] = "dryden"


@struct
class VonKarmanTurbulence(Turbulence):
    """Turbulence with von Karman's spectra.

    Parameters
    ----------
    wingspan : float
        Wing span in m. It determines the rotary gusts.
    wind_20ft : float, optional
        Wind speed in m/s at a height of 20 ft, which determines the intensity near the ground. 7.7,
        15.4 and 23.2 m/s (15, 30 and 45 kn) are light, moderate and severe.
    probability : float, optional
        Probability of exceedance, which determines the intensity in the free air. 0.01 by default.
    specification : {"MIL-F-8785C", "MIL-HDBK-1797"}, optional
        Specification that defines lengths and intensities.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import VonKarmanTurbulence
    >>> turbulence = VonKarmanTurbulence(wingspan=9.1)
    >>> state, gust = turbulence.step(turbulence.initial(), np.zeros(4), 150.0, 300.0, 0.01)
    >>> gust.v_B
    array([0., 0., 0.])
    """

    spectrum: ClassVar[str] = "von karman"
