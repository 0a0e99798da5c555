"""A solve that is made again and again, against SciPy's: what there is besides the solving.

A tumbling body with 1,000 outputs at a tolerance of 1e-9, by ``odeint`` and by ``solve_ivp`` with
DOP853. Alone, each tool runs many times in a row, with all it needs in the caches. In turns, the
two run one after the other, so that each finds the caches as the other left them.

And a minimum that is looked for again: Rosenbrock's function, in turns with SciPy's methods.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["count_calls", "measure_minima", "measure_repeats", "tables"]

PROCESSES = int(os.environ.get("SIMULATIONS_PROCESSES", "3"))
#: Runs of ours alone, and of SciPy alone or of both in turns.
ALONE, TURNS = 500, 60
TUMBLING, RTOL = "tumbling body", 1e-9
METHODS, PEERS = ("ipm", "sqp", "ipopt"), ("BFGS", "SLSQP")


def _seconds(run: Callable[[], Any]) -> float:
    """Return the time that a call takes of a processor: others may be using the machine."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def count_calls(run: Callable[[], Any]) -> int:
    """Return how many Python functions a call calls."""
    count = 0

    def see(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def measure_repeats() -> dict[str, float]:
    """Median seconds of ours and of SciPy's, alone and in turns; Python calls of ours."""
    from archimedes.simulate import odeint
    from benchmarks.simulations_peers import scipy
    from benchmarks.simulations_problems import PROBLEMS

    problem = PROBLEMS[TUMBLING]
    x0, span = np.array(problem.x0), (0.0, float(problem.times[-1]))
    options = {"t_eval": problem.times, "rtol": RTOL, "atol": RTOL * problem.atol}

    def ours() -> np.ndarray:
        return odeint(problem.function, span, x0, **options)

    theirs = scipy(problem, "DOP853")(RTOL)
    np.testing.assert_allclose(ours().T, theirs(), rtol=1e-6, atol=1e-7)
    for _ in range(20):  # the kernels are made well after ten calls
        ours()
    figures = {
        "alone|ours": statistics.median(_seconds(ours) for _ in range(ALONE)),
        "alone|SciPy": statistics.median(_seconds(theirs) for _ in range(TURNS)),
    }
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(TURNS)]
    for name, column in zip(("ours", "SciPy"), zip(*pairs)):
        figures[f"in turns|{name}"] = statistics.median(column)
    return figures | {"calls": count_calls(ours)}


def measure_minima() -> dict[str, float]:
    """Median seconds of a minimum of Rosenbrock's function from (-1.2, 1), by name, in turns."""

    from scipy.optimize import minimize as minimum

    import archimedes as arc

    def rosenbrock(x: Any) -> Any:
        return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2

    start = np.array([-1.2, 1.0])
    calls: dict[str, Callable[[], Any]] = {
        **{f"ours, {m}": partial(arc.minimize, rosenbrock, start, method=m) for m in METHODS},
        **{f"SciPy, {m}": partial(minimum, rosenbrock, start, method=m) for m in PEERS},
    }
    for call in calls.values():
        for _ in range(20):
            np.testing.assert_allclose(call().x, 1.0, atol=1e-3)
    seconds = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            seconds[name].append(_seconds(call))
    return {name: statistics.median(column) for name, column in seconds.items()}


def _minima() -> Table:
    figures = medians(in_processes("benchmarks.repeated_solves", "measure_minima", PROCESSES))
    rows = [[name, f"{1e3 * seconds:.2f} ms"] for name, seconds in figures.items()]
    return Table(
        "Repeated minimisation of Rosenbrock's function",
        ("method", "one call"),
        rows,
        "In turns in one process; SciPy with its default differences. Processor time: medians of "
        f"{TURNS} turns, and over {PROCESSES} processes. Goal: at most SciPy's default, BFGS.",
    )


def tables() -> list[Table]:
    """Times and ratios."""
    figures = medians(in_processes("benchmarks.repeated_solves", "measure_repeats", PROCESSES))
    rows = []
    for way in ("alone", "in turns"):
        ours, theirs = figures[f"{way}|ours"], figures[f"{way}|SciPy"]
        rows.append(
            [way, f"{1e3 * ours:.3f} ms", f"{1e3 * theirs:.2f} ms", f"{theirs / ours:.0f}x"]
        )
    return [
        Table(
            "Repeated solves of a tumbling body: 10 s, 1,000 outputs, rtol 1e-9",
            ("runs", "Archimedes, odeint", "SciPy, DOP853", "ratio"),
            rows,
            "Free rigid body, 13 states; SciPy calls our compiled function. Processor time: medians"
            f" of {TURNS} runs or more, and over {PROCESSES} processes. A call of ours makes "
            f"{figures['calls']:.0f} Python calls. Goals: 60x alone, 40x in turns, 60 calls.",
        ),
        _minima(),
    ]
