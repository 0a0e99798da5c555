"""First solves, and models of many states: against SciPy and diffrax, stiff ones too.

The two-dimensional Brusselator is that of Hairer and Wanner II, section IV.10, periodic, with 64 x
64 cells (8,192 states) to 1e-6. SciPy gets the sparse Jacobian as a function. Times are CPU times
of one process after its imports, compilation included in those marked first; nothing comes from
the disk. Errors are against a solution by CVODE to 1e-10.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 3
CELLS, ALPHA, END, TOLERANCE = 64, 2e-3, 11.5, 1e-6
METHODS = ("bdf", "cvode", "rodas5p", "esdirk4")
#: Solves after the first, of which the quickest counts.
AGAIN = 40
RTOL, ATOL = 1e-8, 1e-10


def _body(np: Any, t: Any, x: Any) -> Any:
    """Rigid body with six degrees of freedom: position, quaternion, velocity and rates in it."""
    q, v, w = x[3:7], x[7:10], x[10:]
    inertia = np.array([2.0, 3.0, 4.0])
    turn = 2.0 * np.cross(q[1:], v)
    pos = v + q[0] * turn + np.cross(q[1:], turn)
    scalar = -0.5 * np.sum(q[1:] * w)
    vector = 0.5 * (q[0] * w + np.cross(q[1:], w))
    force, torque = np.array([1.0, -0.5, 0.2]), np.array([0.1, 0.2, -0.3])
    rate = (torque - np.cross(w, inertia * w)) / inertia
    return np.concatenate([pos, np.stack([scalar]), vector, force / 2.5 - np.cross(w, v), rate])


def _chain(np: Any, t: Any, x: Any) -> Any:
    """Ten pendulums, each coupled to its neighbours."""
    q, v, wall = x[:10], x[10:], np.zeros(1)
    left, right = np.concatenate([wall, q[:-1]]), np.concatenate([q[1:], wall])
    pull = np.sin(left - q) + np.sin(right - q) - 0.1 * v - 0.01 * q**3
    return np.concatenate([v, pull])


def _heat(np: Any, t: Any, u: Any) -> Any:
    inner = u[2:] - 2.0 * u[1:-1] + u[:-2]
    return np.concatenate([np.zeros(1), inner, np.zeros(1)])


#: Right-hand side f(numpy, t, x), start and end of each model.
MODELS: dict[str, tuple[Callable[..., Any], np.ndarray, float]] = {
    "6-dof body": (_body, np.array([0.0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 0.3, 0.2, 0.1]), 5.0),
    "20 states": (_chain, np.linspace(0.0, 1.0, 20), 5.0),
    "heat equation, 100 cells": (_heat, np.sin(np.linspace(0.0, np.pi, 100)), 1.0),
    "heat equation, 1,000 cells": (_heat, np.sin(np.linspace(0.0, np.pi, 1000)), 1.0),
}


def _brusselator(n: int) -> tuple[Callable[..., Any], np.ndarray]:
    scale = ALPHA * (n - 1) ** 2

    def spread(w: Any) -> Any:
        sides = np.roll(w, 1, 0) + np.roll(w, -1, 0) + np.roll(w, 1, 1) + np.roll(w, -1, 1)
        return scale * (sides - 4.0 * w)

    def f(t: Any, y: Any) -> Any:
        u, v = y[: n * n].reshape(n, n), y[n * n :].reshape(n, n)
        du = 1.0 + u * u * v - 4.4 * u + spread(u)
        dv = 3.4 * u - u * u * v + spread(v)
        return np.concatenate([du.ravel(), dv.ravel()])

    bump = 22.0 * (np.linspace(0.0, 1.0, n) * np.linspace(1.0, 0.0, n)) ** 1.5
    start = [np.tile(bump, (n, 1)).T.ravel(), np.tile(27.0 / 22.0 * bump, (n, 1)).ravel()]
    return f, np.concatenate(start)


def _jacobian(n: int) -> Callable[..., Any]:
    from scipy import sparse

    cell = np.arange(n * n).reshape(n, n)
    shifts = ((0, 1), (0, -1), (1, 0), (-1, 0))
    rows = np.tile(cell.ravel(), 4)
    columns = np.concatenate([np.roll(cell, shift, (0, 1)).ravel() for shift in shifts])
    scale = ALPHA * (n - 1) ** 2
    links = sparse.coo_array((np.full(len(rows), scale), (rows, columns)), shape=(n * n, n * n))
    laplace = links.tocsc() - 4.0 * scale * sparse.eye_array(n * n)
    both = sparse.block_diag([laplace, laplace]).tocsc()

    def jacobian(t: float, y: np.ndarray) -> Any:
        u, v = y[: n * n], y[n * n :]
        parts = [[2.0 * u * v - 4.4, u * u], [3.4 - 2.0 * u * v, -u * u]]
        local = sparse.bmat([[sparse.diags(part) for part in row] for row in parts])
        return (both + local).tocsc()

    return jacobian


def _timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _first_and_again(run: Callable[[], Any]) -> dict[str, float]:
    first = _timed(run)
    return {"first": first, "again": min(_timed(run) for _ in range(AGAIN))}


def _ours(name: str) -> dict[str, float]:
    import archimedes as arc

    model, start, end = MODELS[name]
    f, solve = partial(model, np), arc.solve_ode

    def run() -> Any:
        return solve(f, (0.0, end), start, rtol=RTOL, atol=ATOL)

    return _first_and_again(run)


def _scipy(name: str) -> dict[str, float]:
    from scipy.integrate import solve_ivp

    model, start, end = MODELS[name]
    options: dict[str, Any] = {"method": "DOP853", "rtol": RTOL, "atol": ATOL}
    return _first_and_again(lambda: solve_ivp(partial(model, np), (0.0, end), start, **options))


def _diffrax(name: str) -> dict[str, float]:
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    model, start, end = MODELS[name]
    term = diffrax.ODETerm(lambda t, x, _: model(jnp, t, x))
    control = diffrax.PIDController(rtol=RTOL, atol=ATOL)

    @jax.jit
    def solve(x: Any) -> Any:
        saved = diffrax.SaveAt(steps=True)
        found = diffrax.diffeqsolve(
            term, diffrax.Dopri8(), 0.0, end, None, x, saveat=saved, stepsize_controller=control
        )
        return found.ys

    given = jnp.asarray(start)
    return _first_and_again(lambda: solve(given).block_until_ready())


TOOLS = {"Archimedes": _ours, "SciPy": _scipy, "diffrax": _diffrax}


def one() -> dict[str, float]:
    """First and later solves of the model and tool that the environment names."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARCHIMEDES_CACHE_DIR"] = folder
        return TOOLS[os.environ["BENCHMARK_TOOL"]](os.environ["BENCHMARK_MODEL"])


