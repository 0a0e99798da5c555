"""``python -m benchmarks.gpu``: kernels on the GPU of this machine; writes their table.

From arrays in C order, a row per instance, times of the device (the least of several), through
``arc.vmap`` with results in arrays that are there. Bytes are those of arguments and results; "of a
copy" compares with a copy from device to device in the same run. Bits are compared with those of
the CPU for some hundreds of instances. "first" is the first call of a process with an empty cache
of compiled code, recording included, "again" that of the next process. Robots are those of
example-robot-data; RK4 is 1,000 steps of the 6-dof body in one kernel, per step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import archimedes as arc
from benchmarks.models import rigid_body, rigid_body_point
from benchmarks.report import RESULTS, Table

__all__ = ["CASES", "TITLE", "Case", "copies", "first_calls", "measure", "row_of", "tables"]

TITLE = "Kernels on a GPU"
STEPS, DT = 1000, 1e-3
COLUMNS = ("program", "instances", "per second", "TB/s", "of a copy", "kernels", "bits equal")
#: Robots whose files are in example-robot-data, and how many instances are timed.
ROBOTS = {"xarm7": (7, 4_000_000), "go1": (18, 2_000_000), "g1": (35, 1_000_000)}


class Case(NamedTuple):
    """A program and its arguments; ``steps`` of an instance are counted in one."""

    name: str
    function: Callable[..., Any]
    batched: tuple[np.ndarray, ...]
    shared: tuple[Any, ...] = ()
    count: int = 10_000_000
    steps: int = 1
    numerics: str = "strict"


def _states(dtype: Any = np.float64) -> tuple[np.ndarray, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 13))
    x[:, 3:7] /= np.linalg.norm(x[:, 3:7], axis=1)[:, None]
    _, *parameters = rigid_body_point(rng)
    return x.astype(dtype), tuple(np.asarray(p, dtype) for p in parameters)


def body(dtype: Any) -> Case:
    x, parameters = _states(dtype)
    return Case(f"6-dof rates, {np.dtype(dtype).name}", rigid_body, (x,), parameters)


def simulation(numerics: str, principal: bool) -> Case:
    x, (force, moment, mass, inertia) = _states()
    tensor = np.diag([1.5, 2.5, 3.5]) if principal else inertia

    def simulate(x: Any) -> Any:
        f = lambda x: rigid_body(x, force, moment, mass, tensor)

        def step(x: Any, _: Any) -> Any:
            a = f(x)
            b = f(x + 0.5 * DT * a)
            c = f(x + 0.5 * DT * b)
            d = f(x + DT * c)
            return x + DT / 6.0 * (a + 2.0 * b + 2.0 * c + d), None

        return arc.scan(step, x, length=STEPS)[0]

    axes = "principal axes" if principal else "full inertia"
    return Case(f"RK4, {axes}, {numerics}", simulate, (x,), (), 1_000_000, STEPS, numerics)


def robot(name: str, function: str = "aba") -> Case:
    """A robot's forward dynamics, or their derivatives."""
    from tests.multibody.robots import FLOATING, path_of

    from archimedes import multibody as mb

    model = mb.load(path_of(name), "floating" if name in FLOATING else "fixed")
    rng = np.random.default_rng(1)
    q, v, tau = (rng.normal(size=(500, n)) for n in (model.nq, model.nv, model.nv))
    if name in FLOATING:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    joints, count = ROBOTS[name]
    call = getattr(mb, function)
    return Case(
        f"{function}, {name} ({joints} joints)",
        lambda q, v, tau: call(model, q, v, tau),
        (q, v, tau),
        count=count if function == "aba" else count // 8,
    )


CASES: tuple[Callable[[], Case], ...] = (
    partial(body, np.float64),
    partial(body, np.float32),
    *(partial(simulation, n, p) for p in (False, True) for n in ("strict", "fast")),
    *(partial(robot, name) for name in ROBOTS),
    *(partial(robot, name, "aba_derivatives") for name in ("xarm7", "go1")),
)


def copies(count: int = 130_000_000) -> float:
    """Bytes per second of a copy, read and written."""
    import cupy

    from archimedes.backends.cuda.cuda_kernel import device_seconds

    a = cupy.ones((count,), np.float64)
    b = cupy.empty_like(a)
    return 2 * a.nbytes / device_seconds(lambda: cupy.copyto(b, a))


