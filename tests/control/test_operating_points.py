"""Trim and linearisation: closed forms, differences, what cannot be balanced, python-control."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import StateSpace, linearize, modes, trim
from tests.optional_packages import import_or_skip


@arc.struct
class Plane:
    """A point mass with lift and drag in a vertical plane."""

    @arc.struct
    class State:
        speed: float = arc.field(units="m/s")
        climb: float = arc.field(units="rad")
        place: np.ndarray = arc.field(units="m")

    @arc.struct
    class Input:
        thrust: float = arc.field(units="N")
        alpha: float = arc.field(units="rad")

    mass: float = 1000.0

    def dynamics(self, t, x, u):
        q = 0.6 * x.speed**2
        lift, drag = q * 50.0 * u.alpha, q * (0.3 + 8.0 * u.alpha**2)
        along = u.thrust * np.cos(u.alpha) - drag - self.mass * 9.81 * np.sin(x.climb)
        across = u.thrust * np.sin(u.alpha) + lift - self.mass * 9.81 * np.cos(x.climb)
        return Plane.State(
            along / self.mass,
            across / (self.mass * x.speed),
            x.speed * np.array([np.cos(x.climb), np.sin(x.climb)]),
        )

    def outputs(self, t, x, u):
        return {"rise": x.speed * np.sin(x.climb), "load": 0.6 * x.speed**2 * 50.0 * u.alpha}


PLANE = Plane()
X, U = Plane.State(50.0, 0.0, np.zeros(2)), Plane.Input(1000.0, 0.1)
STEADY = {"rates": {"place": None}, "fixed": ["place", "speed"]}


def test_level_flight_balances_weight():
    """Level flight by a root found elsewhere: SciPy on the two balances."""
    from scipy.optimize import fsolve

    found = trim(PLANE.dynamics, X, U, PLANE.outputs, targets={"rise": 0.0}, **STEADY)
    assert found.success and found.message == "balanced"

    def balance(z):
        rates = PLANE.dynamics(0.0, X, Plane.Input(*z))
        return [rates.speed, rates.climb]

    thrust, alpha = fsolve(balance, [1000.0, 0.1], xtol=1e-13)
    assert found.u.thrust == pytest.approx(thrust, rel=1e-9)
    assert found.u.alpha == pytest.approx(alpha, rel=1e-9)
    assert abs(found.x.climb) < 1e-12 and found.x.speed == 50.0
    assert max(map(abs, found.residuals.values())) < 1e-9
    assert found.rates.place[0] == pytest.approx(50.0)


def test_any_subset_is_free_or_prescribed():
    """A climb of 2 m/s at full thrust: speed and angles follow; outputs within limits."""
    found = trim(
        PLANE.dynamics,
        X,
        U.replace(thrust=3000.0),
        PLANE.outputs,
        fixed=("place", "u.thrust"),
        rates={"place[0]": None, "place[1]": 2.0},
        targets={"load": (5000.0, 12000.0)},
    )
    assert found.success, found.message
    assert found.u.thrust == 3000.0
    assert found.rates.place[1] == pytest.approx(2.0, abs=1e-9)
    assert 5000.0 <= found.outputs["load"] <= 12000.0
    only = trim(PLANE.dynamics, X, U, free=("thrust", "alpha"), rates={"place": None})
    assert only.success and only.x.climb == 0.0
    # A speed that changes by 1 m/s in a second.
    faster = trim(PLANE.dynamics, X, U, free="u", rates={"place": None, "speed": 1.0})
    assert faster.success and faster.rates.speed == pytest.approx(1.0)


def test_what_cannot_be_balanced_has_a_name():
    found = trim(
        PLANE.dynamics, X, U, free="u", rates={"place": None}, bounds={"thrust": (0.0, 600.0)}
    )
    assert not found.success and found.at_bounds == {"thrust": 600.0}
    assert "rate of speed is left at -0." in found.message
    assert "thrust is at its bound 600" in found.message
    assert "rate of speed" in found.report() and found.residuals["rate of speed"] < -1e-3
    stuck = trim(PLANE.dynamics, X, U, free="u")
    assert "rate of place[0] is left at 50, and nothing that is free changes it" in stuck.message
    lost = trim(lambda t, x, u: x * np.sqrt(u), 1.0, -1.0)
    assert not lost.success and "start where the model is defined" in lost.message
    held = trim(lambda t, x, u: u - x, 1.0, 0.0, bounds={"u": (0.25, 0.25), "x": (-9.0, 9.0)})
    assert held.success and held.u == 0.25 and held.x == pytest.approx(0.25)


def test_on_the_way_through_other_arguments():
    """Tightened little by little: a cubic whose Newton steps would leave for another root."""

    def dynamics(t, x, u, load):
        return x**3 - 6.0 * x**2 + 11.0 * x - 6.0 + load

    through = [(v,) for v in np.linspace(0.0, 20.0, 11)]
    found = trim(dynamics, 1.0, 0.0, fixed="u", args=(24.0,), through=through)
    assert found.success and found.x < 1.0


MESSAGES = [
    (lambda: trim(PLANE.dynamics, X, U, free="flaps"), "free names 'flaps', which is not among"),
    (lambda: trim(PLANE.dynamics, X, U, fixed=("x", "u")), "nothing is free"),
    (
        lambda: trim(PLANE.dynamics, X, U, rates={"thrust": 0.0}),
        "is an input: inputs have no rates",
    ),
    (lambda: trim(PLANE.dynamics, X, U, targets={"rise": 0.0}), "give the function outputs too"),
    (
        lambda: trim(PLANE.dynamics, X, U, bounds={"thrust": (2.0, 1.0)}),
        r"bounds\['thrust'\]: lower limit above upper limit, got 2.0",
    ),
    (
        lambda: trim(PLANE.dynamics, X.replace(speed=np.nan), U),
        "speed starts at nan: give x and u finite numbers",
    ),
    (lambda: linearize(PLANE.dynamics, "x", U), "x must hold real numbers"),
    (lambda: linearize(lambda t, x, u: x[:1], np.ones(2), 1.0), "dynamics returns 1 numbers for a"),
    (
        lambda: StateSpace(np.eye(2), np.eye(2), np.eye(2), np.eye(2), states=("a",)),
        "states must be 2",
    ),
    (
        lambda: StateSpace(np.eye(1), np.eye(1), np.eye(1), np.eye(1)).part(inputs="thrust"),
        r"inputs has no 'thrust'; there are u\[0\]",
    ),
    (lambda: StateSpace.from_control(3.0), r"use control.ss\(system\) first"),
    (lambda: modes(np.full((2, 2), np.nan)), "A must be finite"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()


def test_linear_systems_have_names_units_and_exact_slopes():
    found = trim(PLANE.dynamics, X, U, PLANE.outputs, targets={"rise": 0.0}, **STEADY)
    system = found.linearize()
    assert system.states == ("speed", "climb", "place[0]", "place[1]")
    assert system.state_units == ("m/s", "rad", "m", "m")
    assert system.inputs == ("thrust", "alpha") and system.input_units == ("N", "rad")
    assert set(system.outputs) == {"load", "rise"}
    z, back = arc.tree.ravel((found.x, found.u))

    def rates(z):
        x, u = back(z)
        both = (PLANE.dynamics(0.0, x, u), PLANE.outputs(0.0, x, u))
        return arc.tree.ravel(both)[0]

    steps = 1e-6 * np.maximum(1.0, np.abs(z)) * np.eye(6)
    wanted = np.stack([(rates(z + h) - rates(z - h)) / (2 * h.max()) for h in steps], axis=1)
    whole = np.block([[system.A, system.B], [system.C, system.D]])
    np.testing.assert_allclose(whole, wanted, rtol=1e-6, atol=1e-6)
    assert "speed (m/s)" in str(system)
    one = system.part("rise", "thrust")
    assert one.B.shape == (4, 1) and one.output_units == ("",)
    alone = linearize(lambda t, x: -x, np.ones(2))
    assert alone.B.shape == (2, 0) and alone.outputs == ("x[0]", "x[1]")


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_linearise_in_recorded_code(backend):
    def slopes(speed):
        system = linearize(PLANE.dynamics, X.replace(speed=speed), U)
        return system.A, system.B

    made = arc.compile(slopes, backend=backend)
    for a, b in zip(made(60.0), slopes(60.0)):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-300)
    slope = arc.jac(lambda v: slopes(v)[0][0, 0])(60.0)
    # d/dv of the drag slope -1.2 v cd / m.
    assert slope == pytest.approx(-1.2 * (0.3 + 8.0 * 0.01) / 1000.0, rel=1e-9)


def test_modes_name_the_states_that_take_part():
    """Two oscillators that hardly know each other; units do not matter."""
    A = np.array([[0, 1, 0, 0], [-4.0, -0.4, 0.01, 0], [0, 0, 0, 1], [0, 0.01, -100.0, -2.0]])
    scale = np.diag([1.0, 1e3, 1e-3, 1.0])
    names = ("a", "da", "b", "db")
    system = StateSpace(
        scale @ A @ np.linalg.inv(scale), np.eye(4, 1), np.eye(1, 4), np.zeros((1, 1)), states=names
    )
    slow, fast = modes(system)
    assert slow.frequency == pytest.approx(2.0, rel=1e-3) and slow.damping == pytest.approx(
        0.1, rel=1e-3
    )
    assert set(slow.main_states) == {"a", "da"} and set(fast.main_states) == {"b", "db"}
    assert slow.stable and slow.time_constant == pytest.approx(5.0, rel=1e-3)
    steps = modes(system.discretize(0.01))
    assert steps[0].pole == pytest.approx(slow.pole, rel=1e-9)
    assert len(modes(A)) == 2 and "a 50%" in str(modes(system))


def test_to_and_from_python_control():
    theirs_package = import_or_skip("control")
    system = trim(PLANE.dynamics, X, U, PLANE.outputs, targets={"rise": 0.0}, **STEADY).linearize()
    theirs = system.to_control()
    assert theirs.state_labels == ["speed", "climb", "place[0]", "place[1]"]
    back = StateSpace.from_control(theirs)
    for k in "ABCD":
        np.testing.assert_array_equal(getattr(back, k), getattr(system, k))
    assert back.states == system.states and back.dt is None
    steps = StateSpace.from_control(theirs_package.c2d(theirs, 0.1))
    assert steps.dt == 0.1
    np.testing.assert_allclose(steps.A, system.discretize(0.1).A, rtol=1e-12, atol=1e-14)
