"""The catalogue as WebAssembly in Node, bit for bit: single calls and batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..embedded.toolchain import needs
from ..programs.catalogue import callback_programs, programs
from ..programs.models import models
from ..programs.ops import OPS, op_program
from .checking import Case, differences

pytestmark = needs("node")


def cases(made) -> list[Case]:
    return [Case(x.name, x.graph, x.columns, x.count) for x in made]


def test_every_op(tmp_path: Path):
    assert not differences(cases(op_program(*row) for row in OPS), tmp_path)


@pytest.mark.parametrize("part", [None, 5], ids=["whole", "in parts"])
def test_every_program(tmp_path: Path, part: int | None):
    assert not differences(cases(programs()), tmp_path, part=part)


def test_models(tmp_path: Path):
    assert not differences(cases(models()), tmp_path)


def test_a_wrong_result_is_seen_and_named(tmp_path: Path):
    case, *_ = cases(programs())
    expected = [x[: case.count] for x in case.columns]
    spoiled = Case("spoiled", case.graph, case.columns, case.count)
    from ..programs.values import reference

    spoiled.expected = reference(case.graph, expected, case.count)
    spoiled.expected[0] = spoiled.expected[0] + 1
    assert "spoiled alone, instance 0" in differences([spoiled], tmp_path)["spoiled"]


@pytest.mark.parametrize("made", callback_programs(), ids=lambda made: made.name)
def test_callbacks_are_refused(made, tmp_path: Path):
    from archimedes.errors import CodegenError

    with pytest.raises(CodegenError, match="calls back into Python"):
        differences(cases([made]), tmp_path)
