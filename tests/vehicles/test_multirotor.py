"""A multirotor hovers, follows a figure-eight in wind, and survives the loss of a motor."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import ConstantWind
from archimedes.spatial import Quaternion
from archimedes.vehicles import FlatEarth, FlightState, GeometricController, Multirotor, ring
from archimedes.vehicles.parts import GroundContact, Rotors
from tests.environment.backends import check_everywhere

START = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
CONTROL = GeometricController()


def figure_eight(t, w=0.6):
    p = np.stack([8 * np.sin(w * t), 4 * np.sin(2 * w * t), -10.0 + 0.0 * t])
    v = np.stack([8 * w * np.cos(w * t), 8 * w * np.cos(2 * w * t), 0.0 * t])
    a = np.stack([-8 * w**2 * np.sin(w * t), -16 * w**2 * np.sin(2 * w * t), 0.0 * t])
    return p, v, a


def test_hover_is_a_rest():
    """At the density the rotors were measured in, hover speeds carry the weight exactly."""
    drone = Multirotor(world=FlatEarth())
    start = arc.tree.replace(START, alt=0.0)
    x = drone.state(start)
    rates = drone.dynamics(0.0, x, Multirotor.Input(drone.hover_speeds()))
    np.testing.assert_allclose(rates.motion.v_B, 0.0, atol=1e-5)
    np.testing.assert_allclose(rates.motion.w_B, 0.0, atol=1e-12)
    assert drone.outputs(0.0, x).thrust == pytest.approx(drone.mass * 9.80665, rel=1e-9)


def test_figure_eight_in_wind():
    drone = Multirotor(world=FlatEarth(wind=ConstantWind(np.array([3.0, 2.0, 0.0]))))

    def closed(t, x):
        return drone.dynamics(t, x, CONTROL.command(drone, x, *figure_eight(t), 0.0 * t))

    times = np.linspace(0.0, 25.0, 126)
    run = arc.solve_ode(closed, (0.0, 25.0), drone.state(START), t_eval=times, rtol=1e-7, atol=1e-8)
    assert run.success
    wanted = figure_eight(times)[0].T
    assert np.linalg.norm(run.x.motion.pos - wanted, axis=1)[50:].max() < 0.25


def test_upside_down_recovers():
    """No angles, no lock: from flat on its back the attitude returns."""
    drone = Multirotor()
    x0 = drone.state(arc.tree.replace(START, alt=50.0, rpy=np.array([3.0, 0.1, 0.3])))
    goal = np.array([0.0, 0.0, -50.0])

    def closed(t, x):
        u = CONTROL.command(drone, x, goal, np.zeros(3), np.zeros(3), 0.0 * t)
        return drone.dynamics(t, x, u)

    run = arc.solve_ode(closed, (0.0, 15.0), x0, t_eval=np.array([15.0]))
    np.testing.assert_allclose(run.x.motion.pos[0], goal, atol=0.3)


@pytest.mark.parametrize("dead", [0, 3])
def test_motor_out(dead):
    """An octorotor holds its place without one motor, its work shared by the others."""
    octo = Multirotor(rotors=ring(8, 0.3, inertia=6e-5))
    working = np.ones(8)
    working[dead] = 0.0

    def closed(t, x, working):
        goal = np.array([0.0, 0.0, -10.0])
        u = CONTROL.command(octo, x, goal, np.zeros(3), np.zeros(3), 0.0 * t, working)
        return octo.dynamics(t, x, Multirotor.Input(u.speeds * working))

    run = arc.solve_ode(closed, (0.0, 10.0), octo.state(START), args=(working,))
    assert run.success
    assert np.abs(run.x.motion.pos - [0.0, 0.0, -10.0]).max() < 0.05
    assert run.x.speeds[-1, dead] < 1e-6


def test_gyroscopic_and_reaction_moments_balance_momentum():
    """Far from everything, body and rotors keep their total angular momentum."""
    rotors = ring(4, 0.2, thrust=1e-30, torque=1e-30, inertia=1e-3, time_constant=0.3)
    frame = Multirotor(rotors=rotors, drag=np.zeros(3))
    x0 = frame.state(arc.tree.replace(START, w_B=np.array([0.3, -0.2, 0.5])), np.full(4, 100.0))
    u = Multirotor.Input(np.array([400.0, 0.0, 300.0, 50.0]))
    run = arc.solve_ode(frame.dynamics, (0.0, 2.0), x0, args=(u,), rtol=1e-10, atol=1e-12)

    def momentum(k):
        q = Quaternion(run.x.motion.att.array[k])
        spin = np.sum(1e-3 * rotors.spins * run.x.speeds[k])
        return q.rotate(frame.inertia @ run.x.motion.w_B[k] - [0, 0, spin], inverse=True)

    end = len(run.t) - 1
    np.testing.assert_allclose(momentum(end), momentum(0), atol=1e-9)


def test_feet_carry_it_on_the_ground():
    feet = 0.2 * np.array([[1, 1, 0.5], [1, -1, 0.5], [-1, 1, 0.5], [-1, -1, 0.5]])
    drone = Multirotor(ground=GroundContact(feet, stiffness=2e3, damping=60.0))
    x0 = drone.state(arc.tree.replace(START, alt=0.3, v_NED=np.array([0.5, 0, 0])), np.zeros(4))
    u = Multirotor.Input(np.zeros(4))
    run = arc.solve_ode(drone.dynamics, (0.0, 4.0), x0, args=(u,), t_eval=np.array([3.0, 4.0]))
    sunk = drone.mass * 9.80665 / (4 * 2e3)
    np.testing.assert_allclose(-run.x.motion.pos[:, 2], 0.1 - sunk, atol=1e-4)
    assert np.abs(run.x.motion.pos[1] - run.x.motion.pos[0]).max() < 1e-2


def test_allocation_gives_what_was_asked_for():
    rotors = ring(6, 0.3)
    thrust, moment = 14.0, np.array([0.1, -0.05, 0.01])
    speeds = rotors.distribute(thrust, moment)
    F_B, M_B = rotors.wrench(speeds, np.zeros(6), np.zeros(3), np.zeros(3), 1.225)
    np.testing.assert_allclose(F_B, [0, 0, -thrust], atol=1e-8)
    np.testing.assert_allclose(M_B, moment, atol=1e-8)


def test_backends_and_errors():
    drone = Multirotor()
    x = drone.state(arc.tree.replace(START, v_NED=np.array([1.0, 2.0, 0.5])))
    u = CONTROL.command(drone, x, np.zeros(3), np.zeros(3), np.zeros(3), 0.3)
    check_everywhere(drone.dynamics, 0.0, x, u, rtol=1e-11)
    check_everywhere(lambda x: CONTROL.command(drone, x, *figure_eight(1.0), 0.3), x, rtol=1e-11)
    with pytest.raises(ValueError, match="must be even and at least 4"):
        ring(3, 0.2)
    with pytest.raises(ValueError, match=r"positions must be \(n, 3\), spins \(n,\)"):
        Rotors(np.zeros((4, 3)), np.ones(3))
    with pytest.raises(ValueError, match=r"GroundContact\.stiffness must be positive"):
        GroundContact(np.zeros((1, 3)), stiffness=0.0)
