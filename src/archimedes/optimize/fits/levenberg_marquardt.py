"""The Levenberg-Marquardt method, with bounds and losses.

Sources: K. Madsen, H. B. Nielsen, O. Tingleff, "Methods for non-linear least squares problems"
(2nd ed., DTU 2004), algorithm 3.16 and eq. 2.21 for the damping; J. J. More, "The
Levenberg-Marquardt algorithm: implementation and theory" (1978) for the scaling; D. M. Bates,
D. G. Watts, "A relative offset orthogonality convergence criterion for nonlinear least squares",
Technometrics 23 (1981), for telling a minimum from a stall.

Symbols: r residuals (m,), J Jacobian (m, n), g = J^T r, cost = r^T r / 2, D scales of the unknowns
(the largest column norms of J so far), mu damping, p step:  (J^T J + mu D^2) p = -g.
A bound holds an unknown that is on it and that -g would push beyond; others move, and steps that
pass a bound are cut there.

A loss gives outliers less weight than squares do, as in SciPy: of a residual r the cost is
s^2 rho((r / s)^2) / 2 with s = ``f_scale``. Each loss returns rho and rho' at z. (P. Huber, "Robust
statistics", Wiley 1981, section 7.8: reweighted least squares.)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError
from archimedes.optimize.problems.results import Outcome
from archimedes.portable_numpy import matmul, norm, solve_least_squares
from archimedes.records import record

__all__ = ["LMStatus"]

_EPS = float(np.finfo(float).eps)
#: Residuals that this many roundings of x explain are rounding.
_ROUNDINGS = 100.0
#: How far from a start without slopes a better point is looked for, in units of x (at least 1).
_PROBES = (1e-3, 1e-1)
#: The most that damping grows by in one step: a larger factor would pass over steps that help.
_MOST_GROWTH = 8.0
#: Damping below which a step is as good as undamped, and beyond which it changes nothing.
_LEAST_DAMPING, _MOST_DAMPING = 1e-60, 1e30

Loss = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class LMStatus(Outcome):
    """Why the iteration ended; 1 to 4 are minima, as in MINPACK, and so is 7.

    >>> from archimedes.optimize import LMStatus, lm_solve
    >>> fit = lm_solve(lambda x: x - 1.0, [0.0])
    >>> fit.status is LMStatus(fit.status.value), fit.status.value in (1, 2, 3, 4)
    (True, True)
    """

    NON_FINITE = (
        -1,
        "the residuals or their Jacobian are nan or infinite at x: start elsewhere, or keep "
        "x where the function is defined with bounds=",
    )
    FTOL_REACHED = 1, "converged: the cost changes by less than ftol"
    XTOL_REACHED = 2, "converged: x changes by less than xtol"
    BOTH_TOL_REACHED = 3, "converged: cost and x change by less than ftol and xtol"
    GTOL_REACHED = 4, "converged: the residuals are orthogonal to their slopes, to gtol"
    MAX_FEVAL = 5, "stopped after max_nfev evaluations: raise max_nfev, or start closer"
    STALLED = (
        6,
        "no step lowers the cost, though the gradient says that one should: is the function "
        "smooth, and are its residuals of similar size?",
    )
    ROUNDING_REACHED = 7, "converged: what is left of the residuals is rounding"
    MAX_ITERATIONS = 8, "stopped at the limit of iterations: raise maxiter, or start closer"
    TIME_LIMIT = 9, "stopped at the limit of time: raise maxtime, or start closer to the solution"
    INTERRUPTED = 10, "interrupted: x is the best point that was reached"
    FLAT = (
        11,
        "no residual changes with x near x0, so that nothing says where to go: start where "
        "the model responds to x",
    )

    @property
    def success(self) -> bool:
        """Whether a minimum was found."""
        return 1 <= self <= 4 or self is LMStatus.ROUNDING_REACHED


def linear(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares themselves."""
    return z, np.ones_like(z)


