"""Closed loops and held points: against closed forms, without drift, energy kept."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .random_trees import random_state, random_tree


def four_bar(lengths=(1.0, 0.4, 1.2, 0.8)):
    """Ground, crank, coupler and rocker of these lengths, cut between coupler and rocker."""
    ground, crank, coupler, rocker = lengths
    b = mb.Builder("four-bar")
    for name, parent, x, length in (
        ("crank", "world", 0.0, crank), ("coupler", "crank", crank, coupler),
        ("rocker", "world", ground, rocker),
    ):  # fmt: skip
        b.add_body(name, mass=length, com=[length / 2, 0, 0], inertia=[0.01, 0.1, 0.1])
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=[x, 0, 0])
        b.add_frame(f"{name}_end", name, position=[length, 0, 0])
    return b.build(), [mb.Closure("coupler_end", "rocker_end", "revolute", axis=(0, 1, 0))]


def rocker_angle(crank, lengths=(1.0, 0.4, 1.2, 0.8)):
    """Return the angle of the rocker for that of the crank: two circles cut (closed form)."""
    ground, a, b, c = lengths
    # The angles are about +y: x = cos, z = -sin.
    x, z = a * np.cos(crank) - ground, -a * np.sin(crank)
    d = np.hypot(x, z)
    inner = np.arccos((c * c + d * d - b * b) / (2 * c * d))
    return -(np.arctan2(z, x) - inner)


def closed(model, closures, crank):
    guess = np.array([crank, -1.0, rocker_angle(crank)])
    return mb.project_configuration(model, closures, guess, steps=12)


def test_four_bar_against_its_closed_form():
    model, closures = four_bar()
    for crank in (-0.4, -0.8, -1.3):
        q = closed(model, closures, crank)
        assert np.abs(mb.constraint_error(model, closures, q)).max() < 1e-12
        assert np.cos(q[2]) == pytest.approx(np.cos(rocker_angle(q[0])), abs=1e-9)
        # a speed of the crank fixes the others: d(rocker)/d(crank) by differences of the form
        v = mb.project_velocity(model, closures, q, np.array([1.0, 0.0, 0.0]))
        step = 1e-6
        ratio = (rocker_angle(q[0] + step) - rocker_angle(q[0] - step)) / (2 * step)
        assert v[2] / v[0] == pytest.approx(ratio, rel=1e-6)


def test_rates_are_those_of_the_constraint():
    """J is the rate of the error where it holds, and accelerations keep J v = 0."""
    model, closures = four_bar()
    q = closed(model, closures, -0.8)
    v = mb.project_velocity(model, closures, q, np.array([2.0, 0.3, -1.0]))
    assert np.abs(mb.constraint_jacobian(model, closures, q) @ v).max() < 1e-12
    a, f = mb.constrained_acceleration(model, closures, q, v, np.zeros(3))
    step = 1e-5
    errors = [
        mb.constraint_error(model, closures, mb.integrate(model, q, k * v + 0.5 * k * k * a))
        for k in (-step, step)
    ]
    # zero, zero rate, zero second rate: what is left is of the third order of the step
    assert np.abs(errors).max() < 1e-12
    J = mb.constraint_jacobian(model, closures, q)
    np.testing.assert_allclose(mb.rnea(model, q, v, a), J.T @ f, atol=1e-9)


def test_a_tree_cut_open_is_the_tree():
    """A joint replaced by a closure between free bodies: the same accelerations."""
    rng = np.random.default_rng(0)
    for kind in (
        "revolute", "prismatic", "helical", "cylindrical", "spherical", "planar", "fixed",
        "universal",
    ):  # fmt: skip
        b = mb.Builder()
        for name in "ab":
            b.add_body(name, 1.0, rng.normal(size=3) * 0.1, [0.1, 0.2, 0.25])
        axis = (0.0, 0.6, 0.8)
        b.attach("a", joint="a", kind="free")
        b.add_frame("hook", "a", position=[0.2, 0.1, 0])
        cut = mb.Builder()
        cut.merge(b)
        cut.remove("b")
        cut.add_body("b", 1.0, b.bodies["b"].com, b.bodies["b"].inertia)
        cut.attach("b", joint="b", kind="free")
        # Crossed at another angle than a right one, too.
        more = {"second_axis": (1.0, 0.3, 0.0)} if kind == "universal" else {}
        more |= {"pitch": 0.3} if kind == "helical" else {}
        b.attach("b", "a", joint="b", kind=kind, axis=axis, position=[0.2, 0.1, 0], **more)
        tree, loop = b.build(), cut.build()
        q, v, _ = random_state(tree, 1)
        place = mb.frame_pose(tree, q, "b")
        attitude = arc.spatial.RotationMatrix(place.r.as_matrix().T).as_quat().array
        q_loop = np.concatenate([q[:7], place.t, attitude])
        v_loop = np.concatenate([v[:6], mb.frame_twist(tree, q, v, "b")])
        closure = [mb.Closure("hook", "b", kind, axis=axis, **more)]
        assert np.abs(mb.constraint_error(loop, closure, q_loop)).max() < 1e-12, kind
        a = mb.aba(tree, q, v, np.zeros(tree.nv))
        found, _ = mb.constrained_acceleration(loop, closure, q_loop, v_loop, np.zeros(12))
        np.testing.assert_allclose(found[:6], a[:6], atol=1e-8, err_msg=kind)
        expected = mb.frame_acceleration(tree, q, v, a, "b")
        np.testing.assert_allclose(found[6:], expected, atol=1e-8, err_msg=kind)


def test_universal_cuts_are_projected_and_have_exact_slopes():
    b = mb.Builder()
    for name in "ab":
        b.add_body(name, 1.0, [0.1, 0.0, 0.05], [0.1, 0.2, 0.25])
        b.attach(name, joint=name, kind="free")
    model = b.build()
    joint = [mb.Closure("a", "b", "universal", axis=(1, 0, 0), second_axis=(0, 1, 0))]
    q, v, _ = random_state(model, 3)
    along = lambda e: mb.constraint_error(model, joint, mb.integrate(model, q, e))
    J = mb.constraint_jacobian(model, joint, q)
    np.testing.assert_allclose(arc.jac(along)(np.zeros(12)), J, atol=1e-12)
    # Second rates: of the error along the free motion at zero accelerations, by differences.
    a, _ = mb.constrained_acceleration(model, joint, q, v, np.zeros(12))
    error = lambda t: along(t * v + 0.5 * t * t * a)
    second = arc.jac(arc.jac(error))(0.0)
    scale = np.abs(arc.jac(arc.jac(lambda t: along(t * v)))(0.0)).max()
    assert np.abs(second).max() < 1e-9 * scale
    near = mb.project_configuration(model, joint, mb.integrate(model, q, 0.0 * v), steps=8)
    assert np.abs(mb.constraint_error(model, joint, near)).max() < 1e-12


def run_four_bar(seconds, step=5e-3):
    model, closures = four_bar()
    q = closed(model, closures, -0.8)
    rates = lambda t, x: mb.constrained_dynamics(model, closures, t, x, frequency=0.0)
    move = arc.discretize(rates, step, method="rk4")

    def one(k, x):
        x = move(k * step, x)
        q = mb.project_configuration(model, closures, x.q, steps=1)
        return mb.State(q, mb.project_velocity(model, closures, q, x.v))

    run = arc.compile(lambda x: arc.fori_loop(0, round(seconds / step), one, x))
    start = mb.rest_state(model, q)
    end = run(start)
    energy = [
        mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q) for x in (start, end)
    ]
    return np.abs(mb.constraint_error(model, closures, end.q)).max(), energy[1] - energy[0]


def test_no_drift():
    drift, energy = run_four_bar(2.0)
    assert drift < 1e-12
    assert abs(energy) < 1e-5


@pytest.mark.long
def test_no_drift_in_a_hundred_seconds():
    drift, _ = run_four_bar(100.0)
    assert drift < 1e-10


def test_four_bar_moves_as_its_one_coordinate_says():
    """Its acceleration by the one-coordinate equation of motion: (Q - I' w^2 / 2) / I."""
    model, closures = four_bar()
    lengths = (1.0, 0.4, 1.2, 0.8)

    def angles(crank):
        # coupler: relative to the crank; both angles are about +y
        rocker = rocker_angle(crank, lengths)
        end = np.stack([1.0 + 0.8 * np.cos(rocker), -0.8 * np.sin(rocker)])
        start = np.stack([0.4 * np.cos(crank), -0.4 * np.sin(crank)])
        along = np.arctan2(-(end[1] - start[1]), end[0] - start[0])
        return np.stack([crank, along - crank, rocker])

    def inertia(crank):
        ratio = arc.jac(angles)(crank)
        return ratio @ mb.crba(model, angles(crank)) @ ratio

    def potential(crank):
        return mb.potential_energy(model, angles(crank))

    for crank in (-0.5, -1.0):
        q = angles(crank)
        np.testing.assert_allclose(mb.constraint_error(model, closures, q), 0.0, atol=1e-12)
        speed, torque = 1.7, 0.6
        v = speed * arc.jac(angles)(crank)
        tau = np.array([torque, 0.0, 0.0])
        a, _ = mb.constrained_acceleration(model, closures, q, v, tau)
        pull = torque - arc.grad(potential)(crank) - 0.5 * arc.grad(inertia)(crank) * speed**2
        assert a[0] == pytest.approx(pull / inertia(crank), rel=1e-9)


def test_a_gear_between_two_wheels():
    """Coupled wheels: one inertia, and the torque in the gear."""
    b = mb.Builder()
    for name, inertia in (("motor", 0.1), ("wheel", 2.0)):
        b.add_body(name, mass=1.0, inertia=[inertia] * 3)
        b.attach(name, joint=name, axis=[0, 0, 1])
    model, gear = b.build(), [mb.Coupling({"motor": 1.0, "wheel": -5.0}, offset=0.2)]
    q = mb.project_configuration(model, gear, np.array([0.3, 0.1]))
    assert q[0] - 5.0 * q[1] == pytest.approx(0.2, abs=1e-14)
    a, f = mb.constrained_acceleration(model, gear, q, np.array([5.0, 1.0]), np.array([1.0, 0.0]))
    assert a[0] == pytest.approx(1.0 / (0.1 + 2.0 / 25.0))
    assert a[1] == pytest.approx(a[0] / 5.0)
    assert f[0] == pytest.approx(0.1 * a[0] - 1.0)
    after = mb.project_velocity(model, gear, q, np.array([1.0, 0.0]))
    assert after[0] == pytest.approx(5.0 * after[1])
    assert after[0] * 0.1 + after[1] * 2.0 / 5.0 == pytest.approx(0.1)  # momentum along the gear
    with pytest.raises(ValueError, match="Coupling arms must be joints with finite arms"):
        mb.Coupling({"motor": 0.0})
    with pytest.raises(ValueError, match="no joint 'axle'"):
        mb.constraint_error(model, [mb.Coupling({"axle": 1.0})], q)


# Feet and corners in pairs, turned by 60 degrees: two similar hexagons would be singular.
FEET, CORNERS = np.deg2rad([[-10, 10, 110, 130, 230, 250], [-50, 50, 70, 170, 190, 290]])
BELOW = np.stack([np.cos(FEET), np.sin(FEET), 0 * FEET], axis=1)
ABOVE = 0.6 * np.stack([np.cos(CORNERS), np.sin(CORNERS), 0 * CORNERS], axis=1)


def stewart():
    """A plate on six legs: a ball joint below, a slide, a ball joint above, which is cut."""
    b = mb.Builder("stewart")
    b.add_body("plate", 2.0, inertia=[0.1, 0.1, 0.2])
    b.attach("plate", joint="plate", kind="free")
    closures = []
    for k in range(6):
        b.add_body(f"foot{k}", 0.1, [0, 0, 0.3], inertia=[0.01, 0.01, 0.01])
        b.attach(f"foot{k}", joint=f"ball{k}", kind="spherical", position=BELOW[k])
        b.add_body(f"rod{k}", 0.1, [0, 0, -0.2], inertia=[0.01, 0.01, 0.01])
        b.attach(f"rod{k}", f"foot{k}", joint=f"leg{k}", kind="prismatic", axis=[0, 0, 1])
        b.add_frame(f"corner{k}", "plate", position=ABOVE[k])
        closures.append(mb.Closure(f"rod{k}", f"corner{k}", "spherical"))
    return b.build(), closures


def test_stewart_platform_moves_and_carries_as_its_closed_form_says():
    """Rates of the legs for a twist of the plate, and the leg forces that hold its weight."""
    model, closures = stewart()
    q = mb.neutral(model)
    q[:7] = [0.05, -0.03, 1.0, 0.99, 0.05, -0.04, 0.1]
    q[3:7] /= np.linalg.norm(q[3:7])
    for k in range(6):
        q[model.q_slice(f"leg{k}")] = 1.0
    q = mb.project_configuration(model, closures, q, steps=12)
    plate = mb.frame_pose(model, q, "plate")
    R, p = plate.r.as_matrix(), plate.t
    arms = ABOVE @ R.T
    ways = p + arms - BELOW
    sizes = np.sqrt((ways**2).sum(axis=1))
    along = ways / sizes[:, None]
    # l' = along . (v + w x arm)
    rates = np.concatenate([along, np.cross(arms, along)], axis=1)
    rng = np.random.default_rng(0)
    v = mb.project_velocity(model, closures, q, rng.normal(size=model.nv))
    twist = mb.frame_twist(model, q, v, "plate", "aligned")
    slides = np.array([v[model.v_slice(f"leg{k}")][0] for k in range(6)])
    legs = np.array([q[model.q_slice(f"leg{k}")][0] for k in range(6)])
    np.testing.assert_allclose(np.sign(legs) * slides, rates @ twist, atol=1e-10)

    # Virtual work: what the legs push is what lifts plate, feet and rods, whose centres are at 0.3
    # of the way from below and 0.2 from above along the legs.
    def height(move):
        turned = p + move[:3] + arms + np.cross(move[3:], arms)
        ways = turned - BELOW
        unit = ways / np.sqrt(np.sum(ways * ways, axis=1))[:, None]
        return 2.0 * (p[2] + move[2]) + np.sum(
            0.1 * 0.3 * unit[:, 2] + 0.1 * (turned - 0.2 * unit)[:, 2]
        )

    weight = 9.81 * arc.grad(height)(np.zeros(6))
    pushes = np.linalg.solve(rates.T, weight)
    tau = np.zeros(model.nv)
    for k in range(6):
        tau[model.v_slice(f"leg{k}")] = np.sign(legs[k]) * pushes[k]
    a, _ = mb.constrained_acceleration(model, closures, q, np.zeros(model.nv), tau)
    np.testing.assert_allclose(a, 0.0, atol=1e-7)


def test_stewart_platform_against_its_closed_form():
    """Six legs of given lengths: the platform's pose gives them back."""
    model, closures = stewart()
    q = mb.neutral(model)
    q[2] = 1.0
    for k in range(6):
        q[model.q_slice(f"leg{k}")] = 1.0
    q = mb.project_configuration(model, closures, q, steps=8)
    assert np.abs(mb.constraint_error(model, closures, q)).max() < 1e-12
    plate = mb.frame_pose(model, q, "plate")
    for k in range(6):
        length = np.linalg.norm(plate.apply(ABOVE[k]) - BELOW[k])
        assert abs(q[model.q_slice(f"leg{k}")][0]) == pytest.approx(length, abs=1e-12)


@pytest.mark.long
def test_no_drift_of_a_platform_in_a_hundred_seconds():
    """A plate on six springs, let go tilted: no closure opens along the way, and energy stays."""
    model, closures = stewart()
    q = mb.neutral(model)
    q[:7] = [0.05, -0.03, 1.0, 0.99, 0.05, -0.04, 0.1]
    q[3:7] /= np.linalg.norm(q[3:7])
    legs = [model.q_slice(f"leg{k}").start for k in range(6)]
    q[legs] = 1.0
    start = mb.rest_state(model, mb.project_configuration(model, closures, q, steps=12))
    onto = np.eye(model.nv)[[model.v_slice(f"leg{k}").start for k in range(6)]]
    stiff, long, step = 300.0, 1.05 * start.q[legs], 0.01

    def rates(t, x):
        pushes = stiff * (long - x.q[legs])
        return mb.constrained_dynamics(model, closures, t, x, u=pushes @ onto, frequency=0.0)

    def energy(x):
        springs = 0.5 * stiff * np.sum((x.q[legs] - long) ** 2)
        return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q) + springs

    move = arc.discretize(rates, step, method="rk4")

    def one(k, state):
        x, worst, moved = state
        x = move(k * step, x)
        q = mb.project_configuration(model, closures, x.q, steps=1)
        x = mb.State(q, mb.project_velocity(model, closures, q, x.v))
        error = np.max(np.abs(mb.constraint_error(model, closures, x.q)))
        return x, np.maximum(worst, error), np.maximum(moved, np.max(np.abs(x.v[:6])))

    run = arc.compile(lambda x: arc.fori_loop(0, round(100.0 / step), one, (x, 0.0, 0.0)))
    end, worst, moved = run(start)
    assert worst < 1e-10 and moved > 0.1
    assert abs(energy(end) - energy(start)) < 1e-3 * energy(start)


def test_energy_of_an_impulse_never_grows():
    model = random_tree(3, kinds=("revolute", "spherical", "free", "prismatic"))
    q, v, _ = random_state(model, 0)
    pose = mb.frame_pose(model, q, "body1")
    stop = [mb.Closure("world", "body1", "spherical", place=tuple(pose.t))]
    after = mb.project_velocity(model, stop, q, v)
    assert mb.kinetic_energy(model, q, after) <= mb.kinetic_energy(model, q, v)
    assert np.abs(mb.frame_twist(model, q, after, "body1")[:3]).max() < 1e-10


def test_refusals():
    with pytest.raises(ValueError, match="Closure kind='ball' is not one of"):
        mb.Closure("a", "b", "ball")
    with pytest.raises(ValueError, match="a universal joint needs a second_axis"):
        mb.Closure("a", "b", "universal")
    with pytest.raises(ValueError, match="must not be along axis"):
        mb.Closure("a", "b", "universal", second_axis=(0.0, 0.0, 2.0))
    model, closures = four_bar()
    with pytest.raises(ValueError, match=r"q must have shape \(3,\) here; use arc.vmap"):
        mb.project_velocity(model, closures, np.zeros((2, 3)), np.zeros(3))
