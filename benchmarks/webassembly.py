"""WebAssembly in Node against native kernels: time of a batch on one core, and size of modules.

The native kernel computes one instance at a time (its lanes are off), and so does the module unless
it says SIMD. Both get the same arrays, and their results are compared bit for bit first. The size
is that of a module with the function alone, without its batch, against what clang makes of our C.
Needs node, and for sizes clang and wasm-ld (``.ci/install-tools``).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.embedded import codegen
from archimedes.embedded.c_files import source_files
from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 3
INSTANCES = 256
SECONDS = 0.6
CLANG = ("--target=wasm32", "-O2", "-ffp-contract=off", "-fno-builtin", "-nostdlib")

#: What clang calls for the copies of structs.
_MEMORY = """
void *memcpy(void *a, const void *b, unsigned long n)
{
    for (unsigned long k = 0; k < n; ++k) ((char *)a)[k] = ((const char *)b)[k];
    return a;
}
void *memset(void *a, int c, unsigned long n)
{
    for (unsigned long k = 0; k < n; ++k) ((char *)a)[k] = (char)c;
    return a;
}
"""
_NODE = """
import { readFileSync, writeFileSync } from "node:fs";
import { load } from "./model.js";
const model = await load();
const b = model.batch(INSTANCES);
const inputs = model.layout.functions[0][1].inputs, outputs = model.layout.functions[0][1].outputs;
const data = readFileSync(new URL("./inputs.bin", import.meta.url));
let at = 0;
for (const leaf of inputs) {
  const view = b.inputs[leaf.path];
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  bytes.set(data.subarray(at, at + bytes.length));
  at += bytes.length;
}
let best = Infinity;
const end = performance.now() + 1000 * SECONDS;
while (performance.now() < end) {
  const start = performance.now();
  for (let k = 0; k < REPEATS; ++k) b.run();
  best = Math.min(best, (performance.now() - start) / REPEATS);
}
const made = outputs.map((leaf) => b.outputs[leaf.path]);
writeFileSync(new URL("./outputs.bin", import.meta.url),
  Buffer.concat(made.map((x) => Buffer.from(x.buffer, x.byteOffset, x.byteLength))));
console.log(best / 1000 / INSTANCES);
"""


def _f16() -> tuple[Callable[..., Any], list[np.ndarray]]:
    """An RK4 step of the F-16, from states around a cruise."""
    import archimedes as arc
    from archimedes import tree
    from archimedes.vehicles import F16, FlightState, load

    plane = load("f16")
    flight = FlightState(
        lat=0.6,
        lon=0.2,
        alt=3000.0,
        v_NED=np.array([150.0, 0.0, 0.0]),
        rpy=np.array([0.0, 0.05, 0.3]),
        w_B=np.zeros(3),
    )
    x0, unravel = tree.ravel(plane.state(flight, 30.0))

    def rates(t: Any, x: Any, u: Any) -> Any:
        return tree.ravel(plane.dynamics(t, unravel(x), F16.Input(u[0], u[1], u[2], u[3])))[0]

    step = arc.discretize(rates, 0.02, method="rk4")
    rng = np.random.default_rng(0)
    x = x0 * (1.0 + 0.01 * rng.uniform(-1.0, 1.0, (INSTANCES, x0.size)))
    u = np.array([0.4, -2.0, 0.1, 0.1]) * rng.uniform(0.8, 1.2, (INSTANCES, 4))
    return lambda x, u: step(0.0, x, u), [x, u]


def _arm() -> tuple[Callable[..., Any], list[np.ndarray]]:
    from benchmarks.models import arm, articulated_body

    model = arm()
    rng = np.random.default_rng(0)
    return lambda q, v, u: articulated_body(model, q, v, u), [
        rng.normal(size=(INSTANCES, 7)) for _ in "qvu"
    ]


def _bodies() -> tuple[Callable[..., Any], list[np.ndarray]]:
    from benchmarks.models import rigid_body, rigid_body_point

    rng = np.random.default_rng(0)
    points = [rigid_body_point(rng) for _ in range(INSTANCES)]
    return rigid_body, [np.array(column, float) for column in zip(*points)]


CASES = {
    "RK4 step of the F-16": _f16,
    "ABA of a 7-joint arm": _arm,
    "6-dof bodies, a batch": _bodies,
}


def _native(
    function: Callable[..., Any], arrays: list[np.ndarray]
) -> tuple[float, list[np.ndarray]]:
    """Seconds per instance of the scalar native kernel, and its results."""
    import archimedes as arc
    from archimedes.backends.llvm.runtime.kernel import build
    from archimedes.graph.expand import expand

    recording = arc.compile(function).recording(*(x[0] for x in arrays))
    leaves = [(x[0].size, 0) for x in arrays]
    outs = [(out.spec.size, 0) for out in recording.outs]
    kernel = build(expand(recording.graph), leaves, outs, lanes=1)
    results = [np.empty((INSTANCES, size)) for size, _ in outs]

    def run() -> float:
        start = time.perf_counter()
        kernel.call_batch(arrays, [True] * len(arrays), results, INSTANCES, threads=1)
        return time.perf_counter() - start

    run()  # compiles
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        best = min(best, run())
    return best / INSTANCES, results


def _in_node(
    function: Callable[..., Any], arrays: list[np.ndarray], simd: bool
) -> tuple[float, bytes]:
    """Seconds per instance of the module's batch, and the bytes of its results."""
    with tempfile.TemporaryDirectory() as folder:
        args = tuple(x[0].copy() if x[0].ndim else float(x[0]) for x in arrays)
        codegen(
            function, args, target="wasm", name="model", output_dir=folder, options={"simd": simd}
        )
        (Path(folder) / "inputs.bin").write_bytes(
            b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)
        )
        words = f"const INSTANCES = {INSTANCES}, SECONDS = {SECONDS}, REPEATS = 4;"
        (Path(folder) / "run.mjs").write_text(words + _NODE)
        done = subprocess.run(
            ["node", f"{folder}/run.mjs"], capture_output=True, text=True, check=True
        )
        return float(done.stdout), (Path(folder) / "outputs.bin").read_bytes()


