"""Runs programs as WebAssembly in Node, many in one process, and compares bits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from archimedes.backends.protocol import ArrayType
from archimedes.backends.protocol import Program as Arrays
from archimedes.backends.wasm import module as wasm_module
from archimedes.backends.wasm.module import write_module
from archimedes.graph import DTYPES, Graph

from ..programs.values import bits_equal, leaves_of, packed, reference

SCRIPT = Path(__file__).parent / "run_modules.mjs"


@dataclass
class Case:
    """A graph, its inputs over a batch, one array a column, and what it should give."""

    name: str
    graph: Graph
    columns: list[np.ndarray]
    count: int
    expected: list[np.ndarray] | None = None


def run_in_node(script: Path, *arguments: str, timeout: float = 600.0) -> str:
    """Run a script and return what it prints."""
    done = subprocess.run(
        ["node", str(script), *arguments], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def differences(
    cases: Sequence[Case], folder: Path, *, part: int | None = None, simd: bool = False
) -> dict[str, str]:
    """Run cases, each as a module of its own; return what differs from the interpreter."""
    jobs, inputs, wanted = [], [], []
    for k, case in enumerate(cases):
        leaves = [leaves_of(kinds) for kinds in (case.graph.input_dtypes, case.graph.output_dtypes)]
        arrays = [tuple(ArrayType(d, (n,)) for n, d in side) for side in leaves]
        program = Arrays(case.graph, *arrays, case.name)
        before = wasm_module.PART
        wasm_module.PART = part or before
        try:
            data, _, exports = write_module({"call": program}, batch="simd" if simd else "scalar")
        finally:
            wasm_module.PART = before
        (folder / f"{k}.wasm").write_bytes(data)
        export = exports["call"]
        sides = [
            [[x.address, x.segment.size, DTYPES[x.array.code].itemsize] for x in side]
            for side in (export.inputs, export.outputs)
        ]
        names = {"wasm": f"{k}.wasm", "name": export.name, "batch": export.batch}
        jobs.append({**names, "count": case.count, "inputs": sides[0], "outputs": sides[1]})
        if case.columns:
            inputs.append(_rows(packed(case.columns, leaves[0])).tobytes())
        expected = case.expected
        if expected is None:
            expected = reference(case.graph, case.columns, case.count)
        wanted.append(packed(expected, leaves[1]))
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "inputs.bin").write_bytes(b"".join(inputs))
    run_in_node(SCRIPT, str(folder))
    got = (folder / "outputs.bin").read_bytes()
    found: dict[str, str] = {}
    at = 0
    for case, want in zip(cases, wanted):
        shape = _rows(want).shape
        for how in ("alone", "in a batch"):
            rows = np.frombuffer(got, np.uint8, shape[0] * shape[1], at).reshape(shape)
            at += rows.size
            start = 0
            for k, x in enumerate(want):
                size = x[0].nbytes
                value = np.ascontiguousarray(rows[:, start : start + size]).view(x.dtype)
                start += size
                wrong = ~bits_equal(value, x).all(axis=1)
                if wrong.any():
                    i = int(np.argmax(wrong))
                    text = f"{case.name} {how}, instance {i}, leaf {k}: {value[i]} for {x[i]}"
                    found.setdefault(case.name, text)
    assert at == len(got)
    return found


def _rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the bytes of each instance, array after array."""
    bytes_of = [x.view(np.uint8).reshape(len(x), -1) for x in arrays]
    return np.concatenate(bytes_of, axis=1)
