"""Weighted least squares over parameters, with states at some samples and equations between them.

Unknowns z = [free parameters, states]; residuals r(z) are weighted so that their variance is one,
c(z) = 0 are jumps between segments. Multipliers bring the jumps to zero (augmented Lagrangian:
J. Nocedal, S. Wright, "Numerical optimization", 2nd ed., 17.4), so that the least-squares solver
keeps the bounds all along. The covariance is that of least squares within the jumps' null space
(H. G. Bock, "Recent advances in parameter identification techniques ...", 1983).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.operation.linearization import name_numbers
from archimedes.function import compile, jac
from archimedes.optimize import least_squares, minimize
from archimedes.optimize.problems.unknowns import read_limits
from archimedes.sysid.fit_results import Fit
from archimedes.sysid.timeseries import Timeseries

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

#: How often multipliers of the jumps are updated, and how small jumps must become.
UPDATES, JUMP = 12, 1e-9
#: What one jump costs against one residual, to begin with.
PRICE = 1e2


@dataclass
class Problem:
    """Functions of z and of weights; which of z are free, and between what.

    ``residuals(z, weights)`` (r,) and ``jumps(z)`` (c,) are plain NumPy.
    """

    residuals: Callable[..., Any]
    jumps: Callable[..., Any] | None
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def __post_init__(self) -> None:
        self.start = np.clip(self.start, self.lower, self.upper)
        self.free = self.lower < self.upper
        jumps = self.jumps

        def both(z: Array, weights: Array, price: Scalar, multipliers: Array) -> Any:
            r = self.residuals(z, weights)
            if jumps is None:
                return r
            return np.concatenate([r, price * jumps(z) + multipliers])

        self.both, self.slopes = compile(both), jac(both)

    def whole(self, v: Array) -> np.ndarray:
        """Return z for numbers of what is free."""
        z = np.array(self.start)
        z[self.free] = v
        return z


@dataclass(frozen=True)
class Solved:
    """The solution: z, residuals, the Jacobians of residuals and of jumps, how it ended.

    ``variance`` is that of the residuals, None where they themselves say it.
    """

    z: np.ndarray
    residuals: np.ndarray
    slopes: np.ndarray
    jump_slopes: np.ndarray
    cost: float
    iterations: int
    success: bool
    message: str
    variance: float | None = None


def minimize_free(
    cost: Callable[[Any], Any], problem: Problem, method: str, options: Mapping[str, Any] | None
) -> Any:
    """Minimise a function of z over what is free of it; the problem then starts there."""
    free = problem.free
    bounds = (problem.lower[free], problem.upper[free])
    bounded = bool(np.any(np.isfinite(bounds)))
    method = "L-BFGS-B" if method == "bfgs" and bounded else method
    found = minimize(
        lambda v: cost(problem.whole(v)),
        problem.start[free],
        bounds=bounds if bounded else None,
        method=method,
        options=dict(options or {}),
    )
    problem.start = problem.whole(found.x)
    return found


def minimize_squares(
    problem: Problem, weights: Array, method: str, options: Mapping[str, Any] | None
) -> Solved:
    """Minimise the sum of squares by a method of `minimize`; there are no jumps."""
    none = np.zeros(0)
    r = np.asarray(problem.both(problem.start, weights, PRICE, none))
    _check_misfit(r)

    def cost(z: Array) -> Any:
        r = problem.residuals(z, weights)
        return 0.5 * np.sum(r**2) / r.shape[0]

    found = minimize_free(cost, problem, method, options)
    z = problem.start
    r = np.asarray(problem.both(z, weights, PRICE, none))
    J = np.asarray(problem.slopes(z, weights, PRICE, none))
    half, jumps = 0.5 * float(r @ r), np.zeros((0, z.size))
    return Solved(z, r, J, jumps, half, found.iterations, found.success, found.message)


def solve(problem: Problem, weights: Array, options: Mapping[str, Any] | None = None) -> Solved:
    """Minimise the sum of squares with jumps led to zero."""
    m = 0 if problem.jumps is None else int(np.size(problem.jumps(problem.start)))
    multipliers, price, z = np.zeros(m), PRICE, np.array(problem.start)
    settings = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12, **(options or {})}
    free, iterations, last = problem.free, 0, np.inf
    for _ in range(UPDATES if m else 1):

        def misfit(v: Array, price: float = price, multipliers: Array = multipliers) -> Any:
            return problem.both(problem.whole(v), weights, price, multipliers)

        def slopes(v: Array, price: float = price, multipliers: Array = multipliers) -> Any:
            return problem.slopes(problem.whole(v), weights, price, multipliers)[:, free]

        _check_misfit(np.asarray(misfit(z[free])))
        edges = (problem.lower[free], problem.upper[free])
        result = least_squares(misfit, z[free], jac=slopes, bounds=edges, options=settings)
        z = problem.whole(result.x)
        problem.start = z
        iterations += result.nit
        if not m:
            break
        jump = (np.asarray(misfit(z[free]))[-m:] - multipliers) / price
        size = float(np.max(np.abs(jump)))
        if size <= JUMP * (1.0 + np.max(np.abs(z))):
            break
        multipliers = multipliers + price * jump
        if size > 0.1 * last:  # multipliers alone are too slow: jumps cost more
            price, multipliers = 10.0 * price, multipliers / 10.0
        last = size
    both = np.asarray(problem.both(z, weights, price, multipliers))
    J = np.asarray(problem.slopes(z, weights, price, multipliers))
    count = len(both) - m
    success, message = result.success, result.message
    if m and size > 1e-6 * (1.0 + np.max(np.abs(z))):
        success = False
        message = f"segments do not meet: a jump of {size:.3g} is left; start nearer, or use fewer"
    r = both[:count]
    cost = 0.5 * float(r @ r)
    return Solved(z, r, J[:count], J[count:] / price, cost, iterations, success, message)


def _check_misfit(r: np.ndarray) -> None:
    """Raise where the residuals of the guess have no sum of squares to minimise."""
    remedy = (
        "start nearer to the data, keep parameters where the model is defined with bounds=, or "
        "use multiple_shooting"
    )
    if not np.all(np.isfinite(r)):
        raise ValueError(f"the model gives nan or infinite outputs with p_guess: {remedy}")
    with np.errstate(over="ignore"):
        total = float(r @ r)
    if not np.isfinite(total):
        raise ValueError(
            f"the model diverges with p_guess: its outputs miss the data by up to "
            f"{np.max(np.abs(r)):.3g} times their spread or noise, whose square is no number any "
            f"more: {remedy}, with more segments where there are some"
        )


def variances(solved: Solved, free: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of z, zero where it is not free, and directions nothing determines."""
    J, C = solved.slopes[:, free], solved.jump_slopes[:, free]
    n = J.shape[1]
    basis = np.eye(n)
    if len(C):
        _, sizes, Vt = np.linalg.svd(C)
        rank = int(np.sum(sizes > 1e-12 * max(sizes.max(initial=0.0), 1e-300)))
        basis = Vt[rank:].T
    reduced = J @ basis
    columns = np.linalg.norm(reduced, axis=0)
    columns = np.where(columns > 0.0, columns, 1.0)
    _, sizes, Vt = np.linalg.svd(reduced / columns, full_matrices=False)
    determined = sizes > 1e-10 * max(sizes.max(initial=0.0), 1e-300)
    inverse = np.where(determined, 1.0 / np.where(determined, sizes, 1.0), 0.0)
    root = basis @ ((Vt.T * inverse) / columns[:, None])
    lost = basis @ (Vt[~determined].T / columns[:, None])
    P = np.zeros((len(free), len(free)))
    P[np.ix_(free, free)] = scale * root @ root.T
    blind = np.zeros((len(free), lost.shape[1]))
    blind[free] = lost
    return P, blind


