"""A region that nobody knows: one class, one lowering, and every language has it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.c import Argument, assemble, render
from archimedes.backends.interpreter import run
from archimedes.backends.lowering.regions import REGIONS
from archimedes.graph import F64

from ..c.checking import compile_c, needs
from ..graph.test_new_region import Twice, program
from ..llvm.checking import check
from .toy import build


def lower_twice(low, scope, region, outs):
    """Two blocks, one after the other: the second reads what the first computed."""
    every = range(len(region.body.outputs))
    given = scope.bindings(region.inputs.tolist())
    middle = low.block(scope.f, region, region.body, given, every)
    last = low.block(scope.f, region, region.body, middle, every)
    for i, number in zip(outs, scope.numbers(outs)):
        scope.bind(i, last[number])


@pytest.fixture(autouse=True)
def lowered(monkeypatch):
    monkeypatch.setitem(REGIONS, Twice, lower_twice)


COLUMNS = np.random.default_rng(0).normal(size=(2, 21))


def test_native_code():
    check(program(), list(COLUMNS), lanes=(2, 4, 8))
    check(program(), list(COLUMNS), lanes=(4,), part=3)


@pytest.mark.parametrize("part", [1000, 3])
def test_python(part):
    function = build(program(), part)
    for row in COLUMNS.T:
        assert function(*row) == run(program(), list(row))


@pytest.mark.parametrize("part", [2000, 2])
def test_c(part: int, tmp_path: Path):
    needs("gcc")
    arguments = [Argument("x", F64), Argument("y", F64)]
    source = render(program(), "f", inputs=arguments, outputs=[Argument("z", F64, (2,))], part=part)
    compile_c(assemble([source]), tmp_path, "-O1", "-shared", "-fPIC", "-o", "unit.so")
    function = ctypes.CDLL(str(tmp_path / "unit.so")).f
    function.restype = None
    out = (ctypes.c_double * 2)()
    for row in COLUMNS.T:
        function(*map(ctypes.c_double, row), out)
        assert list(out) == run(program(), list(row))
