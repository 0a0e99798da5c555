"""One call from Python, the first call of a function, and memory over many calls.

Single calls against plain NumPy and CasADi; first calls (record, differentiate, compile to native
code) with an empty and with a warm disk cache, each in a process of its own.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["first", "measure", "memory", "tables"]

PROCESSES = 5
CALLS, RECOMPILATIONS = 100_000, 1_000
PEERS = ("NumPy", "CasADi")


def _struct_model() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The rigid body of ``archimedes.spatial``, structs in and out."""
    from archimedes.spatial import Quaternion, RigidBody

    body = RigidBody()
    x = RigidBody.State(
        pos=np.zeros(3),
        att=Quaternion(np.array([1.0, 0.0, 0.0, 0.0])),
        v_B=np.array([1.0, 0.0, 0.0]),
        w_B=np.array([0.1, 0.2, 0.3]),
    )
    u = RigidBody.Input(
        F_B=np.array([0.0, 0.0, 9.81]), M_B=np.zeros(3), m=2.0, J_B=np.diag([1.0, 2.0, 3.0])
    )
    return body.dynamics, (0.0, x, u)


def _casadi(args: tuple[Any, ...], jacobian: bool) -> Callable[[], Any]:
    import archimedes as arc
    from benchmarks.kernels_peers import casadi_function
    from benchmarks.models import rigid_body

    make = arc.jac if jacobian else arc.compile
    sizes = [np.size(a) for a in args]
    function = casadi_function(make(rigid_body).graph(*args), sizes)
    arrays = [np.ravel(np.asarray(a, dtype=float)) for a in args]
    return lambda: function(*arrays)


def measure() -> dict[str, float]:
    """Seconds of one call, best of several thousand at once."""
    import archimedes as arc
    from benchmarks.models import rigid_body, rigid_body_point

    args = rigid_body_point(np.random.default_rng(0))
    model, structs = _struct_model()
    flat, jacobian = arc.compile(rigid_body), arc.jac(rigid_body)
    compiled = arc.compile(model)
    out = np.empty(13)
    cases: dict[str, Callable[[], Any]] = {
        "structs|kernel": lambda: compiled(*structs),
        "structs|NumPy": lambda: model(*structs),
        "flat|kernel": lambda: flat(*args),
        "flat|kernel, out=": lambda: flat(*args, out=out),
        "flat|NumPy": lambda: rigid_body(*args),
        "flat|CasADi": _casadi(args, jacobian=False),
        "jacobian|kernel": lambda: jacobian(*args),
        "jacobian|CasADi": _casadi(args, jacobian=True),
    }
    found = {}
    for name, run in cases.items():
        for _ in range(500):  # past the interpreter
            run()
        number = 20_000 if "kernel" in name else 500
        found[name] = min(timeit.repeat(run, number=number, repeat=7)) / number
    return found


def _first_call(name: str) -> float:
    import archimedes as arc
    from benchmarks.models import arm, articulated_body, rigid_body, rigid_body_point

    point = rigid_body_point(np.random.default_rng(0))
    chain = arm(7)
    aba = lambda q, qd, tau: articulated_body(chain, q, qd, tau)
    make, function, args = {
        "6-dof": (arc.compile, rigid_body, point),
        "6-dof Jacobian": (arc.jac, rigid_body, point),
        "7-joint ABA": (arc.compile, aba, tuple(np.ones((3, 7)))),
    }[name]
    # What a process loads once (NumPy's parts, LLVM) is not the model's.
    os.environ["ARCHIMEDES_BACKEND"] = "llvm"
    arc.compile(lambda x: np.linalg.norm(x) + x)(np.ones(2))
    f = make(function)
    start = time.perf_counter()
    f(*args)
    return time.perf_counter() - start


def first() -> dict[str, float]:
    """Seconds of the first call of each model, in this process, with the cache as it is."""
    return {name: _first_call(name) for name in ("6-dof", "6-dof Jacobian", "7-joint ABA")}


def _resident() -> float:
    """Bytes of memory the process has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def memory() -> dict[str, float]:
    """Growth of the resident size, in bytes, over many calls and many recompilations."""
    import archimedes as arc
    from benchmarks.models import rigid_body, rigid_body_point

    os.environ["ARCHIMEDES_CACHE"] = "0"
    args = rigid_body_point(np.random.default_rng(0))
    f = arc.compile(rigid_body, backend="llvm")

    def grown(run: Callable[[int], Any], count: int) -> float:
        for k in range(count // 10):
            run(k)
        gc.collect()
        before = _resident()
        for k in range(count):
            run(k)
        gc.collect()
        return _resident() - before

    def recompile(k: int) -> None:
        # A new function each time, with a constant of its own.
        arc.compile(lambda x: np.sin(x) * float(k) + x, backend="llvm")(np.ones(3))

    return {
        f"{CALLS:,} calls": grown(lambda k: f(*args), CALLS),
        f"{RECOMPILATIONS:,} recompilations": grown(recompile, RECOMPILATIONS),
    }


def _first_calls() -> Table:
    """First calls with the disk cache empty, and in a second process with it warm."""
    folder = tempfile.mkdtemp()
    cold, warm = [], []
    kept = os.environ.get("ARCHIMEDES_CACHE_DIR")
    try:
        for _ in range(PROCESSES):
            shutil.rmtree(folder, ignore_errors=True)
            os.environ["ARCHIMEDES_CACHE_DIR"] = folder
            cold += in_processes("benchmarks.calls", "first", 1)
            warm += in_processes("benchmarks.calls", "first", 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        del os.environ["ARCHIMEDES_CACHE_DIR"]
        if kept is not None:
            os.environ["ARCHIMEDES_CACHE_DIR"] = kept
    a, b = medians(cold), medians(warm)
    rows = [
        (name, f"{1e3 * a[name]:.0f} ms", f"{1e3 * b[name]:.0f} ms", f"{a[name] / b[name]:.1f}x")
        for name in a
    ]
    return Table(
        "The first call: record, differentiate, compile, run",
        ("model", "empty cache", "second process, warm cache", "ratio"),
        rows,
        f"Medians over {PROCESSES} processes, native code at the first call.",
    )


def tables() -> list[Table]:
    """Three tables: single calls, first calls, memory."""
    found = medians(in_processes("benchmarks.calls", "measure", PROCESSES))
    names = {
        "structs": "6-dof, structs in and out",
        "flat": "6-dof, flat arrays",
        "jacobian": "13x13 Jacobian",
    }
    rows = []
    for key, title in names.items():
        own = found[f"{key}|kernel"]
        cells = [f"{1e6 * own:.2f} us"]
        for peer in PEERS:
            other = found.get(f"{key}|{peer}")
            cells.append("" if other is None else f"{1e6 * other:.1f} us, {other / own:.0f}x")
        rows.append((title, *cells))
    rows.append(("6-dof, flat arrays, out=", f"{1e6 * found['flat|kernel, out=']:.2f} us", "", ""))
    grown = medians(in_processes("benchmarks.calls", "memory", 1))
    note = (
        f"Medians over {PROCESSES} processes of the best time. CasADi: a function of its virtual "
        "machine, called with NumPy arrays."
    )
    return [
        Table("One call from Python", ("model", "Archimedes", *PEERS), rows, note),
        _first_calls(),
        Table(
            "Memory",
            ("after", "growth of the resident size"),
            [(name, f"{size / 1024:.0f} kB") for name, size in grown.items()],
        ),
    ]
