"""Points between bounds: distances, multipliers of the bounds, barrier terms, longest steps.

Symbols: w (N,) the unknowns x and the slacks s of inequalities, low <= w <= high. The *sides* are
the bounds that exist, the lower ones first: d > 0 are the distances of w to them, z >= 0 their
multipliers, mu the barrier's weight.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

from archimedes.optimize.problems.evaluation import summed

__all__ = ["Bounds", "barrier", "fastest", "longest"]

#: How far from a bound a start is moved: this much, or this part of the way to the other bound.
PUSH, PART = 1e-2, 1e-2


class Bounds:
    """The bounds of w, of which any may be missing."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.size = low.size
        at_low, at_high = np.flatnonzero(low > -np.inf), np.flatnonzero(high < np.inf)
        #: Whose side it is, where it lies, and in which direction w moves away from it.
        self.at = np.concatenate([at_low, at_high])
        self.edge = np.concatenate([low[at_low], high[at_high]])
        self.away = np.repeat([1.0, -1.0], [at_low.size, at_high.size])
        self._low, self._high = low, high
        self.count = self.at.size

    def inside(self, w: np.ndarray, push: float = PUSH, part: float = PART) -> np.ndarray:
        """Return w moved off its bounds (Waechter, Biegler 2006, section 3.6)."""
        low, high = self._low, self._high
        with np.errstate(invalid="ignore"):
            across = high - low
            off = np.minimum(push * np.maximum(1.0, np.abs(low)), part * across)
            w = np.where(np.isfinite(low), np.maximum(w, low + off), w)
            off = np.minimum(push * np.maximum(1.0, np.abs(high)), part * across)
            return np.where(np.isfinite(high), np.minimum(w, high - off), w)

    def distances(self, w: np.ndarray) -> np.ndarray:
        """Return the distances to the sides."""
        d = w.take(self.at)
        d -= self.edge
        d *= self.away
        return d

    def towards(self, dw: np.ndarray) -> np.ndarray:
        """Return how fast the distances grow along dw."""
        d = dw.take(self.at)
        d *= self.away
        return d

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return (N,): for each of w the sum over its sides."""
        return summed(self.at, values, self.size)

    def pull(self, values: np.ndarray) -> np.ndarray:
        """Return (N,): -values at lower bounds, values at upper ones, as multipliers pull."""
        return summed(self.at, -self.away * values, self.size)


def barrier(product: float, power: float, outside: float) -> float:
    """Return -(sum of the logarithms of the distances), whose product is product * 2**power."""
    return inf if outside else -(log(product) + power * log(2.0))


def longest(falls: float, part: float) -> float:
    """Return the longest step, at most 1, after which 1 - part of each value is left.

    ``falls`` is the largest part of a value that a whole step takes away.
    """
    return part / falls if falls > part else 1.0


def fastest(values: np.ndarray, steps: np.ndarray) -> float:
    """Return the largest part of a value that a whole step takes away."""
    return -float((steps / values).min()) if values.size else 0.0
