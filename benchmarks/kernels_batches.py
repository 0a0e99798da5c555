"""Kernels over batches against CasADi and JAX: the same graph, inputs and results.

Times are per instance, arrays C-ordered ``(N, ...)`` in and out, layout conversion included, one
thread for the kernels and CasADi. JAX uses the threads it likes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 5
SIZES = (256, 10_000)
SECONDS = 0.3

Model = tuple[Any, list[int], Callable[[np.random.Generator, int], list[np.ndarray]]]


def _models() -> dict[str, Model]:
    """Graph, sizes of the arguments, and a maker of batches of them."""
    import archimedes as arc
    from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

    def bodies(rng: np.random.Generator, n: int) -> list[np.ndarray]:
        points = [rigid_body_point(rng) for _ in range(n)]
        return [np.array([np.ravel(p[k]) for p in points]) for k in range(5)]

    def joints(rng: np.random.Generator, n: int) -> list[np.ndarray]:
        return [rng.normal(size=(n, 7)) for _ in range(3)]

    point = rigid_body_point(np.random.default_rng(0))
    model = arm(7)

    def accelerations(q, qd, tau):
        return articulated_body(model, q, qd, tau)

    state = [13, 3, 3, 1, 9]
    return {
        "6-dof rigid body": (arc.compile(rigid_body).graph(*point), state, bodies),
        "its 13x13 Jacobian": (arc.jac(rigid_body).graph(*point), state, bodies),
        "7-joint ABA": (arc.compile(accelerations).graph(*np.ones((3, 7))), [7, 7, 7], joints),
    }


def _best(run: Callable[[], Any]) -> float:
    """Least time of one call over about ``SECONDS``."""
    run()
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def _contenders(graph: Any, sizes: Sequence[int], n: int) -> dict[str, Any]:
    from archimedes.backends.llvm import build
    from archimedes.graph import F64
    from benchmarks.kernels_peers import casadi_c, casadi_map, jax_vmap

    kernel = build(graph, [(size, F64) for size in sizes], [(len(graph.outputs), F64)])
    out = np.empty((n, len(graph.outputs)))

    def native(arrays: Sequence[np.ndarray]) -> np.ndarray:
        kernel.call_batch(arrays, [True] * len(sizes), [out], n)
        return out

    return {
        "kernel": native,
        "CasADi VM": casadi_map(graph, sizes, n),
        "CasADi C": casadi_c(graph, sizes, n),
        "JAX": jax_vmap(graph, sizes, n),
    }


def measure() -> dict[str, float]:
    """Seconds an instance, by model, batch size and tool; results are compared before timing."""
    figures = {}
    for name, (graph, sizes, make) in _models().items():
        for n in SIZES:
            arrays = make(np.random.default_rng(1), n)
            contenders = {k: f for k, f in _contenders(graph, sizes, n).items() if f is not None}
            expected = contenders["kernel"](arrays).copy()
            for tool, run in contenders.items():
                np.testing.assert_allclose(run(arrays), expected, rtol=1e-7, atol=1e-8)
                figures[f"{name}|{n}|{tool}"] = _best(lambda f=run, a=arrays: f(a)) / n
    return figures


def tables() -> list[Table]:
    """One table: nanoseconds an instance, and ratios to the kernel."""
    found = medians(in_processes("benchmarks.kernels_batches", "measure", PROCESSES))
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for key, seconds in found.items():
        name, n, tool = key.split("|")
        rows.setdefault((name, n), {})[tool] = seconds
    peers = ("CasADi VM", "CasADi C", "JAX")
    lines = []
    for (name, n), times in rows.items():
        own = times["kernel"]
        cells = [
            f"{1e9 * times[p]:.0f} ns, {times[p] / own:.1f}x" if p in times else "" for p in peers
        ]
        lines.append((name, f"{int(n):,}", f"{1e9 * own:.1f} ns", *cells))
    return [
        Table(
            "Batches, per instance",
            ("model", "N", "kernel", *peers),
            lines,
            f"float64, one thread (JAX: its own choice), medians over {PROCESSES} processes of the "
            "best time; behind each peer's time its ratio to the kernel.",
        )
    ]
