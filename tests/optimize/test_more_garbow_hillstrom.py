"""Published optima: the least-squares problems of More, Garbow and Hillstrom.

From the standard start all are solved. From ten and a hundred times that, where costs reach 1e48,
many are not; but no point is called a minimum that is none.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as scipy_optimize

from archimedes.optimize import LMStatus, least_squares
from tests.long_parameters import long_but
from tests.optimize.more_garbow_hillstrom import PROBLEMS

#: Some that were called solved where they were not, a singular one, and one of deficient rank.
QUICK = (
    *("3 Powell badly scaled", "9 Gaussian", "11 Gulf research", "13 Powell singular", "18 Biggs"),
    *("26 trigonometric", "33 rank one", "35 Chebyquad 7"),
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def known_sums(problem):
    """Return the sums of squares at which a solver may stop with success."""
    sums = list(problem.sums)
    if problem.more is not None:
        rest, start = problem.more
        left = scipy_optimize.least_squares(rest, start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
        assert left.success
        sums.append(2 * left.cost)
    return np.array(sums)


@pytest.mark.parametrize("name", long_but(QUICK, PROBLEMS))
def test_no_point_is_called_a_minimum_that_is_none(name):
    problem = PROBLEMS[name]
    sums = known_sums(problem)
    for factor in (1, 10, 100):
        found = least_squares(problem.residuals, problem.start(factor))
        near = np.min(np.abs(2 * found.cost - sums) - 1e-5 * sums) < 1e-20
        assert near or not found.success, (factor, found.cost, found.status)
        assert found.success or factor > 1, found.message


def test_there_are_all_35():
    assert {int(name.split()[0]) for name in PROBLEMS} == set(range(1, 36))


T = np.linspace(0.0, 4.0, 40)


def decay(p):
    return p[0] * np.exp(-p[1] * T) - 2.0 * np.exp(-1.3 * T)


@pytest.mark.parametrize(
    ("residuals", "x0", "x"),
    [
        *((lambda x: np.exp(x) - 1, [x0], [0.0]) for x0 in (-10.0, -30.0, 5.0)),
        *((lambda x: np.sinh(x) - 1e3, [x0], [np.arcsinh(1e3)]) for x0 in (0.0, 1.0, -5.0, 20.0)),
        *((lambda x: x**9 - 1, [x0], [1.0]) for x0 in (0.0, 0.01, 0.1, 0.3, 3.0, -1.0)),
        *((decay, x0, [2.0, 1.3]) for x0 in ([1.0, 10.0], [1.0, -5.0], [1.0, 100.0], [-1.0, -1.0])),
        (lambda x: x**2 - 1, [0.0], [1.0]),  # a maximum
        (np.arctan, [1e8], [0.0]),
    ],
)
def test_far_starts_and_flat_ones(residuals, x0, x):
    """A step to where the cost is huge, or a gradient that is tiny, are no convergence."""
    found = least_squares(residuals, x0)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("residuals", [lambda x: np.exp(x) - 1, lambda x: x * 0.0 + 3.0])
def test_a_plateau_is_no_minimum(residuals):
    found = least_squares(residuals, [-800.0])
    assert found.status is LMStatus.FLAT and not found.success
    assert "start where the model responds to x" in found.message


@pytest.mark.parametrize("x0", [-40.0, -100.0, 50.0, 300.0])
def test_what_is_not_reached_is_not_called_so(x0):
    found = least_squares(lambda x: np.exp(x) - 1, [x0])
    assert not found.success or abs(found.x[0]) < 1e-8


def test_probes_count_as_evaluations():
    found = least_squares(lambda x: x**2 - 1, [0.0], max_nfev=3)
    assert found.status is LMStatus.MAX_FEVAL and found.nfev == 3
