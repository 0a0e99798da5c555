"""Fixed-step simulation of many bodies in one kernel, against JAX and numba: RK4, 6-dof bodies.

Ours: ``vmap`` of a ``scan``, one native kernel. JAX: ``jit(vmap(scan))`` of the same expressions.
numba: the same formulas by hand, one body after the other, on one core. Final states are compared
first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "measure_one_core", "tables"]

PROCESSES = 5
BODIES, STEPS, DT = 10_000, 1_000, 1e-3
REPEATS = 3
NUMERICS = ("strict", "fast")
ONE, ALL = "one core", "all cores"


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


def _ours(parameters: tuple[Any, ...], numerics: str) -> Callable[..., Any]:
    import archimedes as arc
    from benchmarks.models import rigid_body

    def simulate(x: Any) -> Any:
        step = lambda x, _: (_rk4(lambda x: rigid_body(x, *parameters), x), None)
        return arc.scan(step, x, length=STEPS)[0]

    return arc.vmap(arc.compile(simulate, numerics=numerics))


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


def _measured(cores: str) -> dict[str, float]:
    """Seconds of the whole simulation by tool, on the cores this process may use."""
    from benchmarks.kernels_numba import numba_rk4

    x0, parameters = _initial()
    tools = {numerics: _ours(parameters, numerics) for numerics in NUMERICS}
    tools["JAX"] = _jax(parameters)
    if cores == ONE:
        tools["numba"] = numba_rk4(parameters, DT, STEPS)
    expected = tools["strict"](x0)
    found = {}
    for name, run in tools.items():
        np.testing.assert_allclose(np.asarray(run(x0)), expected, rtol=1e-8, atol=1e-9)
        found[f"{name}|{cores}"] = _best(lambda run=run: run(x0))
    return found


def measure() -> dict[str, float]:
    """Seconds by tool on all cores."""
    return _measured(ALL)


def measure_one_core() -> dict[str, float]:
    """Seconds by tool on one core."""
    # Before JAX is imported: it counts the cores then.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return _measured(ONE)


def tables() -> list[Table]:
    """One table: seconds and ratios, on one core and on all."""
    found = {}
    for function in ("measure_one_core", "measure"):
        found |= medians(in_processes("benchmarks.kernels_loops", function, PROCESSES))
    rows = [
        (
            cores,
            numerics,
            *(_cell(found, tool, numerics, cores) for tool in (numerics, "JAX", "numba")),
        )
        for cores in (ONE, ALL)
        for numerics in NUMERICS
    ]
    return [
        Table(
            f"RK4, {BODIES:,} bodies x {STEPS:,} steps",
            ("on", "numerics", "kernel", "JAX vmap(scan)", "numba"),
            rows,
            "6-dof rigid body, float64: the whole, a step of one body, and the ratio to the "
            f"kernel; medians over {PROCESSES} processes of the best time. JAX's own arithmetic is "
            "that of `fast`: it fuses multiply-adds and multiplies by reciprocals of constants. "
            "numba (`fastmath` off) rounds as `strict` does. A strict step of a body is 357 "
            "products, 314 sums and 16 quotients. Zen 3 has two units of four float64 for "
            "products, one of which also divides (about 5 cycles for four), and two for sums: "
            "(357 + 16 x 5) / 8, "
            "at least 55 cycles, or 16 to 22 ns at 3.5 to 2.5 GHz. The kernel is at that bound "
            "there, so that the ratio to JAX follows JAX's own time (110 to 210 ns on such cores).",
        )
    ]


def _cell(found: dict[str, float], tool: str, numerics: str, cores: str) -> str:
    seconds, own = found.get(f"{tool}|{cores}"), found[f"{numerics}|{cores}"]
    if seconds is None:
        return ""
    text = f"{seconds:.3f} s, {1e9 * seconds / (BODIES * STEPS):.1f} ns"
    return text if tool == numerics else f"{text}, {seconds / own:.1f}x"
