"""Robots in simulations: energy, momentum, damping, springs; and as C."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .random_trees import random_state, random_tree


def double_pendulum(**values):
    b = mb.Builder("double pendulum")
    for name, parent, height in (("upper", "world", 0.0), ("lower", "upper", -1.0)):
        b.add_body(name, mass=1.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=[0, 0, height], **values)
    return b.build()


def energy(model, x):
    return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)


def test_energy_is_kept():
    model = double_pendulum()
    start = mb.rest_state(model, [2.0, 1.0])
    solution = arc.solve_ode(model.dynamics, (0.0, 5.0), start, rtol=1e-11, atol=1e-12)
    found = energy(model, solution.x)
    assert np.abs(found - found[0]).max() < 1e-7


@pytest.mark.long
def test_a_floating_robot_keeps_its_momentum():
    b = mb.Builder()
    b.add_body("hull", 3.0, [0.1, 0, 0], [0.2, 0.3, 0.4])
    b.add_body("arm", 1.0, [0, 0.2, 0], [0.02, 0.03, 0.04])
    b.attach("arm", "hull", joint="ball", kind="spherical", position=[0.3, 0, 0])
    model = b.build(base="floating", gravity=[0.0, 0.0, 0.0])
    q, v, _ = random_state(model, 1)
    solution = arc.solve_ode(
        model.dynamics, (0.0, 1.0), mb.State(q, v), rtol=1e-10, atol=1e-12, t_eval=[0, 0.5, 1]
    )
    h = mb.centroidal_momentum(model, solution.x.q, solution.x.v)
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), atol=1e-7)


def test_what_is_loaded_acts():
    """A mass on a spring with damping and armature, against its closed form."""
    b = mb.Builder()
    b.add_body("cart", mass=2.0, inertia=[1, 1, 1])
    b.attach(
        "cart", joint="rail", kind="prismatic", axis=[1, 0, 0], stiffness=50.0, damping=1.2,
        armature=0.5, rest=0.3,
    )  # fmt: skip
    model = b.build()
    m, c, k = 2.5, 1.2, 50.0
    solution = arc.solve_ode(
        model.dynamics, (0.0, 2.0), mb.rest_state(model), t_eval=np.linspace(0, 2, 9), rtol=1e-10
    )
    decay, turn = c / (2 * m), np.sqrt(k / m - (c / (2 * m)) ** 2)
    t = np.asarray(solution.t)
    form = np.exp(-decay * t) * (np.cos(turn * t) + decay / turn * np.sin(turn * t))
    np.testing.assert_allclose(solution.x.q[:, 0], 0.3 * (1.0 - form), atol=1e-8)


def test_friction_holds():
    """A block on a rail stays below the friction, and moves beyond it."""
    b = mb.Builder()
    b.add_body("block", mass=2.0, inertia=[1, 1, 1])
    b.attach("block", joint="rail", kind="prismatic", axis=[1, 0, 0], friction=3.0)
    model = b.build()
    moved = []
    for push in (2.9, 4.0):
        solution = arc.solve_ode(
            lambda t, x, push=push: model.dynamics(t, x, np.array([push])), (0.0, 1.0),
            mb.rest_state(model), method="rodas5p",
        )  # fmt: skip
        moved.append(float(solution.x.q[-1, 0]))
    assert abs(moved[0]) < 0.003
    assert moved[1] == pytest.approx(0.5 * (4.0 - 3.0) / 2.0, rel=0.01)


def test_passive_torque_is_in_both_dynamics():
    model = random_tree(8, kinds=("revolute", "spherical", "planar", "free"), loaded=True)
    q, v, a = random_state(model, 2)
    own = mb.passive_torque(model, q, v)
    plain = mb.rnea(model, q, v, a)
    np.testing.assert_allclose(mb.rnea(model, q, v, a, passive=True), plain - own)
    np.testing.assert_allclose(mb.aba(model, q, v, plain - own, passive=True), a, atol=1e-9)
    rates = mb.dynamics(model, 0.0, mb.State(q, v), plain)
    np.testing.assert_allclose(rates.v, mb.aba(model, q, v, plain, passive=True))
    np.testing.assert_array_equal(rates.q, mb.coordinate_rates(model, q, v))


def test_tendons():
    """A spring and a damper along two joints, slack in between; and its derivatives."""
    b = mb.Builder()
    for name in ("a", "b"):
        b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach(name, joint=name, kind="prismatic", axis=[1, 0, 0])
    b.add_tendon("t", {"a": 1.0, "b": -2.0}, stiffness=30.0, damping=0.5, rest=[-0.1, 0.2])
    model = b.build()
    v = np.array([0.3, -0.4])
    for q, pull in (([0.0, 0.0], 0.0), ([1.0, 0.3], 0.2), ([0.0, 0.2], -0.3)):
        force = 30.0 * pull + 0.5 * (0.3 + 0.8)
        found = mb.passive_torque(model, np.array(q), v)
        np.testing.assert_allclose(found, [-force, 2.0 * force], atol=1e-12)
    q, tau = np.array([1.0, 0.3]), np.zeros(2)
    by_q, by_v, _ = mb.aba_derivatives(model, q, v, tau, passive=True)
    near = arc.jac(lambda q, v: mb.aba(model, q, v, tau, passive=True), argnums=(0, 1))(q, v)
    np.testing.assert_allclose(by_q, near[0], atol=1e-12)
    np.testing.assert_allclose(by_v, near[1], atol=1e-12)
    changed = arc.grad(
        lambda k: mb.passive_torque(
            model.replace(tendons=model.tendons.replace(stiffness=np.stack([k]))), q, v
        )[0]
    )
    assert changed(30.0) == pytest.approx(-0.2)


def test_what_goes_with_a_robot_is_merged_and_removed():
    def arm():
        b = mb.Builder("arm")
        for name, parent in (("upper", "world"), ("lower", "upper")):
            b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
            b.attach(name, parent, joint=name, axis=[0, 1, 0])
        b.add_shape("lower", "box", [1, 2, 3], "collision", position=[0, 0, 1])
        b.add_tendon("t", {"upper": 1.0, "lower": 1.0}, stiffness=1.0)
        b.actuators.append(mb.Motor("lower", gear=2.0))
        b.closures.append(mb.Coupling({"upper": 1.0, "lower": 1.0}))
        return b

    both = mb.Builder("both")
    for side in ("left_", "right_"):
        both.merge(arm(), prefix=side)
    model = both.build()
    assert [shape.body for shape in model.geometry] == ["left_lower", "right_lower"]
    assert model.tendons.names == ("left_t", "right_t")
    assert [a.joints for a in model.actuators] == [("left_lower",), ("right_lower",)]
    assert model.closures[1].arms == (("right_upper", 1.0), ("right_lower", 1.0))
    both.remove("left_lower")
    model = both.build()
    assert (len(model.geometry), model.tendons.names, len(model.actuators)) == (1, ("right_t",), 1)
    assert len(model.closures) == 1
    with pytest.raises(ValueError, match="there is no joint 'left_lower'"):
        both.add_tendon("u", {"left_lower": 1.0})


@pytest.mark.long
def test_energy_over_many_steps():
    model = double_pendulum()
    step = arc.discretize(model.dynamics, 1e-3, method="rk4")
    run = arc.compile(lambda x: arc.fori_loop(0, 100_000, lambda k, x: step(k * 1e-3, x), x))
    start = mb.rest_state(model, [0.8, 0.3])
    end = run(start)
    assert abs(energy(model, end) - energy(model, start)) < 1e-6


@pytest.mark.long
def test_energy_and_momentum_of_a_floating_tree_over_many_steps():
    """A hundred thousand steps of a robot with joints of many kinds, adrift without gravity."""
    b = mb.Builder("adrift")
    kinds = ("free", "revolute", "spherical", "universal", "cylindrical", "helical")
    for k, kind in enumerate(kinds):
        b.add_body(f"body{k}", 1.0 + 0.3 * k, [0.1, 0.05 * k, 0.02], [0.2, 0.25, 0.3])
        second = [0, 1, 0] if kind == "universal" else None
        b.attach(
            f"body{k}", f"body{k // 2}" if k else "world", joint=f"joint{k}", kind=kind,
            axis=[1, 0, 0], second_axis=second, pitch=0.1 * (kind == "helical"),
            position=[0.3, 0.1, 0.0],
        )  # fmt: skip
    model = b.build(gravity=np.zeros(3))
    step = arc.discretize(model.dynamics, 1e-3, method="rk4")
    run = arc.compile(lambda x: arc.fori_loop(0, 100_000, lambda k, x: step(k * 1e-3, x), x))
    q, v, _ = random_state(model, 3)
    start = mb.State(q, 0.3 * v)
    end = run(start)
    assert energy(model, end) == pytest.approx(energy(model, start), rel=1e-8)
    before, after = (mb.centroidal_momentum(model, x.q, x.v) for x in (start, end))
    np.testing.assert_allclose(after, before, atol=1e-8)


def test_what_is_no_model_or_state_is_named():
    b = mb.Builder("bob")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge")
    for wrong in (b, "arm.urdf", None, np.zeros(1)):
        kind = type(wrong).__name__
        for call in (mb.rnea, mb.aba):
            with pytest.raises(TypeError, match=rf"must be a Model, got {kind}; load"):
                call(wrong, np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(AttributeError, match=r"take the model that builder.build\(\) returns"):
        _ = b.nq
    with pytest.raises(AttributeError, match="'Builder' object has no attribute 'nonsense'"):
        _ = b.nonsense
    with pytest.raises(TypeError, match=r"x must be a State.*got tuple"):
        mb.dynamics(b.build(), 0.0, (np.zeros(1), np.zeros(1)))
    assert not hasattr(b, "links") and b.gravity == (0.0, 0.0, -9.81)