def check_experiments(data: object, x0: Tree) -> tuple[list[Timeseries], list[Any]]:
    """Return the experiments, of which there may be one, and the first state of each."""
    experiments: list[Any] = list(data) if isinstance(data, list | tuple) else [data]
    if not experiments:
        raise ValueError("data must hold at least one Timeseries(ts, us, ys), got an empty list")
    first = experiments[0]
    for k, one in enumerate(experiments):
        name = "data" if one is data else f"data[{k}]"
        if not isinstance(one, Timeseries):
            raise TypeError(f"{name} must be a Timeseries(ts, us, ys), got {type(one).__name__}")
        sizes = [(len(series.us), len(series.ys), series.hold) for series in (first, one)]
        if sizes[0] != sizes[1]:
            here, there = ("{} inputs, {} outputs and hold={!r}".format(*size) for size in sizes)
            raise ValueError(
                f"{name} has {there}, data[0] has {here}: all experiments need the same"
            )
    count = len(experiments)
    # A list of numbers is one state; a list of states has one for each experiment.
    listed = isinstance(x0, list) and isinstance(data, list | tuple)
    if listed and not all(isinstance(x, float | int | np.number) for x in x0):
        if len(x0) != count:
            raise ValueError(
                f"x0 lists {len(x0)} states for {count} experiments: give one for each, or one "
                "state for all of them"
            )
        return experiments, list(x0)
    return experiments, [x0] * count


def check_given(data: object, p_guess: Tree, x0: Tree) -> tuple[list[Timeseries], list[Any]]:
    """Return experiments and first states; raise where data or guesses cannot be fitted."""
    if is_traced(p_guess, x0):
        raise TypeError(
            "fits run on numbers, and were given a value of a function that is being recorded: "
            "call them outside"
        )
    experiments, states = check_experiments(data, x0)
    seen = np.any([np.any(np.isfinite(one.ys), axis=1) for one in experiments], axis=0)
    if not np.all(seen):
        name = experiments[0].outputs[int(np.argmin(seen))]
        raise ValueError(f"data has no measurement of {name}, all are nan: leave that output out")
    for value, name in ((p_guess, "p_guess"), *((x, "x0") for x in states)):
        numbers = name_numbers(value, name)
        if name == "p_guess" and not numbers.names:
            raise ValueError("p_guess holds no numbers to fit")
        bad = np.flatnonzero(~np.isfinite(numbers.vector))
        if bad.size:
            raise ValueError(f"{name} must be finite: {numbers.names[bad[0]]} is not")
    return experiments, states


