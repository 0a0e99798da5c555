"""Simulations against SciPy, CasADi and diffrax: time at equal achieved error, batches, gradients.

Every tool solves the same problems (``simulations_problems``) at several tolerances; its error is
measured against a reference before it is timed. Times at equal error are interpolated on
logarithmic scales between its points.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = [
    "Points",
    "measure_batches",
    "measure_gradients",
    "measure_solves",
    "solves",
    "tables",
    "time_at",
]

PROCESSES = int(os.environ.get("SIMULATIONS_PROCESSES", "3"))
#: Seconds for each point, and bodies in the batch: smaller ones for a quick look.
SECONDS = float(os.environ.get("SIMULATIONS_SECONDS", "0.07"))
BODIES = int(os.environ.get("SIMULATIONS_BODIES", "10000"))
TOOLS = ("Archimedes", "SciPy", "CasADi", "diffrax")
TUMBLING, AGREED = "tumbling body", 1e-9
#: Quickest at this error (diffrax's Tsit5 is level with 1,000 outputs, half as quick with one).
BATCH_METHODS = {"Archimedes": "dop853", "diffrax": "Dopri8"}


class Solver(NamedTuple):
    """A tool's way to solve a problem; ``make(rtol)()`` gives the states."""

    tool: str
    method: str
    make: Callable[[float], Callable[[], np.ndarray]]


def _best(run: Callable[[], Any], seconds: float) -> float:
    """Least time of one call over about ``seconds``."""
    best, begin = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _solvers(name: str) -> Iterator[Solver]:
    from benchmarks import simulations_peers as peers
    from benchmarks.simulations_problems import PROBLEMS

    problem = PROBLEMS[name]
    methods = {
        "Archimedes": ("rodas5p", "esdirk4", "cvode") if problem.stiff else ("dop853", "tsit5"),
        "SciPy": ("Radau", "LSODA") if problem.stiff else ("DOP853", "LSODA"),
        "CasADi": ("BDF, Newton",) if problem.stiff else ("Adams, functional", "BDF, Newton"),
        "diffrax": ("Kvaerno5",) if problem.stiff else ("Dopri8", "Tsit5"),
    }
    build = {
        "Archimedes": peers.ours,
        "SciPy": peers.scipy,
        "CasADi": peers.casadi,
        "diffrax": peers.diffrax,
    }
    for tool, names in methods.items():
        for method in names:
            yield Solver(tool, method, build[tool](problem, method))
    if name == TUMBLING:
        by_hand = peers.scipy(problem, "DOP853", by_hand=True)
        yield Solver("SciPy", "DOP853, scalar Python", by_hand)
        yield Solver("CasADi", "Adams, Newton", peers.casadi(problem, "Adams, Newton"))
        plain = peers.casadi(problem, "Adams, functional", buffers=False)
        yield Solver("CasADi", "Adams, functional, plain call", plain)
    if name == "Robertson":
        yield Solver("Archimedes", "DAE: rodas5p", peers.ours_dae(problem))
        yield Solver("CasADi", "DAE: IDAS", peers.casadi_dae(problem))


def measure_solves() -> dict[str, float]:
    """Error and seconds by problem, tool, method and tolerance; solves that fail are left out."""
    from benchmarks.simulations_peers import keep_compilations
    from benchmarks.simulations_problems import PROBLEMS, errors, reference

    keep_compilations()
    figures = {}
    for name, problem in PROBLEMS.items():
        exact = reference(name)
        for solver in _solvers(name):
            for rtol in problem.rtols:
                run = solver.make(rtol)
                try:
                    found = run()
                except RuntimeError:  # CasADi's way to say that a solve failed
                    continue
                if found.shape != exact.shape or not np.isfinite(found).all():
                    continue
                key = f"{name}|{solver.tool}|{solver.method}|{rtol:.0e}"
                figures[f"{key}|error"] = errors(found, exact)
                figures[f"{key}|seconds"] = _best(run, SECONDS)
    return figures


def _loosest(make: Callable[[float], Callable[[], Any]], exact: np.ndarray) -> float:
    """The loosest tolerance of a ladder whose error is at most AGREED."""
    from benchmarks.simulations_problems import errors

    for rtol in 10.0 ** np.arange(-7.5, -13.0, -0.25):
        if errors(np.asarray(make(rtol)()).reshape(exact.shape), exact) <= AGREED:
            return float(rtol)
    raise RuntimeError(f"no tolerance reaches an error of {AGREED}")


