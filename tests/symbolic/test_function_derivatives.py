"""Derivatives of NumPy's larger functions: against JAX, mpmath and closed forms."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import archimedes as arc
from tests.optional_packages import import_or_skip

jax = import_or_skip("jax")
jax.config.update("jax_enable_x64", True)

X = np.array([0.31, -1.72, 2.63, -0.44, 1.15])
M = np.random.default_rng(3).uniform(-2, 2, (3, 4))
GRID = np.array([-2.0, -1.0, 0.0, 0.5, 3.0])

VECTOR: dict[str, Any] = {
    "sort": lambda xp, x: xp.sort(x),
    "sorted squares": lambda xp, x: xp.sort(x * x) ** 2,
    "max": lambda xp, x: xp.max(x),
    "median": lambda xp, x: xp.median(x * x),
    "quantile": lambda xp, x: xp.quantile(x, np.array([0.1, 0.35, 0.8])),
    "percentile": lambda xp, x: xp.percentile(x, 60.0),
    "average": lambda xp, x: xp.average(x, weights=x * x),
    "var": lambda xp, x: xp.var(x, ddof=1),
    "std": lambda xp, x: xp.std(x),
    "ptp": lambda xp, x: xp.ptp(x),
    "nansum": lambda xp, x: xp.nansum(xp.where(x > 2, np.nan, x**3)),
    "nanmean": lambda xp, x: xp.nanmean(xp.where(x > 2, np.nan, x**3)),
    "interp x": lambda xp, x: xp.interp(x, GRID, np.sin(GRID)),
    "interp values": lambda xp, x: xp.interp(np.array([-1.5, 0.2, 1.0]), GRID, x),
    "interp all": lambda xp, x: xp.interp(x * 0.5, xp.sort(x), x**2),
    "diff": lambda xp, x: xp.diff(x**2, 2),
    "gradient": lambda xp, x: xp.gradient(x**2, 0.3),
    "trapezoid": lambda xp, x: xp.trapezoid(x**2, GRID),
    "unwrap": lambda xp, x: xp.unwrap(x * 4),
    "convolve": lambda xp, x: xp.convolve(x, x[:3] ** 2),
    "correlate": lambda xp, x: xp.correlate(x, x[:2], mode="full"),
    "polyval": lambda xp, x: xp.polyval(x, x[:2]),
    "polymul": lambda xp, x: xp.polymul(x, x),
    "vander": lambda xp, x: xp.vander(x, 3),
    "linspace": lambda xp, x: xp.linspace(x[0], x[1] * x[2], 4),
    "geomspace": lambda xp, x: xp.geomspace(x[0], x[2], 4),
    "cumprod": lambda xp, x: xp.cumprod(x),
    "prod": lambda xp, x: xp.prod(x),
    "clip": lambda xp, x: xp.clip(x**2, 0.5, 2.0),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x**2),
    "fmax": lambda xp, x: xp.fmax(x, 0.1) * xp.fmin(x, 0.4),
    "logaddexp": lambda xp, x: xp.logaddexp(x, x[::-1]),
    "sinc": lambda xp, x: xp.sinc(x),
    "i0": lambda xp, x: xp.i0(x),
    "traced index": lambda xp, x: x[xp.argsort(x)] * x[xp.argmax(x)],
    "take along": lambda xp, x: xp.take_along_axis(x, xp.argsort(-x), axis=0) ** 2,
    "piecewise": lambda xp, x: xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), x**2),
    "round": lambda xp, x: xp.round(x, 1) * x,
}
MATRIX: dict[str, Any] = {
    "cov": lambda xp, m: xp.cov(m),
    "corrcoef": lambda xp, m: xp.corrcoef(m),
    "sort columns": lambda xp, m: xp.sort(m, axis=0),
    "median rows": lambda xp, m: xp.median(m, axis=1),
    "gradient": lambda xp, m: xp.gradient(m**2, axis=1),
    "einsum": lambda xp, m: xp.einsum("ij,kj->ik", m, m**2),
    "kron": lambda xp, m: xp.kron(m[:2, :2], m[1:, :2]),
    "pad": lambda xp, m: xp.pad(m**2, 1, mode="edge"),
}
CASES = [(name, f, X) for name, f in VECTOR.items()] + [(n, f, M) for n, f in MATRIX.items()]


@pytest.mark.long_cases(
    "average*",
    "c*",
    "gradient, 2*",
    "interp v*",
    "interp x*",
    "linspace*",
    "m*",
    "p*",
    "quantile,*",
    "s*",
    "traced*",
)
@pytest.mark.parametrize(
    ("name", "function", "x"), CASES, ids=[f"{c[0]}, {c[2].ndim}-D" for c in CASES]
)
def test_jacobian_agrees_with_jax(name, function, x) -> None:
    want = np.asarray(jax.jit(jax.jacfwd(lambda v: function(jax.numpy, v)))(x))
    got = arc.jac(lambda v: function(np, v))(x)
    assert np.shape(got) == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_derivative_of_sort_is_the_permutation() -> None:
    got = arc.jac(lambda x: np.sort(x))(X)
    np.testing.assert_array_equal(got, np.eye(5)[np.argsort(X)])


@pytest.mark.parametrize(
    "x", [0.0, 1e-300, 1e-9, 1e-4, 0.01, 0.1, 0.159, 0.1592, 0.3, 1.0, 2.5, -0.7]
)
def test_sinc_and_its_derivatives_near_zero(x) -> None:
    mpmath.mp.dps = 60
    y = mpmath.mpf(x)
    want = mpmath.taylor(mpmath.sincpi, y, 2) if x else [1, 0, -(mpmath.pi**2) / 6]
    first = arc.grad(lambda x: np.sinc(x))
    second = arc.grad(first)
    for function, k in ((lambda x: np.sinc(x), 0), (first, 1), (second, 2)):
        exact = float(want[k] * mpmath.factorial(k))
        np.testing.assert_allclose(function(np.float64(x)), exact, rtol=2e-13, atol=2e-15)


@pytest.mark.parametrize("x", [0.0, 0.3, -2.0, 7.9, 8.1, 29.9, 30.1, 120.0])
def test_bessel_function_and_its_derivative(x) -> None:
    value = float(mpmath.besseli(0, x))
    slope = float(mpmath.besseli(1, x))
    np.testing.assert_allclose(arc.compile(lambda x: np.i0(x))(np.float64(x)), value, rtol=2e-15)
    np.testing.assert_allclose(arc.grad(lambda x: np.i0(x))(np.float64(x)), slope, rtol=1e-13)


def test_interpolation_has_the_slope_of_the_segment_to_the_right_at_its_points() -> None:
    values = np.array([1.0, 3.0, 2.0, 2.5, 7.0])
    slopes = np.diff(values) / np.diff(GRID)
    static = arc.grad(lambda x: np.interp(x, GRID, values))
    traced = arc.grad(lambda x, v: np.interp(x, GRID, v), argnums=0)
    for k in range(4):
        assert static(GRID[k]) == slopes[k]
        assert traced(GRID[k], values) == slopes[k]
    assert static(np.float64(-9.0)) == static(np.float64(9.0)) == 0.0


def test_gather_and_scatter_at_traced_positions_pass_derivatives() -> None:
    def f(x, k):
        y = np.zeros(5)
        y[k] = x[0] ** 2
        y[k - 1] += x[k]
        return y

    got = arc.jac(f, argnums=0)(X, np.int64(3))
    want = np.zeros((5, 5))
    want[3, 0], want[2, 3] = 2 * X[0], 1.0
    np.testing.assert_allclose(got, want, rtol=1e-15)
