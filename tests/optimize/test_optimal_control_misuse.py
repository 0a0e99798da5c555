"""Optimal control used wrongly: nothing is silent, and errors name the argument."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import OptimalControl, Phases, Status

REST = {"running_cost": lambda t, x, u: u**2, "initial": [0.0, 0.0], "final": [1.0, 0.0]}
GUESS = {"x": np.zeros(2), "u": 0.0}


def pushed(t, x, u):
    return np.array([x[1], u])


def problem(dynamics=pushed, **changed):
    return OptimalControl(dynamics, **{**REST, **changed})


@arc.struct
class State:
    pos: float
    vel: float


#: What is wrong with the problem, and what is said.
PROBLEMS = {
    "dict": ({"dynamics": lambda t, x, u: {"a": x[1], "b": u}}, "dynamics returns .*'a'"),
    "matrix": ({"dynamics": lambda t, x, u: np.array([[x[1], u]])}, r"shapes \[\(1, 2\)\]"),
    "no rate": ({"dynamics": lambda t, x, u: None}, "dynamics returns 0 numbers"),
    "vector cost": ({"running_cost": lambda t, x, u: x}, "running_cost returns 2 numbers"),
    "no cost": ({"running_cost": lambda t, x, u: None}, "running_cost returns 0 numbers"),
    "terminal": ({"terminal_cost": lambda a, b, c, x: x}, "terminal_cost returns 2 numbers"),
    "no path": ({"path": lambda t, x, u: None}, "path returns no numbers"),
    "no boundary": ({"boundary": lambda *a: None}, "boundary returns no numbers"),
    "no integrals": ({"integrals": lambda t, x, u: None}, "integrals returns no numbers"),
    "path_bounds": ({"path_bounds": (0, 1)}, "path_bounds are given, but no path"),
    "boundary_bounds": ({"boundary_bounds": (0, 1)}, "boundary_bounds are given, but no"),
    "integral_bounds": ({"integral_bounds": (0, 1)}, "integral_bounds are given, but no"),
    "parameter_bounds": ({"parameter_bounds": (0, 1)}, "parameter_bounds are given, but the"),
    "text": ({"tf": "1"}, "tf must be a number, or a pair"),
    "nothing": ({"tf": None}, "tf must be a number, or a pair"),
    "endless": ({"tf": np.inf}, "tf must be a number, or a pair"),
    "three": ({"tf": (1.0, 2.0, 3.0)}, "tf must be a number, or a pair"),
    "backwards": ({"tf": -1.0}, "give tf > t0"),
    "words": ({"final": ["a", 0.0]}, "final must hold numbers"),
    "nan": ({"initial": [np.nan, 0.0]}, "initial holds nan"),
    "crossed": ({"control_bounds": (1, -1)}, "control_bounds: no number lies between"),
    "crossed path": (
        {"path": lambda t, x, u: x[0], "path_bounds": (2, 1)},
        "path_bounds: no number lies between",
    ),
    "no pair": ({"control_bounds": 5}, "control_bounds must be a pair"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_wrong_problem(name):
    changed, says = PROBLEMS[name]
    with pytest.raises(ValueError, match=says):
        problem(**changed).solve(GUESS, intervals=3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"intervals": "ten"}, "intervals = 'ten' must be a whole number"),
        ({"intervals": None}, "intervals = None must be a whole number"),
        ({"intervals": 2.5}, "intervals = 2.5 must be a whole number"),
        ({"intervals": [0.0, np.nan, 1.0]}, "a mesh that rises"),
        ({"method": "sqp"}, r"method='sqp' is not one of \('ipm', 'ipopt'"),
        ({"options": {"max_iter": 3}}, "option='max_iter' is not one of"),
        ({"mesh_tol": np.nan}, "mesh_tol must be positive and finite"),
        ({"guess": None}, "guess must be a dict"),
        ({"guess": {"x": [np.nan, 0.0], "u": 0.0}}, r"guess\['x'\]\[0\] is nan"),
        ({"guess": {"x": np.zeros(2), "u": np.inf}}, r"guess\['u'\] is inf"),
        ({"guess": {"x": lambda s: np.full(2, np.sqrt(0.5 - s)), "u": 0.0}}, "is nan"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_wrong_arguments(arguments, says):
    with pytest.raises(ValueError, match=says):
        problem().solve(**{"guess": GUESS, "intervals": 3, **arguments})


def test_structs_are_compared_field_by_field():
    both = {"initial": State(0.0, 0.0), "final": State(1.0, 0.0)}
    guess = {"x": State(0.0, 0.0), "u": 0.0}
    with pytest.raises(ValueError, match=r"dynamics returns .* for a state of .*State"):
        problem(pushed_struct_as_array, **both).solve(guess, intervals=3)
    found = problem(lambda t, x, u: State(x.vel, u), **both).solve(guess, intervals=3)
    assert found.fun == pytest.approx(12.0)
    assert isinstance(found.x, State)
    assert isinstance(found.costates, State)


def pushed_struct_as_array(t, x, u):
    return np.array([x.vel, u])


def test_lists_of_numbers_are_vectors():
    found = problem(lambda t, x, u: [x[1], u]).solve(GUESS, intervals=3)
    assert found.fun == pytest.approx(12.0)


def test_arguments_without_a_tuple():
    found = problem(
        lambda t, x, u, k: np.array([x[1], k * u]), running_cost=lambda t, x, u, k: u**2
    ).solve(GUESS, intervals=3, args=2.0)
    assert found.fun == pytest.approx(3.0)


@pytest.mark.parametrize("method", ["hermite-simpson", "radau3", "trapezoidal"])
def test_one_interval(method):
    # A parabola has to do: with controls at three points the cubic is exact.
    found = problem(final=[0.5, 1.0]).solve(GUESS, intervals=1, scheme=method)
    assert found.success
    assert found.fun == pytest.approx(1.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"control_bounds": (-1.0, 1.0)},
        {"path": lambda t, x, u: x[0], "path_bounds": (2.0, None)},
        {"boundary": lambda t0, x0, tf, xf: xf[0] - 3.0},
    ],
)
def test_what_cannot_be_met_is_told(changed):
    found = problem(**changed).solve(GUESS, intervals=8)
    assert not found.success
    assert found.status is Status.INFEASIBLE
    assert max(found.residuals().values()) > 1e-3
    assert "FAILED" in repr(found)


def test_functions_without_values():
    found = problem(lambda t, x, u: np.array([x[1], u + np.sqrt(x[0] - 1.0)])).solve(
        GUESS, intervals=3
    )
    assert found.status is Status.NOT_FINITE
    with pytest.raises(ValueError, match="t must lie between"):
        problem().solve(GUESS, intervals=3).at(np.nan)


def test_limits_of_time_and_of_iterations():
    made = problem(control_bounds=(-10.0, 10.0))
    late = made.solve(GUESS, intervals=30, options={"maxtime": 1e-9})
    assert late.status is Status.TIME_LIMIT
    few = made.solve(GUESS, intervals=30, options={"maxiter": 1})
    assert (few.status, few.iterations) == (Status.ITERATION_LIMIT, 1)


def test_an_interrupt_returns_the_best_point_so_far():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = problem(control_bounds=(-10.0, 10.0))
    sent = []

    def press(iteration):
        if iteration.number == 2 and not sent:
            sent.append(iteration.number)
            os.kill(os.getpid(), signal.SIGINT)

    try:
        assert threading.current_thread() is threading.main_thread()
        found = made.solve(GUESS, intervals=30, options={"tol": 1e-12}, callback=press)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sent == [2]
    assert found.status is Status.INTERRUPTED
    assert found.iterations <= 3
    assert np.all(np.isfinite(found.x))


def test_wrong_phases():
    up, on = problem(tf=0.5, final=None), problem(t0=0.5, initial=None)
    with pytest.raises(ValueError, match="guesses must be a list"):
        Phases(up, on).solve(None)
    with pytest.raises(ValueError, match="guesses must be a list"):
        Phases(up, on).solve(GUESS)
    with pytest.raises(ValueError, match=r"links\[0\] returns no numbers"):
        Phases(up, on, links=[lambda tf, xf, t0, x0: None]).solve([GUESS, GUESS], intervals=3)
    with pytest.raises(ValueError, match="method='sqp' is not one of"):
        Phases(up, on).solve([GUESS, GUESS], intervals=3, method="sqp")
    found = Phases(up, on).solve([GUESS, GUESS], intervals=3)
    again = Phases(up, on).solve(found, intervals=3)
    assert again.fun == pytest.approx(found.fun) == pytest.approx(12.0)
