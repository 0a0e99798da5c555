"""Constants and polynomials against mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from archimedes.graph.elementary import coefficients, exponential, trigonometric
from archimedes.graph.elementary.coefficients import polynomials


@pytest.mark.parametrize("name", polynomials())
def test_polynomial_keeps_its_bound(name):
    row = polynomials()[name]
    formula = compile(f"(({row.weight}), ({row.target}))", name, "eval")
    with mpmath.workdps(50):
        low, high = map(mpmath.mpf, row.interval)
        largest = mpmath.mpf(0)
        for i in range(400):
            x = (low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (i + 0.5) / 400)
            weight, target = eval(formula, dict(vars(mpmath)), {"x": x})
            top, below = (sum(c * x**n for n, c in enumerate(cs)) for cs in (row.c, row.over))
            error = weight * (top / below - target)
            largest = max(largest, abs(error))
        assert largest <= 2.0**-row.bits
        assert largest >= 2.0**-row.bits / 2, "the stated bound is too generous"


def close(parts: tuple[float, ...], value: str, bits: int) -> bool:
    with mpmath.workprec(300):
        exact = mpmath.mpmathify(eval(value, dict(vars(mpmath))))
        return abs(sum(map(mpmath.mpf, parts)) - exact) < abs(exact) * mpmath.mpf(2) ** -bits


@pytest.mark.parametrize(
    ("parts", "value", "bits"),
    [
        ((exponential.LN2_HIGH, exponential.LN2_LOW), "log(2)", 95),
        ((exponential.LN2_UPPER, exponential.LN2_REST), "log(2)", 79),
        ((exponential.LOG2_E,), "1/log(2)", 53),
        ((exponential.LOG2_10,), "log(10)/log(2)", 53),
        ((exponential.LN10_UPPER, exponential.LN10_REST), "log(10)", 78),
        ((exponential.HALF_LN2_HIGH, exponential.HALF_LN2_LOW), "log(2)/2", 96),
        ((exponential.TWO_LOG2_E,), "2/log(2)", 53),
        ((exponential.LOG2_E_UPPER, exponential.LOG2_E_REST), "1/log(2)", 79),
        ((exponential.LOG10_E_UPPER, exponential.LOG10_E_REST), "1/log(10)", 79),
        ((exponential.LOG10_2_HIGH, exponential.LOG10_2_LOW), "log(2)/log(10)", 95),
        ((trigonometric.PIECE_1, trigonometric.PIECE_2, trigonometric.PIECE_3), "pi/2", 127),
        ((trigonometric.HALF_PI_HIGH, trigonometric.HALF_PI_LOW), "pi/2", 106),
        ((trigonometric.TWO_OVER_PI,), "2/pi", 53),
        ((trigonometric.QUARTER_PI_HIGH, trigonometric.QUARTER_PI_LOW), "pi/4", 100),
    ],
)
def test_constant(parts, value, bits):
    assert close(parts, value, bits)


def significant_bits(x: float) -> int:
    return abs(Fraction(x).numerator).bit_length()


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (exponential.LN2_HIGH, 42),
        (exponential.LN2_UPPER, 26),
        (exponential.LN10_UPPER, 26),
        (exponential.HALF_LN2_HIGH, 46),
        (trigonometric.PIECE_1, 37),
        (trigonometric.PIECE_2, 37),
        (trigonometric.QUARTER_PI_HIGH, 50),
        (exponential.LOG2_E_UPPER, 26),
        (exponential.LOG10_E_UPPER, 26),
        (exponential.LOG10_2_HIGH, 42),
    ],
)
def test_leading_parts_leave_room_for_exact_products(x, bits):
    assert significant_bits(x) <= bits


def test_digits_of_two_over_pi():
    with mpmath.workprec(1400):
        assert (
            int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1248))
            == trigonometric.TWO_OVER_PI_BITS
        )
    limbs = trigonometric.LIMBS[trigonometric.LEADING_ZEROS :]
    assert sum(d << (26 * (47 - j)) for j, d in enumerate(limbs)) == trigonometric.TWO_OVER_PI_BITS


def test_exponent_division_by_limb_size():
    e = np.arange(0, 2046 - 1075 + trigonometric.EXPONENT_SHIFT + 1)
    assert ((e * 2521) >> 16 == e // trigonometric.LIMB).all()


def test_logarithm_table():
    with mpmath.workprec(200):
        for i, (r, high, low) in enumerate(zip(*coefficients.logarithm_table(), strict=True)):
            ends = np.array([i, i + 1], np.int64) << coefficients.INDEX_SHIFT
            ends = (ends + coefficients.START).view(np.float64)
            assert np.abs(ends * r - 1).max() <= 0.0079
            assert significant_bits(r) <= 10
            assert (high * 2**42).is_integer()
            exact = -mpmath.log(mpmath.mpf(r))
            assert abs(exact - high - low) <= mpmath.mpf(2) ** -96
    assert coefficients.logarithm_table().reciprocals[79:81] == (1.0, 1.0)
