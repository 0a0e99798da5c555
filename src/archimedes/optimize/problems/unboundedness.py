"""Costs that fall without end: found along a ray, not by going there.

Where the objective has no minimum, unknowns run along a direction in which it keeps falling. Far
out on that ray nothing has changed: constraints and bounds hold, and f has fallen in proportion.
A value at each power of ten says so; solvers would need thousands of iterations.
"""

from __future__ import annotations

import numpy as np

from archimedes.optimize.problems.tasks import Task, violation

__all__ = ["Unboundedness"]

#: Rays are looked along at every so many iterations, if a step was at least this part of x.
EVERY, RUNNING = 8, 1e-4
#: How far out is looked, relative to x, at every power of ten of the step; f must have fallen by
#: this part of what its slope says. Into a minimum a step falls by half of that.
REACH, PART = 1e14, 0.9
#: What constraints may be off for the rounding of long steps.
ROUNDING = 1e-12


class Unboundedness:
    """Finds that the objective of a task falls without end; called with each iteration."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._last = task.start

    def __call__(self, number: int, x: np.ndarray, fun: float, off: float) -> bool:
        """Return whether f falls without end from x on, as the last step went."""
        if number % EVERY == EVERY - 1:
            self._last = x.copy()
        if number % EVERY or number == 0:
            return False
        step = x - self._last
        size, room = float(np.abs(step).max()), 1.0 + float(np.abs(x).max())
        # Constraints hold as well as they do for numbers of this size.
        if not (RUNNING * room <= size < np.inf and off <= self.task.settings.tol * room):
            return False
        return self._falls(x, fun, step, room)

    def _falls(self, x: np.ndarray, fun: float, step: np.ndarray, room: float) -> bool:
        """Return whether f falls in proportion all the way, within limits."""
        task, reach = self.task, REACH * room / float(np.abs(step).max())
        far = x + reach * step
        # What moves towards a bound will stop there.
        step = np.where((far < task.lower) | (far > task.upper), 0.0, step)
        size, part = float(np.abs(step).max()), 1.0
        slope = float(task.evaluator.slopes(x)[0] @ step)
        if not -slope > 1e-9 * task.settings.tol * (1.0 + abs(fun)):
            return False
        while part <= reach:
            f, g = task.evaluator.values(x + part * step)
            allowed = task.settings.tol * room + ROUNDING * part * size
            if not (f <= fun + PART * part * slope and violation(g, task.low, task.high) < allowed):
                return False
            part *= 10.0
        return True
