"""Linear systems and blocks on the edge: poles, saturation, steps that are too long."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.control import (
    PID,
    IIRFilter,
    StateSpace,
    append,
    balanced_truncation,
    discretize_linear,
    frequency_response,
    margins,
    solve_lyap,
    tf,
    tf2ss,
)

ONE, NONE = np.ones((1, 1)), np.zeros((1, 1))
OSCILLATOR = StateSpace([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], NONE)


def outputs(pid, errors):
    return arc.scan(pid.step, pid.start(), np.asarray(errors))[1]


@pytest.mark.parametrize("tracking", [None, 0.0, 0.3])
def test_a_proportional_block_has_no_memory_of_saturation(tracking):
    pid = PID(1.0, dt=0.1, lower=-1.0, upper=1.0, tracking=tracking)
    np.testing.assert_array_equal(outputs(pid, [5.0, 5.0, -0.1]), [1.0, 1.0, -0.1])


def test_the_integral_waits_beyond_limits():
    """A large error that turns round leaves no trace: the output does not swing across."""
    pid = PID(1.0, 1.0, dt=0.1, lower=-1.0, upper=1.0)
    np.testing.assert_allclose(outputs(pid, [5.0] * 100 + [-0.1])[-2:], [1.0, -0.11])
    # An integral that holds a load is kept, and an error that leads back counts.
    state = pid.start(output=0.9)
    for _ in range(50):
        state, _ = pid.step(state, 5.0)
    assert state.integral == 0.9
    state, output = pid.step(state, -0.1)
    assert output == pytest.approx(0.79)
    both = [arc.compile(pid.step, backend=name)(state, 0.3) for name in ("interpreter", "llvm")]
    for other in both:
        assert all(
            map(np.array_equal, arc.tree.leaves(other), arc.tree.leaves(pid.step(state, 0.3)))
        )


def test_the_response_at_a_pole():
    found = frequency_response(OSCILLATOR, [0.5, 1.0, 2.0])
    assert np.isinf(found.magnitude[0, 0, 1]) and np.isinf(found.decibels[0, 0, 1])
    np.testing.assert_allclose(found.phase[0, 0], [0.0, np.nan, -np.pi], atol=1e-12)
    np.testing.assert_allclose(found.magnitude[0, 0, [0, 2]], [4.0 / 3.0, 1.0 / 3.0])
    nothing = StateSpace(-ONE, NONE, ONE, NONE)
    assert frequency_response(nothing, [1.0]).decibels[0, 0, 0] == -np.inf


def test_margins_say_whether_the_closed_loop_is_stable():
    saddle = StateSpace(np.diag([1.0, -1.0]), np.ones((2, 1)), np.ones((1, 2)), NONE)
    assert not margins(saddle).stable
    assert margins(StateSpace(NONE, ONE, ONE, NONE)).stable
    assert margins(StateSpace(ONE, 0.5 * ONE, -ONE, NONE, dt=0.1)).stable is False


HIDDEN = StateSpace(np.diag([-1.0, -2.0]), [[1.0], [0.0]], [[1.0, 0.0]], NONE)
MESSAGES = [
    (lambda: discretize_linear(20.0 * ONE, ONE, ONE, NONE, 0.1, "tustin"), r"eigenvalue at 2 / dt"),
    (lambda: discretize_linear(1e5 * ONE, ONE, ONE, NONE, 1.0), "dt=1.0 s is so long"),
    (lambda: discretize_linear(ONE, ONE, ONE, NONE, np.inf), "dt must be positive and finite"),
    (lambda: discretize_linear(np.nan * ONE, ONE, ONE, NONE, 0.1), "A must be finite"),
    (lambda: frequency_response(OSCILLATOR, [np.nan]), "omega must be finite"),
    (lambda: tf2ss([1.0], [0.0, np.nan]), "den must hold finite numbers"),
    (lambda: solve_lyap(NONE, ONE), "eigenvalues of A must have negative real parts"),
    (lambda: balanced_truncation(HIDDEN, 2), "order=2 is more than the 1 states"),
    (lambda: PID(np.nan, dt=0.1), "kp must be finite"),
    (lambda: IIRFilter([1.0], [0.0]), "a must hold finite numbers, the first of them not zero"),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_errors_name_the_argument(call, words):
    with pytest.raises((ValueError, np.linalg.LinAlgError), match=words):
        call()


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda: tf([], [1.0]), "num is empty: give at least one coefficient"),
        (lambda: tf([1.0], []), "den is empty"),
        (lambda: tf([np.nan], [1.0, 1.0]), "num must be finite, got"),
        (lambda: append([tf([1.0], [1.0, 1.0])]), "one after the other, not as a list"),
    ],
)
def test_systems_of_nothing_and_lists_of_systems(mistake, says):
    with pytest.raises((TypeError, ValueError), match=says):
        mistake()
