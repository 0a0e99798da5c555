"""Branches and combinations of wide arrays: loops, with the bits of what is written out."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.linear_combinations import combine

N = 100
X = np.linspace(-1.0, 2.0, N)


def chosen(x, s):
    zeros = np.zeros((3, N))
    return arc.cond(s > 0.0, lambda: np.stack([x, np.abs(x) * x, x * s]), lambda: zeros)


def of_arguments(x, s):
    return arc.cond(s > 0.0, lambda a, b: (a + b, b), lambda a, b: (a, a * 2.0), x, x[::-1])


def of_dtypes(x, s):
    return arc.cond(s > 0.0, lambda: x, lambda: np.arange(N))


@pytest.mark.parametrize("function", [chosen, of_arguments, of_dtypes])
@pytest.mark.parametrize("s", [0.5, -0.5])
def test_all_ways_have_the_same_bits(function, s):
    ways = [
        arc.compile(function, backend="interpreter")(X, s),
        arc.compile(function, backend="llvm")(X, s),
        arc.compile(function, backend="llvm", loops_from=10**6)(X, s),
    ]
    expected = arc.tree.leaves(function(X, s))
    for found in ways:
        for a, b in zip(arc.tree.leaves(found), expected):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", [chosen, of_arguments])
def test_programs_do_not_grow_with_arrays(function):
    program = arc.compile(function).lookup((X, 0.5), {})[1].blocks
    assert len(program) < 40
    assert all(len(body) < 40 for r in program.regions.values() for body in r.bodies)


@pytest.mark.parametrize("s", [0.5, -0.5])
def test_derivatives_of_branches(s):
    def total(x, s):
        return np.sum(chosen(x, s) ** 2)

    slope = 2.0 * X + 4.0 * X**3 + 2.0 * X * s**2 if s > 0.0 else np.zeros(N)
    np.testing.assert_allclose(arc.grad(total)(X, s), slope, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(
        arc.jvp(total)(X, s, np.ones(N)), slope.sum() + 0.0, rtol=1e-12, atol=1e-12
    )


def test_stopped_gradients_of_wide_arrays():
    def f(x):
        return np.sum(x * arc.stop_gradient(np.sin(x)))

    assert np.array_equal(arc.grad(f)(X), arc.compile(np.sin)(X))
    assert len(arc.compile(f).lookup((X,), {})[1].blocks) < 10


@pytest.mark.parametrize("n", [3, N])
def test_combinations_have_the_bits_of_what_they_mean(n):
    rng = np.random.default_rng(n)
    vectors, x, h = list(rng.normal(size=(4, n))), rng.normal(size=n), 0.3
    weights = (0.25, 0.0, 1.0, -3.0)

    def written(vectors, x, h):
        total = 0.25 * vectors[0] + vectors[2] + -3.0 * vectors[3]
        return x + h * total, h * total, (x + 0.25 * vectors[0]) + vectors[2] + -3.0 * vectors[3]

    def combined(vectors, x, h):
        return (
            combine(weights, vectors, None, h, x),
            combine(weights, vectors, None, h),
            combine(weights, vectors, x),
        )

    expected = written(vectors, x, h)
    for found in (
        combined(vectors, x, h),
        *(arc.compile(combined, backend=b)(vectors, x, h) for b in ("interpreter", "llvm")),
    ):
        assert all(np.array_equal(a, b) for a, b in zip(found, expected))
    assert combine((0.0,), vectors, x) is x
    assert combine((0.0,), vectors) is None


def test_long_functions_are_called_with_blocks():
    """A function written element by element is not called with so many numbers."""

    @arc.compile
    def steps(x):
        out = np.zeros_like(x)
        for k in range(1, N):
            out[k] = np.sin(x[k]) * x[k - 1] + np.cos(x[k]) * x[k]
        return out

    steps.inline_limit = 100

    def many(x):
        for _ in range(5):
            x = x + 0.1 * steps(2.0 * x)
        return x

    expected = X
    for _ in range(5):
        expected = expected + 0.1 * steps(2.0 * expected)
    assert np.array_equal(arc.compile(many, backend="llvm")(X), expected)
    assert len(arc.compile(many).lookup((X,), {})[1].blocks) < 60
