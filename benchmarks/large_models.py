"""Models of many states: first results, and stiff ones against SciPy's BDF and CVODE.

The two-dimensional Brusselator is that of Hairer and Wanner II, section IV.10, periodic, with 64 x
64 cells (8,192 states) to 1e-6. SciPy gets the sparse Jacobian as a function. Times are CPU times
of one process, compilation included in those marked first; nothing comes from the disk.
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
METHODS = ("cvode", "rodas5p", "esdirk4")


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


def _heat(n: int) -> tuple[Callable[..., Any], np.ndarray]:
    def f(t: Any, u: Any) -> Any:
        du = np.zeros_like(u)
        du[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
        return du

    return f, np.sin(np.linspace(0.0, np.pi, n))


def _timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def measure() -> dict[str, float]:
    """Seconds of CPU time by case."""
    os.environ["ARCHIMEDES_CACHE_DIR"] = tempfile.mkdtemp()
    from scipy.integrate import solve_ivp

    import archimedes as arc

    found = {}
    for n in (100, 1000):
        heat, start = _heat(n)
        solve = partial(arc.solve_ode, heat, (0.0, 1.0), start)
        found[f"heat {n} first"], found[f"heat {n} then"] = _timed(solve), _timed(solve)
    f, start = _brusselator(CELLS)
    options: dict[str, Any] = {"rtol": TOLERANCE, "atol": TOLERANCE}
    for method in METHODS:
        run = lambda method=method: arc.solve_ode(f, (0.0, END), start, method=method, **options)
        found[f"{method} first"], found[f"{method} then"] = _timed(run), _timed(run)
    own = {"method": "BDF", "jac": _jacobian(CELLS), **options}
    found["SciPy"] = _timed(lambda: solve_ivp(f, (0.0, END), start, **own))
    return found


def tables() -> list[Table]:
    """Two tables: first results of large models, and the stiff one."""
    found = medians(in_processes("benchmarks.large_models", "measure", PROCESSES))
    peer = found["SciPy"]
    first = [
        (f"heat equation, {n:,} cells", f"{found[f'heat {n} first']:.2f} s", f"{then:.1f} ms")
        for n in (100, 1000)
        for then in [1e3 * found[f"heat {n} then"]]
    ]
    stiff = [
        (
            m,
            *(
                f"{found[f'{m} {k}']:.2f} s, {peer / found[f'{m} {k}']:.1f}x"
                for k in ("first", "then")
            ),
        )
        for m in METHODS
    ]
    return [
        Table("Large models: the first solve", ("model", "first", "again"), first),
        Table(
            f"Brusselator, {CELLS} x {CELLS} cells, to {TOLERANCE:g}",
            ("method", "first, compilation included", "again"),
            [*stiff, ("SciPy BDF, sparse Jacobian given", f"{peer:.2f} s", "")],
            "CPU seconds, and the ratio of SciPy's to ours.",
        ),
    ]