def measure_batches() -> dict[str, float]:
    """Seconds of a batch of tumbling bodies by tool and number of outputs.

    Tolerances are the loosest with which a sample of the bodies has the agreed error.
    """
    # JAX uses two cores better as two devices with half of the batch each; so it is given them.
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.cpu_count()}"
    from benchmarks import simulations_peers as peers
    from benchmarks.simulations_problems import PROBLEMS, dispersed, errors

    peers.keep_compilations()
    problem = PROBLEMS[TUMBLING]
    x0 = dispersed(BODIES)
    sample = x0[:64]
    ways = {"Archimedes": peers.ours_batch, "diffrax": peers.diffrax_batch}
    figures = {}
    for times in (problem.times, problem.times[-1:]):
        exact = peers.ours_batch(problem, sample, "dop853", times)(1e-13)()
        for tool, build in ways.items():
            rtol = _loosest(build(problem, sample, BATCH_METHODS[tool], times), exact)
            run = build(problem, x0, BATCH_METHODS[tool], times)(rtol)
            found = np.asarray(run()).reshape(BODIES, len(times), -1)
            key = f"{len(times)}|{tool}"
            figures[f"{key}|error"] = errors(found[: len(sample)], exact)
            figures[f"{key}|rtol"] = rtol
            del found
            figures[f"{key}|seconds"] = _best(run, 10.0 * SECONDS)
    return figures


def measure_gradients() -> dict[str, float]:
    """Seconds of one recorded simulation to its final state, and of its derivatives in x0."""
    import archimedes as arc
    from archimedes.simulate import odeint
    from benchmarks.simulations_problems import PROBLEMS

    figures = {}
    for name, method in ((TUMBLING, "dop853"), (TUMBLING, "tsit5"), ("HIRES", "rodas5p")):
        problem = PROBLEMS[name]
        x0, span = np.array(problem.x0), (0.0, float(problem.times[-1]))
        options: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9 * problem.atol, "max_steps": 1000}

        def final(
            x: Any, p: Any = problem, s: Any = span, m: str = method, o: Any = options
        ) -> Any:
            return odeint(p.function, s, x, method=m, **o)

        def size(x: Any, final: Any = final) -> Any:
            end = final(x)
            return 0.5 * (end @ end)

        runs = {
            "simulation": arc.compile(final),
            "Jacobian, forward": arc.jac(final),
            "gradient, adjoint": arc.grad(size),
        }
        end, jacobian, gradient = (run(x0) for run in runs.values())
        np.testing.assert_allclose(end @ jacobian, gradient, rtol=1e-9, atol=1e-9)
        for kind, run in runs.items():
            key = f"{name}, {method}, {len(x0)} states|{kind}"
            figures[key] = _best(lambda run=run, x0=x0: run(x0), 2.0 * SECONDS)
    return figures


Points = dict[tuple[str, str, str], list[tuple[float, float, float]]]


def solves(figures: dict[str, float]) -> Points:
    """(rtol, error, seconds) of each problem, tool and method."""
    found: Points = {}
    for key, error in figures.items():
        name, tool, method, rtol, what = key.split("|")
        if what == "error":
            seconds = figures[f"{name}|{tool}|{method}|{rtol}|seconds"]
            found.setdefault((name, tool, method), []).append((float(rtol), error, seconds))
    return found


def time_at(points: Sequence[tuple[float, float, float]], error: float) -> float | None:
    """Seconds for an error, interpolated; None where no point is as accurate.

    A point that is slower than a more accurate one counts as that one. Where all points are more
    accurate the quickest is taken.
    """
    pairs = sorted((e, s) for _, e, s in points)
    if not pairs or pairs[0][0] > error:
        return None
    found, seconds = (np.array(column) for column in zip(*pairs))
    least = np.minimum.accumulate(seconds)  # the more accurate lie to the left
    return float(np.exp(np.interp(np.log(error), np.log(found), np.log(least))))


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _is_dae(method: str) -> bool:
    return method.startswith("DAE")


def _comparison(points: Points, names: Sequence[str]) -> list[list[str]]:
    """A row for each problem and error: every tool with the quickest of its methods."""
    from benchmarks.simulations_problems import PROBLEMS

    rows = []
    for name in names:
        for target in PROBLEMS[name].targets:
            for dae in (False, True):
                quickest = {}
                for (problem, tool, method), own in points.items():
                    seconds = time_at(own, target)
                    if problem == name and _is_dae(method) is dae and seconds is not None:
                        quickest.setdefault(tool, []).append((seconds, method))
                if "Archimedes" not in quickest:
                    continue
                ours, method = min(quickest["Archimedes"])
                title = f"{name}, DAE" if dae else name
                row = [title, f"{target:.0e}", f"{_milliseconds(ours)} ({method})"]
                for tool in TOOLS[1:]:
                    seconds, method = min(quickest.get(tool, [(0.0, "")]))
                    row.append(
                        f"{_milliseconds(seconds)} ({method}), {seconds / ours:.1f}x"
                        if seconds
                        else ""
                    )
                rows.append(row)
    return rows


