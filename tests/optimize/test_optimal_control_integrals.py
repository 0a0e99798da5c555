"""Integrals of optimal control problems: closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.optimize import OptimalControl

ROPE = {"x": lambda s: np.array([0.0]), "u": 0.1}


def hanging(bounds):
    # A curve y(x) over [0, 1] of given length above the chord encloses most as an arc of a circle.
    return OptimalControl(
        lambda t, x, u: np.array([u]),
        running_cost=lambda t, x, u: -x[0],
        initial=[0.0],
        final=[0.0],
        tf=1.0,
        integrals=lambda t, x, u: {"length": np.sqrt(1.0 + u**2)},
        integral_bounds=bounds,
    )


@pytest.mark.parametrize("method", ["hermite-simpson", "radau3"])
def test_the_largest_area_under_a_rope_is_a_circle(method):
    angle = 0.8  # half the angle of the arc, whose chord is 1
    radius = 0.5 / np.sin(angle)
    length = 2 * angle * radius
    area = radius**2 * (angle - np.sin(angle) * np.cos(angle))
    found = hanging({"length": (None, length)}).solve(ROPE, intervals=20, scheme=method)
    assert found.success, found.message
    assert -found.fun == pytest.approx(area, abs=1e-6)
    assert found.integrals["length"] == pytest.approx(length, abs=1e-7)
    assert found.x.shape == (21, 1)
    assert found.costates.shape == (21, 1)


def test_integrals_are_reported_without_bounds_too():
    problem = OptimalControl(
        lambda t, x, u, k: np.array([x[1], u]),
        running_cost=lambda t, x, u, k: u**2,
        initial=[0.0, 0.0],
        final=[1.0, 0.0],
        tf=1.0,
        integrals=lambda t, x, u, k: k * x[1],
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0}, intervals=4, args=(3.0,))
    assert found.fun == pytest.approx(12.0, abs=1e-7)
    assert found.integrals == pytest.approx(3.0, abs=1e-7)  # 3 times the way
    assert (
        OptimalControl(lambda t, x, u: u, running_cost=lambda t, x, u: u**2)
        .solve({"x": 0.0, "u": 0.0}, intervals=2)
        .integrals
        is None
    )


def test_bounds_without_integrals_are_refused():
    with pytest.raises(ValueError, match="given, but no integrals"):
        OptimalControl(
            lambda t, x, u: u, running_cost=lambda t, x, u: u, integral_bounds=(0.0, 1.0)
        )
