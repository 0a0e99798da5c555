"""A primal-dual interior-point method with a filter line search, on banded linear systems.

The method is that of IPOPT (A. Waechter, L. Biegler, "On the implementation of an interior-point
filter line-search algorithm for large-scale nonlinear programming", Math. Program. 106, 2006);
where its line search fails for good, IPOPT itself goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers import ipopt
from archimedes.optimize.solvers.interior_point.line_search import Filter, LineSearch
from archimedes.optimize.solvers.interior_point.native_loops import native_loops
from archimedes.optimize.solvers.interior_point.newton_steps import (
    FIRST_SHIFT,
    LineSearchFailed,
    Point,
)
from archimedes.optimize.solvers.interior_point.restoration import Infeasible
from archimedes.optimize.solvers.solver_table import SOLVERS, Solver

KAPPA_EPS, KAPPA_MU, THETA_MU, KAPPA_SIGMA = 10.0, 0.2, 1.5, 1e10
#: ``ACCEPTABLE`` is an error with which a point is returned after so many iterations.
MAX_ITERATIONS, ACCEPTABLE, ENOUGH = 3000, 1e-6, 15
#: Iterations for one weight of the barrier, after which another method shall go on; but none
#: does better for trajectories.
PATIENCE = 300
#: Signs that it does not go on: short steps, no fall of the violation, slow convergence.
CRAWL, CRAWLING, STUCK, SLOW = 1e-2, 3, 5, 5
#: Steps shortened to less than SHORT are damped, those of at least LONG less so.
SHORT, LONG, FIRST_DAMPING = 0.1, 0.5, 1e-4
GROWTH, DECAY = 4.0, 2.0
#: Constraints are met where this part of the tolerance is left of them.
MET = 0.5


class InteriorPoint(LineSearch):
    """One solve of a task."""

    at: Point
    slow = stuck = crawling = 0

    def run(self) -> Answer:
        """Iterate to the end."""
        settings, monitor = self.task.settings, self.task.monitor
        at = self.first()
        self.filter = Filter(at.trial.total)
        least = min(settings.tol, 1e-4) / (KAPPA_EPS + 1.0)
        limit = settings.maxiter or MAX_ITERATIONS
        self.at, good, level, since = at, 0, at.trial.f, 0
        while True:
            here = at.trial
            values = (here.f / self.f_scale, here.unscaled)
            if not monitor.after(self.iterations, here.x, *values):
                return self.answer(monitor.stopped or Status.INTERRUPTED)
            error = self.error(at, 0.0)
            if error <= settings.tol and here.unscaled <= max(1e-4, settings.tol):
                if self.iterations or self.curves_up():
                    return self.answer(Status.SOLVED)
                # A guess at which all slopes are zero: any way leads down.
                at = self.at = self.point(self.nudge(here, 1), at.lam, at.z)
            still = abs(at.trial.f - level) <= ACCEPTABLE * max(1.0, abs(at.trial.f))
            good, level = good + 1 if error <= ACCEPTABLE and still else 0, at.trial.f
            if good >= ENOUGH:
                return self.answer(Status.ACCEPTABLE)
            if self.iterations >= limit:
                return self.answer(Status.ITERATION_LIMIT)
            if at.trial.size > 1e20:
                return self.answer(Status.UNBOUNDED)
            while self.mu > least and self.error(at, self.mu) <= KAPPA_EPS * self.mu:
                self.mu = max(least, min(KAPPA_MU * self.mu, self.mu**THETA_MU))
                self.filter.clear()
                since = self.iterations
            if self.task.order is None and self.iterations - since >= PATIENCE:
                raise LineSearchFailed
            try:
                at = self.at = self.step(at)
            except Infeasible as proof:
                return self.answer_at(proof.trial.x, at.lam, at.z, Status.INFEASIBLE)
            self.iterations += 1

    def step(self, at: Point) -> Point:
        """Make one iteration."""
        here = at.trial
        if max(self.crawling - CRAWLING, self.stuck - STUCK) >= 0 and self.theta(here) > 0.0:
            # Further steps would only make the multipliers grow.
            self.crawling = self.stuck = 0
            return self.restore(at)
        sigma = self.factor(at)
        try:
            step, trial, alpha = self.advance(at, sigma)
        except LineSearchFailed:
            return self.restore(at)
        z, lam = np.empty(at.z.size), np.empty(at.lam.size)
        old = (at.z, here.d, step.dv, trial.d, self.mu, self.part, KAPPA_SIGMA)
        self._update_multipliers(*old, at.lam, step.dlam, alpha, z, lam)
        new = self.point(trial, lam, z)
        self.watch(at, new, alpha)
        return new

    def curves_up(self) -> bool:
        """Return whether a point without slopes is a minimum, not a maximum or a saddle."""
        self.factor(self.at)
        self.shift = 0.0
        return self.shift_now <= FIRST_SHIFT

    def watch(self, at: Point, new: Point, alpha: float) -> None:
        """Look for signs that the steps do not go on, and damp them as a trust region does."""
        before, after = self.theta(at.trial), self.theta(new.trial)
        # Full steps that gain little are a sign of equations that are almost dependent.
        idle = self.error(new, self.mu) > 0.8 * self.error(at, self.mu) and self.shift_now == 0.0
        idle = alpha == 1.0 and (idle or (before > 0.0 and after > 0.5 * before))
        self.slow = self.slow + 1 if idle else 0
        if self.slow >= SLOW:
            # What is left within the tolerance need not be moved by multipliers.
            self.nothing, self.slow = MET * self.task.settings.tol, 0
        self.stuck = self.stuck + 1 if after > 0.99 * before and self.is_hopeless(new.trial) else 0
        self.crawling = self.crawling + 1 if alpha < CRAWL else 0
        if self.part_taken < SHORT:
            self.damping = max(GROWTH * self.damping, FIRST_DAMPING)
        elif self.part_taken >= LONG:
            self.damping = self.damping / DECAY if self.damping > FIRST_DAMPING else 0.0

    def answer(self, status: Status) -> Answer:
        """Return the present point in the task's terms."""
        return self.answer_at(self.at.trial.x, self.at.lam, self.at.z, status)


