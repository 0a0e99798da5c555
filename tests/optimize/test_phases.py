"""Optimal control in phases: splines, jumps, and Goddard's rocket with its singular arc."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import archimedes as arc
from archimedes.optimize import OptimalControl, Phases


def pushed(t, x, u):
    return np.array([x[1], u])


EFFORT = {"running_cost": lambda t, x, u: u**2}
STILL = {"x": np.zeros(2), "u": 0.0}


@pytest.mark.parametrize("solver", ["ipm", "ipopt"])
def test_through_a_point_on_a_spline(solver):
    # The least effort through points at given times is a cubic spline, clamped at both ends.
    first = OptimalControl(pushed, initial=[0.0, 0.0], final=[0.8, None], tf=0.4, **EFFORT)
    second = OptimalControl(pushed, final=[1.0, 0.0], t0=0.4, tf=1.0, **EFFORT)
    found = Phases(first, second).solve([STILL] * 2, intervals=[5, 7], method=solver)
    assert found.success, found.message
    spline = CubicSpline([0.0, 0.4, 1.0], [0.0, 0.8, 1.0], bc_type="clamped")
    for part in found.phases:
        np.testing.assert_allclose(part.x[:, 0], spline(part.t), atol=1e-7)
        np.testing.assert_allclose(part.u, spline(part.t, 2), atol=1e-5)
    assert len(found) == 2
    assert found[0].fun + found[1].fun == pytest.approx(found.fun)


def test_free_times_of_a_bang_bang_control():
    # Full thrust, then full brake, each with one interval: the switch is found exactly.
    go = {"terminal_cost": lambda t0, x0, tf, xf: tf - t0, "control_bounds": (-1.0, 1.0)}
    first = OptimalControl(
        lambda t, x, u: np.array([x[1], 1.0 + 0.0 * u]), initial=[0.0, 0.0], tf=(0.1, 5.0), **go
    )
    second = OptimalControl(
        lambda t, x, u: np.array([x[1], -1.0 + 0.0 * u]),
        final=[1.0, 0.0],
        t0=(0.1, 5.0),
        tf=(0.2, 9.0),
        **go,
    )
    guesses = [{**STILL, "tf": 0.7}, {**STILL, "t0": 0.7, "tf": 1.5}]
    found = Phases(first, second).solve(guesses, intervals=1)
    assert found.success, found.message
    assert found[0].tf == pytest.approx(1.0, abs=1e-7)
    assert found[1].tf == pytest.approx(2.0, abs=1e-7)


@arc.struct
class Rocket:
    height: float
    speed: float
    mass: float


C, G, H0, D0 = 1580.9425279876559, 32.174, 23800.0, 5.49153484923381010e-5


def goddard(thrust):
    def rate(t, x, u):
        force = thrust(x) if thrust is not None else u
        drag = D0 * x.speed**2 * np.exp(-x.height / H0)
        return Rocket(x.speed, (force - drag) / x.mass - G, -force / C + 0.0 * u)

    return rate


def singular_thrust(x):
    # Betts 2010, example 4.9: the thrust on the singular arc.
    drag, r = D0 * x.speed**2 * np.exp(-x.height / H0), C / x.speed
    more = (C**2 / (H0 * G) * (1 + x.speed / C) - 1 - 2 * r) / (1 + 4 * r + 2 * r**2)
    return drag + x.mass * G * (1 + more)


@pytest.mark.long
def test_goddard_reaches_the_published_height():
    # Boost, singular arc, coast: J. T. Betts 2010, table 4.6: height 18550.872 ft.
    box = {"state_bounds": (Rocket(0.0, 0.0, 1.0), Rocket(3e4, 2e3, 3.0)), "control_bounds": (0, 1)}
    entry = lambda t0, x0, tf, xf: (
        x0.mass * G - (1 + x0.speed / C) * D0 * x0.speed**2 * np.exp(-x0.height / H0)
    )
    none = lambda t0, x0, tf, xf: 0.0 * tf
    boost = OptimalControl(
        goddard(lambda x: 193.044),
        terminal_cost=none,
        initial=Rocket(0.0, 0.0, 3.0),
        tf=(5.0, 20.0),
        **box,
    )
    arc_phase = OptimalControl(
        goddard(singular_thrust),
        terminal_cost=none,
        boundary=entry,
        final=Rocket(None, None, 1.0),
        t0=(5.0, 25.0),
        tf=(10.0, 35.0),
        **box,
    )
    coast = OptimalControl(
        goddard(lambda x: 0.0 * x.mass),
        terminal_cost=lambda t0, x0, tf, xf: -xf.height / 1e4,
        final=Rocket(None, 0.0, None),
        t0=(10.0, 35.0),
        tf=(30.0, 60.0),
        **box,
    )
    guesses = [
        {"x": lambda s: Rocket(4000 * s, 700 * s, 3 - 1.2 * s), "u": 0.5, "tf": 13.0},
        {
            "x": lambda s: Rocket(4e3 + 6e3 * s, 800.0, 1.8 - 0.8 * s),
            "u": 0.5,
            "t0": 13.0,
            "tf": 21,
        },
        {
            "x": lambda s: Rocket(1e4 + 8e3 * s, 800 - 800 * s, 1.0),
            "u": 0.5,
            "t0": 21.0,
            "tf": 42.0,
        },
    ]
    found = Phases(boost, arc_phase, coast).solve(guesses, intervals=10, scheme="radau4")
    assert found.success, found.message
    assert -1e4 * found.fun == pytest.approx(18550.872, abs=5e-3)
    assert found[0].tf == pytest.approx(13.751270, abs=1e-3)
    assert found[1].tf == pytest.approx(21.987, abs=1e-2)
    assert found[2].tf == pytest.approx(42.887837, abs=1e-2)


@arc.struct
class Drone:
    pos: np.ndarray
    att: arc.spatial.Quaternion
    vel: np.ndarray


def test_a_gate_leaves_attitude_and_velocity_free():
    """None for a whole attitude, which is a struct of its own, as for a number or an array."""
    level = arc.spatial.Quaternion([1.0, 0.0, 0.0, 0.0])

    def dynamics(t, x, u):
        return Drone(x.vel, x.att.kinematics(np.zeros(3)), u)

    start = Drone(np.zeros(3), level, np.zeros(3))
    gate = np.array([1.0, 0.5, 0.0])
    first = OptimalControl(
        dynamics, initial=start, final=Drone(gate, None, None), tf=1.0, **VECTOR_EFFORT
    )
    second = OptimalControl(
        dynamics,
        final=Drone(np.array([2.0, 0.0, 0.0]), None, np.zeros(3)),
        t0=1.0,
        tf=2.0,
        **VECTOR_EFFORT,
    )
    guess = {"x": start, "u": np.zeros(3)}
    found = Phases(first, second).solve([guess] * 2, intervals=4)
    assert found.success, found.message
    spline = CubicSpline([0.0, 1.0, 2.0], [np.zeros(3), gate, [2.0, 0, 0]], bc_type="clamped")
    np.testing.assert_allclose(found[0].x.vel[-1], spline(1.0, 1), atol=1e-6)


VECTOR_EFFORT = {"running_cost": lambda t, x, u: np.sum(u**2)}


def test_misuse_names_the_argument():
    one = OptimalControl(pushed, **EFFORT)
    with pytest.raises(TypeError, match="two or more OptimalControl"):
        Phases(one)
    with pytest.raises(ValueError, match="links has 2 entries for 1 pairs"):
        Phases(one, one, links=[None, None])
    with pytest.raises(ValueError, match="guesses has 1 entries for 2 phases"):
        Phases(one, one).solve([STILL])
    with pytest.raises(ValueError, match="intervals has 3 entries for 2 phases"):
        Phases(one, one).solve([STILL] * 2, intervals=[1, 2, 3])
    other = OptimalControl(lambda t, x, u: u, t0=1.0, tf=2.0, running_cost=lambda t, x, u: u**2)
    with pytest.raises(ValueError, match=r"links\[0\]: phase 0 has 2 states and phase 1 1"):
        Phases(one, other).solve([STILL, {"x": 0.0, "u": 0.0}])
