"""How strong turbulence is, and how long its waves are, by altitude.

Source: MIL-F-8785C, 1980, section 3.7.3, and MIL-HDBK-1797, appendix A, section 4.9.2. Below 1,000
ft the ground rules, above 2,000 ft the free air, and in between values are interpolated. The
specifications are in feet; everything here is in SI.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import interpolant

__all__ = [
    "CROSS_FACTOR",
    "EXCEEDANCE",
    "SPECIFICATIONS",
    "free_air_intensity",
    "intensities",
    "lengths",
]

FOOT = 0.3048
#: What multiplies L_v and L_w in the formulas of each specification. The handbook's lengths are
#: half of the older ones, and its spectra are written with 2 L_v and 2 L_w: the same curves.
CROSS_FACTOR = {"MIL-F-8785C": 1.0, "MIL-HDBK-1797": 2.0}
SPECIFICATIONS = tuple(CROSS_FACTOR)
#: Scale length of the free air in ft: Dryden's and von Karman's spectra.
FREE_AIR = {"dryden": 1750.0, "von karman": 2500.0}

#: Probability that the intensity is exceeded, and the table's rows: altitude in ft, rms in ft/s
#: (MIL-F-8785C, figure 7).
EXCEEDANCE = (2e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_INTENSITY = np.array(
    [
        [500, 3.2, 4.2, 6.6, 8.6, 11.8, 15.6, 18.7],
        [1750, 2.2, 3.6, 6.9, 9.6, 13.0, 17.6, 21.5],
        [3750, 1.5, 3.3, 7.4, 10.6, 16.0, 23.0, 28.4],
        [7500, 0.0, 1.6, 6.7, 10.1, 15.1, 23.6, 30.2],
        [15000, 0.0, 0.0, 4.6, 8.0, 11.6, 22.1, 30.7],
        [25000, 0.0, 0.0, 2.7, 6.6, 9.7, 20.0, 31.0],
        [35000, 0.0, 0.0, 0.4, 5.0, 8.1, 16.0, 25.2],
        [45000, 0.0, 0.0, 0.0, 4.2, 8.2, 15.1, 23.1],
        [55000, 0.0, 0.0, 0.0, 2.7, 7.9, 12.1, 17.5],
        [65000, 0.0, 0.0, 0.0, 0.0, 4.9, 7.9, 10.7],
        [75000, 0.0, 0.0, 0.0, 0.0, 3.2, 6.2, 8.4],
        [80000, 0.0, 0.0, 0.0, 0.0, 2.1, 5.1, 7.2],
    ]
)
_CURVES = {
    p: interpolant(_INTENSITY[:, 0] * FOOT, _INTENSITY[:, k + 1] * FOOT)
    for k, p in enumerate(EXCEEDANCE)
}


def free_air_intensity(alt: Any, probability: float) -> Any:
    """Return the rms gust in m/s at an altitude in m that is exceeded with this probability."""
    return _CURVES[probability](alt)


def _blend(alt: Any, low: Any, high: Any) -> Any:
    """Go from the value at 1,000 ft to that at 2,000 ft linearly in altitude."""
    s = np.clip((alt / FOOT - 1000.0) / 1000.0, 0.0, 1.0)
    return (1.0 - s) * low + s * high


def _ground(alt: Any) -> tuple[Any, Any]:
    """Return the height over ground in ft, from 10 to 1,000, and the specification's divisor."""
    h = np.clip(alt / FOOT, 10.0, 1000.0)
    return h, 0.177 + 0.000823 * h


def lengths(alt: Any, spectrum: str, specification: str) -> tuple[Any, Any, Any]:
    """Return the scale lengths (L_u, L_v, L_w) in m at an altitude over ground in m."""
    h, divisor = _ground(alt)
    along, free = h / divisor**1.2, FREE_AIR[spectrum]
    factor = CROSS_FACTOR[specification]
    return (
        _blend(alt, along, free) * FOOT,
        _blend(alt, along, free) * FOOT / factor,
        _blend(alt, h, free) * FOOT / factor,
    )


def intensities(alt: Any, wind_20ft: Any, probability: float) -> tuple[Any, Any, Any]:
    """Return the rms gusts (u, v, w) in m/s for the wind at 20 ft and the free air's intensity."""
    _, divisor = _ground(alt)
    vertical = 0.1 * wind_20ft
    horizontal = vertical / divisor**0.4
    free = free_air_intensity(np.maximum(alt, 2000.0 * FOOT), probability)
    return (
        _blend(alt, horizontal, free),
        _blend(alt, horizontal, free),
        _blend(alt, vertical, free),
    )
