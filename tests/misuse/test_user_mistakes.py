"""What people write by mistake, and what they see then.

Every case raises an error whose traceback has at most twelve lines and ends in this file, at the
line of the mistake, and whose message names the argument, its value, and what to write instead.
"""

from __future__ import annotations

import math
import traceback

import numpy as np
import pytest

import archimedes as arc
from archimedes import control, environment, spatial, tree
from archimedes import multibody as mb
from archimedes.vehicles import F16, FlightState, Multirotor, load, trim


@arc.struct
class State:
    pos: np.ndarray
    vel: np.ndarray


X0 = State(np.zeros(2), np.ones(2))
LEVEL = FlightState(
    0.6, -1.3, 3000.0, np.array([170.0, 0.0, 0.0]), np.array([0, 0.05, 0]), np.zeros(3)
)
ONES, SPAN = np.ones(2), (0.0, 1.0)


def fall(t, x):
    return State(x.vel, -9.81 * np.ones(2))


def decay(t, x):
    return -x


def forgets_to_return(t, x):
    -x  # noqa: B018


def quad():
    drone = load("multirotor")
    at_rest = FlightState(0.0, 0.0, 10.0, np.zeros(3), np.zeros(3), np.zeros(3))
    return drone, drone.state(at_rest)


def three_rotor_speeds():
    drone, x = quad()
    drone.dynamics(0.0, x, drone.Input(np.ones(3)))


def three_rotor_speeds_in_flight():
    drone, x = quad()
    arc.solve_ode(lambda t, x: drone.dynamics(t, x, drone.Input(np.ones(3))), SPAN, x)


def assign():
    X0.pos = np.ones(2)


