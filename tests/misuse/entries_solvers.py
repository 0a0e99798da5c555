"""Solvers, events and equations: arguments in odd forms, functions that return odd things."""

from __future__ import annotations

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

SPAN = (0.0, 1.0)


def decay(t, x, k=1.0):
    return -k * x


def swing(t, x):
    return np.array([x[1], -x[0]])


@arc.struct
class Ball:
    height: float
    speed: float


# ---- spans and states --------------------------------------------------------------------


@entry("solvers")
def a_parameter_in_a_closure(run):
    return run(lambda k: arc.odeint(lambda t, x: -k * x, SPAN, 1.0))(2.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["look swapped"], line=False)
def the_state_before_the_span(run):
    return run(lambda x0: arc.odeint(swing, x0, SPAN))(np.array([1.0, 0.0]))


@entry("solvers", error=ValueError, eager_error=ValueError, says=["(func, t_span, x0)"], line=False)
def a_struct_as_the_span(run):
    return run(lambda h: arc.odeint(decay, Ball(h, 0.0), SPAN))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["pair (start, end)"], line=False)
def the_end_as_the_span(run):
    return run(lambda end: arc.odeint(decay, end, 1.0))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["must be finite"], line=False)
def a_span_without_end(run):
    return run(lambda x: arc.odeint(decay, (0.0, np.inf), x))(1.0)


@entry("solvers")
def a_span_of_whole_numbers(run):
    return run(lambda x: arc.odeint(decay, (0, 2), x))(1.0)


@entry("solvers")
def a_span_that_is_an_array(run):
    return run(lambda x: arc.odeint(swing, np.array([0.0, 1.0]), x))(np.array([1.0, 0.0]))


@entry("solvers")
def a_traced_end_before_the_start(run):
    return run(lambda end: arc.odeint(decay, (1.0, end), 1.0))(0.25)


@entry("solvers")
def a_whole_number_as_the_state(run):
    return run(lambda x: arc.odeint(decay, SPAN, x))(3)


@entry("solvers")
def a_list_of_numbers_as_the_state(run):
    return run(lambda a, b: arc.odeint(swing, SPAN, [a, b]))(1.0, 2.0)


@entry("solvers")
def a_state_in_single_precision(run):
    return run(lambda x: arc.odeint(decay, SPAN, x))(np.ones(2, dtype=np.float32))


@entry("solvers", error=ValueError, eager_error=ValueError, says=["no numbers in it"], line=False)
def a_state_without_numbers(run):
    return run(lambda x: arc.odeint(decay, SPAN, x))(np.zeros(0))


@entry("solvers")
def times_that_are_whole_numbers(run):
    return run(lambda x: arc.odeint(decay, (0, 3), x, t_eval=[0, 1, 3]))(1.0)


@entry("solvers")
def times_with_a_stride(run):
    times = np.linspace(0.0, 1.0, 81)[::2]
    return run(lambda x: arc.odeint(decay, SPAN, x, t_eval=times))(1.0)


@entry("solvers")
def times_backwards(run):
    times = np.linspace(0.0, 1.0, 40)[::-1]
    return run(lambda x: arc.odeint(decay, (1.0, 0.0), x, t_eval=times))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["must be sorted"], line=False)
def times_out_of_order(run):
    return run(lambda x: arc.odeint(decay, SPAN, x, t_eval=[0.5, 0.1]))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["outside t_span"], line=False)
def times_outside_the_span(run):
    return run(lambda x: arc.odeint(decay, SPAN, x, t_eval=[0.5, 1.5]))(1.0)


# ---- what the function returns -----------------------------------------------------------


@entry("solvers", error=ValueError, eager_error=ValueError, says=["is a `return` missing"])
def a_forgotten_return(run):
    def rate(t, x):
        -x  # noqa: B018

    return run(lambda x: arc.odeint(rate, SPAN, x))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["(3,)", "(2,)"])
def a_derivative_of_another_shape(run):
    return run(lambda x: arc.odeint(lambda t, x: np.zeros(3), SPAN, x))(np.ones(2))


@entry("solvers", error=ValueError, eager_error=ValueError, says=["return the state's own type"])
def a_derivative_of_another_structure(run):
    return run(lambda h: arc.odeint(lambda t, x: (x.speed, -9.81), SPAN, Ball(h, 0.0)))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["do not make one array"])
def a_ragged_list_as_the_derivative(run):
    return run(lambda x: arc.odeint(lambda t, x: [x[0], x], SPAN, x))(np.ones(2))


@entry("solvers")
def a_tuple_as_the_derivative(run):
    return run(lambda x: arc.odeint(lambda t, x: (x[1], -x[0]), SPAN, x))(np.ones(2))


@entry("solvers")
def whole_numbers_as_the_derivative(run):
    return run(lambda x: arc.odeint(lambda t, x: np.array([1, 2]), SPAN, x))(np.ones(2))


@entry("solvers")
def a_derivative_written_into_the_state(run):
    def rate(t, x):
        x *= -1.0
        return x

    return run(lambda x: arc.odeint(rate, SPAN, x))(np.ones(2))


@entry("solvers")
def a_derivative_filled_in_place(run):
    def rate(t, x):
        dx = np.zeros_like(x)
        dx[0], dx[1] = x[1], -x[0]
        return dx

    return run(lambda x: arc.odeint(rate, SPAN, x))(np.array([1.0, 0.0]))


@entry("solvers", error=TypeError, eager_error=TypeError, says=["write odeint(f"], line=False)
def the_value_of_the_function(run):
    return run(lambda x: arc.odeint(decay(0.0, x), SPAN, x))(1.0)


