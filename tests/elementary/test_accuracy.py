"""Every function of the table keeps its promise, in ulps against MPFR, which agrees with mpmath.

A function that is listed in ``PROGRAMS`` is tested here; it needs a row in ``ACCURACY``.
"""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from benchmarks.ulp import ACCURACY, FORMATS, mpmath_gap, samples, ulp_errors

from archimedes.graph.elementary import PROGRAMS, evaluate
from archimedes.graph.ops import TABLE


def largest_error(name: str, *operands: np.ndarray) -> float:
    arrays = np.broadcast_arrays(*(np.asarray(x, float) for x in operands))
    return float(np.abs(ulp_errors(name, arrays, evaluate(name, *arrays))).max())


def test_every_listed_function_says_how_accurate_it_is():
    listed = {op.name for op in TABLE if op.elementary}
    assert set(PROGRAMS) == listed, "a row of graph/ops.py or graph/elementary/table.py is missing"
    assert set(ACCURACY) == listed, "a row of ACCURACY in benchmarks/ulp.py is missing"


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_and_interesting_arguments(name, dtype):
    count = 600 if name == "polygamma" else 10_000  # mpmath takes long
    operands = samples(name, count, np.random.default_rng(11), dtype)
    errors = ulp_errors(name, operands, evaluate(name, *operands))
    assert np.abs(errors).max() <= min(ACCURACY[name].ulps, 0.501 if dtype == "float32" else 8.0)


def test_an_inaccurate_function_fails():
    """An exponential through the rounded logarithm of its base is wrong by hundreds of ulps."""
    operands = samples("exp2", 1000, np.random.default_rng(11), "float64")
    with np.errstate(over="ignore"):
        careless = np.exp(np.log(2.0) * operands[0])
    assert np.abs(ulp_errors("exp2", operands, careless)).max() > 100


@pytest.mark.parametrize("name", PROGRAMS)
def test_mpfr_agrees_with_mpmath(name):
    operands = samples(name, 60, np.random.default_rng(5), "float64")
    assert mpmath_gap(name, operands, 60) < 1e-38


@pytest.mark.long
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_every_multiple_of_half_pi_in_the_ordinary_range(name):
    with gmpy2.context(precision=120):
        half_pi = gmpy2.const_pi() / 2
        x = np.array([float(half_pi * k) for k in range(1, 65537)])
    assert largest_error(name, x) <= 0.51


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_multiples_of_half_pi_beyond_the_ordinary_range(name):
    rng = np.random.default_rng(2)
    with gmpy2.context(precision=1300):
        half_pi = gmpy2.const_pi() / 2
        multiples = [
            int(k) << int(s) for k, s in zip(*rng.integers(1, 900, (2, 1500)), strict=True)
        ]
        x = np.array([float(half_pi * k) for k in multiples])
    assert largest_error(name, x) <= 1.0


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_worst_float_for_reduction(name):
    # The float64 nearest to a multiple of pi/2 (Muller, Elementary Functions, 3rd ed., 11.3).
    assert largest_error(name, [6381956970095103 * 2.0**797, -6381956970095103 * 2.0**797]) <= 0.51


def test_both_sides_of_the_reduction_limit_agree():
    x = 102900.0 + np.arange(-2000, 2000) * np.spacing(102900.0)
    assert largest_error("sin", x) <= 1.0
    assert largest_error("cos", x) <= 1.0


def ulps_around(value: float, count: int = 300) -> np.ndarray:
    return value + np.arange(-count, count + 1) * np.spacing(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log", 1.0),
        ("log2", 1.0),
        ("log10", 1.0),
        ("log", 2**-0.5),
        ("log1p", 2**0.5 - 1),
        ("log1p", -0.5),
        ("arccosh", 1.0 + 1e-10),
        ("arctanh", 1.0 - 1e-12),
        ("arcsin", 0.5),
        ("arccos", 0.5),
        ("arccos", -0.5),
        ("arccos", 1.0 - 1e-12),
        ("arctan", 0.5),
        ("arctan", 1.0),
        ("arctan", 2.0),
        ("exp", 709.7827128),
        ("exp", -745.1332191019412),
        ("exp", -708.4),
        ("exp", 0.34657359),
        ("exp2", -1074.5),
        ("exp2", 1023.9999999),
        ("exp10", 308.25471555),
        ("exp10", -323.306),
        ("exp10", -307.65),
        ("exp10", 0.15051499783199057),
        ("expm1", 0.34657359),
        ("expm1", -37.4),
        ("sinh", 710.4758),
        ("cosh", 710.4758),
        ("cosh", 18.7),
        ("tanh", 0.5493061443340549),
        ("tanh", 0.6),
        ("tanh", 0.8664339756999316),
        ("tanh", 9.53),
        ("tanh", 19.06),
        ("arcsinh", 2.0**-28),
        ("arcsinh", 2.0**30),
        ("arccosh", 2.0**30),
        ("cbrt", 8.0),
    ],
)
def test_borders_within_a_function(name, value):
    assert largest_error(name, ulps_around(value)) <= 1.0


