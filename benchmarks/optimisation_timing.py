"""What both sides of the benchmark of optimal control share: limits, clocks, the guess."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.optimisation_problems import Problem

__all__ = ["LIMIT", "NODES", "SOLVED", "TOL", "best_time", "processor_time", "states_along"]

NODES = [int(n) for n in os.environ.get("OPTIMISATION_NODES", "50,200,1000").split(",")]
#: Larger programs are evaluated, but not solved to the end.
SOLVED = int(os.environ.get("OPTIMISATION_SOLVED", "1000"))
TOL = 1e-6
#: Seconds that CasADi may take for one program, set-up and all.
LIMIT = float(os.environ.get("OPTIMISATION_LIMIT", "90"))


def best_time(run: Callable[[], Any], seconds: float = 1.0) -> float:
    """Return the least wall-clock time of runs for so many seconds."""
    best, begin = np.inf, time.perf_counter()
    while best == np.inf or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def processor_time(run: Callable[[], Any], nodes: int) -> tuple[float, Any]:
    """Return the least processor time of a few runs, and the last result."""
    best, result = np.inf, None
    for _ in range(15 if nodes <= 50 else 3 if nodes <= 200 else 1):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best, result


def states_along(problem: Problem, s: float) -> np.ndarray:
    """Return the guess of the states at s in [0, 1]."""
    line = problem.initial + s * (problem.guess_end - problem.initial)
    return line + problem.bend * np.sin(np.pi * s)
