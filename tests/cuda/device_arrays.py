"""Arrays of other packages, moving, mixing, streams and solves on the device."""

from __future__ import annotations

import resource
import threading
import time
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.backends.cuda import cuda_kernel

__all__ = ["errors", "launches", "mixing", "moving", "packages", "solves", "streams"]


def _f(x: Any) -> Any:
    return np.sin(x[0]) * np.exp(x[1]) + x[2]


def _rows(count: int = 1000) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(count, 3))


def packages(say: Any) -> None:
    """PyTorch's and JAX's arrays, read where they lie."""
    x = _rows()
    want = arc.vmap(_f)(x).tobytes()
    try:
        import torch
    except ImportError:
        say("PyTorch: not installed")
    else:
        tensor = torch.from_numpy(x).cuda()
        got = arc.vmap(_f)(tensor)
        say(f"PyTorch: {type(got).__module__} array, bits equal: {got.get().tobytes() == want}")
        out = torch.empty(len(x), dtype=torch.float64, device="cuda")
        arc.vmap(_f)(tensor, out=out)
        back = torch.from_dlpack(got)
        say(
            f"PyTorch out=: {out.cpu().numpy().tobytes() == want}, back without a copy: "
            f"{back.data_ptr() == got.data.ptr}"
        )
    try:
        import jax
    except ImportError:
        say("JAX: not installed")
    else:
        jax.config.update("jax_enable_x64", True)
        array = jax.numpy.asarray(x)
        where = {d.platform for d in array.devices()}
        got = arc.vmap(_f)(array)
        here = got.get() if hasattr(got, "get") else np.asarray(got)
        say(f"JAX ({where}): {type(got).__module__} array, bits equal: {here.tobytes() == want}")


def mixing(say: Any) -> None:
    """The error for arrays of two kinds."""
    import cupy

    try:
        arc.vmap(lambda x, y: x + y)(cupy.asarray(np.ones(3)), np.ones(3))
        say("WRONG mixing raised nothing")
    except ValueError as error:
        say(f"mixing: {error}")


def moving(count: int, say: Any) -> None:
    """NumPy's arrays there and back in pieces."""
    x = np.resize(_rows(), (count, 3))
    f = arc.vmap(_f, backend="cuda")
    f(x[:10])
    begin = time.perf_counter()
    got = f(x)
    took = time.perf_counter() - begin
    few = slice(count - 5000, count)
    same = got[few].tobytes() == arc.vmap(_f)(x[few]).tobytes()
    say(
        f'backend="cuda", NumPy, N={count} ({x.nbytes / 1e9:.1f} GB in): {count / took:.3g}/s, '
        f"{(x.nbytes + got.nbytes) / took / 1e9:.1f} GB/s, bits equal: {same}, "
        f"pieces of {cuda_kernel.CHUNK_BYTES >> 20} MB"
    )


def streams(say: Any) -> None:
    """Two threads with a stream each, many launches."""
    import cupy

    x = _rows()
    want, there, wrong = arc.vmap(_f)(x).tobytes(), cupy.asarray(x), []
    run = arc.vmap(arc.compile(_f))
    run(there).get()

    def work() -> None:
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(50):
                if run(there).get().tobytes() != want:
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(f"two threads, two streams: {len(wrong)} of 100 wrong")


def launches(count: int, say: Any) -> None:
    """Many calls: the time of each, and memory before and after."""
    import cupy

    run, there = arc.vmap(arc.compile(_f)), cupy.asarray(_rows())
    for _ in range(10):
        out = run(there)
    pool, stream = cupy.get_default_memory_pool(), cupy.cuda.get_current_stream()
    stream.synchronize()
    before, free = pool.total_bytes(), cupy.cuda.runtime.memGetInfo()[0]
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, call in (("new arrays", lambda: run(there)), ("out=", lambda: run(there, out=out))):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        each = (time.perf_counter() - begin) / count
        stream.synchronize()
        say(f"{count} launches, {name}: {1e6 * each:.1f} us each")
    after = pool.total_bytes(), cupy.cuda.runtime.memGetInfo()[0]
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - host
    say(f"pool {before} and then {after[0]} bytes, free {free} and {after[1]}, host + {more} kB")


def errors(say: Any) -> None:
    """What goes wrong is said, and the next call works."""
    import cupy

    f, x = arc.vmap(lambda x: np.ones(10_000) * x), cupy.ones(10)
    want = f(x[:3]).get().tobytes()
    many = cupy.ones(200_000_000)

    def too_many() -> Any:
        return f(many)

    def mixed() -> Any:
        return arc.vmap(lambda a, b: a + b)(x, np.ones(10))

    def callback() -> Any:
        back = arc.compile(lambda v: arc.callback(lambda u: u * 2.0, np.float64(0.0), v))
        return arc.vmap(back)(x)

    for name, call in (("memory", too_many), ("mixing", mixed), ("python", callback)):
        try:
            call()
            text = "WRONG nothing was raised"
        except (arc.errors.ArchimedesError, ValueError) as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
        same = f(x[:3]).get().tobytes() == want
        say(f"{name}: {text} | afterwards works: {same}")


def solves(count: int, say: Any) -> None:
    """``solve_ode`` by name, against the CPU."""
    pendulum = lambda t, x: np.array([x[1], -np.sin(x[0]) - 0.1 * x[1]])
    x0 = np.stack([np.linspace(-2.0, 2.0, count), np.zeros(count)], axis=1)
    options: dict[str, Any] = {"t_eval": np.linspace(0.0, 10.0, 11), "rtol": 1e-8, "in_axes": 0}
    arc.solve_ode(pendulum, (0.0, 10.0), x0[:64], **options, backend="cuda")
    begin = time.perf_counter()
    got = arc.solve_ode(pendulum, (0.0, 10.0), x0, **options, backend="cuda")
    there = time.perf_counter() - begin
    arc.solve_ode(pendulum, (0.0, 10.0), x0[:64], **options)
    begin = time.perf_counter()
    want = arc.solve_ode(pendulum, (0.0, 10.0), x0, **options)
    here = time.perf_counter() - begin
    say(
        f"solve_ode, {count} pendulums: {there:.2f} s there, {here:.2f} s here, bits equal: "
        f"{got.x.tobytes() == want.x.tobytes()}"
    )
