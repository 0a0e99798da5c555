"""A task in the form the method works on: free unknowns in the order of a chain, slacks, scales.

Symbols: w = [x, s] the free unknowns and the slacks of inequalities; the constraints are
c(w) = 0 with c = g - low for equations and g - s for inequalities, f and c scaled so that no slope
at the start is above 100.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.optimize.problems.statuses import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem
from archimedes.optimize.solvers.interior_point.barrier import Bounds
from archimedes.optimize.solvers.interior_point.chains import chain_of

__all__ = ["ScaledProblem"]

MOST_SLOPE, LEAST_SCALE = 100.0, 1e-8
#: Bounds are relaxed by this much, so that there is room between them.
RELAXED = 1e-10


class ScaledProblem:
    """Functions of w, and answers in the task's terms."""

    def __init__(self, task: Task, loops: Any) -> None:
        self.task, self.evaluator = task, task.evaluator
        structure = self.structure = task.evaluator.structure
        free = task.lower < task.upper
        self.key = (free.tobytes(), None if task.order is None else task.order.tobytes())
        found = structure.prepared.pop(self.key, None)
        if found is None:
            chain = chain_of(structure.patterns, free, task.order)
            found = BandedSystem(structure, chain, loops)
        self.system: BandedSystem = found
        self.loops = loops
        self.chain = found.chain
        self.kept = np.concatenate([self.chain.band, self.chain.border])
        self.n = self.kept.size
        self.equal = task.low == task.high
        self.inequalities = np.flatnonzero(~self.equal)
        self.slacks = self.inequalities.size
        self.fixed = np.where(free, 0.0, task.lower)
        self.iterations = 0
        self._scale(task.start)

    def _scale(self, x: np.ndarray) -> None:
        """Choose scales of objective and rows (3.8)."""
        gradient, parts = self.evaluator.slope_parts(x)
        self.system.take_jacobian(parts)
        rows = self.system.largest_of_rows()
        slope = np.max(np.abs(gradient[self.kept]), initial=0.0)
        self.f_scale = max(LEAST_SCALE, min(1.0, MOST_SLOPE / max(slope, 1e-300)))
        self.row_scale = np.maximum(
            LEAST_SCALE, np.minimum(1.0, MOST_SLOPE / np.maximum(rows, 1e-300))
        )
        low, high = self.task.low * self.row_scale, self.task.high * self.row_scale
        self.target = np.where(self.equal, low, 0.0)
        low_w = np.concatenate([self.task.lower[self.kept], low[self.inequalities]])
        high_w = np.concatenate([self.task.upper[self.kept], high[self.inequalities]])
        low_w -= np.where(np.isfinite(low_w), RELAXED * np.maximum(1.0, np.abs(low_w)), 0.0)
        high_w += np.where(np.isfinite(high_w), RELAXED * np.maximum(1.0, np.abs(high_w)), 0.0)
        self.bounds = Bounds(low_w, high_w)

    def transposed(self, lam: np.ndarray) -> np.ndarray:
        """Return the product of the Jacobian's transpose and lam, slacks included."""
        own = self.system.transposed(lam)
        return np.concatenate([own, -lam[self.inequalities]]) if self.slacks else own

    def multipliers(
        self, x: np.ndarray, lam: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the multipliers of the task's constraints and bounds."""
        lam_g = lam * self.row_scale / self.f_scale
        both = self.bounds.pull(z) / self.f_scale
        lam_x = np.zeros(x.size)
        lam_x[self.kept] = both[: self.n]
        held = ~(self.task.lower < self.task.upper)
        if np.any(held):
            gradient, parts = self.evaluator.slope_parts(x)
            lam_x[held] = -(gradient + self.system.held(parts, lam_g))[held]
        return lam_g, lam_x

    def answer_at(self, x: np.ndarray, lam: np.ndarray, z: np.ndarray, status: Status) -> Answer:
        """Return a point in the task's terms; where it was interrupted, the best one."""
        best = self.task.monitor.best
        lam_g, lam_x = self.multipliers(x, lam, z)
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT) and best is not None:
            x = best
        x = np.clip(x, self.task.lower, self.task.upper)
        return Answer(x, lam_g, lam_x, status, self.iterations)
