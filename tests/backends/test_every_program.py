"""The catalogue on every backend, bit for bit; C is in ``tests/c``, where compilers are needed."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.interpreter import run
from archimedes.backends.lowering.regions import REGIONS
from archimedes.graph import DTYPES
from archimedes.graph.dtypes import item_type
from archimedes.graph.regions.base import has_blocks

from ..llvm.checking import check
from ..programs.catalogue import callback_programs, programs, regions_of
from ..programs.ops import OPS, READS_SIGN, op_program
from ..programs.program import Program
from ..programs.values import assert_bits, reference
from .toy import build

EVERY = [*programs(), *callback_programs()]


def rows_of(made: Program, most: int) -> list[list]:
    return [[x[i] for x in made.columns] for i in range(min(most, made.count))]


def stacked(made: Program, rows: list) -> list[np.ndarray]:
    return [
        np.array([r[k] for r in rows], DTYPES[item_type(d)])
        for k, d in enumerate(made.graph.output_dtypes)
    ]


def compare(made: Program, got: list, note: str) -> None:
    """Compare instances with the batch that the interpreter computes at once."""
    want = reference(made.graph, made.columns, made.count)
    for k, (a, b) in enumerate(zip(stacked(made, got), want)):
        assert_bits(a, b[: len(a)], f"{made.name} {note} output {k}")


def named(made: Program) -> str:
    return made.name


@pytest.mark.parametrize("made", EVERY, ids=named)
def test_interpreter(made: Program):
    """One instance at a time, a batch, a batch with shared values, and the plain function."""
    compare(made, [run(made.graph, row) for row in rows_of(made, 99)], "one by one")
    if has_blocks(made.graph):
        return
    first, *rest = made.columns
    wide = [first, *(np.full_like(x, x[0]) for x in rest)]
    shared = run(made.graph, [first, *(x[0] for x in rest)])
    for k, (got, want) in enumerate(zip(shared, reference(made.graph, wide, made.count))):
        got = np.broadcast_to(np.asarray(got, want.dtype), want.shape)
        assert_bits(np.ascontiguousarray(got), want, f"{made.name} shared, output {k}")


@pytest.mark.parametrize("made", [m for m in EVERY if m.plain], ids=named)
def test_plain_python(made: Program):
    assert made.plain is not None
    with np.errstate(all="ignore"):
        compare(made, [made.plain(*row) for row in rows_of(made, 99)], "plain")


@pytest.mark.long_cases("map_19", "map_7")
@pytest.mark.parametrize("made", EVERY, ids=named)
def test_llvm(made: Program):
    """Scalar and in lanes of every width."""
    lanes = (2, 4, 8) if made in programs() else (1, 4)
    check(made.graph, made.columns, lanes=lanes, note=made.name, scalars=45)


@pytest.mark.long
@pytest.mark.parametrize("made", programs(), ids=named)
def test_llvm_in_parts(made: Program):
    check(made.graph, made.columns, lanes=(4,), note=made.name, part=5)


@pytest.mark.parametrize("part", [1000, 5])
@pytest.mark.parametrize("made", EVERY, ids=named)
def test_toy(made: Program, part: int):
    function = build(made.graph, part)
    compare(made, [function(*row) for row in rows_of(made, 6)], "toy")


@pytest.mark.parametrize(("name", "dtype"), OPS)
def test_toy_spells_every_op(name: str, dtype: int):
    made = op_program(name, dtype)
    made.columns = [np.concatenate([x[::53], x[-5:]]) for x in made.columns]
    function = build(made.graph)
    compare(made, [function(*row) for row in rows_of(made, 99)], "toy")


def test_every_region_is_in_the_catalogue_and_lowered():
    found = set().union(*(regions_of(made.graph) for made in EVERY))
    assert found == set(REGIONS)


def test_names_are_unique():
    assert len({made.name for made in EVERY}) == len(EVERY)
    assert set(READS_SIGN) < {name for name, _ in OPS}
