"""The catalogue as WebAssembly in Node, bit for bit: single calls and batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from archimedes.errors import CodegenError

from ..embedded.toolchain import needs
from ..programs.catalogue import callback_programs, programs
from ..programs.models import models
from ..programs.ops import OPS, op_program
from ..programs.values import reference
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
@pytest.mark.parametrize("part", [None, 5], ids=["whole", "in parts"])
def test_every_program(tmp_path: Path, part: int | None, simd: bool):
    assert not differences(cases(programs()), tmp_path, part=part, simd=simd)


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
