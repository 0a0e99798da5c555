"""What solvers say about functions that return no derivative, and about where they are called."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.simulate import Event


def forgotten(t, x):
    -x  # noqa: B018


def too_long(t, x):
    return np.ones(3)


def ragged(t, x):
    return [x[0], x]


@arc.struct
class Model:
    k: float

    def rate(self, t, x):
        self.k * x


class Callable:
    def __call__(self, t, x):
        pass


SOLVES = {
    "odeint": lambda f, x0: arc.odeint(f, (0.0, 1.0), x0),
    "solve_ode": lambda f, x0: arc.solve_ode(f, (0.0, 1.0), x0),
    "a batch": lambda f, x0: arc.solve_ode(f, (0.0, 1.0), np.stack([x0, x0]), in_axes=0),
    "recorded": lambda f, x0: arc.compile(lambda x: arc.odeint(f, (0.0, 1.0), x))(x0),
    "discretize": lambda f, x0: arc.discretize(f, 0.1)(0.0, x0),
}


@pytest.mark.parametrize("solve", list(SOLVES))
def test_a_forgotten_return(solve):
    with pytest.raises(
        ValueError, match="returned None instead of dx/dt: is a `return` missing"
    ) as error:
        SOLVES[solve](forgotten, np.ones(2))
    line = forgotten.__code__.co_firstlineno
    assert f"test_solver_messages.py:{line}, forgotten" in str(error.value)
    assert "def forgotten(t, x):" in str(error.value)


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (arc.compile(forgotten), "forgotten"),
        (functools.partial(lambda k, t, x: None, 1.0), "<lambda>"),
        (Model(1.0).rate, "Model.rate"),
        (Callable(), "Callable"),
    ],
)
def test_where_functions_of_any_kind_are_written(func, name):
    with pytest.raises(TraceError, match=rf"test_solver_messages.py:\d+, {name}"):
        arc.odeint(func, (0.0, 1.0), 1.0)


def test_derivatives_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"has shape \(3,\), but x has shape \(2,\)") as error:
        arc.odeint(too_long, (0.0, 1.0), np.ones(2))
    assert "too_long" in str(error.value)
    with pytest.raises(ValueError, match=r"a list of 2 parts that do not make one array"):
        arc.odeint(ragged, (0.0, 1.0), np.ones(2))
    with pytest.raises(ValueError, match="must have the structure of the state") as error:
        arc.odeint(lambda t, x: (x["a"], 1.0), (0.0, 1.0), {"a": 1.0, "b": 2.0})
    assert "test_solver_messages.py" in str(error.value)


def test_with_inputs_the_users_function_is_named():
    with pytest.raises(ValueError, match="is a `return` missing") as error:
        arc.solve_ode(lambda t, x, u: None, (0.0, 1.0), 1.0, inputs=lambda t: t)
    assert "test_solver_messages.py" in str(error.value)
    with pytest.raises(ValueError, match=r"has shape \(1,\), but x has shape \(2,\)"):
        arc.solve_ode(lambda t, x, u: x[:1], (0.0, 1.0), np.ones(2), inputs=lambda t: t)


def test_events_without_return():
    with pytest.raises(ValueError, match=r"events\[0\].fn returned None instead of a number"):
        arc.solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, events=forgotten)
    wrong = Event(lambda t, x: x - 0.5, reset=forgotten)
    with pytest.raises(ValueError, match=r"events\[0\].reset returned None instead of a state"):
        arc.solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, events=wrong)


RECORDED = {
    "an argument": lambda k: arc.solve_ode(lambda t, x, k: -k * x, (0.0, 1.0), 1.0, args=(k,)).x,
    "a closure": lambda k: arc.solve_ode(lambda t, x: -k * x, (0.0, 1.0), 1.0).x,
    "a start": lambda k: arc.solve_ode(lambda t, x: -x, (0.0, 1.0), k).x,
    "an end": lambda k: arc.solve_ode(lambda t, x: -x, (0.0, k), 1.0).x,
    "a batch": lambda k: arc.solve_ode(lambda t, x: -k * x, (0.0, 1.0), np.ones(3), in_axes=0).x,
    "solve_dae": lambda k: arc.solve_dae(lambda t, x, v: v + k * x, (0.0, 1.0), [1.0]).x,
}


@pytest.mark.parametrize("case", list(RECORDED))
def test_solve_ode_in_recorded_code_says_use_odeint(case):
    with pytest.raises(TraceError, match=r"Use arc.odeint\(func, t_span, x0") as error:
        arc.compile(RECORDED[case])(2.0)
    assert "test_solver_messages.py" in str(error.value)


def test_solve_ode_of_numbers_in_recorded_code_is_a_constant():
    found = arc.compile(lambda k: k * arc.solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0).x[-1])(3.0)
    assert found == pytest.approx(3.0 * np.exp(-1.0), abs=1e-7)


# ---- inputs, outputs and states of unusual form ------------------------------------------


@pytest.mark.long
def test_inputs_as_a_plain_function():
    def held(t):
        return np.sin(t)

    exact = (np.sin(1.0) - np.cos(1.0) + 3.0 * np.exp(-1.0)) / 2.0
    found = arc.solve_ode(lambda t, x, u: u - x, (0.0, 1.0), 1.0, inputs=held)
    assert found.success and found.x[-1] == pytest.approx(exact, abs=1e-8)
    assert found.u == pytest.approx(np.sin(found.t))
    assert found(0.5) == pytest.approx(found.dense(0.5)) and np.ndim(found(0.5)) == 0
    end = arc.odeint(lambda t, x, u: u - x, (0.0, 1.0), 1.0, inputs=held)
    assert end == pytest.approx(exact, abs=1e-8)
    many = arc.solve_ode(
        lambda t, x, u: u - x,
        (0.0, 1.0),
        np.array([1.0, 2.0]),
        inputs=held,
        in_axes=0,
        t_eval=[1.0],
    )
    assert many.x[0, -1] == pytest.approx(exact, abs=1e-8)
    back = arc.solve_ode(lambda t, x, u: u - x, (1.0, 0.0), exact, inputs=held)
    assert back.x[-1] == pytest.approx(1.0, abs=1e-7)
    tree = arc.solve_ode(
        lambda t, x, u: u["a"] - x, (0.0, 1.0), 1.0, inputs=lambda t: {"a": np.sin(t)}
    )
    assert tree.x[-1] == pytest.approx(exact, abs=1e-8)
    dropped = arc.solve_ode(
        lambda t, x, u: u - x, (0.0, 1.0), 1.0, inputs=held, events=lambda t, x, u: x - 0.8
    )
    assert len(dropped.events["t"]) == 1


@pytest.mark.parametrize("count", [5, 31, 32, 33, 100])
def test_times_in_any_memory_order(count):
    whole = np.linspace(0.0, 1.0, 2 * count)
    decay = lambda t, x: -x
    strided = arc.solve_ode(decay, (0.0, 1.0), 1.0, t_eval=whole[::2]).x
    assert strided == pytest.approx(np.exp(-whole[::2]), abs=1e-7)
    reversed_ = arc.solve_ode(decay, (1.0, 0.0), 1.0, t_eval=whole[::-1]).x
    assert reversed_ == pytest.approx(np.exp(1.0 - whole[::-1]), abs=1e-6)
    many = arc.solve_ode(decay, (1.0, 0.0), np.ones(3), in_axes=0, t_eval=whole[::-2]).x
    assert many[1] == pytest.approx(np.exp(1.0 - whole[::-2]), abs=1e-6)


@pytest.mark.parametrize("x0", [np.zeros(0), {}, {"a": np.zeros((0, 3))}, [], ()])
def test_a_state_without_numbers(x0):
    for solve in (arc.solve_ode, arc.odeint):
        with pytest.raises(ValueError, match="x0 has no numbers in it"):
            solve(lambda t, x: x, (0.0, 1.0), x0)


@arc.struct
class Ball:
    height: float
    speed: float


def fall(t, x):
    return Ball(x.speed, -9.81)


BALL, LANDING = Ball(1.0, 0.0), np.sqrt(2.0 / 9.81)
NAN_SPEED = Event(lambda t, x: x.height, -1, reset=lambda t, x: Ball(0.0, x.speed * np.nan))


def test_a_reset_that_gives_nan_ends_the_solve_at_once():
    found = arc.solve_ode(fall, (0.0, 5.0), BALL, events=[lambda t, x: x.height - 9.0, NAN_SPEED])
    assert found.status == -7 and not found.success
    assert "the reset of events[1] gave x.speed = nan at t = 0.4515" in found.message
    assert found.t[-1] == pytest.approx(LANDING, abs=1e-9)
    assert found.stats["steps"] < 100


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reset_that_the_derivative_does_not_see(value):
    # The derivative does not read the height: nothing but the state itself is nan.
    event = Event(lambda t, x: x[0], reset=lambda t, x: np.array([value, x[1]]))
    x0 = [-1.0, 0.0]
    for options in ({}, {"dt": 0.1, "method": "rk4"}, {"method": "rodas5p"}):
        given = {"events": event, "max_steps": 5000, **options}
        found = arc.solve_ode(lambda t, x: np.array([1.0, 2.0]), (0.0, 3.0), x0, **given)
        assert found.status == -7, found.message
        assert f"gave x[0] = {value} at t = " in found.message and "max_steps" not in found.message


def test_a_reset_that_gives_nan_in_one_of_a_batch():
    event = Event(lambda t, x: x[0], reset=lambda t, x: np.where(x[1] > 5.0, np.nan, x + 10.0))
    x0 = np.array([[-1.0, 0.0], [-1.0, 9.0], [-1.0, 1.0]])
    found = arc.solve_ode(lambda t, x: np.ones(2), (0.0, 3.0), x0, events=event, in_axes=0)
    assert found.status.tolist() == [0, -7, 0]
    assert "instance 1: the reset of events[0] gave x[0] = nan, x[1] = nan" in found.message


def test_a_reset_that_gives_nan_in_recorded_code_and_with_inputs():
    def end(height):
        return arc.odeint(fall, (0.0, 5.0), Ball(height, 0.0), events=NAN_SPEED, full_output=True)

    x, info = arc.compile(end)(1.0)
    assert info.status == -7 and np.isnan(x.speed)
    with pytest.raises(arc.SimulationError, match=r"the reset of events\[0\] gave x.speed = nan"):
        arc.odeint(fall, (0.0, 5.0), BALL, events=NAN_SPEED)
    event = Event(lambda t, x, u: x.height, -1, reset=lambda t, x, u: Ball(np.nan, 0.0))
    driven = {"events": event, "inputs": lambda t: 0.0 * t}
    found = arc.solve_ode(lambda t, x, u: fall(t, x), (0.0, 5.0), BALL, **driven)
    assert "the reset of events[0] gave x.height = nan at t = 0.4515" in found.message


def test_a_terminal_event_whose_reset_gives_nan_is_no_success():
    event = Event(lambda t, x: x - 0.5, terminal=True, reset=lambda t, x: x * np.nan)
    found = arc.solve_ode(lambda t, x: -x, (0.0, 5.0), 1.0, events=event)
    assert found.status == -7 and "gave x = nan" in found.message


def test_a_sampled_part_that_gives_nan_ends_the_solve_at_once():
    part = arc.Sampled(lambda t, x, u: np.where(t > 0.5, np.nan, 0.0), 0.0, dt=0.25)
    found = arc.solve_ode(lambda t, x, u: -x, (0.0, 5.0), 1.0, sampled=part, max_steps=5000)
    assert found.status == -2 and found.t[-1] == pytest.approx(0.75)
