"""The filter of a line search: pairs (violation, barrier function) that must not be dominated.

Symbols and constants: A. Waechter, L. Biegler, "On the implementation of an interior-point filter
line-search algorithm for large-scale nonlinear programming", Math. Program. 106, 2006, section
2.3; theta violation, phi barrier function.
"""

from __future__ import annotations

__all__ = ["Filter"]

GAMMA_THETA, GAMMA_PHI, S_THETA, S_PHI, ETA, SMALLEST = 1e-5, 1e-8, 1.1, 2.3, 1e-8, 0.05
#: How many times the violation of the start is allowed later. The paper's 10,000 lets steps wander
#: off where the barrier function falls, and has each of them undone by the next.
MOST = 4.0
#: After so many steps that only earlier points shortened they are forgotten, at most so often.
BLOCKS, RESETS = 5, 5
_ROUNDING = 10 * 2.2e-16


class Filter:
    """What trial points are judged by."""

    def __init__(self, theta: float) -> None:
        self.most, self.least = MOST * max(1.0, theta), 1e-4 * max(1.0, theta)
        self.entries: list[tuple[float, float]] = []
        #: Whether an earlier point alone stood against the last trial, how many searches in a row
        #: were shortened by that, and how often all were forgotten for it.
        self.blocked, self.blocks, self.resets = False, 0, 0

    def clear(self) -> None:
        """Forget all pairs: the barrier function is another one."""
        self.entries = []

    def add(self, theta: float, phi: float) -> None:
        """Have later points better than this one in one of both."""
        self.entries.append(((1 - GAMMA_THETA) * theta, phi - GAMMA_PHI * theta))

    def switching(self, theta: float, slope: float, step: float) -> bool:
        """Whether the objective shall decide, not the violation."""
        falling = slope < 0 and _power(-slope, S_PHI) * step > theta**S_THETA
        return falling and theta <= self.least

    def accepts(
        self, theta: float, phi: float, slope: float, step: float, new: tuple[float, float]
    ) -> bool:
        """Whether a trial point is acceptable, from the present (theta, phi)."""
        there, value = new
        self.blocked = False
        if not (there <= self.most and value < float("inf")):
            return False
        slack = _ROUNDING * abs(phi)
        if self.switching(theta, slope, step):
            good = value - phi - slack <= ETA * step * slope
        else:
            good = there <= (1 - GAMMA_THETA) * theta
            good = good or value - phi - slack <= -GAMMA_PHI * theta
        self.blocked = good and self.dominates(there, value - slack)
        return good and not self.blocked

    def note(self, blocked: bool) -> None:
        """Forget earlier points where they alone have shortened several steps in a row."""
        self.blocks = self.blocks + 1 if blocked else 0
        if self.blocks >= BLOCKS and self.resets < RESETS:
            self.clear()
            self.blocks, self.resets = 0, self.resets + 1

    def dominates(self, theta: float, phi: float) -> bool:
        """Whether an earlier point is better in both."""
        return any(theta >= t and phi >= p for t, p in self.entries)

    def shortest(self, theta: float, slope: float) -> float:
        """Return the shortest step worth trying."""
        if slope >= 0:
            return SMALLEST * GAMMA_THETA
        found = min(GAMMA_THETA, GAMMA_PHI * theta / -slope)
        if theta <= self.least:
            found = min(found, theta**S_THETA / _power(-slope, S_PHI))
        return SMALLEST * found


def _power(base: float, exponent: float) -> float:
    """Return a power of a positive number, infinite where Python would raise."""
    return base**exponent if base < 1e100 else float("inf")
