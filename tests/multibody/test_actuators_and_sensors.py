"""Motors, servos, inertial units, forces in joints."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .random_trees import random_state, random_tree


def arm():
    b = mb.Builder("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.add_body(name, mass=1.0, com=[0, 0, -0.2], inertia=[0.1, 0.1, 0.02])
        b.attach(name, parent, joint=name, axis=[0, 1, 0], position=[0, 0, -0.5])
    return b.build()


def test_a_motor_follows_its_line():
    model = arm()
    motor = mb.Motor("lower", gear=20.0, stall_torque=0.4, no_load_speed=300.0)
    for speed, command, expected in (
        (0.0, 0.1, 2.0),  # as commanded
        (0.0, 9.0, 8.0),  # stalled
        (7.5, 9.0, 4.0),  # half the speed without load
        (15.0, 9.0, 0.0),  # no torque left
        (20.0, 9.0, -8.0 / 3.0),  # turned faster than it can: it brakes
        (7.5, -9.0, -8.0),  # braking: full torque
        (-7.5, -9.0, -4.0),
    ):
        v = np.array([0.0, speed])
        found = mb.actuator_torque(model, [motor], np.zeros(2), v, np.array([command]))
        np.testing.assert_allclose(found, [0.0, expected], atol=1e-12)


def test_a_servo_holds_its_place():
    model = arm()
    servos = [mb.Servo(name, stiffness=400.0, damping=30.0) for name in ("upper", "lower")]
    goal = np.array([0.6, -0.4])

    def rates(t, x):
        return mb.dynamics(model, t, x, mb.actuator_torque(model, servos, x.q, x.v, goal))

    end = arc.solve_ode(rates, (0.0, 2.0), mb.rest_state(model), t_eval=[0.0, 2.0]).x.q[-1]
    # what is left is what the weight bends the springs by
    np.testing.assert_allclose(end, goal - mb.gravity_torque(model, end) / 400.0, atol=1e-5)
    strong = mb.Servo("upper", stiffness=400.0, effort_limit=5.0)
    found = mb.actuator_torque(model, [strong], np.zeros(2), np.zeros(2), np.array([1.0]))
    np.testing.assert_array_equal(found, [5.0, 0.0])


def test_a_lag_follows_its_closed_form():
    """A motor behind a lag on a rotor alone: exponentials; states of any solver."""
    b = mb.Builder()
    b.add_body("wheel", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("wheel", joint="axle")
    model, T, tau = b.build(), 0.05, 0.2
    motors = [mb.Servo("axle", stiffness=0.0), mb.Lagged(mb.Motor("axle"), time_constant=T)]
    x0 = mb.driven_state(model, motors)
    u = np.array([9.0, tau])
    t = np.linspace(0.0, 0.3, 7)
    found = arc.solve_ode(
        lambda t, x: mb.dynamics(model, t, x, u, actuators=motors),
        (0.0, 0.3), x0, t_eval=t, rtol=1e-10, atol=1e-12,
    ).x  # fmt: skip
    a = tau * (1.0 - np.exp(-t / T))
    np.testing.assert_allclose(found.activations[:, 0], a, atol=1e-8)
    np.testing.assert_allclose(found.v[:, 0], (tau * t - T * a) / 0.1, atol=1e-8)
    renamed = motors[1].renamed("left_")
    assert renamed.joints == ("left_axle",) and renamed.gear == 1.0
    assert mb.with_rotors(model, [mb.Lagged(mb.Motor("axle", gear=2.0, rotor_inertia=0.5))]
                          ).armature == 2.0  # fmt: skip


def test_states_without_activations_are_refused():
    model = arm()
    motors = [mb.Lagged(mb.Motor("upper"), 0.1), mb.Motor("lower")]
    with pytest.raises(ValueError, match=r"x must be a driven_state.*got State"):
        mb.dynamics(model, 0.0, mb.rest_state(model), np.zeros(2), actuators=motors)
    with pytest.raises(ValueError, match=r"activations, one per .* must have shape \(1,\)"):
        mb.driven_state(model, motors, activations=np.zeros(2))
    with pytest.raises(ValueError, match=r"u, one command per actuator, must have shape \(2,\)"):
        mb.dynamics(model, 0.0, mb.driven_state(model, motors), np.zeros(3), actuators=motors)


def test_driven_states_in_batches_and_lists():
    b = mb.Builder()
    b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge")
    bob, lag = b.build(), mb.Lagged(mb.Motor("hinge"), time_constant=0.1)
    actuators = [lag, mb.Motor("hinge")]
    x = mb.driven_state(bob, actuators, np.zeros((5, 1)), [0.2])
    rates = mb.dynamics(bob, 0.0, x, np.array([1.0, 0.3]), actuators=actuators)
    np.testing.assert_allclose(rates.activations, np.full((5, 1), 8.0))
    np.testing.assert_allclose(rates.v, np.full((5, 1), 5.0))
    nothing = mb.dynamics(bob, 0.0, mb.rest_state(bob), np.zeros(0), actuators=[])
    assert nothing.v == pytest.approx(0.0)
    for call in (mb.dynamics, mb.Model.dynamics):
        with pytest.raises(TypeError, match="actuators must be a list, got Motor"):
            call(bob, 0.0, mb.rest_state(bob), np.zeros(1), actuators=mb.Motor("hinge"))
    with pytest.raises(ValueError, match="Motor of 'hinge': no_load_speed must be positive"):
        mb.Motor("hinge", stall_torque=1.0, no_load_speed=0.0)


def test_rotors_count_by_the_square_of_the_gear():
    model = arm()
    motor = mb.Motor("upper", gear=50.0, rotor_inertia=2e-5)
    M, heavier = (mb.crba(x, np.zeros(2)) for x in (model, mb.with_rotors(model, [motor])))
    np.testing.assert_allclose(heavier - M, np.diag([0.05, 0.0]), atol=1e-15)
    winch = mb.Drive(("lower",), [-3.0], gear=2.0, rotor_inertia=0.1)  # turns -6 times as fast
    lagged = mb.with_rotors(model, [mb.Lagged(winch, time_constant=0.1)])
    assert lagged.armature == pytest.approx([0.0, 3.6])
    both = mb.Drive(("upper", "lower"), [1.0, 2.0])
    assert mb.with_rotors(model, [both]) == model
    with pytest.raises(ValueError, match="rotor of an actuator of 'upper', 'lower' couples these"):
        mb.with_rotors(model, [both.replace(rotor_inertia=0.1)])


def test_an_encoder_counts():
    model = arm()
    q = np.array([0.1234, -0.1234])
    assert mb.encoder(model, q, "lower") == -0.1234
    assert mb.encoder(model, q, "lower", counts=100.0) == pytest.approx(-0.13)
    assert mb.encoder(model, q, "upper", counts=100.0, zero=0.1) == pytest.approx(0.02)
    ball = random_tree(1, kinds=("spherical",))
    with pytest.raises(ValueError, match="joint 'joint0' has 3 velocities; an encoder reads one"):
        mb.encoder(ball, mb.neutral(ball), "joint0")


def test_an_inertial_unit():
    """Free fall is felt as nothing; on a turning arm there is the centrifugal acceleration."""
    b = mb.Builder()
    b.add_body("ball", mass=1.0, com=[0, 0, 0], inertia=[0.1, 0.1, 0.1])
    ball = b.build(base="floating")
    q, v, _ = random_state(ball, 0)
    v[3:] = 0.0
    felt, rate = mb.imu(ball, q, v, mb.aba(ball, q, v, np.zeros(6)), "ball")
    np.testing.assert_allclose(felt, 0.0, atol=1e-12)
    np.testing.assert_allclose(rate, 0.0, atol=1e-12)
    b = mb.Builder()
    b.add_body("rod", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("rod", joint="axle", axis=[0, 0, 1])
    b.add_frame("unit", "rod", position=[0.5, 0, 0])
    felt, rate = mb.imu(b.build(), [0.3], [4.0], [2.0], "unit")
    np.testing.assert_allclose(felt, [-0.5 * 16.0, 0.5 * 2.0, 9.81], atol=1e-12)
    np.testing.assert_allclose(rate, [0, 0, 4.0])


def test_forces_in_joints_give_the_torques():
    model = random_tree(6, kinds=("revolute", "prismatic", "revolute", "spherical"), armature=False)
    q, v, a = random_state(model, 1)
    torques = mb.rnea(model, q, v, a)
    for link in model.links:
        wrench = mb.joint_wrench(model, q, v, a, link.joint)
        own = [c.array @ wrench for c in link.kind.columns(link.screw, [])]
        np.testing.assert_allclose(own, torques[model.v_slice(link.joint)], atol=1e-11)


def test_refusals():
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("ball", joint="socket", kind="spherical")
    model = b.build()
    with pytest.raises(ValueError, match="joint 'socket' has 3 velocities; an actuator drives one"):
        mb.actuator_torque(model, [mb.Motor("socket")], mb.neutral(model), np.zeros(3), [1.0])
    with pytest.raises(ValueError, match=r"u, one command per actuator, must have shape \(1,\)"):
        mb.actuator_torque(arm(), [mb.Motor("upper")], np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="no joint 'elbow'"):
        mb.joint_wrench(arm(), *np.zeros((3, 2)), "elbow")


def test_what_actuators_give_a_tendon_together_has_limits():
    """Two motors of 3 N each on one tendon give it 4 N at most, and -1 N at least."""
    b = mb.Builder()
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", axis=[0, 1, 0])
    b.add_tendon("wire", {"hinge": 0.5}, effort_lower=-1.0, effort_upper=4.0)
    model = b.build()
    motors = [mb.Motor("wire"), mb.Motor("wire")]
    given = [
        mb.actuator_torque(model, motors, np.zeros(1), np.zeros(1), np.array(u))[0]
        for u in ([1.0, 2.0], [3.0, 3.0], [-3.0, 0.0], [5.0, -4.0])
    ]
    assert given == pytest.approx([1.5, 2.0, -0.5, 0.5])
    with pytest.raises(ValueError, match="tendon 'other'"):
        b.add_tendon("other", {"hinge": 1.0}, effort_lower=2.0, effort_upper=1.0)
