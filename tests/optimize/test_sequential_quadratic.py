"""Small programs as recorded code: published optima, batches, C, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import Status, minimize, nlp_solver
from tests.long_parameters import long_but
from tests.optimize.catalogue import PROBLEMS

#: Problems that need more than 200 iterations of this method, or stop short of the optimum.
HARD = (
    *("HS106", "HS108", "HS114", "HS116", "meyer", "biggs", "watson 9", "MAKELA3", "POLAK5"),
    *("ANTWERP", "BT1", "BIGGSC4"),
)
QUICK = ("HS14", "MAKELA2")


@pytest.mark.parametrize("name", long_but(QUICK, [k for k in PROBLEMS if k not in HARD]))
def test_published_optimum(name):
    problem = PROBLEMS[name]
    found = minimize(problem.obj, problem.x0, method="sqp", **problem.arguments())
    assert found.success, found.message
    assert found.violation < 1e-6
    assert problem.is_minimum(found.fun), found


LENGTHS = np.array([1.0, 0.8, 0.5])


def reach(q):
    angles = np.cumsum(q)
    return np.array([np.sum(LENGTHS * np.cos(angles)), np.sum(LENGTHS * np.sin(angles))])


#: Inverse kinematics of an arm in the plane: least bending that reaches a target.
ARM = nlp_solver(lambda q, target: np.sum(q**2), lambda q, target: reach(q) - target, method="sqp")
Q0 = np.array([0.3, 0.3, 0.3])
BOUNDS = (-2.0, 2.0)


def arm(target):
    return ARM(Q0, target, bounds=BOUNDS)


TARGETS = np.array([[1.5, 0.7], [0.9, 1.1], [2.0, 0.2], [1.0, -1.2], [1.6, 0.9]])


@pytest.mark.long
def test_inverse_kinematics_against_ipopt():
    for target in TARGETS:
        q = arm(target)
        np.testing.assert_allclose(reach(q), target, atol=1e-7)
        peer = minimize(
            lambda q: np.sum(q**2), q, constr=lambda q, t=target: reach(q) - t, bounds=BOUNDS
        )
        assert np.sum(q**2) == pytest.approx(peer.fun, rel=1e-6)


def test_a_batch_is_a_loop_to_the_bit():
    batch = arc.vmap(arm)(TARGETS)
    one = arc.compile(arm)
    np.testing.assert_array_equal(batch, [one(t) for t in TARGETS])
    np.testing.assert_array_equal(batch[0], arc.compile(arm, backend="interpreter")(TARGETS[0]))


@pytest.mark.long
def test_derivatives_against_differences():
    slope = arc.jac(arm)(TARGETS[0])
    for k, e in enumerate(np.eye(2) * 1e-5):
        numeric = (arm(TARGETS[0] + e) - arm(TARGETS[0] - e)) / 2e-5
        np.testing.assert_allclose(slope[:, k], numeric, atol=1e-6)


@pytest.mark.long
def test_as_c(tmp_path):
    project = arc.codegen(arm, (TARGETS[0],), output_dir=tmp_path, return_names=["q"])
    assert project.verify(samples=4).outputs == 3


def test_out_of_reach_says_so():
    found = ARM.solve(Q0, np.array([3.0, 0.0]), bounds=BOUNDS)
    assert found.status is Status.INFEASIBLE
    assert np.all(np.isnan(arc.compile(arm)(np.array([3.0, 0.0]))))


def test_callbacks_and_limits_of_time():
    rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    plain = minimize(rosenbrock, [-1.2, 1.0], method="sqp")
    seen = []
    told = minimize(
        rosenbrock, [-1.2, 1.0], method="sqp", callback=lambda i: seen.append((i.number, i.fun))
    )
    # Iteration by iteration as in one piece, to the last bit.
    np.testing.assert_array_equal(told.x, plain.x)
    assert told.iterations == plain.iterations
    assert [number for number, _ in seen] == list(range(plain.iterations + 1))
    assert seen[-1][1] < seen[0][1]
    stopped = minimize(rosenbrock, [-1.2, 1.0], method="sqp", callback=lambda i: i.number == 3)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.iterations == 3
    late = minimize(rosenbrock, [-1.2, 1.0], method="sqp", options={"maxtime": 1e-9})
    assert late.status is Status.TIME_LIMIT
    with pytest.raises(ValueError, match="option='mu' is not one of"):
        minimize(rosenbrock, [-1.2, 1.0], method="sqp", options={"mu": 1.0})
