"""Solves inside recorded functions: spans, outputs, events and derivatives in unusual forms."""

from __future__ import annotations

import functools

import numpy as np

import archimedes as arc
from archimedes.errors import TraceError
from tests.misuse.catalogue import entry

solves = functools.partial(entry, "solves", rtol=1e-9)
refused = functools.partial(entry, "solves", line=False)
G = 9.81


def decay(t, x):
    return -x


def falling(t, x):
    return np.stack([x[1], -G + 0.0 * x[0]])


def short(func, t_span, x0, **options):
    """Few steps: the interpreter runs these too."""
    return arc.odeint(func, t_span, x0, "heun", dt=0.25, **options)


# ---- spans ---------------------------------------------------------------------------------


@solves()
def the_end_is_an_argument(run):
    return run(lambda T: short(decay, (0.0, T), 1.0))(1.5)


@solves()
def the_start_is_an_argument(run):
    return run(lambda s: short(lambda t, x: np.cos(t), (s, 2.0), 1.0))(0.5)


@solves()
def both_ends_are_an_array(run):
    return run(lambda span: short(decay, span, 1.0))(np.array([0.5, 1.5]))


@solves()
def the_span_is_a_list(run):
    return run(lambda x: short(decay, [0.0, 1.0], x))(1.0)


@solves()
def the_span_holds_integers(run):
    return run(lambda x: short(decay, (0, 1), x))(1.0)


@solves()
def the_end_is_before_the_start(run):
    return run(lambda T: short(decay, (1.0, T), 1.0))(0.25)


@refused(eager_error=ValueError, error=ValueError, says=["start and end are equal"])
def a_span_without_length(run):
    return run(lambda x: short(decay, (1.0, 1.0), x))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["finite"])
def a_span_that_never_ends(run):
    return run(lambda x: short(decay, (0.0, np.inf), x))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["(func, t_span, x0)"])
def state_and_span_swapped(run):
    return run(lambda x: short(falling, np.array([1.0, 0.0]) + x, (0.0, 1.0)))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["pair (start, end)"])
def only_the_end(run):
    return run(lambda x: short(decay, 1.0, x))(1.0)


# ---- states --------------------------------------------------------------------------------


@solves()
def a_state_of_integers(run):
    return run(lambda k: short(decay, (0.0, 1.0), np.array([1, 2]), t_eval=np.array([k, 1.0])))(0.5)


@solves()
def a_list_of_numbers(run):
    return run(lambda h: short(falling, (0.0, 1.0), [h, 0.0]))(2.0)


@solves()
def a_dict_in_another_order(run):
    def turning(t, s):
        return {"v": -s["x"], "x": s["v"]}

    return run(lambda T: short(turning, (0.0, T), {"x": 0.0, "v": 1.0}))(1.0)


@refused(eager_error=TypeError, error=TypeError, says=["not a real number"])
def a_complex_state(run):
    return run(lambda k: short(lambda t, x: k * x, (0.0, 1.0), 1j))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["no numbers"])
def nothing_to_solve(run):
    return run(lambda k: short(lambda t, x: x, (0.0, k), {}))(1.0)


# ---- outputs -------------------------------------------------------------------------------


@solves()
def outputs_at_computed_times(run):
    return run(lambda s: short(decay, (0.0, 2.0), 1.0, t_eval=s * np.arange(1.0, 4.0)))(0.3)


@solves()
def the_same_time_twice(run):
    return run(lambda s: short(decay, (0.0, 2.0), 1.0, t_eval=np.stack([s, s, 1.0])))(0.3)


@solves()
def no_outputs_at_all(run):
    return run(lambda x: short(decay, (0.0, 2.0), x, t_eval=np.zeros(0)))(0.3)


@solves()
def outputs_at_both_ends(run):
    return run(lambda T: short(decay, (0.0, T), 1.0, t_eval=np.stack([0.0, T])))(1.3)


@refused(eager_error=ValueError, error=ValueError, says=["t_eval"])
def outputs_out_of_order(run):
    return run(lambda x: short(decay, (0.0, 2.0), x, t_eval=np.array([1.0, 0.5])))(0.3)


@refused(eager_error=ValueError, error=ValueError, says=["t_eval"])
def outputs_beyond_the_end(run):
    return run(lambda x: short(decay, (0.0, 2.0), x, t_eval=np.array([1.0, 2.5])))(0.3)


# ---- options -------------------------------------------------------------------------------


@refused(eager_error=TypeError, error=TypeError, says=["'tol'"])
def an_option_that_there_is_not(run):
    return run(lambda x: arc.odeint(decay, (0.0, 1.0), x, tol=1e-3))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["'rk45'", "dopri5"])
