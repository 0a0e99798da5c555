"""How long it takes to record two models, how large their graphs are, and what importing costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.report import Table, in_processes, medians, seconds_of

__all__ = ["measure", "tables"]

PROCESSES = 5
IMPORTS = 15


def _models() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    import numpy as np

    from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

    rng = np.random.default_rng(1)
    model = arm(7)

    def joint_accelerations(q, qd, tau):
        return articulated_body(model, q, qd, tau)

    q, qd, tau = rng.normal(size=(3, 7))
    return {
        "rigid_body": (rigid_body, rigid_body_point(rng)),
        "articulated_body": (joint_accelerations, (q, qd, tau)),
    }


def _live(graph: Any) -> int:
    """Nodes that the outputs need, those in the bodies of regions included."""
    bodies = [b for i in graph.live() if i in graph.regions for b in graph.regions[i].bodies]
    return len(graph.live()) + sum(_live(body) for body in bodies)


def _first_and_best(make: Callable[[], Any], args: tuple[Any, ...]) -> tuple[float, float, int]:
    """Seconds of the first recording in the process and of the quickest of four; live nodes."""
    times = []
    for _ in range(4):
        f = make()
        start = time.perf_counter()
        graph = f.graph(*args)
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:]), _live(graph)


def measure() -> dict[str, float]:
    """Record both models and their Jacobians once in this process."""
    import archimedes as arc

    figures: dict[str, float] = {}
    for name, (function, args) in _models().items():
        for what, transform in (("trace", arc.compile), ("jac", arc.jac)):
            first, best, nodes = _first_and_best(lambda f=function, t=transform: t(f), args)
            figures[f"{name} {what} first"] = first
            figures[f"{name} {what} again"] = best
            figures[f"{name} {what} nodes"] = nodes
    return figures


def _recording() -> Table:
    m = medians(in_processes("benchmarks.tracing", "measure", PROCESSES))
    labels = {
        "rigid_body trace": "6-dof rigid body",
        "rigid_body jac": "its Jacobian in the state (13 x 13)",
        "articulated_body trace": "7-joint articulated-body algorithm, dense 6x6 matrices",
        "articulated_body jac": "its Jacobian in the positions (7 x 7)",
    }
    goals = {
        "rigid_body trace": "16 ms (original)",
        "articulated_body trace": "150 ms, 3,200 nodes",
    }
    rows = [
        (
            label,
            f"{1e3 * m[f'{key} first']:.1f} ms",
            f"{1e3 * m[f'{key} again']:.1f} ms",
            f"{int(m[f'{key} nodes']):,}",
            goals.get(key, ""),
        )
        for key, label in labels.items()
    ]
    return Table(
        "Recording",
        ("model", "first in a process", "again", "live nodes", "to compare with"),
        rows,
        f"Medians over {PROCESSES} processes; Jacobians include recording the function. Live nodes "
        "count inputs, constants and bodies of regions too.",
    )


def _importing() -> Table:
    numpy, ours = seconds_of("import numpy", IMPORTS), seconds_of("import archimedes", IMPORTS)
    everything = seconds_of("import archimedes as arc; arc.compile; arc.struct", IMPORTS)
    base = statistics.median(numpy)
    rows = [
        (
            label,
            f"{1e3 * statistics.median(times):.0f} ms",
            f"{statistics.median(times) / base:.2f}",
        )
        for label, times in (
            ("import numpy", numpy),
            ("import archimedes", ours),
            ("import archimedes and first use of compile and struct", everything),
        )
    ]
    return Table(
        "Importing",
        ("statement", "time", "ratio to numpy"),
        rows,
        f"Medians over {IMPORTS} processes each, with .pyc files in place. Goal 1.5, original 5.2. "
        "Names are imported on first use, so the last line is the one to compare.",
    )


def tables() -> list[Table]:
    """Both tables of this module."""
    return [_recording(), _importing()]
