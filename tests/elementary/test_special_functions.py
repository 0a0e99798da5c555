"""erf, erfc and the gamma family: ulps, edge cases, derivatives, bits, SciPy's ufuncs, errors."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import archimedes as arc
from archimedes import special
from archimedes.errors import TraceError

RNG = np.random.default_rng(3)
POSITIVE = np.concatenate([RNG.uniform(0, 8, 200), RNG.uniform(8, 170, 100)])
WIDE = np.concatenate([POSITIVE, 10.0 ** RNG.uniform(-300, 300, 100)])
BELOW = -np.concatenate([RNG.uniform(0, 6, 150), RNG.uniform(6, 160, 50)])

#: name, function in 60 digits, arguments, largest error in ulps
ACCURACY = [
    ("erf", mp.erf, np.concatenate([RNG.uniform(-6, 6, 300), 10.0 ** RNG.uniform(-300, 0, 99)]), 1),
    ("erfc", mp.erfc, np.concatenate([RNG.uniform(-6, 26.5, 300), RNG.uniform(0, 1, 99)]), 3),
    ("gamma", mp.gamma, np.concatenate([POSITIVE, 10.0 ** RNG.uniform(-300, 0, 50)]), 3),
    ("gamma", mp.gamma, BELOW, 4),
    ("gammaln", mp.loggamma, np.concatenate([WIDE, 1 + RNG.normal(0, 1e-6, 50)]), 6),
    (
        "digamma",
        lambda x: mp.psi(0, x),
        np.concatenate([WIDE, 1.46163 + RNG.normal(0, 1e-5, 50)]),
        8,
    ),
]


def ulps(got: np.ndarray, want: list) -> float:
    spacing = [mp.mpf(float(np.spacing(abs(float(w))))) for w in want]
    return float(max(abs(mp.mpf(float(g)) - w) / s for g, w, s in zip(got, want, spacing)))


@pytest.mark.parametrize("row", ACCURACY, ids=lambda row: f"{row[0]} from {row[2].min():.3g}")
def test_accuracy(row) -> None:
    name, exact, x, bound = row
    with mp.workdps(60):
        want = [exact(mp.mpf(float(v))) for v in x]
        assert ulps(getattr(special, name)(x), want) <= bound


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_accuracy_of_polygamma(n: int) -> None:
    x = np.concatenate([RNG.uniform(0, 40, 60), 10.0 ** RNG.uniform(-20, 20, 40)])
    with mp.workdps(60):
        assert ulps(special.polygamma(n, x), [mp.psi(n, mp.mpf(float(v))) for v in x]) <= 8


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_below_zero_to_the_size_of_the_terms(name: str) -> None:
    with mp.workdps(60):
        exact = {
            "gammaln": lambda x: mp.log(abs(mp.gamma(x))),
            "digamma": lambda x: mp.psi(0, x),
        }[name]
        want = np.array([float(exact(mp.mpf(float(v)))) for v in BELOW])
    np.testing.assert_allclose(getattr(special, name)(BELOW), want, rtol=3e-15, atol=3e-15)


EDGES = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 171.7, 1e300, -1e300, 30.0])


@pytest.mark.parametrize("name", ["erf", "erfc", "exp10", "gamma", "gammaln", "digamma"])
def test_edges_as_scipy(name: str) -> None:
    got, want = getattr(special, name)(EDGES), getattr(scipy.special, name)(EDGES)
    np.testing.assert_allclose(got, want, rtol=1e-14)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


# ---- derivatives ---------------------------------------------------------------------------------

POINTS = [
    *(("erf", x) for x in (0.0, 1e-20, 0.3, -1.7, 5.0, 20.0)),
    *(("erfc", x) for x in (0.0, 0.7, -3.0, 8.0, 26.0)),
    *(("gamma", x) for x in (0.1, 1.0, 1.4616321449683622, 4.3, 20.0, -0.4, -2.3)),
    *(("gammaln", x) for x in (1e-5, 0.5, 1.0, 2.0, 7.5, 1e5, -0.7, -3.4)),
    *(("digamma", x) for x in (1e-3, 1.0, 1.4616321449683622, 9.0, 1e4, -0.6)),
]


@pytest.mark.parametrize(("name", "x"), POINTS)
def test_derivatives_to_second_order(name: str, x: float) -> None:
    exact = {
        "gammaln": lambda t: mp.log(abs(mp.gamma(t))),
        "digamma": lambda t: mp.psi(0, t),
    }.get(name, getattr(mp, name, None))
    function = getattr(special, name)
    with mp.workdps(400 if "erf" in name else 60):
        h = mp.mpf(10) ** -18 * max(abs(mp.mpf(x)), mp.mpf("1e-3"))
        if "erf" in name:
            h = mp.mpf(10) ** -100
        low, middle, high = (exact(mp.mpf(x) + k * h) for k in (-1, 0, 1))
        first, second = (high - low) / (2 * h), (high - 2 * middle + low) / h**2
        for got, want in (
            (arc.grad(function)(x), first),
            (arc.grad(arc.grad(function))(x), second),
        ):
            assert abs(mp.mpf(float(got)) - want) <= 1e-14 * max(abs(want), mp.mpf(10) ** -300) or (
                abs(want) < 1e-14 * abs(first)
            ), f"got {got}, want {mp.nstr(want, 20)}"


# ---- the same bits, SciPy's ufuncs, errors -------------------------------------------------------

NAMES = ["erf", "erfc", "exp10", "gamma", "gammaln", "digamma"]


@pytest.mark.long_cases("llvm*")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_same_bits(backend: str, dtype) -> None:
    x = np.concatenate([RNG.uniform(-7, 30, 40), EDGES[np.abs(EDGES) != 1e300]]).astype(dtype)

    def all_of_them(v):
        return [getattr(special, name)(v) for name in NAMES] + [special.polygamma(1, v)]

    eager = all_of_them(x)
    assert all(e.dtype == dtype for e in eager)
    for got, want in zip(arc.compile(all_of_them, backend=backend)(x), eager):
        np.testing.assert_array_equal(got, want)
    rows = arc.vmap(all_of_them)(x)
    for got, want in zip(rows, eager):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", [*NAMES, "betaln"])
def test_ufuncs_of_scipy(name: str) -> None:
    function, mine = getattr(scipy.special, name), getattr(special, name)
    operands = (np.array([0.3, 2.5, 7.0]),) * (2 if name == "betaln" else 1)
    got = arc.compile(lambda *v: function(*v))(*operands)
    np.testing.assert_array_equal(got, mine(*operands))
    np.testing.assert_allclose(got, function(*operands), rtol=2e-14)


def test_whole_numbers_and_lists() -> None:
    assert special.gamma(5) == 24.0
    np.testing.assert_array_equal(special.gamma([1, 2, 3, 4]), [1.0, 1.0, 2.0, 6.0])
    assert arc.compile(lambda n: special.gamma(n))(5) == 24.0


@pytest.mark.parametrize("name", ["erf", "erfc", "gamma", "lgamma"])
def test_functions_of_math_point_here(name: str) -> None:
    with pytest.raises(TraceError, match=r"arc\.special"):
        arc.compile(lambda x: getattr(math, name)(x))(1.5)


def test_a_ufunc_that_cannot_be_traced_points_here() -> None:
    with pytest.raises(TraceError, match=r"j0 cannot be traced[\s\S]*arc\.special"):
        arc.compile(lambda x: scipy.special.j0(x))(1.5)


def test_messages() -> None:
    with pytest.raises(TypeError, match=r"special\.erf takes real numbers, got .* complex128"):
        special.erf(1j)
    with pytest.raises(ValueError, match=r"order n must be a whole number from 0 to 10, got 1\.5"):
        special.polygamma(1.5, 2.0)