def solve(task: Task, solver: Solver) -> Answer:
    """Minimise; raises what the functions or the callback raised."""
    loops = native_loops()
    if loops is None:
        return ipopt.solve(task, SOLVERS["ipopt"])
    method = InteriorPoint(task, loops)
    try:
        with task.monitor.note_interrupts(), np.errstate(all="ignore"):
            return method.run()
    except LineSearchFailed:
        return _hand_over(task, method)
    finally:
        task.evaluator.structure.prepared[method.key] = method.system


def _hand_over(task: Task, method: InteriorPoint) -> Answer:
    """Have IPOPT go on from the best point so far, and where that fails from the user's start."""
    best, iterations = task.monitor.best, method.iterations
    starts = [task.start]
    if best is not None and task.violation(best) <= max(1e2 * task.settings.tol, 1e-6):
        starts.insert(0, best)
    answer, details = method.answer(Status.STALLED), ""
    for start in starts:
        settings = replace(task.settings, more={}).after(iterations)
        if settings is None or task.monitor.is_late():
            break
        try:
            attempt = replace(task, start=start, settings=settings, lam_g=None, lam_x=None)
            answer = ipopt.solve(attempt, SOLVERS["ipopt"])
        except ImportError:
            break
        iterations += answer.iterations
        details = f"IPOPT went on after {method.iterations} iterations"
        if answer.status not in (Status.STALLED, Status.ITERATION_LIMIT, Status.INFEASIBLE):
            break
    answer.iterations = iterations
    answer.details = "; ".join(part for part in (answer.details, details) if part)
    return answer
