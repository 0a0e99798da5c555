"""``lm_solve``: the Levenberg-Marquardt method, with bounds.

Sources: K. Madsen, H. B. Nielsen, O. Tingleff, "Methods for non-linear least squares problems"
(2nd ed., DTU 2004), algorithm 3.16 and eq. 2.21 for the damping; J. J. More, "The
Levenberg-Marquardt algorithm: implementation and theory" (1978) for the scaling; D. M. Bates,
D. G. Watts, "A relative offset orthogonality convergence criterion for nonlinear least squares",
Technometrics 23 (1981), for telling a minimum from a stall.

Symbols: r residuals (m,), J Jacobian (m, n), g = J^T r, cost = r^T r / 2, D scales of the unknowns
(the largest column norms of J so far), mu damping, p step:  (J^T J + mu D^2) p = -g.
A bound holds an unknown that is on it and that -g would push beyond; others move, and steps that
pass a bound are cut there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.errors import ShapeDtypeError
from archimedes.function import jac as jacobian
from archimedes.function.recording_store import Current, form_of, prepared, prepared_function
from archimedes.optimize.fits.losses import LOSSES, Loss, scaled
from archimedes.optimize.fits.results import LMResult, LMStatus
from archimedes.optimize.problems.unknowns import name_number, read_limits
from archimedes.portable_numpy import matmul, norm, solve_least_squares

__all__ = ["lm_solve"]

_EPS = float(np.finfo(float).eps)
#: Residuals that this many roundings of x explain are rounding.
_ROUNDINGS = 100.0
#: How far from a start without slopes a better point is looked for, in units of x (at least 1).
_PROBES = (1e-3, 1e-1)
#: The most that damping grows by in one step: a larger factor would pass over steps that help.
_MOST_GROWTH = 8.0
#: Damping below which a step is as good as undamped, and beyond which it changes nothing.
_LEAST_DAMPING, _MOST_DAMPING = 1e-60, 1e30


def lm_solve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    bounds: Any = None,
    ftol: float = 1e-10,
    xtol: float = 1e-10,
    gtol: float = 1e-10,
    max_nfev: int | None = None,
    maxiter: int | None = None,
    maxtime: float | None = None,
    damping: float = 1e-3,
    loss: str = "linear",
    f_scale: float = 1.0,
    jac: Callable[..., Any] | None = None,
) -> LMResult:
    """Minimize the sum of squares of residuals by the Levenberg-Marquardt method.

    Wrong arguments raise an error; what the numbers do is in ``status`` of the result. Ctrl-C
    returns the best point so far.

    Parameters
    ----------
    func : callable
        Residuals ``func(x, *args)``, any tree of numbers.
    x0 : float, array or tree
        Starting point.
    args : tuple, optional
        Further arguments of the functions.
    bounds : (lower, upper), optional
        Limits: numbers, or trees like `x0`, with None where there is no limit. Equal limits fix a
        number.
    ftol : float, optional
        Relative change of the cost at which the iteration ends.
    xtol : float, optional
        Relative change of x at which it ends.
    gtol : float, optional
        Cosine of the angle between the residuals and each column of their Jacobian at which it
        ends, as in MINPACK, so that a flat region is not taken for a minimum.
    max_nfev : int, optional
        Largest number of evaluations, by default 100 for each unknown.
    maxiter : int, optional
        Largest number of iterations.
    maxtime : float, optional
        Longest time in s.
    damping : float, optional
        First damping of the steps.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}, optional
        All but ``"linear"`` give residuals above `f_scale` less weight.
    f_scale : float, optional
        Size of residuals that are no outliers.
    jac : callable, optional
        Jacobian (m, n) of a function of arrays, if it has been made already.

    Examples
    --------
    >>> rosenbrock = lambda x: np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
    >>> lm_solve(rosenbrock, [-1.2, 1.0]).x
    array([1., 1.])
    """
    if not callable(func):
        raise TypeError(
            f"func must be a function of x, got {type(func).__name__}: write least_squares(f, x0), "
            "not least_squares(f(x0), x0)"
        )
    args = args if isinstance(args, tuple) else (args,)
    _check_plain((x0, args))
    if isinstance(x0, (list, tuple)) and all(isinstance(x, (int, float)) for x in x0):
        x0 = np.array(x0, dtype=float)
    start, unravel = tree.ravel(tree.map(lambda leaf: np.asarray(leaf) * 1.0, x0))
    if start.size == 0:
        raise ValueError("x0 holds no numbers to solve for")
    lower, upper = _limits(bounds, x0, start)
    made: Any = _recorded(func, start, unravel) if jac is None else (func, jac)
    problem = _Problem(made[0], made[1], args, lower, upper)
    limits = _Limits.of(100 * start.size if max_nfev is None else max_nfev, maxiter, maxtime)
    if loss not in LOSSES or not f_scale > 0:
        raise ValueError(
            f"loss={loss!r} must be one of {tuple(LOSSES)}, f_scale={f_scale} positive"
        )
    cost = _Cost(LOSSES[loss], float(f_scale))
    search = _Search(problem, start, (ftol, xtol, gtol), limits, damping, cost)
    status = search.run()
    x = search.x
    mask = np.where(x <= lower, -1, np.where(x >= upper, 1, 0))
    return LMResult(
        x=unravel(x),
        cost=search.cost,
        fun=search.raw[0],
        jac=search.raw[1],
        grad=matmul(search.J.T, search.r),
        status=status,
        nfev=problem.nfev,
        njev=problem.njev,
        nit=len(search.history),
        active_mask=mask,
        history=tuple(search.history),
    )


def _recorded(func: Callable[..., Any], start: Any, unravel: Any) -> tuple[Any, Any]:
    """Return the residuals as a function of a vector, and their Jacobian."""

    def make(current: Current) -> tuple[Any, Any]:
        def residuals(x: Any, *args: Any) -> Any:
            return tree.ravel(current.functions[0](unravel(x), *args))[0] * 1.0

        name = getattr(func, "__name__", "residuals")
        made = prepared_function(residuals, (current,), name)
        return made, jacobian(made)

    return prepared("residuals", (func,), form_of(unravel(start)), make)


def _check_plain(given: Any) -> None:
    if is_traced(given):
        raise TypeError(
            "lm_solve and least_squares run on numbers, and were given a value of a function that "
            "is being recorded: call them outside, or write the conditions of the minimum as "
            "equations, arc.root(arc.grad(cost), x0), which can be recorded and differentiated."
        )


def _limits(bounds: Any, x0: Any, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds as vectors; equal ones hold a number where it is."""
    bad = np.flatnonzero(~np.isfinite(start))
    if bad.size:
        k = int(bad[0])
        raise ValueError(f"{name_number(x0, k, 'x0')} is {start[k]}: a start must be finite")
    lower, upper = read_limits(bounds, x0, "bounds")
    if not np.all((lower <= start) & (start <= upper)):
        k = int(np.argmin((lower <= start) & (start <= upper)))
        raise ValueError(
            f"x0 is outside its bounds: {name_number(x0, k, 'x0')} is {start[k]:.6g}, not in "
            f"[{lower[k]:.6g}, {upper[k]:.6g}]"
        )
    return lower, upper


