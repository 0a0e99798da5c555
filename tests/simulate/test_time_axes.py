"""Which axis is time: arrays that are the wrong way round, and the ways between the forms."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control, observers
from archimedes.sysid import Timeseries, output_error, residual_tests

TS = np.linspace(0.0, 1.0, 11)
ROWS = np.stack([TS, TS**2])  # (signals, times)
KF = observers.KalmanFilter(np.eye(2), np.eye(2), np.eye(2), np.eye(2))
ZERO, ONE = np.zeros(2), np.eye(2)
LAST, FIRST = "times are the last axis: transpose it, give ", "times are the first axis: transpose "
TURNED = [
    (lambda: Timeseries(TS, ROWS.T, TS), r"us .*\(rows, 11\), got \(11, 2\); " + LAST + "us.T"),
    (lambda: Timeseries(TS, None, ROWS.T), LAST + "ys.T"),
    (lambda: observers.filter_series(KF, TS, ROWS.T, ZERO, ONE), r"got \(11, 2\); " + LAST),
    (lambda: observers.rts_smoother(KF, TS, ROWS.T, ZERO, ONE), LAST + "ys.T"),
    (lambda: observers.filter_series(KF, TS, ROWS, ZERO, ONE, us=ROWS.T), LAST + "us.T"),
    (lambda: residual_tests(ROWS.T, lags=2), r"got \(11, 2\): transpose it, residuals.T"),
    (lambda: residual_tests(ROWS, ROWS.T, lags=2), LAST + "us.T"),
    (
        lambda: arc.InputSeries(TS, ROWS),
        r"u has shape \(2, 11\).*11 times.*" + FIRST + "it, give u",
    ),
    (lambda: arc.InputSeries(TS, {"a": ROWS}), FIRST + r"it, give u\['a'\].T"),
    (lambda: arc.Trajectory(TS, ROWS), r"got \(2, 11\); " + FIRST + "it, give x.T"),
    (lambda: arc.Trajectory(TS, TS, u=ROWS), FIRST + "it, give u.T"),
    (lambda: arc.Trajectory(TS, np.ones((3, 3, 11))), r"it, give np.moveaxis\(x, -1, 0\)"),
    (
        lambda: arc.scan(lambda c, x: (c, c), 0.0, (TS, ROWS)),
        r"lengths \[2, 11\] .*: xs\[0\] \(11,\), xs\[1\] \(2, 11\); "
        + FIRST
        + r"it, give xs\[1\].T",
    ),
    (
        lambda: control.forced_response(control.ss(-ONE, ONE, ONE, 0 * ONE), TS, ROWS),
        r"u must have shape \(11, 2\), got \(2, 11\); " + FIRST,
    ),
    (
        lambda: output_error(
            *(lambda t, x, u, p: -p * x, lambda t, x, u, p: x, Timeseries(TS, None, ROWS)),
            *(1.0, ZERO),
            segments=2,
            states=ROWS.T,
        ),
        LAST + "states.T",
    ),
]


@pytest.mark.parametrize(("call", "words"), TURNED)
def test_stumble_time_axes_differ(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_lengths_that_fit_neither_way_are_not_to_be_transposed():
    for call in (lambda: Timeseries(TS, None, ROWS[:, 1:]), lambda: arc.Trajectory(TS, ROWS.T[1:])):
        with pytest.raises(ValueError, match="got") as caught:
            call()
        assert "transpose" not in str(caught.value)


def swing(t, x):
    return np.stack([x[1], -np.sin(x[0])])


def test_the_same_motion_in_all_forms():
    start = np.array([1.0, 0.0])
    rows = arc.odeint(swing, (0.0, 1.0), start, t_eval=TS)
    traj = arc.solve_ode(swing, (0.0, 1.0), start, t_eval=TS)
    np.testing.assert_array_equal(arc.Trajectory(TS, rows.T).x, traj.x)
    data = Timeseries.from_trajectory(traj)
    np.testing.assert_array_equal(data.ys, rows)
    assert data.outputs == ("x[0]", "x[1]") and data.us.shape == (0, 11)
    np.testing.assert_array_equal(Timeseries(TS, None, rows).ys, data.ys)
    np.testing.assert_array_equal(data.to_trajectory().x, traj.x)


@arc.struct
class State:
    angle: float
    arms: np.ndarray


def test_series_from_trajectories_of_structs_and_back():
    kick = arc.InputSeries([0.0, 0.5], {"force": np.array([1.0, 0.0])})
    move = lambda t, x, u: State(u["force"] - x.angle, 0.0 * x.arms + x.angle)
    traj = arc.solve_ode(move, (0.0, 1.0), State(0.0, np.zeros(2)), inputs=kick)
    data = Timeseries.from_trajectory(traj)
    assert data.outputs == ("angle", "arms[0]", "arms[1]") and data.inputs == ("u.force",)
    np.testing.assert_array_equal(data.ys[1:], traj.x.arms.T)
    np.testing.assert_array_equal(data.us[0], traj.u["force"])
    assert set(data.us[0]) == {0.0, 1.0} and data.hold == "zoh"
    # 1 - exp(-t) while the force is on.
    on = data.ts < 0.5
    np.testing.assert_allclose(data.ys[0, on], 1.0 - np.exp(-data.ts[on]), atol=1e-8)
    some = Timeseries.from_trajectory(traj, ["arms", "angle"], "u.force")
    assert some.outputs == ("arms[0]", "arms[1]", "angle") and some.inputs == ("u.force",)
    named = Timeseries(TS, TS, TS**2, inputs=("force",), outputs=("angle",))
    back = named.to_trajectory()
    np.testing.assert_array_equal(back["angle"], TS**2)
    again = Timeseries.from_trajectory(back, inputs=["u.force"])
    assert again.outputs == ("angle",) and np.array_equal(again.us, named.us)


WRONG = [
    (lambda: Timeseries.from_trajectory(TS), TypeError, "trajectory must be a Trajectory, got nd"),
    (
        lambda: Timeseries.from_trajectory(arc.Trajectory(np.zeros((3, 2)), np.zeros((3, 2)))),
        ValueError,
        r"trajectory is a batch \(3,\): take one of it, trajectory\[k\]",
    ),
    (
        lambda: Timeseries.from_trajectory(arc.Trajectory(TS, ROWS.T), "angle"),
        KeyError,
        r"no column 'angle'; there are \['x\[0\]', 'x\[1\]'\]",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_what_is_no_series(call, error, words):
    with pytest.raises(error, match=words):
        call()
