"""The Hill-type muscle: its curves and its force against SymPy's, which are of the same source."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from tests.optional_packages import import_or_skip

sympy = import_or_skip("sympy")
from sympy.physics import biomechanics  # noqa: E402

FIBRE = {"peak": 600.0, "optimal_length": 0.12, "tendon_length": 0.25}


def curve(name, x):
    """Return values of a curve of SymPy's."""
    symbol = sympy.Symbol("x")
    formula = getattr(biomechanics, f"{name}DeGroote2016").with_defaults(symbol).doit()
    return sympy.lambdify(symbol, formula)(x)


def arm():
    """Return a body on a slide, on which muscles pull."""
    b = mb.Builder()
    b.add_body("load", mass=2.0, inertia=[0.1, 0.1, 0.1])
    b.attach("load", joint="slide", kind="prismatic")
    return b.build()


def test_curves_are_those_of_sympy():
    muscle, length = mb.HillMuscle("slide", **FIBRE), np.linspace(0.3, 1.7, 57)
    speed = np.linspace(-1.0, 1.0, 57)
    known = curve("FiberForceLengthActive", length)
    np.testing.assert_allclose(muscle.active_force(length), known, rtol=1e-13)
    known = curve("FiberForceVelocity", speed)
    np.testing.assert_allclose(muscle.speed_factor(speed), known, rtol=1e-12, atol=1e-14)
    # Ours is shifted and scaled, so that it is zero at 0.2 optimal lengths and one at 1.6.
    plain, ends = curve("FiberForceLengthPassive", length), curve(
        "FiberForceLengthPassive", np.array([0.2, 1.6])
    )  # fmt: skip
    known = (plain - ends[0]) / (ends[1] - ends[0])
    np.testing.assert_allclose(muscle.passive_force(length), known, rtol=1e-12)


@pytest.mark.parametrize("pennation", [0.0, 0.3])
@pytest.mark.parametrize("gear", [1.0, -0.5])
def test_the_force_on_a_joint(pennation, gear):
    """By the geometry of a fibre of constant thickness, with SymPy's curves."""
    muscle = mb.HillMuscle("slide", pennation=pennation, gear=gear, damping=0.1, **FIBRE)
    rng = np.random.default_rng(0)
    q, v = (0.25 + 0.12 * rng.uniform(0.6, 1.5, size=20)) / gear, rng.normal(size=20) * 0.2
    for one, rate, a in zip(q, v, rng.uniform(size=20), strict=True):
        along, across = gear * one - 0.25, 0.12 * np.sin(pennation)
        fibre = np.hypot(along, across)
        cosine = along / fibre
        speed = gear * rate * cosine / 1.2
        active = curve("FiberForceLengthActive", fibre / 0.12) * curve("FiberForceVelocity", speed)
        pull = a * active + muscle.passive_force(fibre / 0.12) + 0.1 * speed
        known = -gear * 600.0 * cosine * max(pull, 0.0)
        force = mb.actuator_torque(arm(), [muscle], np.array([one]), np.array([rate]), [a])
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