def check_held(data: Timeseries, model: str) -> None:
    """Raise where a model that sees one input per step gets inputs that change in between."""
    if len(data.us) and data.hold != "zoh":
        raise ValueError(
            f"data.hold={data.hold!r}, but {model} sees one input per step, held until the next "
            "sample ('zoh'): use output_error with dx/dt, which follows data.hold, or write "
            "data.replace(hold='zoh') if the inputs were held"
        )


@dataclass
class Unknowns:
    """Where parameters and states lie in the vector z, with their bounds.

    Each experiment has as many states as there are segments.
    """

    p_guess: Any
    x0s: list[Any]
    bounds: Any
    segments: int
    free_x0: bool

    def __post_init__(self) -> None:
        self.p, first = name_numbers(self.p_guess, "p"), [name_numbers(x, "x0") for x in self.x0s]
        self.x = first[0]
        for k, x in enumerate(first):
            if x.names != self.x.names:
                raise ValueError(
                    f"x0[{k}] has the numbers {', '.join(x.names)}, x0[0] {', '.join(self.x.names)}"
                    ": all experiments need the same states"
                )
        self.n, self.nx = len(self.p.names), len(self.x.names)
        low, high = read_limits(self.bounds, self.p_guess, "bounds")
        away = np.flatnonzero((self.p.vector < low) | (self.p.vector > high))
        if away.size:
            k = int(away[0])
            raise ValueError(
                f"p_guess is outside its bounds: {self.p.names[k]} is {self.p.vector[k]:.6g}, not "
                f"in [{low[k]:.6g}, {high[k]:.6g}]"
            )
        if np.all(low == high) and not self.free_x0:
            raise ValueError(
                "bounds fix every parameter, so that there is nothing to fit: free one of "
                f"{', '.join(self.p.names) or 'p'}"
            )
        states = np.stack([np.tile(x.vector, (self.segments, 1)) for x in first])
        free = np.full(states.shape, True)
        free[:, 0] = self.free_x0
        self.start = np.concatenate([self.p.vector, states.ravel()])
        self.lower = np.concatenate([low, np.where(free, -np.inf, states).ravel()])
        self.upper = np.concatenate([high, np.where(free, np.inf, states).ravel()])

    def parameters(self, z: Array) -> Any:
        """Return the tree of parameters in z."""
        return self.p.unravel(z[: self.n])

    def states(self, z: Array) -> Any:
        """Return the states at the beginnings of segments, (experiments, segments, nx)."""
        return np.reshape(z[self.n :], (len(self.x0s), self.segments, self.nx))


def make_fit(
    unknowns: Unknowns,
    problem: Problem,
    solved: Solved,
    data: Timeseries | Sequence[Timeseries],
    predictor: Callable[[Any, Any, Timeseries], np.ndarray],
) -> Fit:
    """Return the result: with covariance, what is not determined, and predictions."""
    n, experiments = unknowns.n, [data] if isinstance(data, Timeseries) else list(data)
    count = sum(int(np.count_nonzero(np.isfinite(one.ys))) for one in experiments)
    z = solved.z
    rests = (z <= problem.lower) | (z >= problem.upper)
    free = problem.free & ~rests
    dof = count - int(np.count_nonzero(free)) + len(solved.jump_slopes)
    scale = 2.0 * solved.cost / max(dof, 1) if solved.variance is None else solved.variance
    covariance, blind = variances(solved, free, scale)
    success, message = solved.success, solved.message
    if blind.shape[1]:
        shares = np.abs(blind[:n]).max(axis=1, initial=0.0)
        weak = [k for k, v in zip(unknowns.p.names, shares) if v > 0.1 * shares.max(initial=0.0)]
        success = False
        message = (
            f"the data do not determine {', '.join(weak) or 'the states'}: fix some of them with "
            "equal bounds, or excite the model otherwise"
        )
    if dof < 1:
        success = False
        message = f"{count} measurements are too few for {np.count_nonzero(free)} unknowns"
    p = unknowns.parameters(z)
    x0s = [unknowns.x.unravel(first) for first in unknowns.states(z)[:, 0]]
    predicted = [predictor(p, *pair) for pair in zip(x0s, experiments)]
    single = isinstance(data, Timeseries)
    bound = problem.free & rests
    return Fit(
        p=p,
        x0=x0s[0] if single else x0s,
        names=unknowns.p.names,
        covariance=covariance[:n, :n],
        unravel=unknowns.p.unravel,
        values=z[:n],
        dof=dof,
        predicted=predicted[0] if single else predicted,
        data=data if single else experiments,
        at_bounds=tuple(name for name, on in zip(unknowns.p.names, bound) if on),
        cost=solved.cost,
        iterations=solved.iterations,
        success=success,
        message=message,
        predictor=lambda x0, other: predictor(p, x0, other),
    )
