"""Order, search and interpolation agree with NumPy on random data with ties, nan and infinities."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import archimedes as arc
from archimedes.symbolic.core.ordering import exchanges

FEW = settings(max_examples=60, deadline=None)

#: Few values, so that there are ties; no negative zeros, whose order NumPy leaves open.
FLOATS = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 2.5, 1e300, 5e-324, -7.25])
FINITE = st.sampled_from([0.0, 1.0, -1.0, 2.5, -7.25, 0.125, 3.0, 1e-3])
LINES = hnp.arrays(np.float64, st.integers(1, 9), elements=FLOATS)


def compiled(function: Any, *args: Any) -> Any:
    return arc.compile(lambda *traced: function(*traced))(*args)


@pytest.mark.parametrize("n", range(12))
def test_network_sorts_every_sequence_of_zeros_and_ones(n: int) -> None:
    # Knuth 5.3.4, theorem Z: a network that sorts these sorts everything.
    for bits in itertools.product([0, 1], repeat=n):
        row = list(bits)
        for low, high in exchanges(n):
            row[low], row[high] = min(row[low], row[high]), max(row[low], row[high])
        assert row == sorted(bits)


@FEW
@given(LINES)
def test_sort_and_its_positions(x) -> None:
    np.testing.assert_array_equal(compiled(np.sort, x), np.sort(x))
    order = compiled(np.argsort, x)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    assert order.dtype == np.int64


@FEW
@given(LINES)
def test_extremes_and_their_positions(x) -> None:
    for function in (np.argmax, np.argmin, np.max, np.min):
        np.testing.assert_array_equal(compiled(function, x), function(x))


@FEW
@given(LINES)
def test_median_with_and_without_nan(x) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(np.median, x), np.median(x))
        if not np.isnan(x).all():
            np.testing.assert_array_equal(compiled(np.nanmedian, x), np.nanmedian(x))


@FEW
@given(
    hnp.arrays(np.float64, st.integers(1, 7), elements=FINITE),
    hnp.arrays(np.float64, st.integers(1, 4), elements=st.floats(0, 1)),
)
def test_quantiles(x, q) -> None:
    want = np.quantile(x, q)
    np.testing.assert_array_equal(compiled(lambda x: np.quantile(x, q), x), want)
    np.testing.assert_allclose(compiled(np.quantile, x, q), want, rtol=1e-14, atol=1e-14)


@FEW
@given(LINES, LINES, st.sampled_from(["left", "right"]))
def test_search_in_static_and_traced_tables(table, values, side) -> None:
    table = np.sort(table)
    want = np.searchsorted(table, values, side)
    static = compiled(lambda v: np.searchsorted(table, v, side), values)
    traced = compiled(lambda a, v: np.searchsorted(a, v, side), table, values)
    np.testing.assert_array_equal(static, want)
    np.testing.assert_array_equal(traced, want)


@FEW
@given(
    hnp.arrays(np.float64, 6, elements=FINITE, unique=True),
    hnp.arrays(np.float64, 6, elements=st.sampled_from([0.0, 1.0, -2.0, 3.5, np.inf, -np.inf])),
    hnp.arrays(np.float64, 5, elements=FLOATS),
)
def test_interpolation_with_static_and_traced_points(points, values, x) -> None:
    points = np.sort(points)
    with np.errstate(all="ignore"):
        want = np.interp(x, points, values)
    np.testing.assert_array_equal(compiled(lambda x: np.interp(x, points, values), x), want)
    np.testing.assert_array_equal(compiled(np.interp, x, points, values), want)
    at_points = compiled(lambda x: np.interp(x, points, values), points)
    np.testing.assert_array_equal(at_points, values)


def test_long_static_table_costs_its_logarithm() -> None:
    points = np.linspace(0.0, 1.0, 5000)
    f = arc.compile(lambda x: np.interp(x, points, points**2))
    x = np.array([-1.0, 0.0, 0.12345, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(f(x), np.interp(x, points, points**2))
    per_value = sum(1 for line in str(f.graph(np.float64(0.5))).splitlines() if "=" in line)
    assert per_value < 100


@FEW
@given(LINES, st.integers(-3, 4))
def test_rounding_to_decimals(x, decimals) -> None:
    with np.errstate(all="ignore"):
        want = np.round(x, decimals)
    np.testing.assert_array_equal(compiled(lambda x: np.round(x, decimals), x), want)


#: Compiled once: Euclid's algorithm is long when it is unrolled.
GCD = arc.compile(lambda a, b: np.gcd(a, b))
LDEXP = arc.compile(lambda x, n: np.ldexp(x, n))
LARGE = st.integers(-(2**62), 2**62)


@FEW
@given(LARGE, LARGE | st.integers(-9, 9))
def test_greatest_common_divisor(a, b) -> None:
    assert GCD(np.int64(a), np.int64(b)) == np.gcd(a, b)


def test_greatest_common_divisor_that_needs_most_steps() -> None:
    a, b = 1, 1
    while a + b < 2**63:
        a, b = a + b, a  # Lame: neighbours in Fibonacci's sequence
    assert GCD(np.int64(a), np.int64(b)) == 1


@settings(max_examples=300, deadline=None)
@given(st.floats(), st.integers(-2300, 2300) | st.integers(-1080, -1010))
def test_scaling_by_powers_of_two_rounds_once(x, n) -> None:
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n)
    np.testing.assert_array_equal(LDEXP(np.float64(x), np.int64(n)), want)
