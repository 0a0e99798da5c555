"""Runs programs as WebAssembly in Node, many in one process, and compares bits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree
from archimedes.backends.leaves import values_in
from archimedes.backends.protocol import ArrayType
from archimedes.backends.protocol import Program as Arrays
from archimedes.backends.wasm import module as wasm_module
from archimedes.backends.wasm.module import Export, write_module
from archimedes.graph import DTYPES, Graph

from ..programs.values import bits_equal, leaves_of, packed, reference

#: Programs in one module: a browser has room for some hundred memories.
TOGETHER = 20
SCRIPT = Path(__file__).parent / "in_node.mjs"


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


def run_jobs_in_node(folder: Path) -> None:
    """Run the jobs of a folder in Node."""
    run_in_node(SCRIPT, str(folder))


def differences(
    cases: Sequence[Case],
    folder: Path,
    *,
    part: int | None = None,
    simd: bool = False,
    run: Callable[[Path], None] = run_jobs_in_node,
) -> dict[str, str]:
    """Run cases, some in one module; return what differs from the interpreter."""
    jobs, inputs, wanted = [], [], []
    for start in range(0, len(cases), TOGETHER):
        group = {f"case{k}": case for k, case in enumerate(cases[start : start + TOGETHER])}
        before = wasm_module.PART
        wasm_module.PART = part or before
        try:
            batch = "simd" if simd else "scalar"
            programs = {name: _program(case) for name, case in group.items()}
            data, _, exports = write_module(programs, batch=batch)
        finally:
            wasm_module.PART = before
        file = f"{start}.wasm"
        (folder / file).write_bytes(data)
        jobs += [_job(file, exports[name], case.count) for name, case in group.items()]
    for case in cases:
        given, made = _leaves(case.graph)
        if case.columns:
            inputs.append(_rows(packed(case.columns, given)).tobytes())
        expected = case.expected
        if expected is None:
            expected = reference(case.graph, case.columns, case.count)
        wanted.append(packed(expected, made))
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "inputs.bin").write_bytes(b"".join(inputs))
    run(folder)
    got = (folder / "outputs.bin").read_bytes()
    found: dict[str, str] = {}
    at = 0
    for case, want in zip(cases, wanted):
        shape = case.count, sum(x[0].nbytes for x in want)
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


def _leaves(graph: Graph) -> list[list[tuple[int, int]]]:
    return [leaves_of(kinds) for kinds in (graph.input_dtypes, graph.output_dtypes)]


def _program(case: Case) -> Arrays:
    sides = (tuple(ArrayType(d, (n,)) for n, d in side) for side in _leaves(case.graph))
    return Arrays(case.graph, *sides, case.name)


def _job(file: str, export: Export, count: int) -> dict[str, Any]:
    """Describe how a function is called."""
    given, made = (
        [[x.address, x.segment.size, DTYPES[x.array.code].itemsize] for x in side]
        for side in (export.inputs, export.outputs)
    )
    names = {"wasm": file, "name": export.name, "batch": export.batch}
    return {**names, "count": count, "inputs": given, "outputs": made}


def _rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the bytes of each instance, array after array."""
    bytes_of = [x.view(np.uint8).reshape(len(x), -1) for x in arrays]
    return np.concatenate(bytes_of, axis=1)


def function_case(name: str, function: Callable[..., Any], *rows: tuple[Any, ...]) -> Case:
    """Record a function; it should give what Python gives for each row of arguments."""
    compiled = arc.compile(function)
    recording = compiled.recording(*rows[0])
    graph = recording.blocks
    given = [values_in(tree.leaves(row), graph.input_dtypes) for row in rows]
    made = [values_in(tree.leaves(compiled(*row)), graph.output_dtypes) for row in rows]

    def columns(values: list[list[Any]], kinds: list[int]) -> list[np.ndarray]:
        return [np.array([row[k] for row in values], DTYPES[d & 3]) for k, d in enumerate(kinds)]

    return Case(
        name,
        graph,
        columns(given, graph.input_dtypes),
        len(rows),
        columns(made, graph.output_dtypes),
    )
