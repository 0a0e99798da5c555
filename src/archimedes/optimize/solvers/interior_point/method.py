"""A primal-dual interior-point method with a filter line search, on banded linear systems.

The method is that of IPOPT (A. Waechter, L. Biegler, "On the implementation of an interior-point
filter line-search algorithm for large-scale nonlinear programming", Math. Program. 106, 2006);
where its line search fails for good, IPOPT itself goes on from there. Symbols, constants and
section numbers are those of the paper.

The filter of the line search holds pairs (violation theta, barrier function phi), which must not
dominate a new point.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from types import SimpleNamespace

import numpy as np

from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.tasks import Answer, Task
from archimedes.optimize.solvers import ipopt
from archimedes.optimize.solvers.interior_point.loop_descriptions import native_loops
from archimedes.optimize.solvers.interior_point.newton_steps import (
    FIRST_SHIFT,
    LineSearchFailed,
    Point,
    Step,
    Trial,
    limit_step,
)
from archimedes.optimize.solvers.interior_point.restoration import Infeasible, Restoration
from archimedes.optimize.solvers.solver_table import SOLVERS, Solver

KAPPA_EPS, KAPPA_MU, THETA_MU = 10.0, 0.2, 1.5
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


GAMMA_THETA, GAMMA_PHI, S_THETA, S_PHI, ETA, SMALLEST = 1e-5, 1e-8, 1.1, 2.3, 1e-8, 0.05
#: How many times the violation of the start is allowed later. The paper's 10,000 lets steps wander
#: off where the barrier function falls, and has each of them undone by the next.
MOST = 4.0
#: After so many steps that only earlier points shortened they are forgotten, at most so often.
BLOCKS, RESETS = 5, 5
_ROUNDING = 10 * 2.2e-16
#: Restoration ends when this part of the violation is left.
CORRECTIONS, RESTORED = 4, 0.1
#: Steps this small, relative to the unknowns, are not searched along.
TINY = 10 * 2.2e-16


class Filter:
    """What trial points are judged by (2.3)."""

    def __init__(self, theta: float) -> None:
        self.most, self.least = MOST * max(1.0, theta), 1e-4 * max(1.0, theta)
        self.entries: list[tuple[float, float]] = []
        #: Whether an earlier point alone stood against the last trial, how many searches in a row
        #: were shortened by that, and how often all were forgotten for it.
        self.blocked, self.blocks, self.resets = False, 0, 0

    def add(self, theta: float, phi: float) -> None:
        """Have later points better than this one in one of both."""
        self.entries.append(((1 - GAMMA_THETA) * theta, phi - GAMMA_PHI * theta))

    def is_switching(self, theta: float, slope: float, step: float) -> bool:
        """Return whether the objective shall decide, not the violation."""
        falling = slope < 0 and _power(-slope, S_PHI) * step > theta**S_THETA
        return falling and theta <= self.least

    def accepts(
        self, theta: float, phi: float, slope: float, step: float, new: tuple[float, float]
    ) -> bool:
        """Return whether a trial point is acceptable, from the present (theta, phi)."""
        there, value = new
        self.blocked = False
        if not (there <= self.most and value < inf):
            return False
        slack = _ROUNDING * abs(phi)
        if self.is_switching(theta, slope, step):
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
            self.entries.clear()
            self.blocks, self.resets = 0, self.resets + 1

    def dominates(self, theta: float, phi: float) -> bool:
        """Return whether an earlier point is better in both."""
        return any(theta >= t and phi >= p for t, p in self.entries)

    def shortest(self, theta: float, slope: float) -> float:
        """Return the shortest step worth trying."""
        if slope >= 0:
            return SMALLEST * GAMMA_THETA
        part = min(GAMMA_THETA, GAMMA_PHI * theta / -slope)
        if theta <= self.least:
            part = min(part, theta**S_THETA / _power(-slope, S_PHI))
        return SMALLEST * part


def _power(base: float, exponent: float) -> float:
    """Return a power of a positive number, infinite where Python would raise."""
    return base**exponent if base < 1e100 else inf


class LineSearch(Restoration):
    """How far to go along a step."""

    filter: Filter

    def __init__(self, task: Task, loops: SimpleNamespace) -> None:
        super().__init__(task, loops)
        #: A violation below this is as good as none; what is left of the constraints is then
        #: counted with these prices in the barrier function.
        self.nothing = 1e-2 * task.settings.tol
        self.prices: np.ndarray | None = None
        #: What part of the step within bounds the last search took.
        self.part_taken = 1.0

    @property
    def part(self) -> float:
        """What part of a distance to a side, or of a multiplier, a step may take away."""
        return max(0.99, 1.0 - self.mu)

    def theta(self, trial: Trial) -> float:
        """Return the violation as the filter counts it: zero if it is far below the tolerance.

        Where equations are almost dependent, what is left would keep the multipliers moving. Its
        price is counted in the barrier function instead.
        """
        return trial.total if trial.most > self.nothing else 0.0

    def phi(self, trial: Trial) -> float:
        """Return the barrier function."""
        phi = trial.f + self.mu * trial.barrier
        return phi if self.prices is None else phi + float(self.prices @ trial.c)

    def measure(self, trial: Trial) -> tuple[float, float]:
        """Return the violation and the barrier function of a trial, infinite where not finite."""
        theta, phi = self.theta(trial), self.phi(trial)
        good = isfinite(trial.total) and isfinite(phi)
        return (theta, phi) if good else (np.inf, np.inf)

    def advance(self, at: Point, sigma: np.ndarray) -> tuple[Step, Trial, float]:
        """Return the step, the next trial and how much of the step leads there."""
        c, none = at.trial.c, self.theta(at.trial) == 0.0
        if none:
            c = np.zeros_like(c)
            # A larger threshold, so that steps do not switch back and forth.
            self.nothing = max(self.nothing, 1e-1 * self.task.settings.tol)
        step = self.direction(at, sigma, c)
        self.prices = at.lam + step.dlam if none else None
        return step, *self.search(at, sigma, step)

    def search(self, at: Point, sigma: np.ndarray, step: Step) -> tuple[Trial, float]:
        """Return the next trial and the step's length (2.3, 2.4)."""
        here, dv, slope = at.trial, step.dv, step.slope
        theta, phi = self.theta(here), self.phi(here)
        longest = alpha = limit_step(step.falls, self.part)
        if step.size < TINY:
            return self.trial(here.v, dv, alpha), alpha
        shortest, blocked = self.filter.shortest(theta, slope), False
        while alpha > shortest:
            trial = self.trial(here.v, dv, alpha)
            new = self.measure(trial)
            if self.filter.accepts(theta, phi, slope, alpha, new):
                break
            blocked = self.filter.blocked
            if alpha == longest and new[0] >= theta and np.isfinite(new[0]):
                corrected = self._correct(at, sigma, alpha, trial, (theta, phi, slope))
                if corrected is not None:
                    trial, new = corrected
                    break
            alpha *= 0.5
        else:
            raise LineSearchFailed
        self.filter.note(blocked)
        self.part_taken = alpha / longest
        armijo = new[1] - phi <= 1e-8 * alpha * slope + 2.2e-15 * abs(phi)
        if not (self.filter.is_switching(theta, slope, alpha) and armijo):
            self.filter.add(theta, phi)
        return trial, alpha

    def _correct(
        self, at: Point, sigma: np.ndarray, alpha: float, trial: Trial, now: tuple[float, ...]
    ) -> tuple[Trial, tuple[float, float]] | None:
        """Try steps corrected for the curvature of the constraints (2.4)."""
        theta, phi, slope = now
        here = at.trial
        total, before = alpha * here.c + trial.c, theta
        for _ in range(CORRECTIONS):
            step = self.direction(at, sigma, total)
            length = limit_step(step.falls, self.part)
            trial = self.trial(here.v, step.dv, length)
            new = self.measure(trial)
            if self.filter.accepts(theta, phi, slope, alpha, new):
                return trial, new
            if not new[0] <= 0.99 * before:
                return None
            before, total = new[0], length * total + trial.c
        return None

    def restore(self, at: Point) -> Point:
        """Reduce the infeasibility until the filter accepts the point, or raise Infeasible."""
        self.prices = None
        before = self.theta(at.trial)
        self.filter.add(before, self.phi(at.trial))

        def is_good(trial: Trial) -> bool:
            theta, phi = self.measure(trial)
            return theta <= RESTORED * before and not self.filter.dominates(theta, phi)

        new = self.approach(at, is_good)
        new = new._replace(z=self.mu / new.trial.d)
        return self.balance(new.trial, self.estimate(new), new.z, new.gradient)


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
                # The barrier function is another one.
                self.filter.entries.clear()
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
        old = (at.z, here.d, step.dv, trial.d, self.mu, self.part, at.lam)
        self._update_multipliers(*old, step.dlam, alpha, z, lam)
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