@entry("solvers")
def one_argument_without_a_tuple(run):
    return run(lambda k: arc.odeint(decay, SPAN, 1.0, args=k))(2.0)


@entry("solvers", error=TraceError, says=["Use arc.odeint(func, t_span, x0"])
def a_trajectory_in_recorded_code(run):
    return run(lambda k: arc.solve_ode(decay, SPAN, 1.0, args=(k,)).x[-1])(2.0)


@entry("solvers", error=TraceError, says=["Use arc.odeint(func, t_span, x0"])
def a_trajectory_of_a_closure(run):
    return run(lambda k: arc.solve_ode(lambda t, x: -k * x, SPAN, 1.0).x[-1])(2.0)


@entry("solvers")
def how_a_solve_failed(run):
    def end(x):
        found, info = arc.odeint(lambda t, x: x**2, SPAN, x, full_output=True)
        return np.where(info.success, found, -1.0), info.status

    return run(end)(2.0)


@entry("solvers")
def a_solve_within_a_loop(run):
    def hops(x):
        return arc.scan(lambda x, _: (arc.odeint(decay, SPAN, x), x), x, length=3)

    return run(hops)(1.0)


@entry("solvers")
def a_stiff_system_with_auto(run):
    f = lambda t, x: -1e4 * (x - np.cos(t))
    return run(lambda x: arc.odeint(f, SPAN, x, "auto", rtol=1e-6))(1.0)


@entry("solvers", error=TypeError, eager_error=TypeError, says=["maxstep"], line=False)
def an_option_misspelt(run):
    return run(lambda x: arc.odeint(decay, SPAN, x, maxstep=0.1))(1.0)


@entry("solvers", error=ValueError, eager_error=ValueError, says=["dt=..."], line=False)
def fixed_steps_without_their_size(run):
    return run(lambda x: arc.odeint(decay, SPAN, x, "rk4"))(1.0)


@entry("solvers")
def an_input_that_is_a_plain_function(run):
    f = lambda t, x, u: u - x
    return run(lambda x: arc.odeint(f, SPAN, x, inputs=lambda t: np.sin(t)))(1.0)


@entry(
    "solvers", error=TypeError, eager_error=TypeError, says=["write a function u(t)"], line=False
)
def an_input_that_is_a_number(run):
    return run(lambda x: arc.odeint(lambda t, x, u: u - x, SPAN, x, inputs=1.0))(1.0)


# ---- events ------------------------------------------------------------------------------


@entry("events")
def an_event_faster_than_the_state(run):
    tick = arc.Event(lambda t, x: np.sin(2.0 * np.pi * (t - 0.1)), reset=lambda t, x: x + 1.0)
    return run(lambda x: arc.odeint(lambda t, x: 0.0 * x, (0.0, 10.0), x, events=tick))(0.0)


@entry("events")
def a_truth_value_as_an_event(run):
    stop = arc.Event(lambda t, x: x < 0.5, terminal=True)
    return run(lambda x: arc.odeint(decay, SPAN, x, events=stop))(1.0)


@entry("events")
def a_function_with_attributes_as_in_scipy(run):
    def below(t, x):
        return x - 0.5

    below.terminal = True
    return run(lambda x: arc.odeint(decay, SPAN, x, events=below))(1.0)


@entry("events")
def a_reset_in_place(run):
    def bounce(t, x):
        x[1] = -0.8 * x[1]
        return x

    event = arc.Event(lambda t, x: x[0], direction=-1, reset=bounce)
    f = lambda t, x: np.array([x[1], -9.81])
    return run(lambda h: arc.odeint(f, SPAN, np.array([h, 0.0]), events=event))(1.0)


@entry("events")
def an_event_that_writes_into_the_state(run):
    def below(t, x):
        x -= 0.5
        return x[0]

    stop = arc.Event(below, terminal=True)
    return run(lambda x: arc.odeint(decay, SPAN, x, events=stop))(np.ones(1))


@entry("events", error=ValueError, eager_error=ValueError, says=["is a `return` missing"])
def an_event_without_return(run):
    def below(t, x):
        x - 0.5

    return run(lambda x: arc.odeint(decay, SPAN, x, events=below))(1.0)


@entry("events", error=ValueError, eager_error=ValueError, says=["one number"], line=False)
def an_event_of_several_numbers(run):
    return run(lambda x: arc.odeint(decay, SPAN, x, events=lambda t, x: x))(np.ones(2))


@entry("events")
def times_after_the_last_event(run):
    stop = arc.Event(lambda t, x: x - 0.5, terminal=True)
    return run(lambda x: arc.odeint(decay, SPAN, x, t_eval=[0.5, 0.9], events=stop))(1.0)


# ---- equations and loops -----------------------------------------------------------------


@entry("equations")
def an_equation_without_a_solution(run):
    def found(p):
        x, info = arc.root(lambda x: x**2 + p, 1.0, full_output=True)
        return info.success, np.where(info.success, x, -1.0)

    return run(found)(1.0)


@entry("equations")
def an_equation_in_single_precision(run):
    return run(lambda p: arc.root(lambda x: x**2 - p, np.float32(1.0)))(np.float32(2.0))


@entry("equations", error=TraceError, says=["arc.while_loop(lambda c: c[0] < upper"])
def a_loop_with_a_traced_bound(run):
    return run(lambda n: arc.fori_loop(0, n, lambda i, s: s + i, 0.0))(4)