MISTAKES = {
    # ---- models
    "a derivative of another shape": (
        lambda: arc.solve_ode(lambda t, x: x[:1], SPAN, ONES),
        ["derivative of x", "(1,)", "(2,)", "must be equal"],
    ),
    "a derivative of another struct": (
        lambda: arc.solve_ode(lambda t, x: {"pos": x.vel}, SPAN, X0),
        ["State against dict", "State(pos=..., vel=...)"],
    ),
    "a model that returns None": (
        lambda: arc.solve_ode(forgets_to_return, SPAN, ONES),
        ["returned None", "is a `return` missing"],
    ),
    "a list of the wrong length": (
        lambda: arc.solve_ode(lambda t, x: [x[1]], SPAN, [1.0, 0.0]),
        ["derivative of x", "(1,)", "(2,)"],
    ),
    "an argument of the model is missing": (
        lambda: arc.solve_ode(lambda t, x, k: -k * x, SPAN, ONES),
        ["required argument: 'k'", "(t, x, k)", "args=(...)"],
    ),
    "an argument too many": (
        lambda: arc.solve_ode(decay, SPAN, ONES, args=(1.0,)),
        ["decay()", "too many", "(t, x)", "args=(...)"],
    ),
    "time as the second argument": (
        lambda: arc.odeint(lambda y, t: -y, SPAN, ONES),
        ["(y, t)", "time comes first"],
    ),
    "a typo in a field": (
        lambda: arc.solve_ode(lambda t, x: State(x.vell, x.pos), SPAN, X0),
        ["'State'", "no attribute 'vell'"],
    ),
    "an array for a struct": (
        lambda: arc.solve_ode(fall, SPAN, np.ones(4)),
        ["array of shape (4,)", "'vel'", "pass one", "x0"],
    ),
    # ---- solves
    "an unknown method": (
        lambda: arc.solve_ode(decay, SPAN, ONES, method="rk5"),
        ["method='rk5'", "dop853"],
    ),
    "nan in x0": (
        lambda: arc.solve_ode(decay, SPAN, np.array([1.0, np.nan])),
        ["x0", "nan", "[ 1., nan]"],
    ),
    "text for x0": (lambda: arc.solve_ode(decay, SPAN, "abc"), ["x0", "str", "static"]),
    "an event that returns a vector": (
        lambda: arc.solve_ode(decay, SPAN, ONES, events=lambda t, x: x),
        ["events[0]", "(2,)", "one Event for each"],
    ),
    "an empty span": (
        lambda: arc.solve_ode(decay, (1.0, 1.0), ONES),
        ["t_span = (1.0, 1.0)", "start and end are equal"],
    ),
    "a number for a span": (
        lambda: arc.solve_ode(decay, 10.0, ONES),
        ["t_span", "10.0", "(start, end)"],
    ),
    "span and state swapped": (
        lambda: arc.solve_ode(decay, np.ones(3), SPAN),
        ["t_span", "(func, t_span, x0)"],
    ),
    "reversed outputs": (
        lambda: arc.solve_ode(decay, SPAN, ONES, t_eval=[1.0, 0.5, 0.0]),
        ["t_eval[0] = 1", "direction of t_span"],
    ),
    "outputs outside the span": (
        lambda: arc.solve_ode(decay, SPAN, ONES, t_eval=[0.5, 2.0]),
        ["t_eval", "2", "outside t_span = (0.0, 1.0)"],
    ),
    "fixed steps without a size": (
        lambda: arc.odeint(decay, SPAN, ONES, "rk4"),
        ["method='rk4'", "dt=..."],
    ),
    "an unknown option": (
        lambda: arc.solve_ode(decay, SPAN, ONES, tol=1e-3),
        ["argument 'tol'", "Did you mean", "atol"],
    ),
    "a column of another name": (
        lambda: arc.solve_ode(fall, SPAN, X0)["positon[0]"],
        ["'positon[0]'", "pos[0]"],
    ),
    "times as the last axis": (
        lambda: arc.Trajectory(np.arange(5.0), np.zeros((2, 5))),
        ["(2, 5)", "give x.T"],
    ),
    # ---- structs
    "a field left out": (lambda: State(pos=np.zeros(2)), ["State", "'vel'"]),
    "a typo in replace": (lambda: X0.replace(posn=1.0), ["'posn'", "did you mean 'pos'"]),
    "an assignment to a field": (assign, ["'pos'", "x.replace(pos=...)"]),
    "trees of other structure": (
        lambda: tree.map(lambda a, b: a + b, {"x": 1.0}, {"y": 1.0}),
        ["tree number 2", "structure"],
    ),
    # ---- recording
    "a branch on a value": (
        lambda: arc.compile(lambda x: x if x > 0 else -x)(1.0),
        ["bool(x)", "np.where", "arc.cond"],
    ),
    "the math module": (
        lambda: arc.compile(lambda x: math.sin(x))(1.0),
        ["float(x)", "np.sin(x)"],
    ),
    "a quaternion without its array": (
        lambda: arc.compile(lambda q: np.sin(q))(spatial.Quaternion([1.0, 0.0, 0.0, 0.0])),
        ["'Quaternion'", "q.array"],
    ),
    "a call without an argument": (
        lambda: arc.compile(lambda x, y: x + y)(1.0),
        ["required argument: 'y'", "(x, y)"],
    ),
    "the gradient of a vector": (
        lambda: arc.grad(lambda x: x)(ONES),
        ["(2,)", "np.sum", "arc.jac"],
    ),
    "batches of other lengths": (
        lambda: arc.vmap(lambda a, b: a + b)(np.ones(3), np.ones(4)),
        ["3", "4", "lengths"],
    ),
    "branches of other shapes": (
        lambda: arc.compile(lambda x: arc.cond(x > 0, abs, lambda x: np.stack([x, x]), x))(1.0),
        ["(2,)", "()", "np.broadcast_to"],
    ),
    "an unknown backend": (lambda: arc.compile(decay, backend="gpu"), ["backend='gpu'", "'cuda'"]),
    # ---- optimization
    "a cost that is not scalar": (
        lambda: arc.minimize(lambda x: x**2, np.ones(3)),
        ["obj", "(3,)", "np.sum"],
    ),
    "a cost that returns None": (
        lambda: arc.minimize(lambda x: None, ONES),
        ["obj", "nothing", "`return` missing"],
    ),
    "bounds swapped": (
        lambda: arc.minimize(lambda x: np.sum(x**2), ONES, bounds=(ONES, -ONES)),
        ["bounds", "lower limit 1", "upper limit -1"],
    ),
    "an unknown solver": (
        lambda: arc.minimize(lambda x: np.sum(x**2), ONES, method="newton"),
        ["method='newton'", "'ipopt'"],
    ),
    "no root": (lambda: arc.root(lambda x: x**2 + 1.0, 1.0), ["residual is 1", "starting value"]),
    # ---- control
    "matrices that do not fit": (
        lambda: control.lqr(np.eye(2), np.ones((3, 1)), np.eye(2), np.eye(1)),
        ["B must", "(2, n)", "(3, 1)"],
    ),
    "a negative weight": (
        lambda: control.lqr(np.eye(2), np.eye(2), -np.eye(2), np.eye(2)),
        ["Q must", "-1", "is a sign wrong"],
    ),
    # ---- attitudes, worlds, vehicles
    "an impossible sequence": (
        lambda: spatial.EulerAngles([0.1, 0.2, 0.3], "xyy"),
        ["seq", "'xyy'", "repeat"],
    ),
    "a quaternion of two numbers": (
        lambda: spatial.Quaternion([1.0, 0.0]),
        ["Quaternion array", "(4,)", "(2,)"],
    ),
    "a quaternion of zeros": (
        lambda: spatial.Quaternion(np.zeros(4)).as_matrix(),
        ["quaternion q", "not zero"],
    ),
    "a negative mass": (lambda: Multirotor(mass=-1.0), ["Multirotor.mass", "kg", "-1.0"]),
    "a roughness of zero": (
        lambda: environment.LogarithmicShear(10.0, roughness=0.0),
        ["LogarithmicShear.roughness", "in m", "0.0"],
    ),
    "three rotor speeds for a quadrotor": (three_rotor_speeds, ["commands", "(4,)", "(3,)"]),
    "three rotor speeds in flight": (three_rotor_speeds_in_flight, ["(4,)", "4 rotors", "(3,)"]),
    "an unknown vehicle": (lambda: load("f61"), ["'f61'", "did you mean 'f16'"]),
    "an unknown part": (lambda: load("f16", wrld=None), ["'wrld'", "did you mean 'world'"]),
    "an array of controls": (
        lambda: trim(load("f16"), LEVEL, np.zeros(4)),
        ["u must be of F16.Input", "ndarray", "F16.Input(throttle=..., elevator=..."],
    ),
    "an unknown that is not there": (
        lambda: trim(load("f16"), LEVEL, F16.Input(0.1), free=["pitsch"]),
        ["free='pitsch'", "'pitch'"],
    ),
    "a file that is not there": (lambda: mb.load("nofile.urdf"), ["No such file", "nofile.urdf"]),
    # ---- pictures, names
    "a view of a trajectory alone": (
        lambda: arc.view(arc.solve_ode(decay, SPAN, ONES)),
        ["does not know what moved", "arc.view(model, trajectory)"],
    ),
    "trajectory and model swapped": (
        lambda: arc.view(arc.solve_ode(decay, SPAN, ONES), load("f16")),
        ["the model comes first", "arc.view(model, trajectory)"],
    ),
    "a plot of nothing": (lambda: arc.plot(object()), ["plot", "object", "Trajectory"]),
    "a seed for a key": (
        lambda: arc.random.normal(1, (2,)),
        ["key", "got int", "arc.random.key(seed)"],
    ),
    "a name that is not there": (lambda: arc.solv_ode, ["archimedes", "'solv_ode'"]),
}