def a_method_that_there_is_not(run):
    return run(lambda x: arc.odeint(decay, (0.0, 1.0), x, "rk45"))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["dt"])
def a_step_of_zero(run):
    return run(lambda x: arc.odeint(decay, (0.0, 1.0), x, "rk4", dt=0.0))(1.0)


@refused(eager_error=ValueError, error=ValueError, says=["rtol"])
def a_negative_tolerance(run):
    return run(lambda x: arc.odeint(decay, (0.0, 1.0), x, rtol=-1e-3))(1.0)


# ---- events --------------------------------------------------------------------------------


@solves()
def a_level_that_is_closed_over(run):
    def speed(level):
        ground = arc.Event(lambda t, x: x[0] - level, direction=-1, terminal=True)
        return short(falling, (0.0, 2.0), np.array([2.0, 0.0]), events=ground)

    return run(speed)(0.5)


@solves()
def a_reset_that_is_closed_over(run):
    def height(e):
        bounce = arc.Event(
            lambda t, x: x[0], direction=-1, reset=lambda t, x: np.stack([x[0], -e * x[1]])
        )
        return short(falling, (0.0, 1.0), np.array([2.0, 0.0]), events=bounce)

    return run(height)(0.5)


@refused(eager_error=ValueError, error=ValueError, says=["events[0].fn", "one number"])
def an_event_of_a_whole_state(run):
    return run(lambda x: short(falling, (0.0, 1.0), x, events=lambda t, x: x))(np.ones(2))


@refused(eager_error=TraceError, error=TraceError, says=["events[0].reset", "shape"])
def a_reset_to_a_number(run):
    event = arc.Event(lambda t, x: x[0] - 0.5, reset=lambda t, x: x[0])
    return run(lambda x: short(falling, (0.0, 1.0), x, events=event))(np.ones(2))


# ---- derivatives ---------------------------------------------------------------------------


@solves()
def a_second_derivative_in_the_end(run):
    final = lambda T: short(decay, (0.0, T), 1.0)
    return run(lambda T: arc.grad(arc.grad(final))(T))(1.5)


@solves()
def a_hessian_in_all_times(run):
    def total(times):
        x = short(lambda t, x: np.cos(t) * x, (times[0], 2.0), 1.0, t_eval=times[1:])
        return np.sum(x)

    return run(lambda times: arc.hess(total)(times))(np.array([0.1, 0.4, 1.1]))


@solves()
def a_derivative_inside_the_dynamics(run):
    def rolling(t, x):
        return -arc.grad(lambda y: y**4 / 4.0)(x)

    return run(lambda T: arc.grad(lambda s: short(rolling, (0.0, s), 1.0))(T))(1.0)


@solves()
def a_solve_inside_the_dynamics(run):
    def rate(t, x):
        return short(decay, (0.0, t), x)

    return run(lambda T: short(rate, (0.5, T), 1.0))(1.0)


@solves()
def a_solve_that_fails_in_a_derivative(run):
    """Nothing else is honest than nan: x' = x^2 has no solution there."""

    def final(x):
        return arc.odeint(lambda t, y: y * y, (0.0, 1.5), x, max_steps=400)

    return run(lambda x: arc.grad(final)(x))(1.0)


@solves()
def the_time_of_a_truth_value(run):
    """The event moves with p, but a comparison does not say by how much: nan."""

    def after(p):
        event = arc.Event(lambda t, x: x < p, reset=lambda t, x: x + 1.0)
        return short(decay, (0.0, 1.0), 1.0, events=event)

    return run(lambda p: arc.grad(after)(p))(0.5)


@solves()
def a_derivative_in_an_integer_end(run):
    return run(lambda T: arc.grad(lambda s: short(decay, (0.0, s), 1.0))(T))(2)


@refused(eager_error=TraceError, error=TraceError, says=["t_span[0]", "a number"])
def samples_from_a_start_that_is_differentiated(run):
    hold = arc.Sampled(lambda t, x, u: -x, init=0.0, dt=0.5)

    def final(s):
        return short(lambda t, x, u: u - x, (s, 2.0), 1.0, sampled=hold)

    return run(lambda s: arc.grad(final)(s))(0.1)


@entry("solves", eager_error=TraceError, error=TraceError, says=["arc.cond"])
def dynamics_that_branch_on_the_state(run):
    def thermostat(t, x):
        return -x if x > 0.5 else 1.0 - x

    return run(lambda x: short(thermostat, (0.0, 1.0), x))(1.0)


@entry("solves", eager_error=TraceError, error=TraceError, says=["traced"])
def dynamics_that_take_the_time_as_a_number(run):
    return run(lambda x: short(lambda t, x: -float(t) * x, (0.0, 1.0), x))(1.0)
