"""Every op and dtype: C equals the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.c.spelling import SPELLINGS
from archimedes.graph import CODES, F64, Graph

from ..programs.ops import ROWS, op_program
from ..programs.program import Program
from ..programs.values import SPECIAL_FLOATS
from .checking import COMPILERS, FLOATS, LEVELS, Bundle, needs


def cases(elementary: bool) -> list[Program]:
    return [op_program(op.name, d) for op in ROWS for d in op.takes if op.elementary == elementary]


@pytest.fixture(scope="module", params=FLOATS)
def bundles(request) -> tuple[Bundle, Bundle]:
    return Bundle(cases(False), request.param), Bundle(cases(True), request.param)


@pytest.mark.long_cases("float*")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_op(bundles: tuple[Bundle, Bundle], compiler: str, level: str, tmp_path: Path):
    needs(compiler)
    bundles[0].check(tmp_path, compiler, level)


@pytest.mark.long_cases("double-gcc--O3", "float*")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_elementary_function(bundles, compiler: str, level: str, tmp_path: Path):
    needs(compiler)
    bundles[1].check(tmp_path, compiler, level)


def test_every_op_is_spelled():
    assert set(SPELLINGS) == {op.name for op in ROWS if not op.elementary}
    for op in ROWS:
        if not op.elementary:
            assert set(SPELLINGS[op.name]) == set(op.takes), op.name


def test_square_root_in_integers_has_the_bits_of_the_instruction(tmp_path: Path):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**63, 20000)
    squares = np.arange(1, 3000, dtype=float) ** 2
    near = np.nextafter(squares, np.inf)
    values = np.concatenate([bits.view(np.float64), squares, near, SPECIAL_FLOATS])
    g = Graph()
    x = g.input(F64)
    single = g.emit(CODES["f32"], x)
    g.outputs = [g.emit(CODES["sqrt"], x), g.emit(CODES["sqrt"], single)]
    Bundle([Program("root", g, [values])]).check(tmp_path, "gcc", "-O2", "-DARC_SOFT_SQRT")


def test_fused_multiply_add_without_and_with_the_instruction(tmp_path: Path):
    """Sums that cancel, halfway cases, subnormal and huge results."""
    rng = np.random.default_rng(0)
    n = 6000
    a, b = (rng.normal(size=n) * 2.0 ** rng.integers(-40, 40, n) for _ in range(2))
    with np.errstate(all="ignore"):
        near = -(a * b) * (1.0 + rng.integers(-2, 3, n) * 2.0**-52)
        far = rng.normal(size=n) * 2.0 ** rng.integers(-160, 160, n)
        tiny, huge = 2.0 ** rng.integers(-540, -500, n), 2.0 ** rng.integers(500, 520, n)
        columns = [
            np.concatenate([a, a, a * tiny, a * huge]),
            np.concatenate([b, b, b * tiny, b * huge]),
            np.concatenate([near, far, far * tiny * tiny, near * huge * huge]),
        ]
    g = Graph()
    ids = [g.input(F64) for _ in range(3)]
    singles = [g.emit(CODES["f32"], i) for i in ids]
    g.outputs = [g.emit(CODES["fma"], *ids), g.emit(CODES["fma"], *singles)]
    made = Bundle([Program("fused", g, columns)])
    made.check(tmp_path, "gcc", "-O2")
    made.check(tmp_path, "gcc", "-O2", "-DARC_SOFT_FMA", "-DARC_SOFT_SQRT")
    if " fma " in Path("/proc/cpuinfo").read_text():
        made.check(tmp_path, "gcc", "-O2", "-mfma")
