"""Simulation on a GPU against peers there and against our own CPU; needs CuPy and an NVIDIA GPU.

``python -m benchmarks gpu_simulation`` prints the tables; without a GPU there are none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes as arc
from benchmarks.report import Table
from benchmarks.simulations_problems import PROBLEMS, dispersed, errors

__all__ = ["tables"]

BODIES, OUTPUTS, FLIGHTS, STATES = 1_000_000, 100, 10_000_000, 10_000_000
#: Bodies that our CPU solves, on two threads, and that errors are measured on.
ON_CPU, COMPARED = 20_000, 256
PROBLEM = PROBLEMS["tumbling body"]
#: Tolerances at which each has an error of about 1e-9.
RTOLS = {"dop853": 4.5e-10, "tsit5": 1.3e-9, "Dopri8": 1.7e-11, "Tsit5": 1e-9}


def seconds(run: Callable[[], Any], wait: Callable[[], Any], repeats: int = 3) -> float:
    """Least time of a call that is waited for, after one that is not counted."""
    found = []
    for _ in range(repeats + 1):
        wait()
        begin = time.perf_counter()
        run()
        wait()
        found.append(time.perf_counter() - begin)
    return min(found[1:])


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _wait() -> None:
    import cupy

    cupy.cuda.get_current_stream().synchronize()


# ---- adaptive solves ---------------------------------------------------------------------------


def solved(x0: Any, method: str, rtol: float, times: np.ndarray, **more: Any) -> Any:
    """Tumbling bodies by ``solve_ode``."""
    options = {"rtol": rtol, "atol": rtol * PROBLEM.atol, "in_axes": (0,), "t_eval": times}
    return arc.solve_ode(PROBLEM.function, (0.0, 10.0), x0, method=method, **options, **more)


def solves(count: int = BODIES, cpu: int = ON_CPU, peers: bool = True) -> Table:
    """Adaptive solves with outputs: ours here and there, diffrax there."""
    import cupy

    times, states = np.linspace(0.0, 10.0, OUTPUTS), dispersed(count)
    exact = solved(states[:COMPARED], "dop853", 1e-13, times).x
    there, rows, base = cupy.asarray(states), [], float("nan")

    def row(name: str, took: float, error: float, note: str = "") -> None:
        rows.append((name, f"{took:.3f}", f"{error:.1e}", f"{took / base:.1f}", note))
        say(" | ".join(rows[-1]))

    for method in ("dop853", "tsit5"):
        rtol = RTOLS[method]
        begin = time.perf_counter()
        solved(there[:1024], method, rtol, times)
        _wait()
        first = time.perf_counter() - begin
        took = seconds(lambda m=method, r=rtol: solved(there, m, r, times), _wait)
        found = solved(there, method, rtol, times)
        error = errors(found.x[:COMPARED].get(), exact)
        here = solved(states[:COMPARED], method, rtol, times).x
        same = found.x[:COMPARED].get().tobytes() == here.tobytes()
        base = took if method == "dop853" else base
        steps = found.stats["steps"].mean()
        note = f"first call {first:.1f} s, {steps:.1f} steps, bits equal: {same}"
        row(f"Archimedes {method}, arrays there", took, error, note)
        del found
    few = states[: count // 4]
    took = 4.0 * seconds(
        lambda: solved(few, "dop853", RTOLS["dop853"], times, backend="cuda"), _wait, 1
    )
    row('Archimedes dop853, NumPy, backend="cuda"', took, 0.0, f"{len(few):,}, scaled")
    for method in ("dop853", "tsit5"):
        took = seconds(
            lambda m=method: solved(states[:cpu], m, RTOLS[m], times, threads=2), _wait, 1
        )
        name = f"Archimedes {method}, 2 threads of the CPU"
        row(name, took * count / cpu, 0.0, f"{cpu:,}, scaled")
    if peers:
        for method in ("Dopri8", "Tsit5"):
            took, error = diffrax(states, method, RTOLS[method], times, exact)
            row(f"diffrax {method}", took, error)
    columns = ("tool", "s", "error", "to the first", "")
    return Table(f"{count:,} tumbling bodies, 10 s, {OUTPUTS} outputs each", columns, rows)


def diffrax(
    states: np.ndarray, method: str, rtol: float, times: np.ndarray, exact: np.ndarray
) -> tuple[float, float]:
    """Return seconds and error of diffrax on the same device."""
    import jax

    from benchmarks.simulations_peers import _diffrax_solve

    solve = jax.jit(jax.vmap(_diffrax_solve(PROBLEM, method, times), in_axes=(0, None)))
    there = jax.device_put(states)
    found = solve(there, rtol).block_until_ready()
    error = errors(np.asarray(found[:COMPARED]), exact)
    del found
    begin = time.perf_counter()
    solve(there, rtol).block_until_ready()
    return time.perf_counter() - begin, error


# ---- 6-dof rates -------------------------------------------------------------------------------


def columns_of(xp: Any, x: Any, F: Any, M: Any, m: Any, J: Any, inverse: Any) -> Any:
    """The 6-dof rates of many bodies, column by column, as one writes it for arrays."""
    _, _, _, a, b, c, d, u, v, w, p, q, r = (x[:, k] for k in range(13))
    squared = a * a + b * b + c * c + d * d
    scale, excess = 2.0 / squared, squared - 1.0
    e, f, g = c * w - d * v, d * u - b * w, b * v - c * u
    A, B, C = (J[i, 0] * p + J[i, 1] * q + J[i, 2] * r for i in range(3))
    moments = M[0] - (q * C - r * B), M[1] - (r * A - p * C), M[2] - (p * B - q * A)
    turned = [sum(inverse[i, j] * moments[j] for j in range(3)) for i in range(3)]
    rates = [
        u + scale * (a * e + c * g - d * f),
        v + scale * (a * f + d * e - b * g),
        w + scale * (a * g + b * f - c * e),
        -0.5 * (b * p + c * q + d * r) - excess * a,
        0.5 * (a * p + c * r - d * q) - excess * b,
        0.5 * (a * q + d * p - b * r) - excess * c,
        0.5 * (a * r + b * q - c * p) - excess * d,
        F[0] / m + r * v - q * w,
        F[1] / m + p * w - r * u,
        F[2] / m + q * u - p * v,
        *turned,
    ]
    return xp.stack(rates, 1)


def dynamics(count: int = STATES) -> Table:
    """6-dof rates of many bodies: ours, JAX, PyTorch and CuPy on the same device."""
    import cupy

    from benchmarks.models import rigid_body, rigid_body_point

    rng = np.random.default_rng(0)
    _, *parameters = rigid_body_point(rng)
    x = rng.normal(size=(count, 13))
    there = [cupy.asarray(v) for v in (x, *parameters)]
    run = arc.vmap(arc.compile(rigid_body), in_axes=(0, None, None, None, None))
    out = run(*there)
    want = out[:COMPARED].get()
    base, rows = seconds(lambda: run(*there, out=out), _wait, 5), []

    def row(name: str, took: float, found: np.ndarray) -> None:
        error = float(np.abs(found - want).max())
        rate = f"{count / took:.3g}"
        rows.append((name, rate, f"{took / base:.2f}", f"{error:.0e}"))
        say(" | ".join(rows[-1]))

    row("Archimedes, vmap, out=", base, want)
    given = (*there, cupy.linalg.inv(there[-1]))
    found = columns_of(cupy, *given)[:COMPARED].get()
    row("CuPy, elementwise", seconds(lambda: columns_of(cupy, *given), _wait, 2), found)
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp, arrays = jax.numpy, [jax.device_put(np.asarray(v.get())) for v in given]
    jitted = jax.jit(lambda *v: columns_of(jnp, *v))
    found = np.asarray(jitted(*arrays)[:COMPARED])
    row("JAX, jit", seconds(lambda: jitted(*arrays).block_until_ready(), _wait, 5), found)
    mapped = jax.jit(
        jax.vmap(lambda row, *v: columns_of(jnp, row[None], *v)[0], in_axes=(0, *[None] * 5))
    )
    found = np.asarray(mapped(*arrays)[:COMPARED])
    row("JAX, jit(vmap)", seconds(lambda: mapped(*arrays).block_until_ready(), _wait, 5), found)
    import torch

    tensors = [torch.from_dlpack(v) for v in given]
    wait = torch.cuda.synchronize
    found = columns_of(torch, *tensors)[:COMPARED].cpu().numpy()
    row("PyTorch", seconds(lambda: columns_of(torch, *tensors), wait, 2), found)
    return Table(
        f"6-dof rates of {count:,} bodies, double",
        ("tool", "bodies/s", "time to ours", "largest difference"),
        rows,
        "Arrays (N, 13) in C order on the device, parameters shared; peers are given the inverse "
        "of the inertia, which ours computes.",
    )


# ---- campaigns ---------------------------------------------------------------------------------


def campaign(count: int = FLIGHTS, few: int = 8192) -> Table:
    """Monte-Carlo flights of the F-16, and the same runs on the CPU.

    A campaign records its model, which takes as long for one flight as for all.
    """
    from benchmarks.gpu_flights import DISPERSED, SECONDS, flight_of

    flight, rows = flight_of(), []
    begin = time.perf_counter()
    arc.monte_carlo(flight, DISPERSED, 1000, seed=1, backend="cuda")
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    arc.monte_carlo(flight, DISPERSED, 1000, seed=1, backend="cuda")
    recorded = time.perf_counter() - begin
    begin = time.perf_counter()
    found = arc.monte_carlo(flight, DISPERSED, count, seed=1, backend="cuda")
    took = time.perf_counter() - begin
    begin = time.perf_counter()
    summary = found.statistics()
    told = time.perf_counter() - begin
    arc.monte_carlo(flight, DISPERSED, 256, seed=1, threads=2)
    begin = time.perf_counter()
    arc.monte_carlo(flight, DISPERSED, 256, seed=1, threads=2)
    before = time.perf_counter() - begin
    begin = time.perf_counter()
    here = arc.monte_carlo(flight, DISPERSED, few, seed=1, threads=2, chunk=few)
    own = time.perf_counter() - begin
    pairs = zip(
        arc.tree.leaves((found.params, found.results)), arc.tree.leaves((here.params, here.results))
    )
    same = all(a[:few].tobytes() == b.tobytes() for a, b in pairs)
    rates = count / (took - recorded), few / (own - before)
    note = f"first campaign {first:.1f} s, recording {recorded:.2f} s of all"
    rows.append(("GPU", f"{count:,}", f"{took:.2f}", f"{rates[0]:.3g}", note))
    note = f"bits equal: {same}, recording {before:.2f} s of all"
    rows.append(("CPU, 2 threads", f"{few:,}", f"{own:.2f}", f"{rates[1]:.3g}", note))
    rows.append(("statistics", f"{count:,}", f"{told:.2f}", "", ""))
    for line in rows:
        say(" | ".join(line))
    say(str(summary))
    return Table(
        f"Flights of the F-16, {SECONDS:.0f} s each after a disturbance",
        ("where", "flights", "s", "flights/s", ""),
        rows,
        f"{len(found.failed):,} of them failed. Flights/s, recording left out, GPU to 2 threads of "
        f"the CPU: {rates[0] / rates[1]:.0f}.",
    )


# ---- arrays of others --------------------------------------------------------------------------


def exchange(repeats: int = 300) -> Table:
    """PyTorch's and JAX's arrays in and out, by addresses; memory over many solves."""
    import cupy

    rows: list[tuple[str, str]] = []
    x = np.random.default_rng(3).normal(size=(1000, 2))
    pendulum = lambda t, x: np.array([x[1], -np.sin(x[0])])
    options = {"t_eval": np.linspace(0.0, 1.0, 5), "in_axes": 0, "method": "tsit5"}
    want = arc.solve_ode(pendulum, (0.0, 1.0), x, **options).x.tobytes()
    seen = []
    f = arc.vmap(lambda x: np.sin(x[0]) + x[1])
    import torch

    from archimedes.backends.cuda.device import as_cupy

    tensor = torch.from_numpy(x).cuda()
    seen.append(("PyTorch tensor", tensor, tensor.data_ptr()))
    import jax

    jax.config.update("jax_enable_x64", True)
    array = jax.device_put(x)
    where = next(iter(array.devices())).platform
    rows.append(("JAX's device", where))
    if where == "gpu":
        seen.append(("JAX array", array, array.unsafe_buffer_pointer()))
    for name, given, pointer in seen:
        in_place = as_cupy(given).data.ptr == pointer
        got = arc.solve_ode(pendulum, (0.0, 1.0), given, **options).x
        same = got.get().tobytes() == want
        back = torch.from_dlpack(got).data_ptr() == got.data.ptr
        other = jax.dlpack.from_dlpack(got)
        other_back = other.unsafe_buffer_pointer() == got.data.ptr if where == "gpu" else "-"
        values = f(given)
        mapped = values.get().tobytes() == f(x).tobytes()
        rows.append(
            (
                f"{name} to solve_ode and vmap",
                f"read in place: {in_place}, bits equal: {same}, {mapped}; result to PyTorch "
                f"without a copy: {back}, to JAX: {other_back}",
            )
        )
    there, pool = cupy.asarray(x), cupy.get_default_memory_pool()
    arc.solve_ode(pendulum, (0.0, 1.0), there, **options)
    _wait()
    held, used = pool.total_bytes(), pool.used_bytes()
    begin = time.perf_counter()
    for _ in range(repeats):
        arc.solve_ode(pendulum, (0.0, 1.0), there, **options)
    _wait()
    each = (time.perf_counter() - begin) / repeats
    rows.append(
        (
            f"{repeats} solves of 1,000 pendulums",
            f"{1e3 * each:.2f} ms each; bytes held {held} -> {pool.total_bytes()}, used {used} -> "
            f"{pool.used_bytes()}",
        )
    )
    for line in rows:
        say(" | ".join(line))
    return Table("Arrays of other packages, and memory", ("what", "seen"), rows)


def tables() -> list[Table]:
    """All tables, where there is a GPU."""
    from archimedes.errors import DeviceError

    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        arc.compile(lambda x: x, backend="cuda")(1.0)
    except (ImportError, DeviceError, RuntimeError):
        return []
    return [solves(), dynamics(), exchange(), campaign()]
