"""Units of models that solvers integrate: a derivative has its state's unit per second."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import field, struct


@struct
class State:
    pos: float = field(units="m")
    vel: float = field(units="m/s")


@struct
class Spring:
    rate: float = field(units="1/s^2")


@struct
class Command:
    push: float = field(units="m/s^2")


def model(t, x, p):
    return State(x.vel, -p.rate * x.pos)


def wrong(t, x, p):
    return State(x.vel, -p.rate * x.vel)


X0, ARGS = State(1.0, 2.0), (Spring(4.0),)


def test_a_model_that_fits_is_solved_with_the_same_bits():
    plain = arc.solve_ode(model, (0.0, 1.0), X0, args=ARGS)
    checked = arc.solve_ode(model, (0.0, 1.0), X0, args=ARGS, check_units=True)
    assert np.array_equal(plain.x.pos, checked.x.pos)
    step = arc.discretize(model, dt=0.1, check_units=True)
    assert step(0.0, X0, *ARGS) == arc.discretize(model, dt=0.1)(0.0, X0, *ARGS)


def test_a_wrong_derivative_is_refused_before_any_work():
    calls = []

    def counted(t, x, p):
        calls.append(t)
        return wrong(t, x, p)

    with pytest.raises(arc.UnitsError, match=r"must be m/s\^2") as caught:
        arc.solve_ode(counted, (0.0, 1.0), X0, args=ARGS, check_units=True)
    (found,) = caught.value.report
    assert found.file == __file__
    assert found.expression == "-p.rate * x.vel"
    assert len(calls) == 1
    with pytest.raises(arc.UnitsError, match=r"must be m/s\^2"):
        arc.discretize(wrong, dt=0.1, check_units=True)(0.0, X0, *ARGS)


def test_sampled_parts_keep_the_units_of_their_memory():
    def pushed(t, x, u, p):
        return State(x.vel, u.push)

    def solve(update):
        part = arc.Sampled(update, init=Command(0.0), dt=0.1)
        options = {"sampled": part, "args": ARGS, "check_units": True}
        return arc.solve_ode(pushed, (0.0, 1.0), X0, **options)

    assert solve(lambda t, x, u, p: Command(-p.rate * x.pos)).success
    with pytest.raises(arc.UnitsError, match=r"is m, it must be m/s\^2"):
        solve(lambda t, x, u, p: Command(-x.pos))


def test_inputs_batches_and_arrays():
    def pushed(t, x, u, p):
        return State(x.vel, u.push - p.rate * x.pos)

    def input(t):
        return Command(1.0 + 0.0 * t)

    assert arc.solve_ode(pushed, (0.0, 1.0), X0, inputs=input, args=ARGS, check_units=True).success
    many = State(np.ones(3), np.zeros(3))
    batch = {"args": ARGS, "in_axes": (0, None), "check_units": True}
    assert np.all(arc.solve_ode(model, (0.0, 1.0), many, **batch).success)
    with pytest.raises(arc.UnitsError, match="must be"):
        arc.solve_ode(wrong, (0.0, 1.0), many, **batch)
    # Nothing is declared: nothing can be wrong.
    assert arc.solve_ode(lambda t, x: -x[::-1], (0.0, 1.0), np.ones(2), check_units=True).success


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "dt": 0.1}, {"t_eval": [0.0, 0.5, 1.0]}])
def test_a_solve_inside_a_checked_function(options):
    def end(x, v, w):
        def rates(t, y):
            return np.array([y[1], -w * y[0]])

        return arc.odeint(rates, (0.0, 1.0), np.array([x, v]), **options)

    units = {"x": "m", "v": "m/s"}
    assert arc.check_units(end, {**units, "w": "1/s^2"})(1.0, 2.0, 3.0).ok
    (found,) = arc.check_units(end, {**units, "w": "1/s"})(1.0, 2.0, 3.0)
    assert found.message.startswith("the derivative of the state is m/s, it must be m/s^2")
    assert found.expression == "-w * y[0]"


def test_steps_inside_a_checked_function():
    step = arc.discretize(wrong, dt=0.1)
    (found,) = arc.check_units(lambda x, p: step(0.0, x, p))(X0, *ARGS)
    assert "must be" in found.message
    assert found.file == __file__
    good = arc.discretize(model, dt=0.1)
    report = arc.check_units(lambda x, p: good(0.0, x, p).pos + x.pos)(X0, *ARGS)
    assert report.ok
    assert report.units["return"] == "m"


def test_temperatures_in_celsius_have_rates_in_kelvin():
    @struct
    class Tank:
        warm: float = field(units="degC")

    @struct
    class Losses:
        rate: float = field(units="1/s")
        outside: float = field(units="degC")

    def cool(t, x, p):
        return Tank(-p.rate * (x.warm - p.outside))

    assert arc.solve_ode(
        cool, (0.0, 1.0), Tank(80.0), args=(Losses(0.1, 20.0),), check_units=True
    ).success


def test_a_checked_step_inside_a_compiled_function():
    good = arc.discretize(model, dt=0.1, check_units=True)
    twice = arc.compile(lambda x, p: good(0.1, good(0.0, x, p), p))
    assert twice(X0, *ARGS) == good(0.1, good(0.0, X0, *ARGS), *ARGS)
    bad = arc.discretize(wrong, dt=0.1, check_units=True)
    with pytest.raises(arc.UnitsError, match="must be"):
        arc.compile(lambda x, p: bad(0.0, x, p))(X0, *ARGS)
