"""Symmetric systems by panels, products with bounds, and batches of programs made of them."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import solve_qp
from archimedes.optimize.small.linear_algebra import LimitedRows, find_pivots, make_solver


def definite(n, spread, seed=0):
    rng = np.random.default_rng(seed)
    turned, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return turned * np.geomspace(1.0, spread, n) @ turned.T


@pytest.mark.long_cases("*1*")
@pytest.mark.parametrize("n", [5, 17, 41])
def test_solutions_and_pivots(n):
    """Against NumPy, to what the condition of the matrix allows; D has the signs of eigenvalues."""
    for spread in (1e2, 1e10):
        M = definite(n, spread)
        b = M @ np.linspace(-1.0, 1.0, n)
        x = make_solver(M)(b)
        assert np.max(np.abs(M @ x - b)) <= 1e-12 * spread
        assert np.max(np.abs(x - np.linalg.solve(M, b))) <= 1e-14 * spread
        assert np.all(find_pivots(M) > 0)
    assert np.sum(find_pivots(M - 2.0 * np.eye(n)) < 0) == np.sum(np.linalg.eigvalsh(M) < 2.0) > 0


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("n", [4, 18])
def test_rows_with_bounds(rows, bounded, n):
    rng = np.random.default_rng(1)
    A, P = rng.standard_normal((rows, n)), definite(n, 10.0)
    C = np.concatenate([A, np.eye(n)]) if bounded else A
    x, y, d = rng.standard_normal(n), rng.standard_normal(len(C)), rng.uniform(size=len(C))
    found = LimitedRows(A, bounded)
    assert found.count == len(C)
    np.testing.assert_allclose(found.times(x), C @ x, atol=1e-13)
    np.testing.assert_allclose(found.transposed_times(y), C.T @ y, atol=1e-13)
    large = found.magnitudes()
    np.testing.assert_allclose(large.times(np.abs(x)), np.abs(C) @ np.abs(x), atol=1e-13)
    wanted = P + 0.1 * np.eye(n) + C.T @ np.diag(d) @ C
    np.testing.assert_allclose(found.gram(P, d, 0.1), wanted, atol=1e-12)


def test_batches_beyond_what_is_written_out():
    """20 unknowns each: instances in lanes, to the bit; gradients vanish or push outwards."""
    P = definite(20, 50.0)
    Q = np.random.default_rng(2).standard_normal((10, 20)) * 10
    found = arc.vmap(lambda q: solve_qp(P, q, lower=-0.5, upper=0.5).x)(Q)
    one = arc.compile(lambda q: solve_qp(P, q, lower=-0.5, upper=0.5).x, backend="llvm")
    assert np.array_equal(found, np.stack([one(q) for q in Q]))
    slope = found @ P + Q
    # Each is at a limit that the slope pushes it to, or the slope is none.
    assert np.max(np.abs(slope) * (0.5 + np.sign(slope) * found)) < 1e-7
    assert np.any(np.abs(slope) < 1e-7) and np.any(np.abs(slope) > 1.0)
