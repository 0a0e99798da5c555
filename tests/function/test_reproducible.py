"""Products and functions of plain numbers whose bits no processor changes."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import portable_numpy
from archimedes.checks import is_traced
from archimedes.function.reproducible import call
from archimedes.portable_numpy import matmul, norm, solve_least_squares

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 3), (3, 3)),
        ((2, 5), (5, 4)),
        ((4, 3), (3,)),
        ((3,), (3, 2)),
        ((7,), (7,)),
        ((6, 2, 3), (3, 3)),
        ((2, 1, 3, 3), (5, 3, 1)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ],
)
def test_products(a, b):
    A, B = RNG.normal(size=a), RNG.normal(size=b)
    np.testing.assert_allclose(matmul(A, B), np.matmul(A, B), rtol=1e-14, atol=1e-15)
    assert np.shape(matmul(A, B)) == np.shape(np.matmul(A, B))


def test_products_have_the_bits_of_recorded_ones():
    A, B = RNG.normal(size=(2, 50, 3, 3))
    recorded = arc.vmap(arc.compile(np.matmul, backend="interpreter"))(A, B)
    np.testing.assert_array_equal(matmul(A, B), recorded)
    traced = arc.compile(lambda A: matmul(A, B[0]), backend="interpreter")(A[0])
    np.testing.assert_array_equal(traced, recorded[0])


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2,\) do not fit"):
        matmul(np.ones((2, 3)), np.ones(2))


@pytest.mark.parametrize("name", ["sin", "cos", "arctan", "log"])
def test_functions_have_the_bits_of_recorded_ones(name):
    x = RNG.uniform(0.1, 9.0, 200)
    own, numpy = getattr(portable_numpy, name), getattr(np, name)
    recorded = arc.vmap(arc.compile(numpy, backend="interpreter"))(x)
    np.testing.assert_array_equal(own(x), recorded)
    assert arc.compile(own, backend="interpreter")(x[0]) == own(x[0]) == recorded[0]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 3), (20, 4), (9, 8)])
def test_least_squares(m, n):
    A, b = RNG.normal(size=(m, n)), RNG.normal(size=m)
    np.testing.assert_allclose(
        solve_least_squares(A, b), np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-10, atol=1e-12
    )


def test_least_squares_without_one_solution():
    """The shortest one: columns that are equal, columns of zeros, too few rows."""
    b = RNG.normal(size=4)
    np.testing.assert_allclose(solve_least_squares(np.ones((4, 2)), b), [b.mean() / 2] * 2)
    np.testing.assert_array_equal(solve_least_squares(np.zeros((4, 2)), b), np.zeros(2))
    np.testing.assert_allclose(solve_least_squares(np.ones((1, 2)), np.ones(1)), [0.5, 0.5])
    assert solve_least_squares(np.zeros((3, 0)), b[:3]).shape == (0,)


def test_calls_as_recorded_code():
    def f(x):
        if not is_traced(x) and x < 0.0:
            raise ValueError("x must not be negative")
        return {"a": np.exp(x) * np.sin(x), "b": norm(np.stack([x, 2.0]))}

    want = arc.compile(f, backend="interpreter")(0.7)
    assert call(f, 0.7) == want
    with pytest.raises(ValueError, match="must not be negative"):
        call(f, -1.0)
    assert arc.compile(lambda x: call(f, x)["a"], backend="interpreter")(0.7) == want["a"]