@dataclass(frozen=True)
class _Limits:
    """When to stop without a minimum."""

    evaluations: int
    iterations: float
    time: float

    @classmethod
    def of(cls, max_nfev: Any, maxiter: Any, maxtime: Any) -> _Limits:
        """Return limits from now on."""
        for name, value in (("max_nfev", max_nfev), ("maxiter", maxiter), ("maxtime", maxtime)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value!r} must be a positive number")
        end = np.inf if maxtime is None else time.perf_counter() + maxtime
        return cls(int(max_nfev), np.inf if maxiter is None else maxiter, end)

    def passed(self, evaluations: int, iterations: int) -> LMStatus | None:
        """Return the limit that has been reached, if any."""
        if evaluations >= self.evaluations:
            return LMStatus.MAX_FEVAL
        if iterations >= self.iterations:
            return LMStatus.MAX_ITERATIONS
        return LMStatus.TIME_LIMIT if time.perf_counter() > self.time else None


@dataclass
class _Problem:
    """The functions, and how often they were called."""

    residuals: Callable[..., Any]
    jacobian: Callable[..., Any]
    args: tuple[Any, ...]
    lower: np.ndarray
    upper: np.ndarray
    nfev: int = 0
    njev: int = 0

    def value(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        found = self.residuals(x, *self.args)
        if self.nfev == 1:
            _check_plain(found)  # what it reads may be traced
        return np.asarray(found)

    def slope(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        return np.asarray(self.jacobian(x, *self.args))


def _half_square(r: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return 0.5 * float(matmul(r, r))


@dataclass(frozen=True)
class _Cost:
    """What is minimised of the residuals."""

    loss: Loss
    scale: float

    def of(self, r: np.ndarray) -> float:
        if self.loss is LOSSES["linear"]:
            return _half_square(r)
        with np.errstate(over="ignore", invalid="ignore"):
            return 0.5 * self.scale**2 * float(np.sum(self.loss((r / self.scale) ** 2)[0]))

    def model(self, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals and Jacobian whose squares stand for the cost nearby."""
        if self.loss is LOSSES["linear"]:
            return r, J
        return scaled(self.loss, self.scale, r, J)


@dataclass
class _Search:
    """The state of the iteration."""

    problem: _Problem
    x: np.ndarray
    tolerances: tuple[float, float, float]
    limits: _Limits
    mu: float
    loss: _Cost
    growth: float = 2.0
    history: list[float] = field(default_factory=list)

    def run(self) -> LMStatus:
        """Iterate until something is known about the end."""
        first = self.problem.value(self.x)
        if first.size == 0:
            raise ShapeDtypeError(
                "func returns no residuals, so that any x would do: does it end with a return "
                "statement, and is the data it reads empty?"
            )
        self._arrive(self.x, first)
        self.scale = np.zeros_like(self.x)
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
                self.scale, self.mu, self.growth = np.zeros_like(x), self.first_mu, 2.0
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

    def _iterate(self) -> LMStatus:
        while np.isfinite(self.cost) and np.all(np.isfinite(self.J)):
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
        self.x, self.cost, self.raw = x, self.loss.of(r), raw
        #: Those of the model: with a loss, outliers have been made smaller.
        self.r, self.J = self.loss.model(*self.raw)

    def _probe(self, least: float, among: np.ndarray | None = None) -> bool | None:
        """Move to the best of some points nearby if it lowers the cost by more than ``least``.

        Return whether it does, None if the cost is the same at all of them. A point without slopes
        may be a maximum (x**2 - 1 at 0), which no gradient tells, or on a plateau.
        """
        start, best, plateau = self.cost, None, True
        places = range(self.x.size) if among is None else among
        for k, part, sign in product(places, _PROBES, (1.0, -1.0)):
            x = np.array(self.x)
            x[k] += sign * part * max(1.0, abs(x[k]))
            x = np.clip(x, self.problem.lower, self.problem.upper)
            if self._limit() is not None:
                break
            r = self.problem.value(x)
            cost = self.loss.of(r)
            plateau = plateau and cost == start
            if cost < (start - least if best is None else best[0]):
                best = (cost, x, r)
        if best is None:
            return None if plateau else False
        self._arrive(*best[1:])
        self.history.append(self.cost)
        return True

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
            cost = self.loss.of(r)
            predicted = -float(matmul(gradient, step)) - _half_square(matmul(self.J, step))
            gained = self.cost - cost
            short = self._is_short(step, free)
            if np.isfinite(cost) and gained > 0 and predicted > 0:
                small_f = max(gained, predicted) <= ftol * self.cost
                size = float(norm(self.scale * step))
                small_x = size <= xtol * float(norm(self.scale * x))
                small_x = small_x and self.mu <= 1.0
                self._arrive(x, r)
                self.history.append(cost)
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
        return self.limits.passed(self.problem.nfev, len(self.history))

    def _without_progress(self, tolerance: float) -> LMStatus | None:
        """Return what it means that no step lowers the cost, or None if there is a way on."""
        if self._is_minimum(tolerance):
            return LMStatus.XTOL_REACHED
        if self._is_rounding(_ROUNDINGS):
            return LMStatus.ROUNDING_REACHED
        if self._is_curved(tolerance):
            return None if self._probe(tolerance * self.cost) else LMStatus.FTOL_REACHED
        sizes = np.linalg.norm(self.J, axis=0)
        if np.any(sizes < 1e-3 * self.scale):
            # Columns have been much larger elsewhere: as damping, that holds their unknowns.
            self.scale, self.mu, self.growth = sizes, self.first_mu, 2.0
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
            r, J = self.loss.model(self.problem.value(x), self.problem.slope(x))
            H[row] = (matmul(J.T, r) - gradient)[free] / (x[k] - self.x[k])
        if not np.all(np.isfinite(H)):
            return False
        scale = np.sqrt(np.maximum(np.abs(np.diag(H)), np.finfo(float).tiny))
        H = 0.5 * (H + H.T) / np.outer(scale, scale)
        g = gradient[free] / scale
        try:
            half = np.linalg.solve(np.linalg.cholesky(H), g)
        except np.linalg.LinAlgError:
            return False
        return _half_square(half) <= tolerance * self.cost

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
        free = self._free(matmul(self.J.T, self.r))
        if not np.all(np.isfinite(self.J)) or not np.any(free):
            return bool(np.all(np.isfinite(self.J)))
        part = self._unit_columns(free)
        gain = _half_square(matmul(part, solve_least_squares(part, self.r)))
        return gain <= max(tolerance, 1e3 * _EPS) * self.cost
