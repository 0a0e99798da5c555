"""Nodes, weights and matrices of collocation, against NumPy, mpmath, SciPy and published tables."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.interpolate import BarycentricInterpolator

import archimedes as arc
from archimedes.optimize import collocation

ROOT6 = np.sqrt(6.0)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 33, 64])
def test_gauss_is_numpys(n):
    nodes, weights = collocation.gauss(n)
    known = np.polynomial.legendre.leggauss(n)
    np.testing.assert_allclose(nodes, known[0], atol=4e-16)
    np.testing.assert_allclose(weights, known[1], atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 33, 64])
@pytest.mark.parametrize("end", ["right", "left"])
def test_radau_integrates_powers_up_to_2n_minus_2(n, end):
    nodes, weights = collocation.radau(n, (-2.0, 3.0), end)
    assert np.all(np.diff(nodes) > 0) and np.all(weights > 0)
    assert (nodes[-1] == 3.0) if end == "right" else (nodes[0] == -2.0)
    for power in {0, 1, n, 2 * n - 2}:
        values = np.polynomial.legendre.legval((nodes - 0.5) / 2.5, [0.0] * power + [1.0])
        expected = 5.0 if power == 0 else 0.0
        if power <= 2 * n - 2:
            assert weights @ values == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("n", [2, 7, 40])
def test_nodes_are_correctly_rounded(n):
    with mpmath.workdps(60):
        guess = np.polynomial.legendre.leggauss(n)[0]
        zeros = [mpmath.findroot(lambda x: mpmath.legendre(n, x), float(g)) for g in guess]
        assert collocation.gauss(n)[0].tolist() == [float(z) for z in zeros]


def test_radau_iia_as_in_the_book():
    # Hairer, Wanner, "Solving ODEs II", table 5.6.
    nodes, weights = collocation.radau(3, (0.0, 1.0))
    A = collocation.integration_matrix(nodes, 0.0)
    known = [
        [(88 - 7 * ROOT6) / 360, (296 - 169 * ROOT6) / 1800, (-2 + 3 * ROOT6) / 225],
        [(296 + 169 * ROOT6) / 1800, (88 + 7 * ROOT6) / 360, (-2 - 3 * ROOT6) / 225],
        [(16 - ROOT6) / 36, (16 + ROOT6) / 36, 1 / 9],
    ]
    np.testing.assert_allclose(A, known, atol=1e-15)
    np.testing.assert_allclose(A[-1], weights, atol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 6, 20])
def test_polynomials_are_interpolated_differentiated_and_integrated(n):
    rng = np.random.default_rng(n)
    c = rng.normal(size=n)
    nodes, _ = collocation.radau(n)
    at = np.linspace(-1.0, 1.0, 7)
    values = np.polynomial.legendre.legval(nodes, c)
    slope, integral = np.polynomial.legendre.legder(c), np.polynomial.legendre.legint(c, lbnd=-1)
    L = collocation.lagrange(nodes, at)
    np.testing.assert_allclose(L @ values, np.polynomial.legendre.legval(at, c), atol=1e-12)
    if n > 1:
        known = BarycentricInterpolator(nodes, values)(at)
        np.testing.assert_allclose(L @ values, known, atol=1e-12)
    D = collocation.differentiation_matrix(nodes, at)
    np.testing.assert_allclose(D @ values, np.polynomial.legendre.legval(at, slope), atol=1e-9)
    own = collocation.differentiation_matrix(nodes)
    np.testing.assert_allclose(own @ values, np.polynomial.legendre.legval(nodes, slope), atol=1e-9)
    A = collocation.integration_matrix(nodes, -1.0, at)
    np.testing.assert_allclose(A @ values, np.polynomial.legendre.legval(at, integral), atol=1e-12)


def test_a_transcription_of_ones_own():
    """dx/dt = -x by collocation at four Gauss points: order 8."""
    nodes, weights = collocation.gauss(4, (0.0, 1.0))
    A = collocation.integration_matrix(nodes, 0.0)
    rates = np.linalg.solve(np.eye(4) + A, -np.ones(4))
    assert 1.0 + weights @ rates == pytest.approx(np.exp(-1.0), abs=1e-7)


def test_points_may_be_traced():
    nodes, _ = collocation.gauss(3)
    value = lambda s: (collocation.lagrange(nodes, np.reshape(s, (1,))) @ nodes**2)[0]
    assert arc.compile(value)(0.3) == value(0.3) == pytest.approx(0.09)
    assert arc.grad(value)(0.3) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: collocation.gauss(0), "gauss: n"),
        (lambda: collocation.radau(2.5), "radau: n"),
        (lambda: collocation.radau(2, end="middle"), "radau: end='middle'"),
        (lambda: collocation.gauss(2, (1.0, 0.0)), "the lower one first"),
        (lambda: collocation.gauss(2, (0.0, np.inf)), "interval"),
        (lambda: collocation.gauss(2, 3.0), "interval"),
        (lambda: collocation.lagrange([0.0, 0.0], [1.0]), "all different"),
        (lambda: collocation.lagrange([], [1.0]), "nodes must be one or more"),
        (lambda: collocation.lagrange([0.0, np.nan], [1.0]), "finite"),
        (lambda: collocation.lagrange([0.0, 1.0], 0.5), r"at must have shape \(m,\)"),
    ],
)
def test_errors_name_the_argument(call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        call()
