"""Patterns of programs on arrays: what depends on what, element by element, at any size."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import archimedes as arc

N = 144
M = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 0.0], [0.2, 0.0, 1.0]])
PLACES = np.random.default_rng(2).permutation(N)


def stencil(u):
    end = np.ones(1)
    return np.concatenate([end, u[2:] - 2 * u[1:-1] + u[:-2], end]) * np.sin(u)


def plane(u):
    v = u.reshape(int(np.sqrt(u.size)), -1)
    left, up = np.roll(v, 1, axis=1), np.roll(v, 1, axis=0)
    return (v * left - np.cos(up)).ravel()


def rows(u):
    return np.sin(u.reshape(-1, 3) @ M).ravel()


def with_rounds(u):
    """Return something of each row alone, found by a loop."""

    def one(row):
        return arc.while_loop(
            lambda s: np.sum(s**2) > 0.1, lambda s: 0.5 * np.sin(s) * row[0], row, max_steps=99
        )

    return arc.vmap(one)(u.reshape(-1, 3)).ravel()


PROGRAMS = {
    "diagonal": lambda u: np.sin(u) * u,
    "stencil": stencil,
    "around": lambda u: u * np.roll(u, 1) - np.roll(u, -2) ** 2,
    "plane": plane,
    "rows": rows,
    "places": lambda u: np.sin(u[PLACES]) * u,
    "steps": lambda u: arc.scan(lambda c, _: (c + 0.1 * stencil(c), None), u, length=3)[0],
    "call": lambda u: arc.compile(stencil)(u) * u,
    "cond": lambda u: arc.cond(u[0] > 0, stencil, lambda u: np.roll(u, 1) ** 2, u),
    "some": lambda u: stencil(u)[::3] + u[1] * u[::3],
    "triangle": lambda u: np.cumsum(u**2),
    "sum": lambda u: np.stack([np.sum(u[:7] ** 2), np.prod(u[-3:])]),
    "each row": with_rounds,
}
#: What no structure shows: branches, loops.
MORE = {"cond", "each row"}


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_patterns_are_those_of_the_derivatives(name):
    f = PROGRAMS[name]
    x = 0.5 + np.random.default_rng(1).random(N)
    found = arc.sparsity(f)(x).toarray()
    slopes = arc.jac(arc.compile(f, backend="interpreter"))(x) != 0
    assert not np.any(slopes & ~found)
    if name not in MORE:
        assert np.array_equal(found, slopes)
    assert np.array_equal(arc.jac(f, sparse=True)(x).toarray() != 0, slopes)


def test_rows_computed_in_loops_stay_apart():
    found = arc.sparsity(with_rounds)(np.ones(9000))
    assert found.nnz == 15_000
    assert arc.jac(with_rounds, sparse=True).colors(np.ones(9000)) == 2


def test_a_band_that_grows_in_a_loop_is_found_in_the_end():
    steps = lambda u: arc.scan(lambda c, _: (c + np.roll(c, 1), None), u, length=5000)[0]
    assert arc.sparsity(steps)(np.ones(500)).nnz == 250_000


@pytest.mark.parametrize("name", ["diagonal", "stencil", "plane", "rows"])
def test_memory_grows_with_the_entries(name):
    x = np.full(90_000, 0.5)
    tracemalloc.start()
    found = arc.sparsity(PROGRAMS[name])(x)
    assert found.nnz <= 5 * x.size
    assert tracemalloc.get_traced_memory()[1] < 150e6
    tracemalloc.stop()


@pytest.mark.long
def test_sparse_derivatives_of_very_long_arrays():
    x = 0.5 + np.random.default_rng(1).random(150_000)
    found = arc.jac(stencil, sparse=True)
    assert found.colors(x) == 3
    along = np.sin(np.arange(x.size))
    np.testing.assert_allclose(found(x) @ along, arc.jvp(stencil)(x, along), rtol=1e-12, atol=1e-12)
    curved = arc.hess(lambda u: np.sum((u[1:] - u[:-1] ** 2) ** 2), sparse=True)(x)
    main = np.append(12 * x[:-1] ** 2 - 4 * x[1:], 0.0) + np.append(0.0, np.full(x.size - 1, 2.0))
    np.testing.assert_allclose(curved.diagonal(), main, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(curved.diagonal(1), -4 * x[:-1], rtol=1e-12)
    assert curved.nnz == 3 * x.size - 2
