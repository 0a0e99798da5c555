"""The catalogue as WebAssembly in Node, bit for bit: single calls and batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.errors import CodegenError
from archimedes.graph import DTYPES, F32, F64, Graph

from ..embedded.toolchain import needs
from ..programs.catalogue import callback_programs, programs
from ..programs.models import models
from ..programs.ops import OPS, op_program
from ..programs.program import emit
from ..programs.random_blocks import random_blocks
from ..programs.random_graphs import random_graph
from ..programs.values import SPECIAL_FLOATS, reference, samples
from .checking import Case, differences

pytestmark = needs("node")


def cases(made) -> list[Case]:
    return [Case(x.name, x.graph, x.columns, x.count) for x in made]


#: The batch: one instance after the other, or in pairs.
BATCHES = pytest.mark.parametrize(
    "simd", [True, pytest.param(False, marks=pytest.mark.long)], ids=["simd", "scalar"]
)


@BATCHES
def test_every_op(tmp_path: Path, simd: bool):
    assert not differences(cases(op_program(*row) for row in OPS), tmp_path, simd=simd)


@BATCHES
@pytest.mark.parametrize(
    "part", [None, pytest.param(5, marks=pytest.mark.long)], ids=["whole", "in parts"]
)
def test_every_program(tmp_path: Path, part: int | None, simd: bool):
    assert not differences(cases(programs()), tmp_path, part=part, simd=simd)


@pytest.mark.long
@BATCHES
def test_models(tmp_path: Path, simd: bool):
    assert not differences(cases(models()), tmp_path, simd=simd)


def test_a_wrong_result_is_seen_and_named(tmp_path: Path):
    first, second, *_ = cases(programs())
    second.expected = reference(second.graph, second.columns, second.count)
    second.expected[0] = second.expected[0].copy()
    second.expected[0][-1] += 1
    found = differences([first, second], tmp_path)
    assert list(found) == [second.name]
    assert f"{second.name} alone, instance {second.count - 1}, leaf 0" in found[second.name]


@pytest.mark.parametrize("made", callback_programs(), ids=lambda made: made.name)
def test_callbacks_are_refused(made, tmp_path: Path):
    with pytest.raises(CodegenError, match="calls back into Python"):
        differences(cases([made]), tmp_path)


@pytest.mark.parametrize("dtype", [F64, F32])
def test_limits_by_constants(dtype: int, tmp_path: Path):
    """Minimum and maximum with constants have code of their own: nans, and zeros of both signs."""
    limits = [0.0, -0.0, 1.0, -2.5, np.inf, np.nan]
    with np.errstate(over="ignore"):
        x = SPECIAL_FLOATS.astype(DTYPES[dtype])
    found = []
    for k, name in enumerate(("min", "max")):
        g = Graph()
        given = g.input(dtype)
        ids = [g.const(c, dtype) for c in limits]
        g.outputs = [emit(g, name, given, c) for c in ids] + [emit(g, name, c, given) for c in ids]
        found.append(Case(f"{name}{k}", g, [x], len(x)))
    assert not differences(found, tmp_path, simd=True)


def random_cases(seeds: range) -> list[Case]:
    found = []
    for seed in seeds:
        for name, make in (("scalars", random_graph), ("blocks", random_blocks)):
            g, rng = make(seed), np.random.default_rng(seed)
            columns = [samples(d, 5, rng) for d in g.input_dtypes]
            found.append(Case(f"{name} {seed}", g, columns, 5))
    return found


@pytest.mark.parametrize("part", [None, pytest.param(20, marks=pytest.mark.long)])
def test_random_graphs(part: int | None, tmp_path: Path):
    seeds = range(40, 60) if part is None else range(100)
    assert not differences(random_cases(seeds), tmp_path, part=part, simd=True)
