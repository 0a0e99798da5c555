"""Every adaptive method on published initial value problems: how wrong it is, how many steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archimedes.simulate import solve_ode
from tests.simulate.initial_value_problems import PROBLEMS, by_name

#: Global errors in multiples of the tolerance (atol + rtol |x|) and of the growth that the flow
#: itself gives to errors. A method controls the error of a step; that of 3,000 steps is larger.
LIMITS = {"heun": 10, "bs3": 10, "dopri5": 10, "tsit5": 10, "dop853": 10, "rodas5p": 10}
LIMITS |= {"esdirk4": 30, "auto": 10, "bdf": 50}
STIFF = ("esdirk4", "rodas5p", "bdf")
#: Steps at a hundredth of the tolerance over steps before. Exact powers are 10, 4.6 and 2.5 to 3.2
#: for orders 2, 3 and 4 to 5 of the estimate; transients that come into view add to it.
MOST = {"heun": 15, "bs3": 7}


def solve(problem, method, rtol, **options):
    """Return the error in multiples of the tolerance, and the number of steps."""
    atol = problem.atol(rtol)
    found = solve_ode(
        problem.f,
        (0.0, problem.t_end),
        np.array(problem.start),
        method=method,
        rtol=rtol,
        atol=atol,
        **options,
    )
    assert found.success, found.message
    error = np.abs(found.x[-1] - problem.end) / (atol + rtol * np.abs(problem.end))
    return error.max(), found.stats["steps"]


def check(problem, method, tolerances):
    counts = []
    for rtol in tolerances:
        error, steps = solve(problem, method, rtol)
        assert error < LIMITS[method] * problem.growth, (method, rtol, error)
        counts.append(steps)
    for few, many in itertools.pairwise(counts):
        assert 0.3 * few < many < MOST.get(method, 7) * few + 20, (method, counts)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.stiff], ids=lambda p: p.name)
@pytest.mark.parametrize("method", STIFF)
def test_stiff_problems(method, problem):
    check(problem, method, (1e-4, 1e-6, 1e-8))


@pytest.mark.long_cases("*-Pleiades", "a*", "d*", "h*", "r*", "t*")
@pytest.mark.parametrize("problem", [p for p in PROBLEMS if not p.stiff], ids=lambda p: p.name)
@pytest.mark.parametrize("method", list(LIMITS))
def test_non_stiff_problems(method, problem):
    # Methods of low order are not for tight tolerances.
    check(problem, method, (1e-4, 1e-6) if method in MOST else (1e-4, 1e-6, 1e-8))


@pytest.mark.parametrize("rtol", [1e-9, 1e-10, 1e-11])
def test_tight_tolerances_do_not_stop_esdirk4(rtol):
    # What Newton's iteration left over took part in step control: 4.8 million steps at 1e-9.
    error, steps = solve(by_name("van der Pol"), "esdirk4", rtol, max_steps=20_000)
    assert error < 10.0
    assert steps < 15_000


@pytest.mark.parametrize(("rtol", "atol"), [(1e-6, 1e-14), (1e-8, 1e-18), (1e-4, 1e-10)])
def test_bdf_on_robertson(rtol, atol):
    # Factors in single precision lost the identity in I - c J: 540 and 1.5e8 tolerances off.
    problem = by_name("Robertson")
    found = solve_ode(
        problem.f, (0.0, 1e11), np.array(problem.start), method="bdf", rtol=rtol, atol=atol
    )
    error = np.abs(found.x[-1] - problem.end) / (atol + rtol * np.abs(problem.end))
    assert error.max() < 20.0
    assert abs(found.x[-1].sum() - 1.0) < 1e-12


def test_fixed_steps_of_esdirk4_say_where_newton_fails():
    # The iteration does not converge with so long a step, and no step is repeated.
    found = solve_ode(
        lambda t, x: 1e3 * (t - np.tanh(50.0 * x)), (0.0, 1.0), 1.0, method="esdirk4", dt=0.5
    )
    assert not found.success
