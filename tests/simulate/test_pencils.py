"""Systems (dF/dxdot + c dF/dx) y = r against dense ones, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.simulate.dae import residual_of
from archimedes.simulate.problem.state_layout import layout_of


def pencil_of(by_x, by_xdot):
    n = len(by_x)
    x = np.zeros(n)
    residual = residual_of(lambda t, x, v: by_xdot @ v + by_x @ x, layout_of(x), ())
    return residual.pencil(0.0, x, x)


def error_of(pencil, matrix, c):
    right = np.arange(1.0, len(matrix) + 1.0)
    found = pencil.solver(c)(right)
    # In units of each row: elimination with the largest pivots depends on them.
    units = np.abs(matrix).max(axis=1)
    expected = np.linalg.solve(matrix / units[:, None], right / units)
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("n", [3, 12, 40])
@pytest.mark.parametrize("c", [1e-7, 1.0, 1e4])
def test_random_systems_without_a_diagonal(n, c):
    random = np.random.default_rng(n)
    part = [random.standard_normal((n, n)) * (random.random((n, n)) < 3.0 / n) for _ in range(2)]
    rows = random.permutation(n)
    by_xdot = np.eye(n)[rows] + 0.3 * part[0]
    by_x = 2.0 * np.eye(n)[rows[::-1]] + part[1]
    # Half of the equations are algebraic; each has a unit of its own.
    units = 10.0 ** random.integers(-6, 7, n)
    by_xdot[: n // 2] = 0.0
    by_x, by_xdot = units[:, None] * by_x, units[:, None] * by_xdot
    # Rows are exchanged within blocks only, so some digits may be lost.
    assert error_of(pencil_of(by_x, by_xdot), by_xdot + c * by_x, c) < 1e-10


def test_rows_are_ordered_anew_where_the_first_order_does_not_do():
    """For small c the diagonal of one matrix is large, for large c that of another."""
    n, random = 40, np.random.default_rng(7)
    by_xdot, by_x = np.eye(n)[random.permutation(n)], np.eye(n)[random.permutation(n)]
    by_xdot += 1e-3 * np.roll(by_xdot, 1, axis=0)
    by_x += 1e-3 * np.roll(by_x, 1, axis=0)
    pencil = pencil_of(by_x, by_xdot)
    orders = []
    for c in (1e-14, 1e14):
        assert error_of(pencil, by_xdot + c * by_x, c) < 1e-5
        orders.append(pencil.form.order.tolist())
    assert orders[0] != orders[1]


def test_a_singular_system_has_no_solution():
    by_x = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.isnan(pencil_of(by_x, 0.0 * by_x).solver(1.0)(np.ones(3))).all()
    empty = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert np.isnan(pencil_of(empty, 0.0 * empty).solver(1.0)(np.ones(3))).all()
