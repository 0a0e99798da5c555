"""How far times that are computed from others may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["rounding"]


def rounding(*times: Any) -> Any:
    """Return a bound of the error of a time that is computed from these by a few operations.

    >>> round(float(rounding(1.0, 1.7e9)), 8)  # seconds of Unix time
    1.51e-06
    """
    largest = np.abs(times[0])
    for t in times[1:]:
        largest = np.maximum(largest, np.abs(t))
    return 4.0 * float(np.finfo(np.float64).eps) * largest