def _headline(points: Points) -> list[list[str]]:
    """All methods on the tumbling body at the agreed error."""
    times = {
        key[1:]: seconds
        for key, own in points.items()
        if key[0] == TUMBLING and (seconds := time_at(own, AGREED)) is not None
    }
    ours = min(seconds for (tool, _), seconds in times.items() if tool == "Archimedes")
    return [
        [tool, method, _milliseconds(seconds), f"{seconds / ours:.1f}x"]
        for (tool, method), seconds in sorted(
            times.items(), key=lambda item: (TOOLS.index(item[0][0]), item[1])
        )
    ]


def _batch_rows(figures: dict[str, float]) -> list[list[str]]:
    rows = []
    keys = [key.removesuffix("|seconds") for key in figures if key.endswith("|seconds")]
    for outputs in dict.fromkeys(key.split("|")[0] for key in keys):
        cells, times = [], []
        for key in (k for k in keys if k.startswith(f"{outputs}|")):
            seconds = figures[f"{key}|seconds"]
            times.append(seconds)
            cells.append(
                f"{seconds:.2f} s, {1e6 * seconds / BODIES:.0f} us each "
                f"({BATCH_METHODS[key.split('|')[1]]}, rtol {figures[f'{key}|rtol']:.1e}, "
                f"error {figures[f'{key}|error']:.0e})"
            )
        rows.append([outputs, *cells, f"{times[1] / times[0]:.1f}x"])
    return rows


def _gradient_rows(figures: dict[str, float]) -> list[list[str]]:
    rows: dict[str, dict[str, float]] = {}
    for key, seconds in figures.items():
        title, kind = key.split("|")
        rows.setdefault(title, {})[kind] = seconds
    return [
        [
            title,
            f"{1e6 * row['simulation']:.0f} us",
            *(
                f"{1e6 * row[kind]:.0f} us, {row[kind] / row['simulation']:.1f}x"
                for kind in ("Jacobian, forward", "gradient, adjoint")
            ),
        ]
        for title, row in rows.items()
    ]


def _all_points(points: Points) -> list[list[str]]:
    return [
        [*key, "; ".join(f"{e:.0e} in {_milliseconds(s)}" for _, e, s in own)]
        for key, own in points.items()
    ]


def tables() -> list[Table]:
    """Headline, all problems, batch, gradients, and the points behind them."""
    from benchmarks.simulations_plot import PICTURE, draw
    from benchmarks.simulations_problems import PROBLEMS

    module = "benchmarks.simulations"
    points = solves(medians(in_processes(module, "measure_solves", PROCESSES)))
    draw(points)
    batches = medians(in_processes(module, "measure_batches", PROCESSES))
    gradients = medians(in_processes(module, "measure_gradients", PROCESSES))
    taken = f"Medians over {PROCESSES} processes."
    return [
        Table(
            f"One tumbling body: 10 s, 1,000 outputs, error {AGREED:.0e}",
            ("tool", "method", "time", "to ours"),
            _headline(points),
            f"Free rigid body, 13 states. {taken} Each method at a tolerance that gives the error. "
            "SciPy calls our compiled function except where a row says scalar Python (written by "
            "hand for this body); CasADi's integrator is made once and gives all outputs in one "
            "call, into an array (plain call: its result converted to one); diffrax is "
            "`jit(diffeqsolve)`. Goals: 20x to SciPy, 5x to CasADi.",
        ),
        Table(
            "Simulations at equal achieved error",
            ("problem", "error", *TOOLS),
            _comparison(points, list(PROBLEMS)),
            f"Quickest method of each tool, and its ratio to ours. {taken} Error: the largest over "
            "all outputs and states, relative to the largest value of a state. SciPy has our "
            "compiled right-hand sides and Jacobians.",
        ),
        Table(
            f"{BODIES:,} tumbling bodies, error {AGREED:.0e}",
            ("outputs of each", "Archimedes", "diffrax", "ratio"),
            _batch_rows(batches),
            f"10 s, dispersed rates, float64, all cores (diffrax: one device a core). {taken} Each "
            "at the loosest tolerance that gives the error. Goal: 10x.",
        ),
        Table(
            "Gradients through a simulation",
            ("simulation", "one", "Jacobian in x0, forward", "gradient of a scalar, adjoint"),
            _gradient_rows(gradients),
            f"Final state, rtol 1e-9, recorded and compiled. {taken}",
        ),
        Table(
            "Work and precision: all points",
            ("problem", "tool", "method", "error in time, by tolerance"),
            _all_points(points),
            f"{taken}\n\n![Time over achieved error]({PICTURE.name})",
        ),
    ]
