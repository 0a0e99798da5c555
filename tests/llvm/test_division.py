"""Division by a constant: lanes multiply, and have the bits of a division."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archimedes.backends.exact_division import RANGE, factors_of
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import CODES, F64, Graph

from ..programs.values import SPECIAL_FLOATS, assert_bits

COMMON = [3.0, -3.0, 5.0, 6.0, 7.0, 9.81, 10.0, 0.1, 1.4, 287.05, 180.0, math.pi, 1e-9, -6378137.0]
POWERS = [1.0, -1.0, 2.0, 0.5, -(2.0**-200), 2.0**250]
LEFT_ALONE = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-300, 1e300, 5e-324]


def numerators(c: float, rng: np.random.Generator) -> np.ndarray:
    """Specials, all magnitudes, and quotients next to the middle between two floats."""
    every = rng.integers(0, 2**64, 400, dtype=np.uint64).view(float)
    limit = factors_of(c)
    near = 2.0 ** ((limit.least if limit else -960) + rng.integers(-60, 3, 100))
    middles = []
    for n in rng.integers(2**52, 2**53, 200).tolist():
        x = Fraction(2 * n + 1, 2) * Fraction(c if limit else 1.0)
        middles += [math.nextafter(float(x), way) for way in (-math.inf, math.inf)] + [float(x)]
    scaled = near * rng.uniform(1, 2, 100) * rng.choice([-1, 1], 100)
    return np.concatenate([SPECIAL_FLOATS, every, scaled, middles])


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_kernels_divide_exactly(lanes):
    rng = np.random.default_rng(3)
    drawn = rng.uniform(1, 2, 60) * 2.0 ** rng.integers(-40, 40, 60) * rng.choice([-1, 1], 60)
    divisors = [*COMMON, *POWERS, *LEFT_ALONE, *drawn.tolist()]
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["div"], x, g.const(c, F64)) for c in divisors]
    kernel = build(g, [(1, F64)], [(len(divisors), F64)], lanes=lanes)
    for c in divisors[:: 1 if lanes > 1 else 5]:
        given_x = numerators(c, rng)
        out = np.empty((given_x.size, len(divisors)))
        kernel.call_batch([given_x], [True], [out], given_x.size)
        with np.errstate(all="ignore"):
            expected = given_x[:, None] / np.array(divisors)
        assert_bits(out, expected, f"near multiples of {c}")


@given(st.floats(2.0**-RANGE, 2.0**RANGE), st.floats(1.0, 2.0, exclude_max=True))
@settings(max_examples=300, deadline=None)
def test_factors_give_the_quotient(c, x):
    factors = factors_of(-c)
    if factors is not None:
        high, low, least = factors
        exact = Fraction(x) * Fraction(high) + Fraction(x * low)
        assert float(exact) == x / -c
        assert high < 0.0 and low <= 0.0 and least < -600


@pytest.mark.parametrize("c", LEFT_ALONE)
def test_extreme_divisors_are_left_alone(c):
    assert factors_of(c) is None


def test_most_divisors_have_factors():
    rng = np.random.default_rng(1)
    found = [factors_of(c) is not None for c in rng.uniform(1, 2, 400).tolist()]
    assert np.mean(found) > 0.9


def test_small_formats_bear_out_the_search():
    """With 8 bits all numerators can be tried: none that is missed comes close to a middle."""
    from archimedes.backends import exact_division as module

    bits = 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BITS", bits)
        for divisor in range(2 ** (bits - 1), 2**bits):
            nearness = 5
            listed = set(module._near_middles(divisor, nearness))
            for a in range(2 ** (bits - 1), 2**bits):
                shift = bits - 1 if a >= divisor else bits
                quotient = Fraction(a * 2**shift, divisor)
                distance = abs(quotient - math.floor(quotient) - Fraction(1, 2))
                close = 0 < distance * 2 * divisor <= nearness
                assert (a in listed) == close, (a, divisor)
