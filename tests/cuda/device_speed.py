"""Speed of the device: 6-dof bodies from arrays in C order, RK4 in one kernel, first calls."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import numpy as np
from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

import archimedes as arc

__all__ = ["FIRST_CALL", "bodies", "copies", "first_calls", "joints", "simulations"]

STEPS, DT = 1000, 1e-3


def seconds(run: Any, together: int = 10, repeats: int = 4) -> float:
    """Least time per call of several that are waited for together, as they overlap in use."""
    import cupy

    found = []
    for _ in range(repeats + 1):
        cupy.cuda.get_current_stream().synchronize()
        begin = time.perf_counter()
        for _ in range(together):
            run()
        cupy.cuda.get_current_stream().synchronize()
        found.append((time.perf_counter() - begin) / together)
    return min(found[1:])


def _states(count: int, dtype: Any = np.float64) -> tuple[np.ndarray, tuple]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 13))
    x[:, 3:7] /= np.linalg.norm(x[:, 3:7], axis=1)[:, None]
    _, *parameters = rigid_body_point(rng)
    whole = np.ascontiguousarray(np.resize(x, (count, 13)), dtype)
    return whole, tuple(np.asarray(p, dtype) for p in parameters)


def copies(count: int, say: Any) -> float:
    """Say and return the bytes per second of a copy of states."""
    import cupy

    a = cupy.asarray(_states(count)[0])
    b = cupy.empty(a.shape, a.dtype)

    def run() -> None:
        b[...] = a

    rate = 2 * a.nbytes / seconds(run)
    say(f"copy of {a.nbytes / 1e9:.2f} GB: {rate / 1e12:.3f} TB/s")
    return rate


def bodies(count: int, copy: float, say: Any) -> None:
    """6-dof rates, double and float, parameters shared."""
    import cupy

    for dtype in (np.float64, np.float32):
        x, (F, M, m, J) = _states(count, dtype)
        here = arc.vmap(rigid_body, in_axes=(0, None, None, None, None))
        there = [cupy.asarray(v) for v in (x, F, M, m, J)]
        f = arc.compile(rigid_body)
        run = arc.vmap(f, in_axes=(0, None, None, None, None))
        begin = time.perf_counter()
        out = run(*there)
        out.get()
        first = time.perf_counter() - begin
        few = slice(0, 2000)
        same = out[few].get().tobytes() == here(x[few], F, M, m, J).tobytes()
        call = partial(run, *there, out=out)
        took, alone = seconds(call), seconds(call, 1)
        rate = 2 * x.nbytes / took
        say(
            f"6-dof {np.dtype(dtype).name} N={count}: {count / took:.3g}/s, {rate / 1e12:.3f} TB/s "
            f"= {100 * rate / copy:.0f} % of a copy, one call alone {1e3 * alone:.2f} ms, "
            f"first call {first:.2f} s, bits equal: {same}"
        )


def simulations(count: int, say: Any) -> None:
    """RK4, all steps in one kernel."""
    import cupy

    x, parameters = _states(count)

    def simulate(x: Any) -> Any:
        f = lambda x: rigid_body(x, *parameters)

        def step(x: Any, _: Any) -> Any:
            a = f(x)
            b = f(x + 0.5 * DT * a)
            c = f(x + 0.5 * DT * b)
            d = f(x + DT * c)
            return x + DT / 6.0 * (a + 2.0 * b + 2.0 * c + d), None

        return arc.scan(step, x, length=STEPS)[0]

    run, there = arc.vmap(arc.compile(simulate)), cupy.asarray(x)
    begin = time.perf_counter()
    out = run(there)
    out.get()
    first = time.perf_counter() - begin
    few = slice(0, 200)
    same = out[few].get().tobytes() == run(x[few]).tobytes()
    took = seconds(lambda: run(there, out=out), 2, 2)
    rate = count * STEPS / took
    say(
        f"RK4 {STEPS} steps N={count}: {rate:.3g} body-steps/s, first call {first:.2f} s, "
        f"bits equal: {same}"
    )


def joints(count: int, say: Any) -> None:
    """Articulated bodies of a 7-joint arm."""
    import cupy

    model, rng = arm(7), np.random.default_rng(1)
    rows = [np.resize(rng.normal(size=(1000, 7)), (count, 7)) for _ in range(3)]
    there = [cupy.asarray(np.ascontiguousarray(x)) for x in rows]
    f = arc.compile(lambda q, qd, tau: articulated_body(model, q, qd, tau))
    run = arc.vmap(f)
    begin = time.perf_counter()
    out = run(*there)
    out.get()
    first = time.perf_counter() - begin
    few = slice(0, 500)
    same = out[few].get().tobytes() == run(*(x[few] for x in rows)).tobytes()
    took = seconds(lambda: run(*there, out=out), 5, 2)
    say(
        f"ABA of 7 joints N={count}: {count / took:.3g}/s, first call {first:.2f} s, "
        f"bits equal: {same}"
    )


FIRST_CALL = """
import sys, time
import numpy as np, cupy
import archimedes as arc
from benchmarks.models import rigid_body, rigid_body_point
x, *rest = rigid_body_point(np.random.default_rng(0))
x, rest = cupy.asarray(np.stack([x] * 1000)), [cupy.asarray(v) for v in rest]
f = arc.vmap(rigid_body, in_axes=(0, None, None, None, None))
begin = time.perf_counter()
f(x, *rest).get()
print(f"{time.perf_counter() - begin:.3f}")
"""


def first_calls(say: Any) -> None:
    """First call of a process: with an empty cache, and from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", FIRST_CALL],
                capture_output=True,
                text=True,
                env={**os.environ, "ARCHIMEDES_CACHE": "1", "ARCHIMEDES_CACHE_DIR": folder},
            )
            if done.returncode:
                raise RuntimeError(done.stderr[-800:])
            found.append(done.stdout.strip())
    say(f"first call of a process, 6-dof: {found[0]} s with an empty cache, {found[1]} s from it")