def soft_l1(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares of small residuals, sizes of large ones, without a corner."""
    t = 1.0 + z
    return 2.0 * (np.sqrt(t) - 1.0), t**-0.5


def huber(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares up to f_scale, then sizes."""
    inside, t = z <= 1.0, np.maximum(z, 1.0)
    return np.where(inside, z, 2.0 * np.sqrt(t) - 1.0), np.where(inside, 1.0, t**-0.5)


def cauchy(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms: far outliers hardly count."""
    return np.log1p(z), 1.0 / (1.0 + z)


def arctan(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounded: one residual costs no more than pi/2 s^2 / 2."""
    return np.arctan(z), 1.0 / (1.0 + z**2)


LOSSES: dict[str, Loss] = {f.__name__: f for f in (linear, soft_l1, huber, cauchy, arctan)}


def check_plain(values: object) -> None:
    """Raise where values are traced."""
    if is_traced(values):
        raise TypeError(
            "lm_solve and least_squares run on numbers, and were given a value of a function that "
            "is being recorded: call them outside, or write the conditions of the minimum as "
            "equations, arc.root(arc.grad(cost), x0), which can be recorded and differentiated."
        )


@record
class StopLimits:
    """When to stop without a minimum."""

    evaluations: int
    iterations: float
    time: float

    @classmethod
    def read(cls, max_nfev: int, maxiter: int | None, maxtime: float | None) -> StopLimits:
        """Return limits from now on."""
        for name, value in (("max_nfev", max_nfev), ("maxiter", maxiter), ("maxtime", maxtime)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} must be a positive number")
        end = np.inf if maxtime is None else time.perf_counter() + maxtime
        return cls(int(max_nfev), np.inf if maxiter is None else maxiter, end)

    def check(self, evaluations: int, iterations: int) -> LMStatus | None:
        """Return the limit that has been reached, if any."""
        if evaluations >= self.evaluations:
            return LMStatus.MAX_FEVAL
        if iterations >= self.iterations:
            return LMStatus.MAX_ITERATIONS
        return LMStatus.TIME_LIMIT if time.perf_counter() > self.time else None


@record
class Report:
    """Lines about the iteration: printed, or logged at a level, every so many iterations."""

    every: int = 0
    level: int | None = None

    def write(self, entry: dict[str, Any]) -> None:
        """Write a line about an accepted step if it is its turn."""
        if self.every and entry["iteration"] % self.every == 0:
            line = (
                f"iteration {entry['iteration']:4d}  cost {entry['cost']:.8e}  "
                f"gradient {entry['grad_norm']:.2e}  step {entry['step_norm']:.2e}  "
                f"damping {entry['damping']:.2e}"
            )
            if self.level is None:
                print(line)
            else:
                logging.getLogger("archimedes.optimize").log(self.level, line)


def _half_square(r: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return 0.5 * float(matmul(r, r))


@dataclass(eq=False, repr=False)
class Residuals:
    """The residuals as a function of a vector, what they cost, and how often they were called."""

    residuals: Callable[..., Any]
    jacobian: Callable[..., Any]
    args: tuple[Any, ...]
    lower: np.ndarray
    upper: np.ndarray
    loss: Loss
    f_scale: float
    nfev: int = 0
    njev: int = 0

    def value(self, x: np.ndarray) -> np.ndarray:
        """Return the residuals (m,)."""
        self.nfev += 1
        value = self.residuals(x, *self.args)
        if self.nfev == 1:
            check_plain(value)  # what it reads may be traced
        return np.asarray(value)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Return their Jacobian (m, n)."""
        self.njev += 1
        return np.asarray(self.jacobian(x, *self.args))

    def cost(self, r: np.ndarray) -> float:
        """Return what is minimised."""
        if self.loss is linear:
            return _half_square(r)
        with np.errstate(over="ignore", invalid="ignore"):
            return 0.5 * self.f_scale**2 * float(np.sum(self.loss((r / self.f_scale) ** 2)[0]))

    def model(self, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals and Jacobian, weighted, whose squares have the cost's gradient.

        The weights are sqrt(rho'). Losses bend down as z grows, so that the true cost falls at
        least as much as these squares do: steps need no second derivative, and are never misled
        by one.
        """
        if self.loss is linear:
            return r, J
        weight = np.sqrt(self.loss((r / self.f_scale) ** 2)[1])
        return r * weight, J * weight[:, None]


@dataclass(eq=False, repr=False)
class Search:
    """The state of the iteration."""

    problem: Residuals
    x: np.ndarray
    tolerances: tuple[float, float, float]
    limits: StopLimits
    mu: float
    #: Scales of the unknowns that the caller has chosen.
    diag: np.ndarray | None = None
    report: Report = field(default_factory=lambda: Report())
    growth: float = 2.0
    #: The accepted steps.
    history: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> LMStatus:
        """Iterate until something is known about the end."""
        first = self.problem.value(self.x)
        if first.size == 0:
            raise ShapeDtypeError(
                "func returns no residuals, so any x would be a solution: does it end with a "
                "return "
                "statement, and is the data it reads empty?"
            )
        self._arrive(self.x, first)
        self.scale = np.zeros_like(self.x) if self.diag is None else self.diag
        self.reach, self.first_mu = np.abs(self.x), self.mu
        try:
            flat = np.isfinite(self.cost) and self.cost > 0.0 and not np.any(self.J)
            if flat and self._probe(0.0) is None:
                return LMStatus.FLAT
            status = self._iterate()
            while status.success and self._leave_maximum():
                status = self._iterate()
            return self._leap() if status is LMStatus.STALLED else status
        except KeyboardInterrupt:
            return LMStatus.INTERRUPTED

    def _leave_maximum(self) -> bool:
        """Move on from where an unknown has no slopes, if the cost is lower beside it."""
        still = np.flatnonzero(~np.any(self.J, axis=0))
        return bool(still.size and self.cost > 0.0 and self._probe(1e-8 * self.cost, still))

    def _leap(self) -> LMStatus:
        """Go on behind the kink at which a search has stalled, as long as that helps.

        Slopes that jump, as those of a table that is read linearly, promise a gain that no short
        step gives. The whole step of the linear model leads past the jump, and may raise the cost
        at first (a watchdog: Chamberlain et al., Math. Programming Study 16, 1982).
        """
        status = LMStatus.STALLED
        while status is LMStatus.STALLED:
            held, stalled = (self.x, self.raw[0]), self.cost
            try:
                x = np.clip(self.x + self._whole_step(), self.problem.lower, self.problem.upper)
                self._arrive(x, self.problem.value(x))
                self._restart(np.zeros_like(x))
                status = self._iterate()
            except KeyboardInterrupt:
                status = LMStatus.INTERRUPTED
            if not self.cost < 0.5 * stalled:
                self._arrive(*held)
                return status if status is LMStatus.INTERRUPTED else LMStatus.STALLED
        return status

    def _whole_step(self) -> np.ndarray:
        """Return the step of the linear model without damping."""
        free = self._free(matmul(self.J.T, self.r))
        sizes = np.linalg.norm(self.J[:, free], axis=0)
        step = np.zeros_like(self.x)
        whole = solve_least_squares(self._unit_columns(free), self.r)
        step[free] = -whole / np.where(sizes > 0, sizes, 1.0)
        return step

    def _restart(self, scale: np.ndarray) -> None:
        """Begin again with the first damping."""
        self.scale = scale if self.diag is None else self.diag
        self.mu, self.growth = self.first_mu, 2.0

    def _iterate(self) -> LMStatus:
        while np.isfinite(self.cost) and np.all(np.isfinite(self.J)):
            if self.diag is None:
                self.scale = np.maximum(self.scale, np.linalg.norm(self.J, axis=0))
            self.reach = np.maximum(self.reach, np.abs(self.x))
            if self._is_orthogonal():
                return LMStatus.GTOL_REACHED
            if self._is_rounding(1.0):
                return LMStatus.ROUNDING_REACHED
            status = self._descend(self._free(matmul(self.J.T, self.r)))
            if status is not None:
                return status
        return LMStatus.NON_FINITE

    def _arrive(self, x: np.ndarray, r: np.ndarray) -> None:
        raw = (r, self.problem.slope(x))
        # All at once: an interrupt leaves it where it was, or where it is.
        self.x, self.cost, self.raw = x, self.problem.cost(r), raw
        #: Those of the model: with a loss, outliers have been made smaller.
        self.r, self.J = self.problem.model(*self.raw)

    def _probe(self, least: float, among: np.ndarray | None = None) -> bool | None:
        """Move to the best of some points nearby if it lowers the cost by more than ``least``.

        Return whether it does, None if the cost is the same at all of them. A point without slopes
        may be a maximum (x**2 - 1 at 0), which no gradient tells, or on a plateau.
        """
        start, best, plateau = self.cost, None, True
        unknowns = range(self.x.size) if among is None else among
        for k, part, sign in product(unknowns, _PROBES, (1.0, -1.0)):
            x = np.array(self.x)
            x[k] += sign * part * max(1.0, abs(x[k]))
            x = np.clip(x, self.problem.lower, self.problem.upper)
            if self._limit() is not None:
                break
            r = self.problem.value(x)
            cost = self.problem.cost(r)
            plateau = plateau and cost == start
            if cost < (start - least if best is None else best[0]):
                best = (cost, x, r)
        if best is None:
            return None if plateau else False
        step = best[1] - self.x
        self._arrive(*best[1:])
        self._note(step)
        return True

    def _note(self, step: np.ndarray) -> None:
        """Note an accepted step."""
        entry = {
            "iteration": len(self.history) + 1,
            "cost": self.cost,
            "grad_norm": float(np.max(np.abs(matmul(self.J.T, self.r)), initial=0.0)),
            "step_norm": float(norm(step)),
            "damping": float(self.mu),
            "nfev": self.problem.nfev,
        }
        self.history.append(entry)
        self.report.write(entry)

    def _free(self, gradient: np.ndarray) -> np.ndarray:
        low = (self.x <= self.problem.lower) & (gradient > 0)
        high = (self.x >= self.problem.upper) & (gradient < 0)
        return ~(low | high)

    def _step(self, free: np.ndarray) -> np.ndarray:
        """Solve for the damped step by least squares: J^T J would square the condition of J."""
        # Columns of size 1: small ones must not be taken for rounding of large ones.
        scale = np.where(self.scale > 0, self.scale, 1.0)[free]
        rows = np.concatenate([self.J[:, free] / scale, np.sqrt(self.mu) * np.eye(scale.size)])
        right = np.concatenate([-self.r, np.zeros(scale.size)])
        step = np.zeros_like(self.x)
        step[free] = solve_least_squares(rows, right) / scale
        return np.clip(self.x + step, self.problem.lower, self.problem.upper) - self.x

    def _descend(self, free: np.ndarray) -> LMStatus | None:
        """Raise the damping until a step lowers the cost; take it, and tell if it was the last."""
        ftol, xtol, _ = self.tolerances
        gradient = matmul(self.J.T, self.r)
        while (limit := self._limit()) is None:
            step = self._step(free)
            # Rounding must not carry x beyond a bound.
            x = np.clip(self.x + step, self.problem.lower, self.problem.upper)
            if self.mu > _MOST_DAMPING or np.array_equal(x, self.x):
                return self._without_progress(1e-8)
            r = self.problem.value(x)
            cost = self.problem.cost(r)
            predicted = -float(matmul(gradient, step)) - _half_square(matmul(self.J, step))
            gained = self.cost - cost
            short = self._is_short(step, free)
            if np.isfinite(cost) and gained > 0 and predicted > 0:
                small_f = max(gained, predicted) <= ftol * self.cost
                small_x = norm(self.scale * step) <= xtol * norm(self.scale * x)
                small_x = bool(small_x) and self.mu <= 1.0
                self._arrive(x, r)
                self._note(step)
                self.mu *= max(1 / 3, 1 - (2 * gained / predicted - 1) ** 3)
                self.mu, self.growth = max(self.mu, _LEAST_DAMPING), 2.0
                if (small_f or small_x) and self._is_minimum(ftol):
                    return LMStatus(small_f + 2 * small_x)
                return LMStatus.ROUNDING_REACHED if short else None
            if short:
                return LMStatus.ROUNDING_REACHED
            if abs(gained) <= _EPS * self.cost and self._is_minimum(ftol):
                return LMStatus.FTOL_REACHED
            if predicted <= _EPS * self.cost and abs(gained) <= ftol * self.cost:
                # Steps are so short that rounding decides about them.
                return self._without_progress(ftol)
            self.mu *= self.growth
            self.growth = min(2 * self.growth, _MOST_GROWTH)
        return limit

    def _limit(self) -> LMStatus | None:
        return self.limits.check(self.problem.nfev, len(self.history))

    def _without_progress(self, tolerance: float) -> LMStatus | None:
        """Return what it means that no step lowers the cost, or None if there is a way on."""
        if self._is_minimum(tolerance):
            return LMStatus.XTOL_REACHED
        if self._is_rounding(_ROUNDINGS):
            return LMStatus.ROUNDING_REACHED
        if self._is_curved(tolerance):
            return None if self._probe(tolerance * self.cost) else LMStatus.FTOL_REACHED
        sizes = np.linalg.norm(self.J, axis=0)
        if self.diag is None and np.any(sizes < 1e-3 * self.scale):
            # Columns have been much larger elsewhere: as damping, that holds their unknowns.
            self._restart(sizes)
            return None
        return self._limit() or LMStatus.STALLED

    def _is_curved(self, tolerance: float) -> bool:
        """Return whether the cost is convex here and Newton's step has no more to gain than this.

        The linear model leaves out the curvature of the residuals, so that it may promise a gain
        at a minimum. Here the curvature comes from differences of gradients: one Jacobian for each
        unknown, and only where no step lowers the cost.
        """
        gradient = matmul(self.J.T, self.r)
        free = np.flatnonzero(self._free(gradient))
        H = np.zeros((free.size, free.size))
        for row, k in enumerate(free):
            if self._limit() is not None:
                return False
            x = np.array(self.x)
            x[k] += _EPS ** (1 / 3) * (self.reach[k] or 1.0)
            r, J = self.problem.model(self.problem.value(x), self.problem.slope(x))
            H[row] = (matmul(J.T, r) - gradient)[free] / (x[k] - self.x[k])
        scale = np.sqrt(np.maximum(np.abs(np.diag(H)), np.finfo(float).tiny))
        H = 0.5 * (H + H.T) / np.outer(scale, scale)
        try:
            half = np.linalg.solve(np.linalg.cholesky(H), gradient[free] / scale)
        except np.linalg.LinAlgError:
            return False
        return _half_square(half) <= tolerance * self.cost  # false for nan

    def _is_orthogonal(self) -> bool:
        """Return whether the residuals are orthogonal to all columns of J that are free, to gtol.

        It is the cosine that is small (More 1978, eq. 8.3): a gradient alone is small wherever the
        residuals are flat, such as exp(x) - 1 at x = -30.
        """
        gradient = matmul(self.J.T, self.r)
        sizes = np.linalg.norm(self.J, axis=0) * norm(self.r)
        free = self._free(gradient)
        return bool(np.all(np.abs(gradient[free]) <= self.tolerances[2] * sizes[free]))

    def _is_rounding(self, count: float) -> bool:
        """Return whether rounding x this often changes each residual by more than is left of it."""
        reach = count * _EPS * (matmul(np.abs(self.raw[1]), np.abs(self.x)))
        return bool(np.all(np.abs(self.raw[0]) <= reach))

    def _is_short(self, step: np.ndarray, free: np.ndarray) -> bool:
        """Return whether a step, and the one without damping, is no more than the rounding of x.

        What is left of the residuals is rounding then, also that of terms that do not depend on x.
        """
        sizes = np.linalg.norm(self.J, axis=0)
        rounding = 4.0 * _EPS * float(norm(sizes * self.x))
        if norm(sizes * step) > rounding:
            return False
        undamped = solve_least_squares(self._unit_columns(free), self.r)
        return float(norm(undamped)) <= rounding

    def _unit_columns(self, free: np.ndarray) -> np.ndarray:
        """Return columns of J by what they are here: elsewhere they may have been much larger."""
        sizes = np.linalg.norm(self.J[:, free], axis=0)
        return self.J[:, free] / np.where(sizes > 0, sizes, 1.0)

    def _is_minimum(self, tolerance: float) -> bool:
        """Return whether the linear model, without damping, has no more to gain than this."""
        if not np.all(np.isfinite(self.J)):
            return False
        part = self._unit_columns(self._free(matmul(self.J.T, self.r)))
        gain = _half_square(matmul(part, solve_least_squares(part, self.r)))
        return gain <= max(tolerance, 1e3 * _EPS) * self.cost
