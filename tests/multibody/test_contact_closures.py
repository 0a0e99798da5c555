"""Closed loops in steps with contact: as the joints that they stand for, without drift."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .test_constraints import closed, four_bar, rocker_angle

STEP = 2e-3


def energy(model, x):
    return mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q)


def test_a_four_bar_turns_on_without_drift_or_loss():
    """Without gravity it keeps its energy for a turn, and its rocker its closed form."""
    model, closures = four_bar()
    model = model.replace(gravity=np.zeros(3))
    q = closed(model, closures, -0.8)
    start = mb.State(q, mb.project_velocity(model, closures, q, np.array([12.0, 0.0, 0.0])))

    @arc.compile
    def run(x):
        def one(x, _):
            x = mb.contact_step(model, x, STEP, closures=closures)
            error = np.max(np.abs(mb.constraint_error(model, closures, x.q)))
            return x, np.stack([error, mb.kinetic_energy(model, x.q, x.v)])

        return arc.scan(one, x, length=1500)

    end, (errors, energies) = (lambda x, y: (x, y.T))(*run(start))
    assert end.q[0] - q[0] > 2 * np.pi
    assert errors.max() < 1e-6  # third order of the step
    np.testing.assert_allclose(energies, mb.kinetic_energy(model, q, start.v), rtol=3e-3)
    assert np.cos(end.q[2]) == pytest.approx(np.cos(rocker_angle(end.q[0])), abs=1e-6)


def table(jointed):
    """Return a body on two legs: with joints, or with free bodies that closures hold there."""
    b = mb.Builder()
    b.add_body("top", mass=3.0, inertia=[0.1, 0.2, 0.2])
    b.attach("top", joint="top", kind="free")
    closures = []
    for name, x in (("left", -0.3), ("right", 0.3)):
        b.add_body(name, mass=1.0, com=[0, 0, -0.2], inertia=[0.02, 0.03, 0.01])
        b.add_frame(f"{name}_hip", "top", position=[x, 0, 0])
        if jointed:
            b.attach(name, "top", joint=name, axis=[0, 1, 0], position=[x, 0, 0])
        else:
            b.attach(name, joint=name, kind="free")
            closures.append(mb.Closure(f"{name}_hip", name, "revolute", axis=(0, 1, 0)))
    feet = [mb.sphere(name, 0.05, [0, 0, -0.4]) for name in ("left", "right")]
    return b.build(), closures, feet


@pytest.mark.parametrize("falls", [False, True])
def test_closures_are_the_joints_that_they_stand_for(falls):
    """A table that stands on spread legs, or lands on one: the same velocities in a step."""
    # Velocities of bodies that are apart are those of chords: what differs is of the step's order.
    ground, step, near = mb.Ground(friction=0.6), *((1e-6, 1e-5) if falls else (STEP, 1e-9))
    tree, _, feet = table(True)
    cut, closures, _ = table(False)
    spread, height = np.array([0.3, -0.3]), 0.05 + 0.4 * np.cos(0.3)
    q = np.concatenate([[0, 0, height, 1, 0, 0, 0], spread])
    v = np.zeros(8)
    if falls:
        q[7], v[2] = 0.8, -1.0
    poses = {name: mb.frame_pose(tree, q, name) for name in tree.body_names}
    twists = {name: mb.frame_twist(tree, q, v, name) for name in tree.body_names}
    attitudes = {name: X.r.inv().as_quat().array for name, X in poses.items()}
    loose = np.concatenate([np.r_[poses[name].t, attitudes[name]] for name in cut.body_names])
    apart = np.concatenate([twists[name] for name in cut.body_names])
    for values in ({}, {"restitution": 0.5}):
        one = mb.contact_step(tree, mb.State(q, v), step, feet, ground, **values)
        other = mb.contact_step(
            cut, mb.State(loose, apart), step, feet, ground, closures=closures, **values
        )
        for name in tree.body_names:
            np.testing.assert_allclose(
                mb.frame_twist(cut, other.q, other.v, name, "aligned"),
                mb.frame_twist(tree, one.q, one.v, name, "aligned"),
                atol=near,
            )


def gripper():
    """Return two round fingers that slide along x, coupled to close as far, and a box."""
    b = mb.Builder()
    for name in ("left", "right"):
        b.add_body(name, mass=0.2, inertia=[0.001] * 3)
        b.attach(name, joint=name, kind="prismatic", axis=[1, 0, 0])
    b.add_body("box", mass=0.5, inertia=[0.001] * 3)
    b.attach("box", joint="box", kind="free")
    load = mb.box("box", [0.06, 0.04, 0.04])
    pairs = [mb.Pair(mb.sphere(name, 0.01), load, friction=0.5) for name in ("left", "right")]
    return b.build(), [mb.Coupling({"left": 1.0, "right": 1.0})], pairs


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_gripper_with_one_motor_holds_what_friction_carries(share):
    """The motor of the left finger pushes with F, each finger with F/2: friction carries mu F."""
    model, coupling, pairs = gripper()
    x = mb.rest_state(model, np.array([-0.04, 0.04, 0, 0, 0, 1, 0, 0, 0]))
    force = share * 0.5 * 9.81 / 0.5
    u = np.concatenate([[force, 0.0], np.zeros(6)])
    seconds, step = 0.1, 5e-3

    @arc.compile
    def run(x):
        move = lambda k, x: mb.contact_step(model, x, step, u=u, pairs=pairs, closures=coupling)
        return arc.fori_loop(0, round(seconds / step), move, x)

    end = run(x)
    expected = (min(share, 1.0) - 1.0) * 9.81 * seconds
    assert end.v[4] == pytest.approx(expected, abs=1e-6)
    assert end.q[0] + end.q[1] == pytest.approx(0.0, abs=1e-12)
    assert end.q[0] == pytest.approx(-0.04, abs=1e-6)


def legged():
    """Return a hopper whose shin is driven by a rod: a loop in space, with redundant rows."""
    b = mb.Builder()
    b.add_body("trunk", mass=4.0, inertia=[0.1, 0.1, 0.1])
    b.attach("trunk", joint="trunk", kind="free")
    for name, parent, place, length in (
        ("thigh", "trunk", [0, 0, 0], 0.3), ("shin", "thigh", [0, 0, -0.3], 0.3),
        ("crank", "trunk", [0.1, 0, 0], 0.05), ("rod", "crank", [0.05, 0, 0], 0.3),
    ):  # fmt: skip
        com = [length / 2, 0, 0] if name == "crank" else [0, 0, -length / 2]
        b.add_body(name, mass=length, com=com, inertia=[0.002] * 3)
        limits = {"lower": -1.5, "upper": 1.5} if name == "thigh" else {"damping": 0.01}
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=place, **limits)
    b.add_frame("rod_end", "rod", position=[0, 0, -0.3])
    b.add_frame("lever", "shin", position=[0.15, 0, 0])
    feet = [
        mb.sphere("shin", 0.03, [0, 0, -0.3]),
        mb.sphere("trunk", 0.1),
        mb.sphere("thigh", 0.05),
    ]
    return b.build(), [mb.Closure("rod_end", "lever", "revolute", axis=(0, 1, 0))], feet


@pytest.mark.long_cases("0.0")
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_a_leg_with_a_rod_falls_and_gains_nothing(restitution):
    """Loop, ground, a stop and damping at once: energy never grows, the loop stays closed."""
    model, closures, feet = legged()
    q = mb.project_configuration(model, closures, mb.neutral(model), steps=8)
    q[2] = 0.7
    v = mb.project_velocity(model, closures, q, np.array([1.0, 0, 0, 0, 1.0, 0.5, 0.3, 0, 0, 0]))
    ground, step = mb.Ground(friction=0.7), 1e-3

    @arc.compile
    def run(x):
        def one(x, _):
            x = mb.contact_step(
                model, x, step, feet, ground, closures=closures, restitution=restitution
            )
            error = np.max(np.abs(mb.constraint_error(model, closures, x.q)))
            return x, np.stack([error, energy(model, x), x.q[7]])

        return arc.scan(one, x, length=1000)[1]

    errors, energies, thigh = run(mb.State(q, v)).T
    assert errors.max() < 2e-4
    assert np.diff(energies).max() < 1e-2 and energies.max() < energies[0] + 1e-2
    assert energies.min() < energies[0] - (1.0 if restitution == 0.0 else 0.1)
    assert np.abs(thigh).max() < 1.5 + 1e-3


@pytest.mark.long
def test_derivatives_with_loops():
    """Of a step of the leg on the ground, in velocity, torque and mass, against differences."""
    model, closures, feet = legged()
    q = mb.project_configuration(model, closures, mb.neutral(model), steps=8)
    q[2] = -mb.frame_pose(model, q, "shin").t[2] + q[2] + 0.33
    v = mb.project_velocity(model, closures, q, np.r_[0.5, 0, -0.5, 0, 0.3, 0, np.zeros(4)])
    ground = mb.Ground(friction=0.5)

    def step(p):
        u = np.concatenate([np.zeros(6), p[10:14]])
        x = mb.State(q, v + p[:10])
        x = mb.contact_step(model, x, STEP, feet, ground, u, closures=closures)
        return np.concatenate([x.v, mb.difference(model, q, x.q)])

    J, f, p = arc.jac(step)(np.zeros(14)), arc.compile(step), np.zeros(14)
    near = np.stack([(f(p + d) - f(p - d)) / 2e-6 for d in 1e-6 * np.eye(14)], axis=1)
    np.testing.assert_allclose(J, near, atol=1e-5)


def test_the_same_bits_with_loops():
    model, closures = four_bar()
    q = closed(model, closures, -0.8)

    def step(q, v):
        return mb.contact_step(model, mb.State(q, v), STEP, closures=closures).v

    v = mb.project_velocity(model, closures, q, np.array([1.0, 0, 0]))
    one = arc.compile(step, backend="llvm")
    assert np.array_equal(arc.compile(step, backend="interpreter")(q, v), one(q, v))
    np.testing.assert_allclose(one(q, v), step(q, v), rtol=1e-12)
    many = np.stack([v, 2.0 * v, -v])
    assert np.array_equal(arc.vmap(step)(np.stack([q] * 3), many)[1], one(q, many[1]))


def test_refusals():
    model, closures = four_bar()
    x = mb.rest_state(model)
    with pytest.raises(TypeError, match="closures must be a list of Closure and Coupling, got"):
        mb.contact_step(model, x, STEP, closures=closures[0])
    with pytest.raises(ValueError, match="there is nothing that could touch"):
        mb.contact_step(model, x, STEP, closures=[])
