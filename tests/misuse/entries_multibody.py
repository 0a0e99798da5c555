"""Robots: wrong sizes and names, parameters as arguments, traced axes, integers, lists."""

from __future__ import annotations

import functools

import numpy as np

from archimedes import multibody as mb
from archimedes.spatial import Transformation
from tests.misuse.catalogue import entry

same = functools.partial(entry, "multibody", rtol=1e-9)
refused = functools.partial(
    entry, "multibody", line=False, error=ValueError, eager_error=ValueError
)


def arm(**values):
    b = mb.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.add_body(name, mass=1.0, com=[0, 0, 0.2], inertia=[0.1, 0.1, 0.02])
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=[0, 0, 0.5], **values)
    return b.build()


ARM = arm()
Q = np.array([0.3, -0.7])


@same()
def coordinates_in_a_list(run):
    return run(lambda a, b: mb.gravity_torque(ARM, [a, b]))(0.3, -0.7)


@same()
def integers_for_coordinates(run):
    return run(lambda q: mb.crba(ARM, q))(np.array([0, 1]))


@same()
def a_model_that_is_changed_inside(run):
    return run(lambda m: mb.rnea(ARM.replace(masses=m * ARM.masses), Q, Q, Q))(2.0)


@same()
def gravity_as_an_argument(run):
    return run(lambda g: mb.gravity_torque(ARM.replace(gravity=g), Q))(np.array([0.0, 1.0, -9.0]))


@same()
def forces_by_name_with_traced_numbers(run):
    push = lambda f: mb.aba(ARM, Q, Q, Q, forces={"lower": np.stack([f, *[0.0 * f] * 5])})
    return run(push)(3.0)


@same()
def a_builder_filled_inside(run):
    def reach(length):
        b = mb.Builder()
        b.add_body("bob", mass=length, inertia=[0.1, 0.1, 0.1])
        b.attach("bob", joint="hinge", position=[0.0, 0.0, length])
        return mb.potential_energy(b.build(), [0.0])

    return run(reach)(0.5)


@same()
def quaternions_of_any_length(run):
    b = mb.Builder()
    b.add_body("ball", mass=1.0, com=[0.1, 0, 0], inertia=[0.1, 0.2, 0.25])
    ball = b.build(base="floating")
    q = np.array([0.0, 0.0, 0.0, 2.0, 0.4, -0.6, 0.2])
    return run(lambda q: mb.gravity_torque(ball, q))(q)


@refused(says=["q must have shape (2,)", "nq=2"])
def too_many_coordinates(run):
    return run(lambda q: mb.crba(ARM, q))(np.zeros(3))


@refused(says=["tau must have shape (2,)"])
def a_torque_too_few(run):
    return run(lambda tau: mb.aba(ARM, Q, Q, tau))(np.zeros(1))


@refused(says=["no frame 'lowr'", "did you mean 'lower'"])
def a_frame_misspelt(run):
    return run(lambda q: mb.frame_jacobian(ARM, q, "lowr"))(Q)


@refused(says=["axes='LOCAL' is not one of 'body', 'world', 'aligned'"])
def axes_of_another_library(run):
    return run(lambda q: mb.frame_jacobian(ARM, q, "lower", axes="LOCAL"))(Q)


@refused(says=["no body 'hand'"])
def a_force_on_no_body(run):
    return run(lambda q: mb.rnea(ARM, q, Q, Q, forces={"hand": np.zeros(6)}))(Q)


@refused(says=["forces['lower'] must have shape (6,)"])
def a_force_without_a_moment(run):
    return run(lambda q: mb.rnea(ARM, q, Q, Q, forces={"lower": np.zeros(3)}))(Q)


@entry("multibody", line=False, error=ValueError, says=["axis must be known", "rotation"])
def an_axis_as_an_argument(run):
    def turned(axis):
        b = mb.Builder()
        b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach("bob", joint="hinge", axis=axis)
        return mb.gravity_torque(b.build(), [0.3])

    return run(turned)(np.array([0.0, 0.0, 1.0]))


@entry(
    "multibody",
    line=False,
    error=TypeError,
    eager_error=TypeError,
    says=["target must be a Transformation"],
)
def a_matrix_for_a_target(run):
    return run(lambda T: mb.inverse_kinematics(ARM, "lower", T).q)(np.eye(4))


@refused(says=["q0 must have shape (2,) or (..., 2) for 'arm' (nq=2), got (3, 3)"])
def many_starts_of_another_arm(run):
    goal = Transformation.from_matrix(np.eye(4))
    return run(lambda q: mb.inverse_kinematics(ARM, "lower", goal, q).q)(np.zeros((3, 3)))


@refused(says=["Closure kind='hinge' is not one of"])
def a_cut_at_no_joint(run):
    closures = lambda: [mb.Closure("upper", "lower", "hinge")]
    return run(lambda q: mb.constraint_error(ARM, closures(), q))(Q)


def two_balls():
    b = mb.Builder()
    for name in "ab":
        b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
        b.attach(name, joint=name, kind="prismatic", axis=[1, 0, 0])
    return b.build()


BALLS = two_balls()


def push(v, **values):
    return mb.contact_step(BALLS, mb.State(np.array([0.0, 0.2]), v), 1e-3, **values).v


@same()
def balls_on_a_rail_that_cannot_slide_aside(run):
    pair = mb.Pair(mb.sphere("a", 0.1), mb.sphere("b", 0.1))
    return run(lambda v: push(v, pairs=[pair], restitution=1.0))(np.array([1.0, 0.0]))


@refused(says=["contacts need a ground", "pairs="])
def contacts_without_a_ground(run):
    return run(lambda v: push(v, contacts=[mb.sphere("a", 0.1)]))(np.ones(2))


@refused(says=["nothing that could touch"])
def contact_of_nothing(run):
    return run(push)(np.ones(2))


@refused(says=["both shapes are on frame 'a'"])
def a_pair_on_one_body(run):
    pairs = lambda: [mb.Pair(mb.sphere("a", 0.1), mb.sphere("a", 0.2))]
    return run(lambda v: push(v, pairs=pairs()))(np.ones(2))