def measure(case: Case, copy: float, count: int | None = None) -> tuple[str, ...]:
    """Return the row of a program."""
    import cupy

    from archimedes.backends.cuda.cuda_kernel import device_seconds

    number = count or case.count
    f = arc.compile(case.function, numerics=case.numerics)
    axes = (0,) * len(case.batched) + (None,) * len(case.shared)
    run = arc.vmap(f, in_axes=axes)
    want = run(*case.batched, *case.shared)
    rows = [cupy.asarray(np.resize(x, (number, *x.shape[1:]))) for x in case.batched]
    shared = [cupy.asarray(x) for x in case.shared]
    out = run(*rows, *shared)
    parts, wanted = arc.tree.leaves(out), arc.tree.leaves(want)
    few = min(number, len(case.batched[0]))
    same = all(a[:few].get().tobytes() == b[:few].tobytes() for a, b in zip(parts, wanted))
    took = device_seconds(lambda: run(*rows, *shared, out=out))
    rate = sum(x.nbytes for x in (*rows, *parts)) / took
    speed = number * case.steps / took
    return (
        case.name,
        f"{number:.0e}",
        f"{speed:.3g}",
        f"{rate / 1e12:.2f}",
        f"{100 * rate / copy:.0f} %",
        _taken(f, case),
        "yes" if same else "NO",
    )


def _taken(f: Any, case: Case) -> str:
    """Registers, spilled bytes and threads of a multiprocessor of each kernel."""
    arguments = [x[0] for x in case.batched] + [x[()] for x in case.shared]
    kernel = f._tiers(tuple(arguments), {})._other("cuda", stays=True).kernel()
    found = []
    for compiled in kernel._compiled.values():
        for loaded in compiled.kernels:
            registers, local = loaded.attributes()
            threads = compiled.plan.threads * loaded.occupancy(compiled.plan.threads)
            found.append(f"{registers} registers, {local} B local, {threads} threads")
    return "; ".join(found)


_FIRST = """
import time
import numpy as np, cupy
import archimedes as arc
from benchmarks import gpu
case = gpu.{case}
cupy.zeros(1)
x = [cupy.asarray(v[:100]) for v in case.batched] + [cupy.asarray(v) for v in case.shared]
axes = (0,) * len(case.batched) + (None,) * len(case.shared)
begin = time.perf_counter()
for y in arc.tree.leaves(arc.vmap(case.function, in_axes=axes)(*x)):
    y.get()
print(f"{{time.perf_counter() - begin:.2f}}")
"""


def first_calls() -> list[tuple[str, str, str]]:
    """First calls of processes: with an empty cache, and from the cache."""
    rows = []
    for name, case in (
        ("6-dof rates", "body(np.float64)"),
        *((f"aba, {r}", f'robot("{r}")') for r in ROBOTS if _is_there(r)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for _ in range(2):
                done = subprocess.run(
                    [sys.executable, "-c", _FIRST.format(case=case)],
                    capture_output=True,
                    text=True,
                    env=_environment(folder),
                )
                if done.returncode:
                    raise RuntimeError(done.stderr[-800:])
                found.append(done.stdout.strip())
        rows.append((name, f"{found[0]} s", f"{found[1]} s"))
    return rows


def _environment(folder: str) -> dict[str, str]:
    """A cache of its own, and .pyc files as users have them."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "ARCHIMEDES_CACHE": "1", "ARCHIMEDES_CACHE_DIR": folder}


def _is_there(name: str) -> bool:
    from tests.multibody.robots import path_of

    try:
        return path_of(name).is_file()
    except (ImportError, StopIteration):
        return False


def row_of(make: Callable[[], Case], copy: float) -> tuple[str, ...] | None:
    """Return the row of a program, None where its files are missing."""
    try:
        case = make()
    except (ImportError, StopIteration):
        return None
    return measure(case, copy)


def device() -> str:
    """Name the device, its driver and what compiles for it."""
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"].decode()
    nvrtc = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    driver = runtime.driverGetVersion()
    return f"{name}, driver of CUDA {driver // 1000}.{driver % 1000 // 10}, NVRTC {nvrtc}"


def tables() -> list[Any]:
    """The tables; those of the page as it is where there is no GPU."""
    from archimedes.backends.cuda.device import cupy
    from archimedes.errors import DeviceError

    try:
        cupy()
    except DeviceError:
        return [Kept(text)] if (text := _section()) else []
    copy = copies()
    rows = [row for make in CASES if (row := row_of(make, copy)) is not None]
    note = f"{(__doc__ or '').strip()}\n\nDevice: {device()}; a copy: {copy / 1e12:.2f} TB/s."
    firsts = Table("First calls on a GPU", ("program", "first", "again"), first_calls())
    return [Table(TITLE, COLUMNS, rows, note), firsts]


class Kept(NamedTuple):
    """Tables that were measured elsewhere."""

    text: str

    def markdown(self) -> str:
        """The text as it was."""
        return self.text


def _section() -> str:
    """Return what the page has of kernels on a GPU."""
    page = RESULTS.read_text(encoding="utf-8")
    start = page.find(f"## {TITLE}\n")
    if start < 0:
        return ""
    after = page.find("\n## ", page.find("## First calls on a GPU", start) + 1)
    return page[start : after + 1 if after >= 0 else len(page)]


def main() -> None:
    """Measure, print, and put the tables into the page."""
    text = "\n".join(table.markdown() for table in tables())
    print(text)
    page, before = RESULTS.read_text(encoding="utf-8"), _section()
    page = page.replace(before, text) if before else f"{page.rstrip()}\n\n{text}"
    RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
