"""Closures where a joint has turned far, where masses differ much, and with actuators."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.systems.constraints import equations_of

from .random_trees import random_state

GROUPS = ("fixed", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical")


def loose(names="ab", masses=(1.0, 1.0), sizes=(0.2, 0.2)):
    b = mb.Builder()
    for name, mass, size in zip(names, masses, sizes, strict=False):
        b.add_body(name, mass, inertia=mass * size**2 * np.ones(3))
        b.attach(name, joint=name, kind="free")
    return b.build()


@pytest.mark.parametrize("angle", [0.5, 3.0])
def test_violations_die_out_wherever_a_joint_has_turned(angle):
    """As the law says, ``c = c0 (1 + w t) exp(-w t)``: at half a turn they grew without end."""
    model, held = loose("a"), [mb.Closure("world", "a", "spherical")]
    q = mb.neutral(model)
    q[0], q[3:7] = 1e-3, [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
    rates = lambda t, x: mb.constrained_dynamics(model, held, t, x, frequency=20.0)
    end = arc.solve_ode(rates, (0.0, 0.2), mb.rest_state(model, q), rtol=1e-9, atol=1e-12).x
    assert end.q[-1][0] == pytest.approx(1e-3 * 5.0 * np.exp(-4.0), rel=1e-6)


def test_a_point_is_held_by_a_force_in_axes_of_what_holds_it():
    """However the body lies and spins: its weight and what turns it, in axes of the world."""
    b = mb.Builder()
    b.add_body("a", 2.0, com=[0.1, 0, 0], inertia=[0.1, 0.1, 0.1])
    model, held = b.build(base="floating"), [mb.Closure("world", "a", "spherical")]
    q = mb.neutral(model)
    q[:3], q[3:7] = [1e-3, 0.0, 0.0], [0.6, 0.0, 0.0, 0.8]
    v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 40.0])
    _, f = mb.constrained_acceleration(model, held, q, v, np.zeros(6))
    toward = -mb.frame_pose(model, q, "a").r.as_matrix() @ [1.0, 0.0, 0.0]
    np.testing.assert_allclose(
        f, 2.0 * 0.1 * 40.0**2 * toward + [0, 0, 19.62 * 0.1 / 0.12], atol=1e-9
    )
    # The law holds to rounding at any spin: c'' + 2 w c' + w^2 c = 0.
    a, _ = mb.constrained_acceleration(model, held, q, v, np.zeros(6), frequency=5.0)
    c = lambda t: mb.constraint_error(model, held, mb.integrate(model, q, t * v + 0.5 * t * t * a))
    second, first = arc.jac(arc.jac(c))(0.0), arc.jac(c)(0.0)
    np.testing.assert_allclose(second + 10.0 * first + 25.0 * c(0.0), 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", GROUPS)
def test_errors_are_distances_and_rates_are_the_rows(kind):
    """The slope of an error is exact, and at none that of the rows, in m and rad."""
    pitch = 0.3 if kind == "helical" else 0.0
    model, c = loose(), mb.Closure("a", "b", kind, axis=(0, 0.6, 0.8), pitch=pitch)
    q, _, _ = random_state(model, 1)
    along = lambda q: arc.jac(lambda e: mb.constraint_error(model, [c], mb.integrate(model, q, e)))
    np.testing.assert_allclose(along(q)(np.zeros(12)), equations_of(model, c).slope(q), atol=1e-12)
    q = mb.project_configuration(model, [c], q, steps=10)
    rows = mb.constraint_jacobian(model, [c], q)
    np.testing.assert_allclose(along(q)(np.zeros(12)), rows, atol=1e-12)


def test_a_screw_goes_on_for_many_turns():
    """A nut falls along a thread, a = -g / (1 + I / (m p^2)); it fell off after half a turn."""
    b = mb.Builder()
    b.add_body("nut", 1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("nut", joint="nut", kind="cylindrical", axis=[0, 0, 1])
    model, pitch = b.build(), 0.01
    thread = [mb.Closure("world", "nut", "helical", axis=(0, 0, 1), pitch=pitch)]
    rates = lambda t, x: mb.constrained_dynamics(model, thread, t, x)
    q = arc.solve_ode(rates, (0.0, 10.0), mb.rest_state(model)).x.q[-1]
    assert q[0] == pytest.approx(-0.5 * 9.81 / (1 + 0.1 / pitch**2) * 100, rel=1e-6)
    assert q[0] == pytest.approx(pitch * q[1], abs=1e-9)


def test_rows_of_light_bodies_count_as_those_of_heavy_ones():
    """A rotor of a gram on a hull of a ton: what holds it is not lost in the softening."""
    model = loose(masses=(1e3, 1e-3), sizes=(1.0, 1e-2))
    bearing = [mb.Closure("a", "b", "revolute"), mb.Closure("world", "a", "spherical")]
    q, v = mb.neutral(model), np.random.default_rng(0).normal(size=12)
    v = mb.project_velocity(model, bearing, q, v)
    assert np.abs(mb.constraint_jacobian(model, bearing, q) @ v).max() < 1e-12
    tau = np.concatenate([np.zeros(3), [300.0, 0.0, 0.0], np.zeros(6)])
    a, _ = mb.constrained_acceleration(model, bearing, q, 0.0 * v, tau)
    assert a[9] == pytest.approx(300.0 / (1e3 + 1e-7), rel=1e-9)


def test_loops_take_actuators_with_states():
    b = mb.Builder()
    for name in "ab":
        b.add_body(name, 1.0, inertia=[0.1, 0.1, 0.1])
        b.attach(name, joint=name, axis=[0, 0, 1])
    model, gear = b.build(), [mb.Coupling({"a": 1.0, "b": -2.0})]
    motor = [mb.Lagged(mb.Motor("a"), time_constant=0.5)]
    x = mb.driven_state(model, motor, activations=np.array([1.0]))
    rates = mb.constrained_dynamics(model, gear, 0.0, x, np.array([3.0]), actuators=motor)
    # One coordinate b, a = 2 b: (4 + 1) 0.1 b'' = 2 tau
    assert rates.v == pytest.approx([8.0, 4.0]) and rates.activations == pytest.approx([4.0])


def test_what_has_no_effect_is_refused():
    b = mb.Builder()
    b.add_body("a", 1.0, inertia=[1, 1, 1])
    b.add_frame("tool", "a")
    model = b.build(base="floating")
    with pytest.raises(ValueError, match="'a' and 'tool': they are on one body"):
        mb.constraint_jacobian(model, [mb.Closure("a", "tool")], mb.neutral(model))
    with pytest.raises(TypeError, match="closures must be a list of Closure and Coupling, got"):
        mb.constraint_error(model, ["loop"], mb.neutral(model))
    held = [mb.Closure("world", "a")]
    with pytest.raises(ValueError, match="frequency, in rad/s, must be finite"):
        mb.constrained_acceleration(
            model, held, mb.neutral(model), *np.zeros((2, 6)), frequency=np.inf
        )
    for values, message in (
        ({"second": "a"}, "Closure holds frame 'a' to itself"),
        ({"place": (1, 0, 0)}, "is where the world holds a frame"),
        ({"pitch": 0.1}, "Closure: only helical joints have a pitch"),
        ({"second_axis": (1, 0, 0)}, "Closure: only universal joints have a second_axis"),
    ):
        with pytest.raises(ValueError, match=message):
            mb.Closure(**{"first": "a", "second": "b", **values})