ONE_OPERAND = [name for name, row in ACCURACY.items() if row.everywhere and len(row.ranges[0]) == 2]


@pytest.mark.parametrize("name", ONE_OPERAND)
def test_tiny_and_subnormal_arguments(name):
    x = 2.0 ** np.arange(-1074, -20)
    x = np.concatenate([x, -x, 3 * x, np.arange(1, 500) * 2.0**-1074])
    if name in ("arccosh", "log", "log2", "log10"):
        x = np.abs(x)
    assert largest_error(name, x) <= ACCURACY[name].ulps


def test_pow_near_its_ends():
    rng = np.random.default_rng(4)
    x = np.exp(rng.uniform(-700, 700, 20_000))
    end = np.where(rng.random(x.size) < 0.5, 709.78, -745.1) * rng.uniform(0.999, 1.0001, x.size)
    assert largest_error("pow", x, end / np.log(x)) <= 1.0


def test_pow_is_exact_where_the_result_is_a_float():
    base, exponent = (v.ravel() for v in np.meshgrid(np.arange(-40.0, 41), np.arange(0.0, 9)))
    exact = [int(b) ** int(e) for b, e in zip(base, exponent, strict=True)]
    assert evaluate("pow", base, exponent).tolist() == [float(v) for v in exact]
    assert (evaluate("pow", 2.0, np.arange(-1074.0, 1024)) == 2.0 ** np.arange(-1074, 1024)).all()
    squares = np.arange(1.0, 3000) ** 2
    assert (evaluate("pow", squares, 0.5) == np.sqrt(squares)).all()


def test_logarithms_of_powers_are_exact():
    assert (evaluate("log2", 2.0 ** np.arange(-1074, 1024)) == np.arange(-1074, 1024)).all()
    tens = np.array([float(10**n) for n in range(23)])
    assert (evaluate("log10", tens) == np.arange(23)).all()
    assert (evaluate("exp10", np.arange(23.0)) == tens).all()
    assert (evaluate("exp2", np.arange(-1074.0, 1024)) == 2.0 ** np.arange(-1074, 1024)).all()


def test_cube_roots_of_cubes_are_exact():
    n = np.arange(-5000.0, 5001)
    assert (evaluate("cbrt", n**3) == n).all()


def test_hypot_of_pythagorean_triples_is_exact():
    m, n = (v.ravel() for v in np.meshgrid(np.arange(2.0, 60), np.arange(1.0, 59)))
    m, n = m[m > n], n[m > n]
    for scale in (1.0, 2.0**-1070, 2.0**-600, 2.0**700):
        sides = scale * (m * m - n * n), scale * (2 * m * n)
        assert (evaluate("hypot", *sides) == scale * (m * m + n * n)).all()


def test_arctan2_over_all_magnitudes():
    rng = np.random.default_rng(9)
    e, f = rng.integers(-1074, 1024, (2, 20_000))
    y = rng.uniform(1, 2, e.size) * 2.0**e * rng.choice([-1, 1], e.size)
    x = rng.uniform(1, 2, e.size) * 2.0 ** np.clip(e + f % 60, -1074, 1022)
    assert largest_error("arctan2", y, x * rng.choice([-1, 1], e.size)) <= 1.0


def test_fmod_is_exact_for_any_ratio():
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2**63 - 1, (2, 20_000)).view(np.float64)
    x, y = np.where(np.isfinite(bits), bits, 1.0)
    assert (evaluate("fmod", x, y) == np.fmod(x, y)).all()
    assert evaluate("fmod", 1.7976931348623157e308, 3 * 2.0**-1074) == np.fmod(
        1.7976931348623157e308, 3 * 2.0**-1074
    )
