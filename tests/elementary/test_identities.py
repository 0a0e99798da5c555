"""Symmetries that hold to the bit, and ranges that results must not leave."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archimedes.graph.elementary import evaluate

ODD = ["sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "cbrt"]
EVEN = ["cos", "cosh"]
ANY = st.floats(allow_nan=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def equal(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (
        a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    )


@pytest.mark.parametrize("name", ODD)
@given(x=ANY)
def test_odd(name, x):
    assert equal(evaluate(name, -x), -evaluate(name, x))


@pytest.mark.parametrize("name", EVEN)
@given(x=ANY)
def test_even(name, x):
    assert equal(evaluate(name, -x), evaluate(name, x))


@given(x=ANY, y=ANY)
def test_hypot_does_not_know_order_or_sign(x, y):
    length = evaluate("hypot", x, y)
    assert equal(length, evaluate("hypot", y, -x))
    assert length >= max(abs(x), abs(y))


@given(x=ANY, y=ANY)
def test_arctan2_is_odd_in_y(x, y):
    assert equal(evaluate("arctan2", -y, x), -evaluate("arctan2", y, x))


@given(x=FINITE)
def test_sine_and_cosine_stay_within_one(x):
    s, c = evaluate("sin", x), evaluate("cos", x)
    assert abs(s) <= 1.0 and abs(c) <= 1.0
    assert abs(s * s + c * c - 1.0) < 4e-16


@given(x=ANY, y=ANY)
def test_angles_stay_within_pi(x, y):
    assert abs(evaluate("arctan2", y, x)) <= math.pi
    assert abs(evaluate("arctan", x)) <= math.pi / 2


@given(x=ANY)
def test_tanh_stays_within_one_and_cosh_above(x):
    assert abs(evaluate("tanh", x)) <= 1.0
    assert evaluate("cosh", x) >= 1.0


@given(x=FINITE, y=FINITE.filter(lambda y: y != 0))
def test_fmod_is_math_fmod(x, y):
    assert equal(float(evaluate("fmod", x, y)), math.fmod(x, y))


@given(x=FINITE, n=st.integers(-3, 3))
def test_pow_with_small_exponents(x, n):
    found, y = evaluate("pow", x, float(n)), abs(x)
    if 1e-90 < y < 1e90:
        assert found == pytest.approx(x**n, rel=1e-15)
