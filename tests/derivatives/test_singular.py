"""Derivatives at points where a formula is singular but the function is not."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc


def guarded_sinc(x):
    return np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x))


def guarded_sqrt(x):
    return np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)


# name, function, point, first derivative, second derivative (None: not asserted)
POINTS = [
    ("x**2 at 0", lambda x: x**2, 0.0, 0.0, 2.0),
    ("x**3 at 0", lambda x: x**3, 0.0, 0.0, 0.0),
    ("x**1 at 0", lambda x: x**1, 0.0, 1.0, 0.0),
    ("x**0 at 0", lambda x: x**0, 0.0, 0.0, 0.0),
    ("x**1.5 at 0", lambda x: x**1.5, 0.0, 0.0, None),
    ("x**2.5 at 0", lambda x: x**2.5, 0.0, 0.0, 0.0),
    ("power(x, 2.0) at 0", lambda x: np.power(x, 2.0), 0.0, 0.0, 2.0),
    ("x**2 at -1", lambda x: x**2, -1.0, -2.0, 2.0),
    ("x**3.0 at -1", lambda x: x**3.0, -1.0, 3.0, -6.0),
    ("sinc at 0", lambda x: np.sinc(x), 0.0, 0.0, -(np.pi**2) / 3.0),
    ("guarded sinc at 0", guarded_sinc, 0.0, 0.0, None),
    ("guarded sqrt at 0", guarded_sqrt, 0.0, 0.0, None),
    ("guarded sqrt at -1", guarded_sqrt, -1.0, 0.0, 0.0),
    ("hypot(x, 1) at 0", lambda x: np.hypot(x, 1.0), 0.0, 0.0, 1.0),
    ("arctan2(x, 1) at 0", lambda x: np.arctan2(x, 1.0), 0.0, 1.0, 0.0),
    ("arctan2(1, x) at 0", lambda x: np.arctan2(1.0, x), 0.0, -1.0, 0.0),
    ("arctan2(x, -1) at 0.5", lambda x: np.arctan2(x, -1.0), 0.5, -0.8, 0.64),
    ("tanh at 800", lambda x: np.tanh(x), 800.0, 0.0, 0.0),
    ("exp(-x**2) at 40", lambda x: np.exp(-(x**2)), 40.0, 0.0, 0.0),
    ("logaddexp(x, 0) at 800", lambda x: np.logaddexp(x, 0.0), 800.0, 1.0, 0.0),
    ("maximum(x, 0)**2 at 0", lambda x: np.maximum(x, 0.0) ** 2, 0.0, 0.0, None),
    ("prod with a zero", lambda x: np.prod(np.array([x, 2.0, 3.0])), 0.0, 6.0, 0.0),
    ("prod with two zeros", lambda x: np.prod(np.array([x, x, 3.0])), 0.0, 0.0, 6.0),
    ("abs(x)*x at 0", lambda x: np.abs(x) * x, 0.0, 0.0, None),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in POINTS])
@pytest.mark.parametrize("mode", ["grad", "jvp", "vjp", "jac"])
def test_first_derivative(row, mode: str) -> None:
    _, fn, x, want, _ = row
    modes = {
        "grad": lambda: arc.grad(fn)(x),
        "jac": lambda: arc.jac(fn)(x),
        "jvp": lambda: arc.jvp(fn)(x, 1.0),
        "vjp": lambda: arc.vjp(fn)(x, 1.0),
    }
    np.testing.assert_allclose(modes[mode](), want, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("row", [pytest.param(r, id=r[0]) for r in POINTS if r[4] is not None])
def test_second_derivative(row) -> None:
    _, fn, x, _, want = row
    np.testing.assert_allclose(arc.hess(fn)(x), want, rtol=1e-13, atol=1e-14)


def test_abs_at_zero_is_a_subgradient() -> None:
    assert float(arc.grad(lambda x: np.abs(x))(0.0)) in (-1.0, 0.0, 1.0)


def test_max_with_ties_shares_or_picks() -> None:
    got = np.asarray(arc.grad(lambda x: np.max(x))(np.array([1.0, 1.0, 0.0])))
    assert got[2] == 0.0
    np.testing.assert_allclose(got.sum(), 1.0)


def test_zero_matrix_entries_do_not_poison_determinant() -> None:
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    cofactors = np.array([[0.0, -1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(arc.grad(lambda a: np.linalg.det(a))(matrix), cofactors, atol=1e-15)
