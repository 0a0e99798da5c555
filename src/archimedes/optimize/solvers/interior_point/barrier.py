"""Points between bounds: slacks, multipliers of the bounds, barrier terms, longest steps.

Symbols: w (N,) the unknowns x and the slacks s of inequalities, low <= w <= high; zl, zh >= 0
the multipliers of the bounds that exist, mu the barrier's weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Bounds", "Multiplied"]

#: How far from a bound a start is moved: this much, or this part of the way to the other bound.
PUSH, PART = 1e-2, 1e-2


@dataclass
class Multiplied:
    """Distances to the bounds and their multipliers, of the lower and of the upper ones."""

    dl: np.ndarray
    dh: np.ndarray
    zl: np.ndarray
    zh: np.ndarray


class Bounds:
    """The bounds of w, of which any may be missing."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.size = low.size
        self.at_low, self.at_high = np.flatnonzero(low > -np.inf), np.flatnonzero(high < np.inf)
        self.low, self.high = low[self.at_low], high[self.at_high]
        self._low, self._high = low, high
        self.count = self.at_low.size + self.at_high.size

    def inside(self, w: np.ndarray, push: float = PUSH, part: float = PART) -> np.ndarray:
        """Return w moved off its bounds (Waechter, Biegler 2006, section 3.6)."""
        low, high = self._low, self._high
        with np.errstate(invalid="ignore"):
            across = high - low
            off = np.minimum(push * np.maximum(1.0, np.abs(low)), part * across)
            w = np.where(np.isfinite(low), np.maximum(w, low + off), w)
            off = np.minimum(push * np.maximum(1.0, np.abs(high)), part * across)
            return np.where(np.isfinite(high), np.minimum(w, high - off), w)

    def distances(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances to the lower and upper bounds."""
        return w[self.at_low] - self.low, self.high - w[self.at_high]

    def barrier(self, w: np.ndarray) -> float:
        """Return -(sum of the logarithms of the distances); infinite outside."""
        dl, dh = self.distances(w)
        if (dl.size and dl.min() <= 0.0) or (dh.size and dh.min() <= 0.0):
            return np.inf
        return -float(np.log(dl).sum() + np.log(dh).sum())

    def spread(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Return (N,) with numbers of the lower bounds added and those of the upper ones."""
        found = np.zeros(self.size)
        found[self.at_low] = lower
        found[self.at_high] += upper
        return found

    def longest(self, point: Multiplied, dw: np.ndarray, part: float) -> float:
        """Return the longest step, at most 1, after which 1 - part of each distance is left."""
        falls = 0.0
        if self.low.size:
            falls = -float((dw[self.at_low] / point.dl).min())
        if self.high.size:
            falls = max(falls, float((dw[self.at_high] / point.dh).max()))
        return part / falls if falls > part else 1.0


def longest_dual(z: np.ndarray, dz: np.ndarray, part: float) -> float:
    """Return the longest step, at most 1, that keeps 1 - part of each multiplier."""
    falls = -float((dz / z).min()) if z.size else 0.0
    return part / falls if falls > part else 1.0
