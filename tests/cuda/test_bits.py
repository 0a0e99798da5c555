"""Kernels on an emulated device, bit for bit the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.cuda.kernel_text import assemble_file
from archimedes.graph import CODES, F64, Graph

from ..long_parameters import long_after
from ..programs.catalogue import programs
from ..programs.ops import OPS, op_program
from ..programs.program import program
from ..programs.random_graphs import random_graph
from ..programs.values import assert_bits
from .cases import Case, cases
from .emulation import Emulated


def check(found: list[Case], part: int = 2000) -> None:
    device = Emulated(assemble_file([case.kernel(part) for case in found]))
    for case in found:
        results, plan = case.empty(), case.plan
        arrays = [x for x in (*case.inputs, *results) if x.size]
        blocks = -(-case.count // plan.threads)
        device.launch(case.name, blocks, plan.threads, arrays, case.count)
        for k, (got, want) in enumerate(zip(results, case.expected)):
            assert_bits(got, want, f"{case.name} output {k}")


KINDS = [{"shared": True}, {}, {"single": True}, {"single": True, "shared": True}]


@pytest.mark.parametrize("options", long_after(1, KINDS))
def test_catalogue(options: dict):
    check(cases(programs(), **options))


@pytest.mark.long
def test_in_parts():
    check(cases(programs()), part=5)


@pytest.mark.long
def test_ops():
    check(cases([op_program(*op) for op in OPS]))


@pytest.mark.parametrize("count", long_after(1, [12, 60]))
def test_random_programs(count: int):
    check(cases([program(f"random{seed}", random_graph(seed)) for seed in range(count)]))


def test_rows_of_every_length():
    """Whole and incomplete blocks, rows with and without a gap, arrays too long to be staged."""
    found = []
    for row, instances in ((1, 129), (2, 128), (3, 300), (24, 65), (60, 33), (250, 40)):
        g = Graph()
        ids = [g.input(F64) for _ in range(row)]
        g.outputs = [g.emit(CODES["mul"], i, ids[0]) for i in reversed(ids)]
        columns = list(np.random.default_rng(row).normal(size=(row, instances)))
        found.append(Case(program(f"rows{row}", g, None, columns)))
    assert [case.plan.threads for case in found] == [128, 128, 128, 64, 32, 32]
    assert [len(case.plan.staged) for case in found] == [0, 2, 2, 2, 2, 0]
    assert all(case.plan.shared <= 48 * 1024 for case in found)
    check(found)