def measure() -> dict[str, float]:
    """Time all cases once."""
    found = {}
    for name, make in CASES.items():
        function, arrays = make()
        found[f"{name}: native"], results = _native(function, arrays)
        wanted = b"".join(x.tobytes() for x in results)
        for simd in (False, True):
            seconds, got = _in_node(function, arrays, simd)
            if got != wanted:
                raise RuntimeError(f"{name}: other bits than the native kernel")
            found[f"{name}: {'simd' if simd else 'wasm'}"] = seconds
    return found


def sizes(name: str) -> tuple[int, int]:
    """Bytes of our module of one function, and of what clang and wasm-ld make of our C."""
    function, arrays = CASES[name]()
    args = tuple(x[0].copy() if x[0].ndim else float(x[0]) for x in arrays)
    ours = codegen(function, args, target="wasm", name="model", options={"batch": False})
    project = codegen(function, args, name="model")
    with tempfile.TemporaryDirectory() as folder:
        for path, text in source_files(project.model).items():
            (Path(folder) / path).write_text(text)
        steps = "model_init", "model_step"
        exports = [f"-Wl,--export={x}" for x in steps]
        (Path(folder) / "memory.c").write_text(_MEMORY)
        command = ["clang", *CLANG, "-Wl,--no-entry,--strip-all", *exports, "-o", "model.wasm"]
        subprocess.run([*command, "model.c", "memory.c"], cwd=folder, check=True)
        return len(ours.wasm), (Path(folder) / "model.wasm").stat().st_size


def tables() -> list[Table]:
    """Return the table of times and sizes."""
    times = medians(in_processes("benchmarks.webassembly", "measure", PROCESSES))
    rows = []
    for name in CASES:
        native, wasm, simd = (times[f"{name}: {x}"] for x in ("native", "wasm", "simd"))
        ours, clang = sizes(name)
        figures = [f"{1e9 * x:,.0f} ns" for x in (native, wasm, simd)]
        rows.append(
            [
                name,
                *figures,
                f"{wasm / native:.2f}",
                f"{ours / 1000:.1f} kB",
                f"{clang / 1000:.1f} kB",
            ]
        )
    columns = [
        "model",
        "native",
        "WebAssembly",
        "with SIMD",
        "ratio",
        "module",
        "clang -O2 of our C",
    ]
    note = (
        f"One instance of a batch of {INSTANCES} on one core, in Node; lanes of the native kernel "
        "are off. Ratio: WebAssembly without SIMD to native. Module: the function alone."
    )
    return [Table("WebAssembly", columns, rows, note)]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
