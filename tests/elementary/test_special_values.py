"""Zeros, infinities, nan, domain errors and ends of ranges, as in NumPy and C (C17, annex F)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.ulp import ACCURACY, EDGES, FORMATS, edge_failures

from archimedes.graph.elementary import PROGRAMS, evaluate

INF, NAN, PI = math.inf, math.nan, math.pi
MOST, LEAST = 1.7976931348623157e308, 5e-324


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", [name for name, row in ACCURACY.items() if row.everywhere])
def test_edge_cases_agree_with_numpy_and_mpfr(name, dtype):
    assert edge_failures(name, dtype) == []


TABLE: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "sin": [((-0.0,), -0.0), ((INF,), NAN), ((-INF,), NAN), ((NAN,), NAN), ((LEAST,), LEAST)],
    "cos": [((-0.0,), 1.0), ((INF,), NAN), ((NAN,), NAN)],
    "tan": [((-0.0,), -0.0), ((INF,), NAN), ((-LEAST,), -LEAST)],
    "arcsin": [((1.0,), PI / 2), ((-1.0,), -PI / 2), ((1.0000000000000002,), NAN), ((-0.0,), -0.0)],
    "arccos": [((1.0,), 0.0), ((-1.0,), PI), ((0.0,), PI / 2), ((-1.0000000000000002,), NAN)],
    "arctan": [((INF,), PI / 2), ((-INF,), -PI / 2), ((-0.0,), -0.0), ((1.0,), PI / 4)],
    "arctan2": [
        ((0.0, 0.0), 0.0),
        ((-0.0, 0.0), -0.0),
        ((0.0, -0.0), PI),
        ((-0.0, -0.0), -PI),
        ((0.0, -1.0), PI),
        ((1.0, -0.0), PI / 2),
        ((-1.0, 0.0), -PI / 2),
        ((INF, INF), PI / 4),
        ((INF, -INF), 3 * PI / 4),
        ((-INF, -INF), -3 * PI / 4),
        ((MOST, INF), 0.0),
        ((-MOST, INF), -0.0),
        ((1.0, -INF), PI),
        ((INF, 1.0), PI / 2),
        ((NAN, INF), NAN),
        ((INF, NAN), NAN),
        ((0.0, NAN), NAN),
        ((MOST, MOST), PI / 4),
        ((LEAST, LEAST), PI / 4),
        ((LEAST, MOST), 0.0),
    ],
    "sinh": [((-0.0,), -0.0), ((INF,), INF), ((-INF,), -INF), ((711.0,), INF), ((LEAST,), LEAST)],
    "cosh": [((-0.0,), 1.0), ((-INF,), INF), ((-711.0,), INF)],
    "tanh": [((-0.0,), -0.0), ((INF,), 1.0), ((-INF,), -1.0), ((20.0,), 1.0), ((LEAST,), LEAST)],
    "arcsinh": [((-0.0,), -0.0), ((-INF,), -INF), ((LEAST,), LEAST)],
    "arccosh": [((1.0,), 0.0), ((0.9999999999999999,), NAN), ((INF,), INF), ((-INF,), NAN)],
    "arctanh": [((1.0,), INF), ((-1.0,), -INF), ((1.0000000000000002,), NAN), ((-0.0,), -0.0)],
    "exp": [((-0.0,), 1.0), ((-INF,), 0.0), ((INF,), INF), ((710.0,), INF), ((-746.0,), 0.0)],
    "exp2": [((1024.0,), INF), ((-1075.0,), 0.0), ((-1074.0,), LEAST), ((-INF,), 0.0)],
    "exp10": [((-0.0,), 1.0), ((309.0,), INF), ((-324.0,), 0.0), ((-INF,), 0.0), ((INF,), INF)],
    "erf": [((-0.0,), -0.0), ((INF,), 1.0), ((-INF,), -1.0), ((MOST,), 1.0)],
    "expm1": [((-0.0,), -0.0), ((-INF,), -1.0), ((INF,), INF), ((-745.0,), -1.0)],
    "log": [((0.0,), -INF), ((-0.0,), -INF), ((-LEAST,), NAN), ((INF,), INF), ((1.0,), 0.0)],
    "log2": [((0.0,), -INF), ((-1.0,), NAN), ((LEAST,), -1074.0), ((1.0,), 0.0)],
    "log10": [((0.0,), -INF), ((-INF,), NAN), ((1000.0,), 3.0), ((1.0,), 0.0)],
    "log1p": [((-0.0,), -0.0), ((-1.0,), -INF), ((-1.0000000000000002,), NAN), ((INF,), INF)],
    "pow": [
        ((NAN, 0.0), 1.0),
        ((INF, -0.0), 1.0),
        ((1.0, NAN), 1.0),
        ((1.0, INF), 1.0),
        ((-1.0, INF), 1.0),
        ((-1.0, -INF), 1.0),
        ((-1.0, NAN), NAN),
        ((0.0, NAN), NAN),
        ((0.5, INF), 0.0),
        ((0.5, -INF), INF),
        ((-2.0, INF), INF),
        ((-2.0, -INF), 0.0),
        ((0.0, -3.0), INF),
        ((-0.0, -3.0), -INF),
        ((-0.0, -2.0), INF),
        ((-0.0, -INF), INF),
        ((-0.0, 3.0), -0.0),
        ((-0.0, 2.0), 0.0),
        ((-0.0, 0.5), 0.0),
        ((-INF, 3.0), -INF),
        ((-INF, 2.0), INF),
        ((-INF, 0.5), INF),
        ((-INF, -3.0), -0.0),
        ((-INF, -2.5), 0.0),
        ((-8.0, 1 / 3), NAN),
        ((-2.0, 3.0), -8.0),
        ((-2.0, 2.0**53), INF),
        ((-1.0, 2.0**53 - 1), -1.0),
        ((-1.0, 2.0**53), 1.0),
        ((1 + 2**-52, MOST), INF),
        ((1 + 2**-52, -MOST), 0.0),
        ((LEAST, 1.0), LEAST),
        ((MOST, 1.0), MOST),
        ((LEAST, -1.0), INF),
        ((2.0, -1074.0), LEAST),
        ((-2.0, -1075.0), -0.0),
    ],
    "cbrt": [((-0.0,), -0.0), ((-INF,), -INF), ((-27.0,), -3.0), ((8 * LEAST,), 2.0**-357)],
    "hypot": [
        ((INF, NAN), INF),
        ((NAN, -INF), INF),
        ((NAN, 1.0), NAN),
        ((0.0, -0.0), 0.0),
        ((MOST, MOST), INF),
        ((LEAST, 0.0), LEAST),
        ((3 * LEAST, 4 * LEAST), 5 * LEAST),
        ((MOST, 1.0), MOST),
    ],
    "fmod": [
        ((-0.0, 1.0), -0.0),
        ((5.0, INF), 5.0),
        ((INF, 1.0), NAN),
        ((1.0, 0.0), NAN),
        ((-6.0, 3.0), -0.0),
        ((-7.5, 2.0), -1.5),
        ((7.5, -2.0), 1.5),
        ((NAN, 1.0), NAN),
        ((1.0, NAN), NAN),
        ((MOST, LEAST), 0.0),
    ],
}


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [(name, operands, value) for name, rows in TABLE.items() for operands, value in rows],
)
def test_special_value(name, operands, expected):
    found = float(evaluate(name, *operands))
    if math.isnan(expected):
        assert math.isnan(found)
    else:
        assert found == expected
        assert math.copysign(1.0, found) == math.copysign(1.0, expected)


def test_every_function_has_special_values():
    assert set(TABLE) == {name for name, row in ACCURACY.items() if row.everywhere}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nan_in_nan_out(name):
    # The exceptions are in the table above.
    arity = PROGRAMS[name].arity
    assert math.isnan(evaluate(name, *([NAN] * arity)))


def test_edges_hold_both_zeros_and_infinities():
    assert {math.copysign(1.0, x) for x in EDGES if x == 0} == {1.0, -1.0}
    assert {x for x in EDGES if math.isinf(x)} == {INF, -INF}
    assert np.isnan(EDGES).any()
