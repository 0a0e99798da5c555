"""``python -m benchmarks.gpu_contact``: quadrupeds on the ground on a GPU, against MJX there.

The robots, steps and servos of ``benchmarks.contact``. Ours is one kernel in float64 that makes 50
steps, through ``arc.vmap`` from CuPy's arrays; bits are compared with those of the CPU for 2,000
robots. MJX is ``jit(vmap(scan(mjx.step)))`` in float32 with one iteration of its solver and five of
its line search, what its own quadrupeds use. Times are the least of several, of the device.

``--write-reference FILE`` computes starts and the CPU's results and needs no GPU; ``--reference
FILE`` reads them, where the CPU has no compiler. ``--mjx FOLDER`` names a folder of the wheels of
``mujoco``, ``mujoco-mjx`` and what they need; without it MJX is taken from where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import archimedes as arc
from benchmarks.contact import (
    BEFORE,
    MJCF,
    STEPS,
    load,
    quality,
    simulate,
    starts,
    targets,
    world_velocity,
)
from benchmarks.report import ROOT, Table

__all__ = ["main", "measure_mjx", "measure_ours", "reference"]

COMPARED, COUNTS, REPEATS = 2000, (1024, 10_240, 65_536, 262_144), 3
#: Robots and steps of MJX in one call, and how long it may take in s.
MJX_COUNT, MJX_STEPS, MJX_SECONDS = 65_536, 10, 75


def reference() -> dict[str, np.ndarray]:
    """Return states half a second into the motion, targets, and the CPU's states after them."""
    run = arc.vmap(simulate(load()))
    q, v = run(*starts(COMPARED), targets(COMPARED, 0, BEFORE))
    aims = targets(COMPARED, BEFORE, STEPS)
    q_end, v_end = run(q, v, aims)
    return {"q": q, "v": v, "aims": aims, "q_end": q_end, "v_end": v_end}


def measure_ours(known: dict[str, np.ndarray]) -> list[tuple[str, ...]]:
    """Return a row per number of robots."""
    import cupy

    from archimedes.backends.cuda.cuda_kernel import device_seconds

    model = load()
    f = simulate(model, "cuda")
    run = arc.vmap(f)
    few = [cupy.asarray(known[key]) for key in ("q", "v", "aims")]
    begin = time.perf_counter()
    ends = [x.get() for x in run(*few)]
    first = time.perf_counter() - begin
    same = [
        np.all(np.atleast_2d(a.view(np.int64) == known[key].view(np.int64)), axis=1)
        for a, key in zip(ends, ("q_end", "v_end"), strict=True)
    ]
    equal = int(np.sum(same[0] & same[1]))
    say(f"first call {first:.1f} s; bits of {equal} of {COMPARED} robots equal")
    good, rows = quality(model, *ends), []
    for count in COUNTS:
        rows_of = cupy.arange(count) % COMPARED
        arrays = [x[rows_of] for x in few]
        out = run(*arrays)
        took = device_seconds(lambda a=arrays, o=out: run(*a, out=o), REPEATS, 1)
        bits = f"{equal:,} of {COMPARED:,}"
        rows.append(row("archimedes, float64", count, count * STEPS / took, first, good, bits))
        del arrays, out
    tiers = f._tiers(tuple(known[key][0] for key in ("q", "v", "aims")), {})
    notes = tiers._other("cuda", stays=True).kernel().figures().notes
    say("; ".join(notes))
    return rows


