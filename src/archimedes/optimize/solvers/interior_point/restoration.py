"""The way back to feasibility, or the proof that there is none near.

First Gauss-Newton steps, as short as can be. Where these fail, the violation itself is minimised
within the bounds,

    min 1/2 |c(v)|^2 - mu sum(log d),

by Newton steps of the same banded systems (D = 1: what is left of a row is its own multiplier)
and a line search on that one function. A minimum at which c is not zero is the answer: no point
near satisfies the constraints (Waechter, Biegler, Math. Program. 106, 2006, section 3.3, does the
same with the sum of absolute values). Of linear constraints c is then a certificate of Farkas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers.interior_point.loop_descriptions import native_loops
from archimedes.optimize.solvers.interior_point.newton_steps import (
    LineSearchFailed,
    NewtonSteps,
    Point,
    Trial,
)

STEPS, NEWTON_STEPS, SHORT_HALVINGS, HALVINGS = 30, 100, 20, 25
#: A violation that first-order steps of the unknowns' own size reduce by less than this part
#: will not become nothing.
HOPELESS = 1e-3
#: How far, relative to the unknowns, a point is moved that is stationary but no minimum.
NUDGE, NUDGES = 1e-2, 3
#: Statuses that say nothing about the constraints, or that some solvers report too early.
DOUBTED = (Status.STALLED, Status.ITERATION_LIMIT, Status.FAILED, Status.INFEASIBLE)
#: With more unknowns, only chains are looked at: other matrices are no narrow bands.
MOST = 500


class Infeasible(Exception):
    """No point near here satisfies the constraints: the violation has a minimum at ``trial``."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial


