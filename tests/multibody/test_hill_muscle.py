"""The Hill-type muscle: its curves against those of SymPy, its force, and a load that hangs."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

FIBRE = {"peak": 600.0, "optimal_length": 0.12, "tendon_length": 0.25}
#: Lengths, speeds, and the curves there by sympy.physics.biomechanics, SymPy 1.14: FL, FP, FV.
LENGTHS = np.array([0.35, 0.6, 0.8, 1.0, 1.15, 1.4, 1.6])
ACTIVE = [
    *(0.019012528738121565, 0.296929539229323, 0.8239778842189102, 0.994139886622616),
    *(0.889414461853915, 0.3875343432300723, 0.1273343418573431),
]
PASSIVE = [
    *(-0.018412506227412525, -0.017360982574991527, -0.013739333567089415, 0.0),
    *(0.03205860328008496, 0.24985780454863724, 1.0),
]
SPEEDS = np.array([-0.9, -0.4, -0.05, 0.0, 0.1, 0.5, 1.0])
FACTORS = [
    *(0.04696901069504612, 0.31943991458510107, 0.8753648826481838, 1.002320622548512),
    *(1.2068135511941875, 1.5850003902837808, 1.7889099602998755),
]


def arm():
    """Return a body on a slide, on which muscles pull."""
    b = mb.Builder()
    b.add_body("load", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("load", joint="slide", kind="prismatic")
    return b.build()


def test_curves_are_those_of_sympy():
    muscle = mb.HillMuscle("slide", **FIBRE)
    np.testing.assert_allclose(muscle.active_force(LENGTHS), ACTIVE, rtol=1e-13)
    np.testing.assert_allclose(muscle.speed_factor(SPEEDS), FACTORS, rtol=1e-13)
    # Ours is shifted and scaled, so that it is zero at 0.2 optimal lengths and one at 1.6.
    least = (np.exp(-0.8 * 4.0 / 0.6) - 1.0) / (np.exp(4.0) - 1.0)
    known = (np.array(PASSIVE) - least) / (1.0 - least)
    np.testing.assert_allclose(muscle.passive_force(LENGTHS), known, rtol=1e-11)


@pytest.mark.parametrize("pennation", [0.0, 0.3])
@pytest.mark.parametrize("gear", [1.0, -0.5])
def test_the_force_on_a_joint(pennation, gear):
    """By the geometry of a fibre of constant thickness."""
    muscle = mb.HillMuscle("slide", pennation=pennation, gear=gear, damping=0.1, **FIBRE)
    for k, a in enumerate(np.linspace(0.1, 1.0, len(LENGTHS))):
        fibre, across = 0.12 * LENGTHS[k], 0.12 * np.sin(pennation)
        along = np.sqrt(fibre**2 - across**2)
        q, v = (0.25 + along) / gear, SPEEDS[k] * 1.2 * fibre / along / gear
        pull = a * ACTIVE[k] * FACTORS[k] + muscle.passive_force(LENGTHS[k]) + 0.1 * SPEEDS[k]
        known = -gear * 600.0 * along / fibre * max(pull, 0.0)
        force = mb.actuator_torque(arm(), [muscle], np.array([q]), np.array([v]), [a])
        np.testing.assert_allclose(force, [known], rtol=1e-11)


def test_a_load_hangs_where_the_muscle_carries_it():
    """Motion with an activation: it ends where force and load agree, recorded as eager."""
    robot, muscle = arm(), mb.HillMuscle("slide", damping=0.05, **FIBRE)
    x = mb.driven_state(robot, [muscle], np.array([0.38]))

    def rates(t, x):
        pull = {"load": np.array([0.0, 0.0, 300.0, 0.0, 0.0, 0.0])}
        return mb.dynamics(robot, t, x, np.array([0.4]), pull, actuators=[muscle])

    end = arc.solve_ode(rates, (0.0, 3.0), x, rtol=1e-8, atol=1e-10).x
    assert end.activations[-1, 0] == pytest.approx(0.4, abs=1e-6)
    assert np.abs(end.v[-1]).max() < 1e-4
    force = mb.actuator_torque(robot, [muscle], end.q[-1], np.zeros(1), end.activations[-1])
    assert force == pytest.approx(2.0 * 9.81 - 300.0, rel=1e-4)
    final = mb.DrivenState(end.q[-1], end.v[-1], end.activations[-1])
    eager, recorded = rates(0.0, final), arc.compile(rates)(0.0, final)
    np.testing.assert_array_equal(eager.v, recorded.v)


@pytest.mark.parametrize(("length", "speed"), [(-1.0, 0.0), (0.25, 0.0), (2.0, 0.0), (0.37, -9.0)])
def test_a_muscle_never_pushes(length, speed):
    """Slack, far too long and faster than it can shorten; derivatives stay finite."""
    muscle, robot = mb.HillMuscle("slide", pennation=0.2, **FIBRE), arm()

    def force(q, v):
        return mb.actuator_torque(robot, [muscle], q, v, np.array([0.5]))

    q, v = np.array([length]), np.array([speed])
    assert force(q, v) <= 0.0 and np.isfinite(force(q, v)).all()
    assert np.isfinite(arc.jac(force)(q, v)).all() and np.isfinite(arc.jac(force, 1)(q, v)).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"optimal_length": 0.0}, r"HillMuscle of 'slide': optimal_length.*positive"),
        ({"pennation": 1.7}, r"HillMuscle of 'slide': pennation.*between 0 and pi/2 rad"),
        ({"peak": -1.0}, r"HillMuscle of 'slide': peak"),
        ({"time_constants": [0.01]}, r"HillMuscle of 'slide': time_constants"),
    ],
)
def test_wrong_numbers(wrong, message):
    with pytest.raises(ValueError, match=message):
        mb.HillMuscle("slide", **FIBRE | wrong)
