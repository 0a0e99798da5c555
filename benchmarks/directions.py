"""Jacobians and Hessians in many directions: first calls (nothing from the disk), and then each.

JAX does the same dense work in the same process, jitted, where it is installed.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 2
#: Title of a program, its number of unknowns, whether the result is sparse.
PROGRAMS = {
    "Hessian through a scan over the unknowns": ((90, 200, 300), False),
    "Hessian through all products of two unknowns": ((20, 50, 100), False),
    "Hessian through a solve of as many equations": ((20, 40), False),
    "sparse Jacobian of a stencil": ((10_000, 100_000, 1_000_000), True),
    "sparse Hessian of a chain": ((10_000, 100_000, 1_000_000), True),
}


def _program(title: str, n: int, np: Any, scan: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return what is differentiated, written for a module like NumPy."""
    numbers = _numbers(n) if "solve" in title else None

    def steps(u: Any) -> Any:
        return np.sum(scan(lambda c, a: (np.sin(c) * a + c, c), 1.0, u)[1] ** 2)

    def products(u: Any) -> Any:
        each = np.outer(u, u)
        return np.sum(each * np.sin(each))

    def solved(u: Any) -> Any:
        return np.sum(np.linalg.solve(numbers + np.outer(u, u), np.sin(u)) ** 2)

    def stencil(u: Any) -> Any:
        return np.sin(u) * np.roll(u, 1) - np.roll(u, -1) ** 2

    def chain(u: Any) -> Any:
        return np.sum(100 * (u[1:] - u[:-1] ** 2) ** 2 + (1 - u[:-1]) ** 2)

    return dict(zip(PROGRAMS, (steps, products, solved, stencil, chain)))[title]


def _numbers(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, n)) + n * np.eye(n)


def _times(run: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU seconds of the first twenty calls, and the least of a later one."""
    start = time.process_time()
    for _ in range(20):
        run()
    first, later = time.process_time() - start, []
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        later.append(time.perf_counter() - start)
    return first, min(later)


def measure() -> dict[str, float]:
    """Measure in this process."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARCHIMEDES_CACHE_DIR"] = folder
        found: dict[str, float] = {}
        for title, (sizes, sparse) in PROGRAMS.items():
            for n in sizes:
                found |= _measured(title, n, sparse)
        return found


def _measured(title: str, n: int, sparse: bool) -> dict[str, float]:
    import archimedes as arc

    x = np.linspace(0.1, 1.0, n)
    transform = arc.jac if "Jacobian" in title else arc.hess
    function = transform(_program(title, n, np, arc.scan), sparse=sparse)
    run = function.values if sparse else function
    first, later = _times(lambda: run(x))
    found = {f"{title}, {n:,} first": first, f"{title}, {n:,} later": later}
    if sparse:
        return found
    try:
        import jax
    except ImportError:
        return found
    jax.config.update("jax_enable_x64", True)
    theirs = jax.jit(jax.hessian(_program(title, n, jax.numpy, jax.lax.scan)))
    first, later = _times(lambda: theirs(x).block_until_ready())
    return {**found, f"{title}, {n:,} JAX first": first, f"{title}, {n:,} JAX later": later}


def tables() -> list[Table]:
    """Return the table of all programs."""
    found = medians(in_processes("benchmarks.directions", "measure", PROCESSES))
    rows = []
    for name in [key.removesuffix(" later") for key in found if key.endswith(" later")]:
        if name.endswith("JAX"):
            continue
        peer = [found.get(f"{name} JAX {when}") for when in ("first", "later")]
        first, later = found[f"{name} first"], found[f"{name} later"]
        rows.append(
            [
                name,
                f"{first:.2f} s" if peer[0] is None else f"{first:.2f} / {peer[0]:.2f} s",
                _micro(later) if peer[1] is None else f"{_micro(later)} / {_micro(peer[1])} us",
            ]
        )
    note = (
        "Ours / JAX's. First: CPU time of the first 20 calls, nothing from the disk; then the "
        "least of one call, in us. JAX may use all threads."
    )
    return [Table("Derivatives in many directions", ["program", "first", "each"], rows, note)]


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f}"