@pytest.mark.parametrize("name", list(MISTAKES))
def test_a_mistake_is_explained_in_few_lines_that_end_at_it(name):
    mistake, says = MISTAKES[name]
    try:
        mistake()
    except Exception as caught:
        error = caught
    else:
        pytest.fail("no error")
    where = error.__traceback__.tb_next  # without this test
    frames = traceback.extract_tb(where)
    assert {frame.filename for frame in frames} == {__file__}, frames
    lines = "".join(traceback.format_exception(type(error), error, where)).splitlines()
    assert len(lines) <= 12, "\n".join(lines)
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    missing = [words for words in says if words not in text]
    assert not missing, f"{missing} not in: {text}"
    assert "Symbolic" not in text and "Raised in archimedes" not in text


def test_integers_and_lists_are_states():
    """What looks like a mistake and is none."""
    for x0 in ([1, 2], np.array([1, 2]), (1.0, 2.0)):
        assert arc.odeint(decay, (0, 1), x0).dtype == float
    back = arc.solve_ode(decay, (1.0, 0.0), ONES)  # time may run backwards
    assert back.t[-1] == 0.0 and np.allclose(back.x[-1], np.e)


def test_a_view_knows_the_vehicle_whose_method_was_solved():
    drone, x = quad()
    u = drone.Input(drone.hover_speeds())
    flown = arc.solve_ode(drone.dynamics, (0.0, 0.1), x, args=(u,))
    assert flown.model is drone and flown[2:].model is drone
    assert "Multirotor" in repr(arc.view(flown))
    tumbling = arc.Trajectory(
        np.arange(2.0),
        spatial.RigidBody.State(
            np.zeros((2, 3)),
            spatial.Quaternion(np.eye(4)[[0, 0]]),
            np.zeros((2, 3)),
            np.zeros((2, 3)),
        ),
    )
    assert "RigidBody" in repr(arc.view(tumbling))
