"""One order for all solvers, (func, t_span, x0); arguments the wrong way round are noticed."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import archimedes as arc


@arc.struct
class Ball:
    height: float
    speed: float


def swing(t, x):
    return np.stack([x[1], -x[0]])


def swing_residual(t, x, xdot):
    return xdot - swing(t, x)


SOLVERS = {
    "solve_ode": lambda span, x0: arc.solve_ode(swing, span, x0).x[-1],
    "odeint": lambda span, x0: arc.odeint(swing, span, x0),
    "solve_dae": lambda span, x0: arc.solve_dae(swing_residual, span, x0).x[-1],
}


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_the_order_is_that_of_scipy(solver):
    end = SOLVERS[solver]((0.0, 1.0), np.array([1.0, 0.0]))
    assert end == pytest.approx([np.cos(1.0), -np.sin(1.0)], abs=1e-6)
    names = list(inspect.signature(getattr(arc, solver)).parameters)
    assert names.index("t_span") + 1 == names.index("x0") <= 2


@pytest.mark.parametrize("solver", list(SOLVERS))
@pytest.mark.parametrize(
    ("state", "span"),
    [
        (np.array([1.0, 0.0]), (0.0, 10.0)),
        ([1.0, 0.0], (0.0, 10.0)),
        ([1, 0], (0, 10)),
        (np.array([1.0, 0.0]), [0.0, 10.0]),
    ],
)
def test_two_states_in_the_place_of_the_span(solver, state, span):
    with pytest.raises(ValueError, match=r"look swapped: the order is \(func, t_span, x0\)"):
        SOLVERS[solver](state, span)


def test_an_integrator_takes_the_state_first():
    solve = arc.integrator(swing)
    end = solve(np.array([1.0, 0.0]), (0.0, 1.0))
    assert end == pytest.approx([np.cos(1.0), -np.sin(1.0)], abs=1e-6)
    assert list(inspect.signature(solve).parameters)[:2] == ["x0", "t_span"]
    with pytest.raises(ValueError, match=r"look swapped: the order is solve\(x0, t_span, \*args\)"):
        solve((0.0, 1.0), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"got 1.0: the order is solve\(x0, t_span, \*args\)"):
        solve((0.0, 1.0), 1.0)


NO_SPANS = (
    [1.0, None, "01", np.ones(3), np.ones((2, 2)), [1.0], {"a": 1.0, "b": 2.0}, Ball(1.0, 0.0)],
    [("0", "1"), (0.0, 1j), (True, False), ({"a": 1.0}, 2.0), np.array([0, 1], dtype=complex)],
)


@pytest.mark.parametrize("state", [*NO_SPANS[0], *NO_SPANS[1]])
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_what_is_no_span(solver, state):
    with pytest.raises(ValueError, match=r"t_span must be a pair \(start, end\) of numbers, got"):
        SOLVERS[solver](state, (0.0, 1.0))


def test_the_message_names_what_a_struct_is():
    with pytest.raises(ValueError, match=r"got a Ball: the order is \(func, t_span, x0\)"):
        arc.solve_ode(lambda t, x: x, Ball(1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize("span", [(0, 1), [0.0, 1.0], np.array([0.0, 1.0]), (np.float32(0), 1)])
def test_spans_of_any_kind(span):
    found = arc.solve_ode(swing, span, np.array([1.0, 0.0])).x[-1]
    assert found == pytest.approx([np.cos(1.0), -np.sin(1.0)], abs=1e-6)


def test_swapped_in_a_recording():
    solve = arc.compile(lambda x0: arc.odeint(swing, x0, (0.0, 1.0)))
    with pytest.raises(ValueError, match="look swapped"):
        solve(np.array([1.0, 0.0]))
    three = arc.compile(lambda x0: arc.odeint(swing, x0, (0.0, 1.0)))
    with pytest.raises(ValueError, match=r"t_span must be a pair \(start, end\) of numbers"):
        three(np.array([1.0, 0.0, 2.0]))


def test_a_traced_end():
    solve = arc.compile(lambda end, x0: arc.odeint(swing, (0, end), x0))
    assert solve(1.0, np.array([1.0, 0.0])) == pytest.approx([np.cos(1.0), -np.sin(1.0)], abs=1e-6)


# ---- the order within functions ----------------------------------------------------------------


def scipys_own(x, t):
    return -x


@arc.struct
class Model:
    k: float

    def rate(self, x, t):
        return -self.k * x


CALLS = {
    "odeint": lambda: arc.odeint(scipys_own, (0.0, 1.0), 1.0),
    "solve_ode": lambda: arc.solve_ode(scipys_own, (0.0, 1.0), 1.0),
    "recorded": lambda: arc.compile(lambda x: arc.odeint(scipys_own, (0.0, 1.0), x))(1.0),
    "compiled": lambda: arc.odeint(arc.compile(scipys_own), (0.0, 1.0), 1.0),
    "a method": lambda: arc.odeint(Model(1.0).rate, (0.0, 1.0), 1.0),
    "with inputs": lambda: arc.odeint(
        lambda x, t, u: u - x, (0.0, 1.0), 1.0, inputs=lambda t: 0.0 * t
    ),
    "discretize": lambda: arc.discretize(scipys_own, 0.1),
    "an event": lambda: arc.Event(scipys_own),
    "a reset": lambda: arc.Event(lambda t, x: x, reset=scipys_own),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_time_is_the_first_argument(call):
    with pytest.raises(
        ValueError, match=r"arguments \(x, t(, u)?\), .*: time comes first"
    ) as error:
        CALLS[call]()
    assert "test_argument_order.py" in str(error.value)


def test_other_names_are_as_good():
    assert arc.odeint(lambda s, y: -y, (0.0, 1.0), 1.0) == pytest.approx(np.exp(-1.0), abs=1e-8)
    assert arc.odeint(lambda *a: -a[1], (0.0, 1.0), 1.0) == pytest.approx(np.exp(-1.0), abs=1e-8)


@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_traced_times_of_another_shape(shape):
    solve = arc.compile(lambda t: arc.odeint(lambda t, x: -x, (0.0, 1.0), 1.0, t_eval=t))
    with pytest.raises(ValueError, match=r"t_eval must have shape \(m,\), got"):
        solve(np.full(shape, 0.5))


def test_no_steps_at_all():
    for solve in (lambda f: f, arc.compile):
        with pytest.raises(ValueError, match="max_steps = 0 must be at least 1"):
            solve(lambda x: arc.odeint(lambda t, x: -x, (0.0, 1.0), x, max_steps=0))(1.0)