def _models() -> Table:
    rows = []
    for name in MODELS:
        row = [name]
        for tool in TOOLS:
            os.environ.update(BENCHMARK_TOOL=tool, BENCHMARK_MODEL=name)
            found = medians(in_processes("benchmarks.large_models", "one", PROCESSES))
            row += [f"{found['first']:.2f} s", f"{1e3 * found['again']:.2f} ms"]
        rows.append(row)
    columns = [f"{tool}, {what}" for tool in TOOLS for what in ("first", "again")]
    note = (
        "Default methods: DOP853, of diffrax Dopri8, to 1e-8, every step kept. Goals of the first: "
        "0.4, 0.5 and (1,000 cells) 2 s. Medians over processes, later solves the quickest of 40."
    )
    return Table("First solves, and those after them", ["model", *columns], rows, note)


def measure() -> dict[str, float]:
    """Seconds of CPU time, and errors, of the stiff model."""
    os.environ["ARCHIMEDES_CACHE_DIR"] = tempfile.mkdtemp()
    from scipy.integrate import solve_ivp

    import archimedes as arc

    f, start = _brusselator(CELLS)
    ends: dict[str, Any] = {}
    found = {}
    options: dict[str, Any] = {"rtol": TOLERANCE, "atol": TOLERANCE}

    def ours(method: str, **options: Any) -> None:
        ends[method] = arc.solve_ode(f, (0.0, END), start, method=method, **options).x[-1]

    def theirs() -> None:
        own = {"method": "BDF", "jac": _jacobian(CELLS), **options}
        ends["SciPy"] = solve_ivp(f, (0.0, END), start, **own).y[:, -1]

    for method in METHODS:
        run = partial(ours, method, **options)
        found[f"{method} first"], found[f"{method} then"] = _timed(run), _timed(run)
    found["SciPy"] = _timed(theirs)
    made = dict(ends)
    ours("cvode", rtol=1e-10, atol=1e-10)
    for name, end in made.items():
        found[f"{name} error"] = float(np.abs(end - ends["cvode"]).max())
    return found


def _stiff() -> Table:
    found = medians(in_processes("benchmarks.large_models", "measure", 1))
    peer = found["SciPy"]
    rows = []
    for m in METHODS:
        times = (found[f"{m} {k}"] for k in ("first", "then"))
        both = (f"{seconds:.2f} s, {peer / seconds:.1f}x" for seconds in times)
        rows.append((m, *both, f"{found[f'{m} error']:.1e}"))
    rows.append(
        ("SciPy BDF, sparse Jacobian given", f"{peer:.2f} s", "", f"{found['SciPy error']:.1e}")
    )
    return Table(
        f"Brusselator, {CELLS} x {CELLS} cells, to {TOLERANCE:g}",
        ("method", "first, compilation included", "again", "largest error"),
        rows,
        "CPU seconds, and the ratio of SciPy's to ours. Goal: 20 s, and 5x.",
    )


def tables() -> list[Table]:
    """Two tables: first solves, and the stiff model."""
    return [_models(), _stiff()]
