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
    with pytest.raises(ValueError, match=r"a list of 2 things that do not make one array"):
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
