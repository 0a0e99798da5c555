"""``falsify``: the search for a run that violates a requirement, the worse the better.

Many runs at once, on SIMD lanes: first spread over the ranges (their corners and constant inputs
among them), then near the best ones. Where the simulation can be differentiated, the gradient of
the robustness through it gives directions along which a batch tries many lengths at once. Where
this stalls, the search starts again.

Requirements may compare quantities of very different size, such as revolutions and speeds. Until
something is violated, the search looks at margins relative to how much each of them varies, and
from then on at the robustness itself. What is reported is that of a run that is simulated once
more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_callable, check_choice, check_whole
from archimedes.display import brief, number
from archimedes.errors import ArchimedesError
from archimedes.function import compile as compile_function
from archimedes.function import grad, vmap
from archimedes.function.recording_store import find_or_make
from archimedes.records import record
from archimedes.requirements.checking import name_requirements
from archimedes.requirements.formulas import Comparison, Requirement
from archimedes.requirements.runs import Run, as_trajectory, runs_of
from archimedes.requirements.search_space import PiecewiseInput, SearchSpace
from archimedes.requirements.verdicts import Verdict, decide
from archimedes.simulate.ode import odeint, solve_ode
from archimedes.simulate.problem.inputs import InputSeries, Sampled
from archimedes.simulate.trajectory.trajectory import Trajectory
from archimedes.typing import Array, Tree

__all__ = ["Falsification", "falsify"]

#: Samples of a run on which the search evaluates the requirement.
SAMPLES = 256
#: Runs from which gradients are followed at once, and lengths that are tried along each.
CLIMBERS, LENGTHS = 4, np.array([1.0, 0.4, 0.15, 0.05, 0.015, 0.004])
#: Width, relative to how much the margins vary, within which samples count for a gradient.
SMOOTH = 0.05
#: Rounds without progress after which the search starts again, and what progress is.
PATIENCE, PROGRESS = 6, 1e-3
#: Violating candidates that are simulated once more at the end.
CONFIRMED = 4


@dataclass(frozen=True, eq=False, repr=False)
class Falsification:
    """What a search found; made by :func:`falsify`.

    Parameters
    ----------
    requirement : Requirement
        What was to be violated.
    status : str
        ``"violated"``, or ``"not found"``, which proves nothing.
    robustness : float
        Robustness of the worst run found, as `requirement.robustness(trajectory)` gives it.
    arguments : tree
        What makes this run: a tree like the ranges, with numbers and input series.
    trajectory : Trajectory
        The run. ``simulate()`` gives the same bits again.
    verdict : Verdict
        What decides in this run, and when.
    simulations : int
        Number of simulations of the search, those for gradients included.
    gradients : int
        How many of them were differentiated.
    first_violation : int or None
        Number of simulations after which a violation was known.
    seed : int
        Seed of the search.
    seconds : float
        How long it took.
    message : str
        Why the search ended.
    history : list of (int, float)
        Number of simulations and best robustness, at each progress.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import requirements as req
    >>> from archimedes.simulate import Uniform
    >>> t = np.linspace(0.0, 2.0, 41)
    >>> throw = lambda p: {"t": t, "alt": p["speed"] * t - 4.905 * t**2}
    >>> low = req.always(req.signal("alt", units="m") < 2)
    >>> result = req.falsify(throw, low, {"speed": Uniform(5.0, 9.0)}, seed=1)
    >>> result.status, round(float(result.arguments["speed"]), 6)
    ('violated', 9.0)
    """

    requirement: Requirement
    status: str
    robustness: float
    arguments: Any
    trajectory: Trajectory
    verdict: Verdict
    simulations: int
    gradients: int
    first_violation: int | None
    seed: int
    seconds: float
    message: str
    history: list[tuple[int, float]]
    _simulate: Callable[[], Trajectory] = field(repr=False)

    def simulate(self) -> Trajectory:
        """Return the run once more, with the same bits."""
        return self._simulate()

    def __repr__(self) -> str:
        lines = [f"{self.status}: {self.requirement}", f"  {self.verdict}"]
        leaves, treedef = tree.flatten(self.arguments)
        for path, leaf in zip(treedef.paths(""), leaves):
            shown = leaf.u if isinstance(leaf, InputSeries) else leaf
            name = re.sub(r"^\['(\w+)'\]", r"\1", path).lstrip(".") or "argument"
            lines.append(f"  {name}: {brief(shown)}")
        lines = (
            lines if len(lines) <= 20 else [*lines[:19], f"  ... {len(lines) - 19} more arguments"]
        )
        counts = f"{self.simulations} simulations ({self.gradients} with gradients)"
        return "\n".join(
            [*lines, f"  {counts}, seed {self.seed}, {self.seconds:.2g} s: {self.message}"]
        )

    def report(self) -> str:
        """Return everything as text: the summary, and how the search went on."""
        steps = [f"  {count} simulations: {number(float(best))}" for count, best in self.history]
        return "\n".join([repr(self), *steps])


def falsify(
    model: Callable[..., Any],
    requirement: Requirement | Sequence[Requirement] | Mapping[str, Requirement],
    ranges: Tree,
    *,
    t_span: Sequence[float] | None = None,
    stop: str = "worst",
    max_simulations: int = 2000,
    batch: int = 32,
    seed: int = 0,
    gradients: bool = True,
    vectorize: bool = True,
    t_eval: Any = None,
    **options: Any,
) -> Falsification:
    """Search the run that violates a requirement worst, and return it.

    Parameters
    ----------
    model : callable
        A function of the arguments, ``model(params)``, that returns a run: a trajectory, or a dict
        of times ``t`` and signals. Or, with `t_span`, the right-hand side of a differential
        equation, ``func(t, x, *args)`` or ``func(t, x, u, *args)``, as in :func:`solve_ode`.
    requirement : Requirement, or sequence or dict of them
        What is required; of several, all.
    ranges : tree
        A tree like the arguments of the model, with a `Uniform(low, high)`, another distribution
        or a :class:`PiecewiseInput` where a value may vary. Everything else is fixed. With
        `t_span`: a dict with ``"x0"`` and, where the model takes them, ``"inputs"`` and ``"args"``.
    t_span : (float, float), optional
        Start and end of the simulation, if the model is a differential equation.
    stop : {"worst", "first"}, optional
        Search the worst run, the default, or stop at the first violation.
    max_simulations : int, optional
        Most simulations that the search makes.
    batch : int, optional
        Simulations that are made at once.
    seed : int, optional
        Seed of the search. The same seed gives the same result.
    gradients : bool, optional
        Differentiate the simulation. True by default.
    vectorize : bool, optional
        Compile the model and simulate batches natively. With False the model is called as plain
        Python, run by run, without gradients.
    t_eval : array_like (m,), optional
        Times at which a differential equation is looked at during the search: by default 257 of
        equal distance. The run that is returned has dense output.
    **options
        Options of :func:`solve_ode`, such as ``method``, ``rtol``, ``dt``.

    Returns
    -------
    Falsification
        Status, robustness, arguments and trajectory of the worst run.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import requirements as req
    >>> from archimedes.simulate import Uniform
    >>> def swing(t, x, push, length):
    ...     return np.array([x[1], -9.81 / length * np.sin(x[0]) - 0.1 * x[1] + push])
    >>> ranges = {"x0": np.zeros(2), "inputs": req.PiecewiseInput(-0.5, 0.5, pieces=6),
    ...           "args": (Uniform(0.8, 1.2),)}
    >>> steady = req.always(abs(req.signal("x[0]")) < 0.15, between=(0, 6))
    >>> options = {"method": "rk4", "dt": 0.05, "max_simulations": 100, "gradients": False}
    >>> result = req.falsify(swing, steady, ranges, t_span=(0.0, 6.0), **options)
    >>> result.status, bool((result.simulate().x == result.trajectory.x).all())
    ('violated', True)
    """
    began = time.perf_counter()
    check_callable(model, "falsify: model", "model(params) -> run", "write f, not f(x)")
    check_choice(stop, "falsify: stop", ("worst", "first"))
    most = check_whole(max_simulations, "falsify: max_simulations", 1)
    size = min(check_whole(batch, "falsify: batch", 1), most)
    whole = _as_one(requirement)
    for name in options:
        if name in ("args", "inputs", "x0"):
            raise TypeError(f"falsify: {name} belongs into ranges, as ranges[{name!r}]")
        if name in ("sampled", "events", "in_axes", "dense"):
            raise TypeError(
                f"falsify: {name} is not an option of the search: write model(params), which "
                "simulates by itself and returns a run, and leave t_span out"
            )
    if t_span is None and (options or t_eval is not None):
        extra = ", ".join([*options, *(["t_eval"] if t_eval is not None else [])])
        raise TypeError(
            f"falsify: {extra} are for differential equations, and need t_span=(start, end): "
            "without it, model(params) simulates by itself"
        )
    problem = (
        Simulator(model, SearchSpace.of(ranges), vectorize)
        if t_span is None
        else Equation(model, _check_ode_ranges(ranges, t_span), t_span, t_eval, options)
    )
    search = Search(problem, whole, size, most, seed, stop == "first", gradients)
    message = search.run()
    z, trajectory = search.confirm()
    verdict = whole.verdict(trajectory)
    violated = verdict.status == "violated"
    return Falsification(
        requirement=whole,
        status="violated" if violated else "not found",
        robustness=verdict.robustness,
        arguments=problem.space.arguments(z),
        trajectory=trajectory,
        verdict=verdict,
        simulations=search.simulations,
        gradients=search.differentiated,
        first_violation=search.first if violated else None,
        seed=seed,
        seconds=time.perf_counter() - began,
        message=message,
        history=search.history,
        _simulate=lambda: problem.simulate(z),
    )


def _as_one(requirement: Any) -> Requirement:
    """Return one requirement for one or several."""
    if isinstance(requirement, Requirement):
        return requirement
    named = name_requirements(requirement)
    if not named:
        raise ValueError("falsify: requirement is empty: give at least one")
    first, *others = (part.named(part.name or name) for name, part in named.items())
    for other in others:
        first = first & other
    return first


def _check_ode_ranges(ranges: Tree, t_span: Any) -> SearchSpace:
    """Return the space of the arguments of a differential equation."""
    allowed = ("x0", "inputs", "args")
    if not isinstance(ranges, Mapping) or "x0" not in ranges or set(ranges) - {*allowed}:
        got = f"keys {[*ranges]}" if isinstance(ranges, Mapping) else type(ranges).__name__
        raise ValueError(
            'falsify: with t_span, ranges is a dict with "x0", the state at the start, and where '
            f'the model takes them "inputs" and "args"; got {got}'
        )
    inputs = ranges.get("inputs")
    if inputs is not None and not isinstance(inputs, PiecewiseInput):
        raise TypeError(
            'falsify: ranges["inputs"] must be a req.PiecewiseInput(low, high, pieces), got '
            f"{type(inputs).__name__}; a fixed input belongs into the model"
        )
    return SearchSpace.of(dict(ranges), t_span)


@record
class Simulator:
    """A model that simulates by itself: a function of the arguments that returns a run."""

    model: Callable[[Any], Any]
    space: SearchSpace
    vectorize: bool = True

    def run(self, z: Array) -> Trajectory:
        """Return the run for a point of the search space."""
        return as_trajectory(self.model(self.space.arguments(z)))

    def simulate(self, z: Array) -> Trajectory:
        """Return the run once more, by itself."""
        return (compile_function(self.run) if self.vectorize else self.run)(z)


@record
class Equation:
    """A differential equation: states at the start, inputs and arguments are searched."""

    func: Callable[..., Any]
    space: SearchSpace
    t_span: Sequence[float]
    t_eval: Any
    options: dict[str, Any]
    vectorize: bool = True

    def parts(self, z: Array) -> tuple[Any, InputSeries | None, tuple[Any, ...]]:
        """Return state at the start, inputs and arguments for a point."""
        values = self.space.arguments(z)
        args = values.get("args", ())
        return values["x0"], values.get("inputs"), args if isinstance(args, tuple) else (args,)

    def run(self, z: Array) -> Trajectory:
        """Return the run for a point, in recorded code; the solver stops where inputs change."""
        x0, series, args = self.parts(z)
        times = self.t_eval
        if times is None:
            times = np.linspace(float(self.t_span[0]), float(self.t_span[1]), SAMPLES + 1)
        times = np.asarray(times, dtype=float)
        if series is None:
            x = odeint(self.func, self.t_span, x0, t_eval=times, args=args, **self.options)
            return Trajectory(times, time_first(x))
        t, hold = series.t, series.hold
        if hold == "zoh":
            held = Sampled(
                lambda t_, x, u, corners, *args: InputSeries(t, corners)(t_),
                init=np.zeros(series.u.shape[1:]),
                times=t,
            )

            def func(t_: Any, x: Tree, u: Any, corners: Array, *args: Any) -> Any:
                return self.func(t_, x, u, *args)

        else:
            held = Sampled(lambda t_, x, u, *args: (), (), times=t)

            def func(t_: Any, x: Tree, u: Any, corners: Array, *args: Any) -> Any:
                return self.func(t_, x, InputSeries(t, corners, hold)(t_), *args)

        more: dict[str, Any] = {"args": (series.u, *args), "sampled": held, **self.options}
        x = odeint(func, self.t_span, x0, t_eval=times, **more)
        return Trajectory(times, time_first(x), u=series(times), hold=hold)

    def simulate(self, z: Array) -> Trajectory:
        """Return the run once more, with dense output."""
        x0, series, args = self.parts(z)
        return solve_ode(
            self.func, self.t_span, x0, inputs=series, args=args, dense=True, **self.options
        )


def time_first(x: Tree) -> Tree:
    """Return states of `odeint` with time as the first axis, as trees have it already."""
    return np.moveaxis(x, -1, 0) if tree.is_leaf(x) else x


@record
class Measures:
    """What a run is worth. Apart from the search, whose progress is no part of recorded code."""

    problem: Simulator | Equation
    requirement: Requirement
    comparisons: tuple[Comparison, ...]

    def measure(self, z: Array, scales: Array) -> tuple[Any, Any, Any]:
        """Return robustness, relative robustness, and how much each margin varies in the run."""
        (run,) = runs_of(self.problem.run(z))
        value = decide(*self.requirement.start_bounds(run))
        margins = [part.bounds(run, run.t)[0] for part in self.comparisons]
        spreads = np.stack([np.max(m) - np.min(m) for m in margins])
        one = len(margins) == 1
        return value, value / scales[0] if one else self._relative(run, scales), spreads

    def smooth_margin(self, z: Array, scales: Array) -> Any:
        """Return the relative robustness with smooth minima, for its gradient."""
        (run,) = runs_of(self.problem.run(z), smooth=SMOOTH)
        return self._relative(run, scales)

    def measure_each(self, points: np.ndarray, scales: np.ndarray) -> tuple[Any, ...]:
        """Return what `measure` does for many points, as plain Python."""
        rows = [self.measure(z, scales) for z in points]
        return tuple(np.array(column, dtype=float) for column in zip(*rows))

    def _relative(self, run: Run, scales: Array) -> Any:
        by_part = {id(part): scales[k] for k, part in enumerate(self.comparisons)}
        return decide(*self.requirement.start_bounds(replace(run, scales=by_part)))


class Search:
    """The search itself: points of the unit cube, the best first."""

    def __init__(
        self,
        problem: Simulator | Equation,
        requirement: Requirement,
        batch: int,
        most: int,
        seed: int,
        stop_at_first: bool,
        gradients: bool,
    ) -> None:
        self.problem, self.requirement, self.batch, self.most = problem, requirement, batch, most
        self.stop_at_first = stop_at_first
        unique = {id(part): part for part in requirement.comparisons()}
        measures = Measures(problem, requirement, tuple(unique.values()))
        self.scales = np.ones(len(measures.comparisons))
        self.random = np.random.default_rng(seed)
        self.low, self.high = problem.space.limits
        self.simulations = self.differentiated = 0
        self.first: int | None = None
        self.history: list[tuple[int, float]] = []
        d = problem.space.size
        #: Points, their margins relative to the scales, and their robustness, the best first.
        self.points = np.empty((0, d))
        self.margins = self.values = np.empty(0)
        self.best_point, self.best_margin, self.best_value = np.empty(d), np.inf, np.inf
        self.followed: set[bytes] = set()
        self.note = ""
        self.measure_all: Callable[..., Any]
        self.slopes: Callable[..., Any] | None
        if problem.vectorize:
            self.measure_all, slopes = find_or_make(
                *("falsify", (measures.measure, measures.smooth_margin), ()),
                lambda _: (
                    vmap(measures.measure, in_axes=(0, None)),
                    vmap(grad(measures.smooth_margin), in_axes=(0, None)),
                ),
            )
            self.slopes = slopes if gradients else None
        else:
            self.measure_all, self.slopes = measures.measure_each, None

    # ---- rounds --------------------------------------------------------------------------

    def run(self) -> str:
        """Search; return why it ended."""
        self._first_round()
        idle = 0
        while True:
            if self.stop_at_first and self.best_value < 0.0:
                return "a violation was found" + self.note
            if self.simulations >= self.most:
                return "the number of simulations is used up" + self.note
            if idle >= 3 * PATIENCE and self.best_value < 0.0:
                return "no progress after several restarts" + self.note
            before = self.best_margin
            if idle and idle % PATIENCE == 0:
                self._forget()
                self._try(self._spread(self.batch))
            self._try(self._next_points())
            gained = before - self.best_margin > PROGRESS * max(abs(before), PROGRESS)
            idle = 0 if gained else idle + 1

    def _first_round(self) -> None:
        """Spread over the ranges, and find out how much each margin varies."""
        points = self._spread(self.batch)
        points[0] = 0.5  # the middle of everything
        _, _, spreads = self.measure_all(points, self.scales)
        typical = np.nanmedian(np.where(np.isfinite(spreads), spreads, np.nan), axis=0)
        self.scales = np.where(typical > 0.0, typical, 1.0)
        self._try(points)

    def _try(self, points: np.ndarray) -> None:
        """Simulate points and keep the best ones."""
        points = points[: max(self.most - self.simulations, 0)]
        if not len(points):
            return
        short = self.batch - len(points)
        filled = (
            np.concatenate([points, np.repeat(points[-1:], short, axis=0)]) if short else points
        )
        values, margins, _ = self.measure_all(filled, self.scales)
        values, margins = (np.asarray(v, dtype=float)[: len(points)] for v in (values, margins))
        self.simulations += len(points)
        self._keep(points, values, margins)

    def _keep(self, points: np.ndarray, values: np.ndarray, margins: np.ndarray) -> None:
        margins = np.where(np.isnan(margins), np.inf, margins)
        every = np.concatenate([self.points, points])
        all_margins = np.concatenate([self.margins, margins])
        all_values = np.concatenate([self.values, values])
        _, unique = np.unique(every, axis=0, return_index=True)
        order = unique[np.argsort(all_margins[unique], kind="stable")][: 2 * self.batch]
        self.points, self.margins = every[order], all_margins[order]
        self.values = all_values[order]
        if self.margins[0] < self.best_margin:
            self.best_point, self.best_margin = self.points[0], self.margins[0]
            self.best_value = self.values[0]
            self.history.append((self.simulations, float(self.best_value)))
        if self.first is None and self.best_value < 0.0:
            self.first = self.simulations
            if len(self.scales) > 1:
                self._look_at_the_robustness_itself()

    def _look_at_the_robustness_itself(self) -> None:
        """From the first violation on, the worst run is that of the least robustness."""
        self.scales = np.ones_like(self.scales)
        values = np.where(np.isnan(self.values), np.inf, self.values)
        order = np.argsort(values, kind="stable")
        self.points, self.margins, self.values = self.points[order], values[order], values[order]
        self.best_point, self.best_margin = self.points[0], self.margins[0]
        self.best_value = self.values[0]
        self.followed.clear()

    def _forget(self) -> None:
        """Start again, with the best point as one of many."""
        self.points, self.margins, self.values = self.points[:1], self.margins[:1], self.values[:1]

    def _next_points(self) -> np.ndarray:
        """Return a batch: along gradients, near the best points, and anywhere."""
        ahead = self._along_gradients()
        rest = self.batch - len(ahead)
        fresh = self._spread(max(rest // 4, 1))
        return np.concatenate([ahead, fresh, self._mutants(rest - len(fresh))])[: self.batch]

    def _along_gradients(self) -> np.ndarray:
        """Return points at several distances downhill of the best points."""
        none = np.empty((0, len(self.low)))
        if self.slopes is None or self.simulations + CLIMBERS >= self.most:
            return none
        new = [z for z in self.points[: 2 * CLIMBERS] if z.tobytes() not in self.followed]
        if not new:
            return none
        starts = np.array((new * CLIMBERS)[:CLIMBERS])
        try:
            slopes = np.asarray(self.slopes(starts, self.scales))
        except ArchimedesError as error:
            self.slopes = None
            self.note = f"; without gradients, because {error}"
            return none
        self.followed.update(z.tobytes() for z in starts)
        self.simulations += CLIMBERS
        self.differentiated += CLIMBERS
        found = []
        for z, slope in zip(starts[: len(new)], slopes):
            down = np.where(np.isfinite(slope), -slope, 0.0)
            down = np.where((down < 0.0) & (z <= self.low), 0.0, down)
            down = np.where((down > 0.0) & (z >= self.high), 0.0, down)
            if (steepest := np.abs(down).max()) > 0.0:
                for way in (down / steepest, np.sign(down)):
                    found.append(np.clip(z + LENGTHS[:, None] * way, self.low, self.high))
        # The first lengths of all before the last ones of any.
        every = np.stack(found, axis=1).reshape(-1, len(self.low)) if found else none
        return every[: self.batch - self.batch // 4]

    def _mutants(self, count: int) -> np.ndarray:
        """Return changed copies of the best points: differences of others, and single numbers."""
        n, d = len(self.points), len(self.low)
        ranks = np.minimum((n * self.random.random(count) ** 2).astype(int), n - 1)
        z = self.points[ranks]
        a, b = (self.points[self.random.integers(0, n, count)] for _ in range(2))
        moved = z + self.random.random((count, 1)) * (a - b)
        moved = np.where(self.random.random((count, d)) < 0.5, moved, z)
        width = 10.0 ** self.random.uniform(-3.0, -0.5, (count, 1))
        moved = moved + width * self.random.normal(size=(count, d)) * (
            self.random.random((count, d)) < 0.3
        )
        anew = self.random.random((count, d)) < 1.0 / d
        return np.where(anew, self._spread(count), np.clip(moved, self.low, self.high))

    def _spread(self, count: int) -> np.ndarray:
        """Return points over the whole space: anywhere, at corners, and with constant inputs."""
        d = len(self.low)
        anywhere = self.random.random((count, d))
        corner = np.where(self.random.random((count, d)) < 0.5, 0.0, 1.0)
        mixed = np.where(self.random.random((count, d)) < 0.5, anywhere, corner)
        kind = self.random.integers(0, 4, count)[:, None]
        points = np.select([kind == 0, kind == 1], [anywhere, mixed], corner)
        points = np.where(kind == 3, self.problem.space.level(points), points)
        return np.clip(points, self.low, self.high)

    # ---- the end -------------------------------------------------------------------------

    def confirm(self) -> tuple[np.ndarray, Trajectory]:
        """Return the point whose run is worst when it is simulated by itself, and that run."""
        violating = self.points[self.margins < 0.0][: CONFIRMED - 1]
        found = []
        for z in [self.best_point, *violating]:
            trajectory = self.problem.simulate(z)
            self.simulations += 1
            value = float(self.requirement.robustness(trajectory))
            found.append((value if value == value else np.inf, z, trajectory))
            if value < 0.0 or not self.best_value < 0.0:
                break
        return min(found, key=lambda each: each[0])[1:]