class Restoration(NewtonSteps):
    """How to come nearer to the constraints."""

    def approach(self, at: Point, is_good: Callable[[Trial], bool]) -> Point:
        """Return a point that is good, with the multipliers of ``at``; raises Infeasible."""
        now = at
        try:
            for _ in range(STEPS):
                now = self._make_short_step(now)
                if is_good(now.trial):
                    return now
        except LineSearchFailed:
            pass
        return self.point(self.minimize_violation(now.trial, is_good), at.lam, at.z)

    def _make_short_step(self, at: Point) -> Point:
        """Make a step that is short where bounds are near; the violation falls."""
        here = at.trial
        near = 1.0 + self.spread(1e-2 / here.d**2)
        self.system.take_hessian()
        D = np.zeros(self.m)
        D[self.inequalities] = 1.0 / near[self.n :]
        if not self.system.factor(near[: self.n], D):
            raise LineSearchFailed
        dv = self._solve_with_slacks(here, near, np.zeros(self.count))

        def falls(trial: Trial, alpha: float) -> bool:
            return trial.total <= (1.0 - 1e-4 * alpha) * here.total

        return self.point(self._halve(here, dv, falls, SHORT_HALVINGS)[0], at.lam, at.z)

    def _halve(
        self, here: Trial, dv: np.ndarray, is_good: Callable[[Trial, float], bool], count: int
    ) -> tuple[Trial, float]:
        """Halve a step within the sides until its trial is good; return it and its length."""
        alpha = self.limit_by(here.d, self.project(dv))
        for _ in range(count):
            trial = self.trial(here.v, dv, alpha)
            if is_good(trial, alpha):
                return trial, alpha
            alpha *= 0.5
        raise LineSearchFailed

    def minimize_violation(self, here: Trial, is_good: Callable[[Trial], bool]) -> Trial:
        """Minimise the violation until it is good; raises Infeasible at a minimum."""
        mu = max(self.mu, 0.1 * min(here.most, here.most**2))
        z, nudges, shift = mu / here.d, 0, 0.0
        for _ in range(NEWTON_STEPS):
            self.system.take_jacobian(self.evaluator.slopes(here.x)[1], self.row_scale)
            hopeless = self.is_hopeless(here)
            convex, shift, sigma = self._factor_violation(here, z, shift)
            if hopeless and (convex or nudges == NUDGES):
                raise Infeasible(here)
            if hopeless:
                # A maximum or a saddle: any way leads down.
                nudges += 1
                here = self.nudge(here, nudges)
                z = mu / here.d
                continue
            push = self.spread(self.sides.away * mu / here.d)
            dv = self._solve_with_slacks(here, sigma, push)
            old, (here, alpha) = here, self._search_violation(here, dv, mu)
            if is_good(here):
                return here
            dz = (mu - z * self.project(dv)) / old.d - z
            z = np.clip(z + self.limit_by(z, dz) * dz, 1e-10 * mu / here.d, 1e10 * mu / here.d)
            if alpha > 0.1:
                mu = min(mu, 0.1 * float(np.mean(z * here.d))) if z.size else mu
        raise LineSearchFailed

    def is_hopeless(self, here: Trial) -> bool:
        """Return whether no step of the unknowns' size within bounds reduces the violation much."""
        if here.unscaled <= 1e2 * self.task.settings.tol:
            return False
        fall = -self.multiply_transpose(here.c)
        room = 1.0 + np.abs(here.v)
        towards = self.project(fall) < 0.0
        np.minimum.at(room, self.sides.at[towards], here.d[towards])
        return float(np.abs(fall) @ room) <= HOPELESS * float(here.c @ here.c)

    def _factor_violation(
        self, here: Trial, z: np.ndarray, last: float
    ) -> tuple[bool, float, np.ndarray]:
        """Factor at a point; returns whether no shift was needed, the shift, and the diagonal."""
        entries = self.evaluator.curvature(here.x, 0.0, here.c * self.row_scale)
        self.system.take_hessian(entries)
        sigma = self.spread(z / here.d)
        scale = max(float(np.abs(entries).max(initial=0.0)), here.most, 1e-8)
        shift, convex = 1e-8 * scale, True
        while not self.system.factor(
            sigma[: self.n] + shift, np.ones(self.m) + self._slack_part(sigma, shift)
        ):
            convex = False
            shift = max(1e-4 * scale, last / 3.0) if shift < 1e-5 * scale else 8.0 * shift
            if not shift < 1e20:
                raise LineSearchFailed
        return convex, 0.0 if convex else shift, sigma + shift

    def _solve_with_slacks(self, here: Trial, sigma: np.ndarray, push: np.ndarray) -> np.ndarray:
        """Return the step of all, for a diagonal sigma and what pushes off the sides."""
        rows, own = self.inequalities, sigma[self.n :]
        rc = -here.c
        rc[rows] += push[self.n :] / own
        dv, lam, _ = self.system.solve(push, rc)
        dv[self.n :] = (push[self.n :] + lam[rows]) / own
        return dv

    def _search_violation(self, here: Trial, dv: np.ndarray, mu: float) -> tuple[Trial, float]:
        """Halve a step until the violation with its barrier falls."""
        slope = float(self.multiply_transpose(here.c) @ dv)
        slope -= mu * float(np.sum(self.project(dv) / here.d))
        before = 0.5 * float(here.c @ here.c) + mu * here.barrier
        slack = 1e-14 * abs(before)

        def falls(trial: Trial, alpha: float) -> bool:
            value = 0.5 * float(trial.c @ trial.c) + mu * trial.barrier
            enough = before + 1e-4 * alpha * min(slope, 0.0) + slack
            return bool(np.isfinite(trial.f)) and value <= enough

        return self._halve(here, dv, falls, HALVINGS)

    def nudge(self, here: Trial, number: int) -> Trial:
        """Return a point near by, the same in every run."""
        way = np.sin(12.9898 * (np.arange(self.count) + 1.0) * number)
        dv = NUDGE * way * (1.0 + np.abs(here.v))
        return self.trial(here.v, dv, self.limit_by(here.d, self.project(dv), 0.5))


def check_feasibility(task: Task, answer: Answer) -> tuple[Answer, np.ndarray | None]:
    """Return an answer that calls a problem infeasible where no point near satisfies it.

    If a point near does, it is returned too, to start from again. Answers of solvers that were told
    to stop are returned as they are.
    """
    settings, loops = task.settings, native_loops()
    told = settings.maxiter is not None or task.monitor.is_late()
    large = task.start.size > MOST and task.order is None
    if answer.status not in DOUBTED or told or large or loops is None:
        return answer, None
    least, off = max(1e2 * settings.tol, 1e-6), task.violation(answer.x)
    if not least < off < np.inf or not np.any(task.lower < task.upper):
        return answer, None
    # A solver that diverged without coming nearer leaves numbers that are too large to work with.
    start = task.start if task.violation(task.start) <= off else answer.x
    near = Restoration(replace(task, start=start, lam_g=None, lam_x=None), loops)
    try:
        with np.errstate(all="ignore"):
            trial = near.minimize_violation(near.first().trial, lambda at: at.unscaled <= least)
        return answer, np.clip(trial.x, task.lower, task.upper)
    except Infeasible as never:
        x = np.clip(never.trial.x, task.lower, task.upper)
        return replace(answer, x=x, status=Status.INFEASIBLE), None
    except LineSearchFailed:
        return answer, None
