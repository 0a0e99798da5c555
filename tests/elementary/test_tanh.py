"""tanh where its program changes its ways, on every backend, with its derivatives."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import pytest
from benchmarks.ulp import EDGES, count_primitives

import archimedes as arc
from archimedes.graph import F64
from archimedes.graph.elementary import evaluate
from tests.c.checking import Bundle, needs
from tests.programs.ops import op_program
from tests.programs.program import Program

#: Where it goes from |x| to parts of 1, where that has its largest tails, where it is 1.
BORDERS = (0.5493061443340549, 0.6, 0.8664339756999316, 1.2130075659799042, 9.53, 19.0615, 20.0)
FAR = (0.0, 5e-324, 2.2e-308, 30.0, 710.0, 1e300, np.inf)


def points() -> np.ndarray:
    rng = np.random.default_rng(50)
    near = [x + np.arange(-40, 41) * np.spacing(x) for x in BORDERS]
    found = np.concatenate([*near, FAR, rng.normal(0.0, 2.0, 500), EDGES])
    return np.concatenate([found, -found])


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return a.dtype == b.dtype and bool((same | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_bits_as_loop_lanes_and_numbers(dtype):
    with np.errstate(over="ignore"):
        x = points().astype(dtype)
    expected = evaluate("tanh", x)
    for backend in ("interpreter", "llvm"):
        assert equal(arc.compile(np.tanh, backend=backend)(x), expected)
        assert equal(arc.vmap(np.tanh, backend=backend)(x), expected)
    one = arc.compile(np.tanh, backend="llvm")
    assert equal(np.array([one(v) for v in x[:200]], dtype), expected[:200])


def test_the_same_bits_with_fused_multiply_adds():
    x = points()
    found = [arc.compile(np.tanh, backend=b, numerics="fast")(x) for b in ("interpreter", "llvm")]
    assert equal(*found)
    with np.errstate(invalid="ignore"):
        assert np.nanmax(np.abs(found[0] - evaluate("tanh", x))) <= 2.0**-53


def test_the_same_bits_in_c(tmp_path: Path):
    needs("gcc")
    graph = op_program("tanh", F64).graph
    Bundle([Program("tangent", graph, [points()])]).check(tmp_path, "gcc", "-O2")


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives(backend, order):
    slope = arc.grad(lambda x: np.tanh(x))
    f = arc.compile(slope if order == 1 else arc.grad(slope), backend=backend)
    for x in (*FAR[:-1], 1e-5, 0.3, 0.6, 1.0, 5.0):
        with mpmath.workdps(60):
            exact = float(mpmath.diff(mpmath.tanh, x, order)) if x < 300 else 0.0
        for sign in (1.0, -1.0):
            # Of 1 - tanh**2 the absolute error is an ulp or two of 1.
            assert abs(f(sign * x) - exact * sign ** (order - 1)) <= 5e-16
    assert np.isnan(f(np.nan))
    assert f(np.inf) == 0.0


def test_it_is_odd_bounded_and_short():
    x = np.sort(np.abs(points()))
    y = evaluate("tanh", x)
    assert equal(-y, evaluate("tanh", -x))
    assert np.nanmax(y) == 1.0
    assert count_primitives("tanh") <= 48
