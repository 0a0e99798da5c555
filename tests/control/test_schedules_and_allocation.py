"""Gain tables, mixers and allocation: interpolation by SciPy, conditions of a minimum, C."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.optimize import lsq_linear

import archimedes as arc
from archimedes.control import (
    PID,
    Allocator,
    GainSchedule,
    Mixer,
    lqr,
    lqr_design,
    schedule_gains,
)

AXES = (np.array([1.0, 2.0, 4.0, 7.0]), np.array([-1.0, 0.0, 3.0]))
GAINS = np.random.default_rng(0).normal(size=(4, 3, 2, 2))
SCHEDULE = GainSchedule(AXES, GAINS)


def test_tables_against_scipy():
    wanted = RegularGridInterpolator(AXES, GAINS)
    for point in np.random.default_rng(1).uniform([1, -1], [7, 3], size=(30, 2)):
        np.testing.assert_allclose(SCHEDULE.at(*point), wanted(point)[0], atol=1e-13)
    np.testing.assert_array_equal(SCHEDULE.at(100.0, -9.0), GAINS[-1, 0])
    np.testing.assert_array_equal(SCHEDULE.at(2.0, 0.0), GAINS[1, 1])


def oscillator(t, x, u, k):
    return np.array([x[1], u[0] - k * np.sin(x[0])])


def design(k):
    return lqr_design(oscillator, np.zeros(2), np.zeros(1), [1.0, 2.0], [1.0], args=(k,)).K


def test_gains_of_all_points_are_one_batch():
    grid = np.linspace(0.5, 9.0, 8)
    schedule = schedule_gains(design, grid)
    for k in grid:
        A = np.array([[0.0, 1.0], [-k, 0.0]])
        wanted, _ = lqr(A, [[0.0], [1.0]], np.diag([1.0, 2.0]), np.eye(1))
        np.testing.assert_allclose(schedule.at(k), wanted, atol=1e-10)
    # The batch has the bits of one design alone, compiled.
    one = arc.compile(design, backend="llvm")
    np.testing.assert_array_equal(schedule.gains[3], one(grid[3]))
    between = schedule.step(None, (3.3, np.array([0.1, 0.2])))[1]
    np.testing.assert_allclose(between, design(3.3) @ [0.1, 0.2], rtol=0.01)
    with pytest.raises(ValueError, match=r"not finite at \[0.0\]"):
        schedule_gains(lambda k: design(k) / k, [0.0, 1.0])


def test_any_tree_of_gains():
    schedule = GainSchedule(([0.0, 1.0],), PID(np.array([1.0, 3.0]), dt=0.1))
    pid = schedule.at(0.5)
    assert isinstance(pid, PID) and pid.kp == 2.0 and pid.upper == np.inf
    slope = arc.grad(lambda v: GainSchedule(([0.0, 1.0],), np.array([2.0, 5.0])).at(v))(0.3)
    assert slope == pytest.approx(3.0)


def test_regulators_of_structs():
    @arc.struct
    class State:
        angle: float
        rate: float

    def swing(t, x, u):
        return State(x.rate, u["torque"] + np.sin(x.angle))

    found = lqr_design(swing, State(0.0, 0.0), {"torque": 0.0}, np.eye(2), np.eye(1))
    wanted, _ = lqr([[0.0, 1.0], [1.0, 0.0]], [[0.0], [1.0]], np.eye(2), np.eye(1))
    np.testing.assert_allclose(found.K, wanted, atol=1e-12)
    _, u = found.step(None, State(0.1, 0.0))
    assert u["torque"] == pytest.approx(-0.1 * wanted[0, 0])
    assert found.system.states == ("angle", "rate")
    steps = lqr_design(swing, State(0.0, 0.0), {"torque": 0.0}, [1.0, 1.0], [1.0], dt=0.1)
    assert steps.system.dt == 0.1
    assert np.abs(np.linalg.eigvals(steps.system.A - steps.system.B @ steps.K)).max() < 1


QUAD = np.array([[1.0, 1, 1, 1], [1, -1, -1, 1], [1, 1, -1, -1], [0.1, -0.1, 0.1, -0.1]])


def test_a_mixer_keeps_the_direction():
    mixer = Mixer.of(QUAD, lower=0.0, upper=1.0, neutral=0.5)
    _, u = mixer.step(None, np.array([0.2, 0.1, -0.1, 0.01]))
    np.testing.assert_allclose(QUAD @ (u - 0.5), [0.2, 0.1, -0.1, 0.01], atol=1e-12)
    _, u = mixer.step(None, np.array([0.0, 8.0, -4.0, 0.0]))
    reached = QUAD @ (u - 0.5)
    assert u.max() == pytest.approx(1.0) or u.min() == pytest.approx(0.0)
    np.testing.assert_allclose(reached[[0, 2, 3]], [0.0, -0.5 * reached[1], 0.0], atol=1e-12)


ALLOCATOR = Allocator(
    np.random.default_rng(3).normal(size=(3, 6)), lower=-1.0, upper=1.0, weights=[1.0, 4.0, 2.0]
)


@pytest.mark.parametrize("ease", [1e-6, 0.1])
def test_allocations_against_scipy(ease):
    allocator = ALLOCATOR.replace(ease=ease)
    for demand in np.random.default_rng(4).normal(size=(10, 3)) * 2.0:
        _, u = allocator.step(allocator.start(), demand)
        root = np.sqrt(np.array([1.0, 4.0, 2.0]))[:, None]
        rows = np.concatenate([root * ALLOCATOR.effects, np.sqrt(ease) * np.eye(6)])
        right = np.concatenate([root[:, 0] * demand, np.zeros(6)])
        wanted = lsq_linear(rows, right, (-1.0, 1.0), tol=1e-14).x
        if ease > 1e-3:  # what effects leave open is known to the solver's tolerance over ease
            np.testing.assert_allclose(u, wanted, atol=2e-5)
        cost = [np.sum((rows @ v - right) ** 2) for v in (u, wanted)]
        assert cost[0] <= cost[1] + 1e-6


def test_allocation_limits_rates():
    slow = ALLOCATOR.replace(rate=2.0, dt=0.01)
    state = slow.start()
    for _ in range(5):
        before = state
        state, u = slow.step(state, np.array([3.0, -3.0, 1.0]))
        assert np.abs(u - before).max() <= 0.02 + 1e-15
    assert np.abs(u).max() > 0.09


BLOCKS = {
    "schedule": (SCHEDULE, None, ((2.5, 1.0), np.array([0.2, -0.1]))),
    "mixer": (Mixer.of(QUAD, lower=0.0, upper=1.0, neutral=0.5), None, np.array([1.0, 2, -1, 0])),
    "allocator": (ALLOCATOR.replace(ease=0.1), ALLOCATOR.start(), np.array([3.0, -3.0, 1.0])),
}


@pytest.mark.long_cases("allocator")
@pytest.mark.parametrize("name", BLOCKS)
def test_the_same_bits_in_batches_and_derivatives(name):
    block, state, input = BLOCKS[name]

    def run(scale):
        return block.step(state, arc.tree.map(lambda v: v * scale, input))[1]

    fast, slow = (arc.compile(run, backend=b)(1.0) for b in ("llvm", "interpreter"))
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_allclose(fast, block.step(state, input)[1], atol=1e-12)
    np.testing.assert_array_equal(arc.vmap(run)(np.array([1.0, 0.9]))[0], fast)
    difference = (run(0.83 + 1e-6) - run(0.83 - 1e-6)) / 2e-6
    np.testing.assert_allclose(arc.jac(run)(0.83), difference, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", BLOCKS)
def test_as_c(name, tmp_path):
    block, state, input = BLOCKS[name]

    def block_step(last, wanted):
        return block.step(last, wanted)[1]

    given = (np.zeros(1) if state is None else state, input)
    project = arc.codegen(block_step, given, output_dir=tmp_path, return_names=["u"])
    project.verify(samples=4)


MESSAGES = [
    (lambda: GainSchedule(([1.0, 0.0],), np.zeros(2)), r"points\[0\] must increase strictly"),
    (lambda: GainSchedule(([1.0],), np.zeros(1)), "a vector of at least 2 numbers"),
    (
        lambda: GainSchedule(([0.0, 1.0],), np.zeros(3)),
        r"gains must begin with the shape of the grid",
    ),
    (lambda: SCHEDULE.at(1.0), "give 2 scheduling values, got 1"),
    (lambda: Mixer(QUAD, lower=0.0, upper=1.0, neutral=2.0), "neutral must lie between"),
    (lambda: Mixer(QUAD, lower=1.0, upper=0.0), "lower and upper:"),
    (lambda: Mixer(QUAD).step(None, np.ones(3)), r"input must be a vector of shape \(4,\)"),
    (lambda: Allocator(QUAD, weights=[1.0, 2.0]), r"weights must be a number or a vector \(4,\)"),
    (lambda: Allocator(QUAD, ease=0.0), "ease must be positive"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
