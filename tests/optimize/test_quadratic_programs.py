"""Sixty programs with badly scaled, degenerate and contradictory data: no status is false."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import Status, solve_qp
from tests.optimize.quadratic_programs import PROGRAMS


def test_there_are_enough():
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_status_is_false(name):
    program = PROGRAMS[name]
    found = solve_qp(*program.data)
    assert Status(int(found.status)) is Status(program.status), found.residual
    if program.status:
        return
    x = found.x
    best, size = program.cost(program.x), program.cost_size(program.x)
    assert abs(program.cost(x) - best) < 1e-7 * size
    z = program.A @ x
    outside = np.maximum(program.low - z, z - program.high)
    assert np.all(outside < 1e-7 * (np.abs(program.A) @ np.abs(x)))
    outside = np.maximum(program.lower - x, x - program.upper)
    assert np.all(outside < 1e-7 * (np.abs(x) + np.abs(program.x)))
    # Multipliers, too, are those of the user's units.
    slope = program.P @ x + program.q + program.A.T @ found.lam_a + found.lam_x
    terms = np.abs(program.q) + np.abs(program.A.T) @ np.abs(found.lam_a) + np.abs(found.lam_x)
    assert np.all(np.abs(slope) < 1e-7 * (terms + np.abs(program.P) @ np.abs(x)))


@pytest.mark.parametrize("seed", range(4))
def test_units_do_not_change_the_solution(seed):
    """Metres or millimetres: units that differ by 1e4 gave points that were 36 times off."""
    plain = PROGRAMS[f"unknowns in units that differ by 1e4, {seed}"]
    units = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, plain.q.size)
    one, two = solve_qp(*plain.data), solve_qp(*plain.in_units(units, 1e6).data)
    assert one.success and two.success
    np.testing.assert_allclose(two.x * units, one.x, rtol=1e-5, atol=1e-6 * np.abs(one.x).max())


@pytest.mark.parametrize("e", [1e-3, 1e-6, 1e-9])
def test_a_valley_that_is_almost_flat_is_not_unbounded(e):
    """The step of a nonlinear program near a minimum of fourth and sixth order."""
    curvature = np.array([2.0, 2.0, 2.0, 12 * e**2, 30 * e**4]) + 1e-9
    P = np.diag(curvature)
    P[0, 1] = P[1, 0] = -2.0
    unit = 1.0 / np.sqrt(np.diag(P))
    q = np.array([0.0, 0.0, 0.0, 4 * e**3, 6 * e**5]) * unit
    A = np.array([[1.0, 1.0, 1.0, 4.0, 0.0], [0.0, 0.0, 1.0, 0.0, 5.0]]) * unit
    P = P * unit[:, None] * unit
    found = solve_qp(P, q, A, [1e-16, 0.0], [1e-16, 0.0], tol=1e-10, max_iter=30)
    assert Status(int(found.status)) in (Status.SOLVED, Status.ITERATION_LIMIT)
    x, _ = np.split(
        np.linalg.solve(
            np.block([[P, A.T], [A, np.zeros((2, 2))]]), np.concatenate([-q, [1e-16, 0.0]])
        ),
        [5],
    )
    if found.success:
        np.testing.assert_allclose(found.x, x, rtol=1e-3, atol=1e-3 * np.abs(x).max())


RECORDED = arc.compile(lambda P: solve_qp(P, np.array([-1.0, -1.0]), lower=-1.0, upper=1.0).status)


@pytest.mark.parametrize(
    ("P", "status"),
    [
        ([[2.0, 0.5], [0.5, 1.0]], Status.SOLVED),
        ([[1.0, 1.0], [1.0, 1.0]], Status.SOLVED),
        ([[1.0, 0.0], [0.0, 0.0]], Status.SOLVED),
        ([[2.0, 1.0], [0.0, 1.0]], Status.NOT_CONVEX),
        ([[1.0, 2.0], [2.0, 1.0]], Status.NOT_CONVEX),
        ([[1.0, 0.0], [0.0, -1e-3]], Status.NOT_CONVEX),
        ([[1e6, 0.0], [0.0, -1e-6]], Status.NOT_CONVEX),
        ([[np.nan, 0.0], [0.0, 1.0]], Status.NOT_FINITE),
    ],
)
def test_a_cost_that_is_not_convex_is_no_success_in_recorded_code(P, status):
    assert Status(int(RECORDED(np.array(P)))) is status