def measure_mjx(known: dict[str, np.ndarray]) -> list[tuple[str, ...]]:
    """Return the row of MJX."""
    import jax
    import mujoco
    from mujoco import mjx

    settings = '<option iterations="1" ls_iterations="5"><flag eulerdamp="disable"/></option>'
    text = MJCF.replace("<default>", f"{settings}<default>", 1)
    placed = mjx.put_model(mujoco.MjModel.from_xml_string(text))
    model = load()
    which = np.arange(MJX_COUNT) % COMPARED
    velocity = world_velocity(model, known["q"], known["v"])
    q, v = (x.astype(np.float32)[which] for x in (known["q"], velocity))
    aims = known["aims"].astype(np.float32)[which, :MJX_STEPS]

    def simulate_one(q: object, v: object, aims: object) -> tuple[object, object]:
        data = mjx.make_data(placed).replace(qpos=q, qvel=v)

        def step(data: object, ctrl: object) -> tuple[object, None]:
            return mjx.step(placed, data.replace(ctrl=ctrl)), None

        data, _ = jax.lax.scan(step, data, aims)
        return data.qpos, data.qvel

    call = jax.jit(jax.vmap(simulate_one))
    arrays = [jax.device_put(x) for x in (q, v, aims)]
    begin = time.perf_counter()
    jax.block_until_ready(call(*arrays))
    first, times = time.perf_counter() - begin, []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        ends = jax.block_until_ready(call(*arrays))
        times.append(time.perf_counter() - begin)
    q_end, v_end = (np.asarray(x, float)[:COMPARED] for x in ends)
    good = quality(model, q_end, world_velocity(model, q_end, v_end, back=True))
    rate = MJX_COUNT * MJX_STEPS / min(times)
    return [row(f"MJX {mjx_version()}, float32", MJX_COUNT, rate, first, good, "")]


def mjx_version() -> str:
    """Return the version of MuJoCo."""
    import mujoco

    return str(mujoco.__version__)


def row(
    name: str, count: int, rate: float, first: float, good: dict[str, float], bits: str
) -> tuple[str, ...]:
    """Return a row of the table."""
    figures = (f"{good[key]:.2g}" for key in ("median depth", "most depth", "median slip"))
    return (name, f"{count:,}", f"{rate:.3g}", f"{first:.1f} s", *figures, bits)


@contextmanager
def unpacked(folder: str | None) -> Iterator[list[str]]:
    """Provide the folder into which the wheels of a folder are unpacked."""
    if folder is None:
        yield []
        return
    with tempfile.TemporaryDirectory() as where:
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(where)
        yield [where]


def mjx_rows(file: str, folder: str | None) -> list[tuple[str, ...]]:
    """Return what `measure_mjx` returns in a process of its own; nothing if it fails."""
    code = (
        "import json, numpy as np; from benchmarks.gpu_contact import measure_mjx as f; "
        f"print(json.dumps(f(dict(np.load({file!r})))))"
    )
    with unpacked(folder) as folders:
        paths = [*folders, str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
        env |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_ENABLE_X64": "0"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", code], env=env, capture_output=True, text=True,
                check=False, timeout=MJX_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            say(f"MJX was not done after {MJX_SECONDS} s")
            return []
    if done.returncode:
        say(f"MJX failed:\n{done.stderr[-1500:]}")
        return []
    return [tuple(x) for x in json.loads(done.stdout.splitlines()[-1])]


def say(text: str) -> None:
    """Print progress at once."""
    print(f"  {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write-reference", metavar="FILE")
    parser.add_argument("--reference", metavar="FILE")
    parser.add_argument("--mjx", metavar="FOLDER")
    parser.add_argument("--no-mjx", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.write_reference:
        np.savez(chosen.write_reference, **reference())
        return
    with tempfile.TemporaryDirectory() as folder:
        file = chosen.reference or str(Path(folder) / "reference.npz")
        if chosen.reference is None:
            np.savez(file, **reference())
        known = dict(np.load(file))
        rows = measure_ours(known)
        print(table(rows).markdown(), flush=True)
        if not chosen.no_mjx:
            rows += mjx_rows(file, chosen.mjx)
    print(table(rows).markdown(), flush=True)


def table(rows: list[tuple[str, ...]]) -> Table:
    """Return the table."""
    from benchmarks.gpu import device

    columns = ("who", "robots", "steps per second", "first call", "penetration, mm", "at most, mm",
               "slip, mm/s", "bits equal")  # fmt: skip
    about = (__doc__ or "").split("\n\n")[1]
    return Table("Quadrupeds on the ground, on a GPU", columns, rows, f"{about}\n\n{device()}.")


if __name__ == "__main__":
    main()
