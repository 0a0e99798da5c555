"""Fixed-step simulation of many bodies in one kernel, against JAX: RK4 of the 6-dof rigid body.

Ours: ``vmap`` of a ``scan``, one native kernel, on one thread and on all. JAX: ``jit(vmap(scan))``
of the same expressions, on the threads it likes. Final states are compared first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 5
BODIES, STEPS, DT = 10_000, 1_000, 1e-3
REPEATS = 3


def _rk4(f: Callable[[Any], Any], x: Any) -> Any:
    a = f(x)
    b = f(x + 0.5 * DT * a)
    c = f(x + 0.5 * DT * b)
    d = f(x + DT * c)
    return x + DT / 6.0 * (a + 2.0 * b + 2.0 * c + d)


def _initial() -> tuple[np.ndarray, tuple[Any, ...]]:
    from benchmarks.models import rigid_body_point

    rng = np.random.default_rng(0)
    x0 = np.array([rigid_body_point(rng)[0] for _ in range(BODIES)])
    _, F, M, m, J = rigid_body_point(rng)
    return x0, (F, M, m, J)


def _ours(parameters: tuple[Any, ...], threads: int | None) -> Callable[..., Any]:
    import archimedes as arc
    from benchmarks.models import rigid_body

    def simulate(x: Any) -> Any:
        step = lambda x, _: (_rk4(lambda x: rigid_body(x, *parameters), x), None)
        return arc.scan(step, x, length=STEPS)[0]

    return arc.vmap(simulate, threads=threads)


def _jax(parameters: tuple[Any, ...]) -> Callable[..., Any]:
    import jax

    import archimedes as arc
    from benchmarks.kernels_peers import jax_function
    from benchmarks.models import rigid_body

    graph = arc.compile(lambda x: rigid_body(x, *parameters)).graph(np.ones(13))
    dynamics = jax_function(graph, [13])

    def simulate(x: Any) -> Any:
        return jax.lax.scan(lambda x, _: (_rk4(dynamics, x), None), x, None, length=STEPS)[0]

    compiled = jax.jit(jax.vmap(simulate))
    return lambda x: compiled(x).block_until_ready()


def _best(run: Callable[[], Any]) -> float:
    def once() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return min(once() for _ in range(REPEATS))


def measure() -> dict[str, float]:
    """Seconds of the whole simulation by tool."""
    x0, parameters = _initial()
    tools = {
        "kernel, one thread": _ours(parameters, 1),
        "kernel, all cores": _ours(parameters, None),
        "JAX vmap(scan)": _jax(parameters),
    }
    expected = tools["kernel, one thread"](x0)
    found = {}
    for name, run in tools.items():
        np.testing.assert_allclose(np.asarray(run(x0)), expected, rtol=1e-8, atol=1e-9)
        found[name] = _best(lambda run=run: run(x0))
    return found


def tables() -> list[Table]:
    """One table: seconds and ratios to one thread of the kernel."""
    found = medians(in_processes("benchmarks.kernels_loops", "measure", PROCESSES))
    own = found["kernel, one thread"]
    rows = [
        (name, f"{s:.3f} s", f"{1e9 * s / (BODIES * STEPS):.1f} ns", f"{s / own:.2f}")
        for name, s in found.items()
    ]
    return [
        Table(
            f"RK4, {BODIES:,} bodies x {STEPS:,} steps",
            ("tool", "time", "a step of one body", "multiple of one kernel thread"),
            rows,
            f"6-dof rigid body, float64; medians over {PROCESSES} processes of the best time.",
        )
    ]
