"""Products with matrices: the same bits in a loop as written out, and small recordings."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.linear_combinations import combine, combine_rows
from archimedes.graph.regions import Scan
from archimedes.simulate.methods.implicit import UNROLLED, product


@pytest.mark.parametrize("n", [1, UNROLLED, UNROLLED + 1, 40])
def test_product_has_the_bits_of_a_product(n):
    rng = np.random.default_rng(n)
    matrix, vector = rng.normal(size=(n, n)), rng.normal(size=n)
    expected = np.zeros(n)
    for k in range(n):  # products are summed left to right
        expected = matrix[:, 0] * vector[0] if k == 0 else expected + matrix[:, k] * vector[k]
    for function in (arc.compile(product), arc.compile(lambda a, b: a @ b)):
        assert np.array_equal(function(matrix, vector), expected)


def test_recordings_grow_with_n_only():
    n = 100
    recorded = arc.compile(product).graph(np.ones((n, n)), np.ones(n))
    assert sum(len(body) for r in recorded.regions.values() for body in r.bodies) < 10 * n


@pytest.mark.parametrize("method", ["rodas5p", "esdirk4"])
def test_a_larger_stiff_system(method):
    """Heat in a rod: modes decay with rates that are known exactly."""
    n = 2 * UNROLLED
    place = np.arange(1, n + 1) / (n + 1)
    first, last = np.sin(np.pi * place), np.sin(n * np.pi * place)

    def heat(t, x):
        wide = np.concatenate([np.zeros(1), x, np.zeros(1)])
        return (n + 1) ** 2 * (wide[2:] - 2.0 * x + wide[:-2])

    rates = [-4.0 * (n + 1) ** 2 * np.sin(k * np.pi / (2 * (n + 1))) ** 2 for k in (1, n)]
    traj = arc.solve_ode(heat, (0.0, 0.05), first + last, method=method, rtol=1e-8, atol=1e-10)
    exact = np.exp(0.05 * rates[0]) * first + np.exp(0.05 * rates[1]) * last
    assert traj.success
    np.testing.assert_allclose(traj.x[-1], exact, atol=1e-7)


@pytest.mark.parametrize("n", [3, 12, 80])
def test_rows_have_the_bits_of_one_after_the_other(n):
    rng = np.random.default_rng(n)
    table = rng.normal(size=(5, 4)).tolist()
    vectors = list(rng.normal(size=(4, n)))

    def rows(h, *vectors):
        return combine_rows(table, [*vectors[:3], vectors[3] * 0.0 + 1.0], h)

    def each(h, *vectors):
        given = [*vectors[:3], vectors[3] * 0.0 + 1.0]
        return np.stack([combine(row, given, None, h) for row in table])

    expected = each(0.3, *vectors)
    for backend in ("interpreter", "llvm"):
        assert arc.compile(rows, backend=backend)(0.3, *vectors).tobytes() == expected.tobytes()
        assert arc.compile(each, backend=backend)(0.3, *vectors).tobytes() == expected.tobytes()
    loops = arc.compile(rows).graph(0.3, *vectors).regions.values()
    assert any(isinstance(region, Scan) for region in loops) == (n == 12)
    along = arc.jvp(rows)(0.3, *vectors, 1.0)
    np.testing.assert_allclose(along, expected / 0.3, rtol=1e-14)
    back = arc.grad(lambda h, *v: np.sum(rows(h, *v)), argnums=1)(0.3, *vectors)
    np.testing.assert_allclose(back, 0.3 * np.sum(table, axis=0)[0], rtol=1e-13)
