"""Inputs between samples: one word in simulation, data and fits, against SciPy's exact holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.signal import cont2discrete, dlsim, lsim

import archimedes as arc
from archimedes import control
from archimedes.observers import ExtendedKalmanFilter
from archimedes.optimize import OptimalControl
from archimedes.sysid import Timeseries, multiple_shooting, output_error, pem

A = np.array([[0.0, 1.0], [-4.0, -0.6]])
B = np.array([[0.0], [2.0]])
C, D = np.eye(2), np.zeros((2, 1))
DT = 0.1
TS = DT * np.arange(41)
US = np.random.default_rng(3).normal(size=41)


def by_scipy(hold):
    """States (41, 2) by SciPy: lsim interpolates linearly, dlsim of a held system is exact."""
    if hold == "foh":
        return lsim((A, B, C, D), US, TS)[1]
    system = cont2discrete((A, B, C, D), DT, "zoh")
    return dlsim(system, US, TS)[1]


def oscillator(t, x, u, p):
    return np.stack([x[1], -p["k"] * x[0] - p["c"] * x[1] + 2.0 * u[0]])


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_simulation_and_fit_agree_with_scipy(hold):
    wanted = by_scipy(hold)
    series = arc.InputSeries(TS, US[:, None], hold=hold)
    traj = arc.solve_ode(lambda t, x, u: A @ x + B @ u, (0.0, TS[-1]), np.zeros(2), inputs=series)
    assert traj.hold == hold
    at = np.searchsorted(traj.t, TS - 1e-9)
    np.testing.assert_allclose(traj.t[at], TS, atol=1e-12)
    np.testing.assert_allclose(traj.x[at], wanted, atol=1e-8)
    data = Timeseries(TS, US, wanted.T, hold=hold)
    fit = output_error(oscillator, lambda t, x, u, p: x, data, {"k": 3.0, "c": 1.0}, np.zeros(2))
    assert fit.success, fit.message
    # Two Runge-Kutta steps between samples leave an error of this size.
    np.testing.assert_allclose([fit.p["k"], fit.p["c"]], [4.0, 0.6], rtol=2e-4)
    np.testing.assert_allclose(data.input_series()(TS + 0.05), series(TS + 0.05))
    ours = control.discretize_linear(A, B, C, D, DT, hold)
    for a, b in zip(ours, cont2discrete((A, B, C, D), DT, hold)):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_inputs_are_held_unless_told_otherwise():
    """The one default: of series, of data, of discretization."""
    assert arc.InputSeries([0.0, 1.0], [1.0, 2.0]).hold == "zoh"
    assert Timeseries([0.0, 1.0], [1.0, 2.0], [0.0, 0.0]).hold == "zoh"
    F, G, *_ = control.discretize_linear(A, B, C, D, DT)
    whole = expm(DT * np.block([[A, B], [np.zeros((1, 3))]]))
    np.testing.assert_allclose(np.hstack([F, G]), whole[:2], atol=1e-14)


def pendulum(t, x, u, p):
    return np.stack([x[1], -p["g_l"] * np.sin(x[0]) - p["damping"] * x[1] + u[0]])


TRUE = {"g_l": 9.81 / 0.7, "damping": 0.4}


@pytest.mark.parametrize("hold", [None, "foh"])
def test_stumble_pendulum_identified_with_the_defaults_is_14_percent_wrong(hold):
    """Simulated and identified with the same words, or none, the parameters are those of before."""
    ts = 0.2 * np.arange(61)
    us = 4.0 * np.random.default_rng(0).choice([-1.0, 1.0], size=61)
    series = arc.InputSeries(ts, us[:, None], *([] if hold is None else [hold]))
    traj = arc.solve_ode(
        pendulum, (0.0, 12.0), np.array([0.5, 0.0]), args=(TRUE,), inputs=series, t_eval=ts
    )
    data = Timeseries.from_trajectory(traj, outputs="x[0]")
    assert data.hold == (hold or "zoh") and data.outputs == ("x[0]",) and data.inputs == ("u[0]",)
    np.testing.assert_array_equal(data.us[0], us)
    guess = {"g_l": 12.0, "damping": 0.1}
    sensor = lambda t, x, u, p: x[:1]
    fit = output_error(pendulum, sensor, data, guess, np.array([0.5, 0.0]), substeps=4)
    assert fit.success, fit.message
    for name, value in TRUE.items():
        assert fit.p[name] == pytest.approx(value, rel=2e-4)
    # What the stumble was: the other hold is far off, and is not taken in silence any more.
    other = "zoh" if hold == "foh" else "foh"
    wrong = data.replace(hold=other)
    off = output_error(pendulum, sensor, wrong, guess, np.array([0.5, 0.0]), substeps=4)
    assert abs(off.p["damping"] / TRUE["damping"] - 1.0) > 0.05
    with pytest.raises(ValueError, match=rf"hold='{other}', but .* data.hold='{data.hold}'.*leave"):
        output_error(pendulum, sensor, data, guess, np.array([0.5, 0.0]), hold=other)


RAMP = Timeseries(TS, US, by_scipy("foh").T, hold="foh")
EKF = ExtendedKalmanFilter(
    lambda t, x, u, p: p["k"] * x, lambda t, x, u, p: x, 0.01 * np.eye(2), 0.01 * np.eye(2)
)
GUESS = {"k": 1.0, "c": 1.0}


def sampled_between(shift):
    """A simulation whose output times are not those at which its input jumps."""
    series = arc.InputSeries(TS, US)
    given = {"inputs": series, "t_eval": np.arange(0.0, 3.9, 0.1) + shift}
    return arc.solve_ode(lambda t, x, u: u - x, (0.0, 4.0), 0.0, **given)


OPEN = Timeseries([0.0, 1.0], [1.0, 2.0], [0.0, 0.0])
BY_FUNCTION = arc.solve_ode(lambda t, x, u: u - x, (0.0, 1.0), 0.0, inputs=np.sin)
MESSAGES = [
    (lambda: pem(EKF, RAMP, {"k": 1.0}, np.zeros(2)), "data.hold='foh', but a filter sees one"),
    (
        lambda: output_error(oscillator, oscillator, RAMP, GUESS, np.zeros(2), discrete=True),
        "but a discrete model sees one input per step.*use output_error with dx/dt",
    ),
    (
        lambda: multiple_shooting(oscillator, oscillator, RAMP, GUESS, np.zeros(2), hold="zoh"),
        r"leave hold out or, .* write data.replace\(hold='zoh'\)",
    ),
    (
        lambda: arc.InputSeries([0.0, 1.0], [1.0, 2.0], hold="linear"),
        "InputSeries: hold='linear' is not one of 'zoh', 'foh'; \"zoh\" holds each sample",
    ),
    (lambda: OPEN.replace(hold="zero"), "Timeseries: hold='zero' is not one of 'zoh', 'foh'"),
    (lambda: arc.Trajectory([0.0], np.zeros(1), hold="zero"), "Trajectory: hold='zero' is not one"),
    (lambda: Timeseries.from_trajectory(BY_FUNCTION), 'hold must be given.*"foh" is the nearer'),
    (lambda: Timeseries.from_trajectory(sampled_between(0.05)), "t_eval leaves out times"),
    (
        lambda: Timeseries.from_trajectory(OPEN.to_trajectory(), hold="foh"),
        "hold='foh' differs from the 'zoh' that the trajectory was simulated with: leave it out",
    ),
]


@pytest.mark.parametrize(("call", "words"), MESSAGES)
def test_data_and_models_that_disagree(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_old_words_are_gone():
    with pytest.raises(TypeError, match="method"):
        arc.InputSeries([0.0, 1.0], [1.0, 2.0], method="zoh")


def test_a_trajectory_knows_its_hold(tmp_path):
    """Held by a controller, linear by a series, unknown by a function; kept in parts and files."""
    controlled = arc.solve_ode(
        lambda t, x, u: u - x, (0.0, 1.0), 1.0, sampled=arc.Sampled(lambda t, x, u: -x, 0.0, dt=0.1)
    )
    assert controlled.hold == "zoh" and controlled[2:5].hold == "zoh"
    none = arc.solve_ode(
        lambda t, x, u: u - x, (0.0, 4.0), 0.0, inputs=arc.InputSeries(TS, US), t_eval=[]
    )
    assert none.hold is None and len(none) == 0
    assert BY_FUNCTION.hold is None and Timeseries.from_trajectory(BY_FUNCTION, hold="foh")
    ramp = arc.InputSeries([0.0, 1.0], [0.0, 1.0], "foh")
    hold = arc.Sampled(lambda t, x, u: -x, 0.0, dt=0.1)
    both = arc.solve_ode(lambda t, x, u, v: u + v - x, (0.0, 1.0), 1.0, inputs=ramp, sampled=hold)
    assert both.hold is None
    linear = arc.solve_ode(lambda t, x, u: u - x, (0.0, 1.0), 1.0, inputs=ramp)
    linear.to_npz(tmp_path / "a.npz")
    assert arc.Trajectory.from_npz(tmp_path / "a.npz").hold == "foh"
    assert Timeseries.from_trajectory(linear).hold == "foh"


def test_resampled_inputs_follow_their_hold():
    held = Timeseries([0.0, 1.0, 3.0], [0.0, 1.0, 3.0], [0.0, 1.0, 3.0])
    np.testing.assert_array_equal(held.resample(0.5).us[0], [0, 0, 1, 1, 1, 1, 3])
    linear = held.replace(hold="foh").resample(0.5)
    np.testing.assert_allclose(linear.us[0], 0.5 * np.arange(7), atol=1e-15)
    assert linear.hold == "foh" and linear[1:3].hold == "foh"
    # 3 * 0.1 lies just above the sample at 0.3, and below it without the care taken.
    fine = Timeseries([0.0, 0.3, 0.6], [1.0, 2.0, 3.0], np.zeros(3)).resample(0.1)
    np.testing.assert_array_equal(fine.us[0], [1, 1, 1, 2, 2, 2, 3])


@pytest.mark.parametrize("times", [np.linspace(0.0, 4.0, 41), TS, np.arange(0.0, 4.05, 0.1)])
def test_rounding_of_output_times_moves_no_jump(times):
    """Times that are a digit off those of the samples: the inputs are those of the samples."""
    series = arc.InputSeries(TS, US)
    traj = arc.solve_ode(lambda t, x, u: u - x, (0.0, 4.01), 0.0, inputs=series, t_eval=times)
    data = Timeseries.from_trajectory(traj)
    assert data.hold == "zoh"
    np.testing.assert_array_equal(data.us[0], US)
    held = np.exp(-0.1)
    steps = traj.x[1:] - (held * traj.x[:-1] + (1.0 - held) * US[:-1])
    np.testing.assert_allclose(steps, 0.0, atol=1e-8)


def test_controllers_are_held_where_their_samples_are_seen():
    control = arc.Sampled(lambda t, x, u: -x, 0.0, dt=0.1)
    given = (lambda t, x, u: u - x, (0.0, 1.0), 1.0)
    assert arc.solve_ode(*given, sampled=control).hold == "zoh"
    assert arc.solve_ode(*given, sampled=control, t_eval=[0.0, 0.5, 1.0]).hold is None
    many = arc.solve_ode(*given[:2], np.ones(3), sampled=control, in_axes=(0,))
    assert many.hold == "zoh" and many[1].hold == "zoh"


@pytest.mark.parametrize(("scheme", "hold"), [("multiple-shooting", "zoh"), ("trapezoidal", "foh")])
def test_controls_of_an_optimum_are_flown_with_their_own_hold(scheme, hold):
    problem = OptimalControl(
        lambda t, x, u: np.stack([x[1], u]),
        running_cost=lambda t, x, u: u**2,
        initial=np.zeros(2),
        final=np.array([1.0, 0.0]),
        tf=1.0,
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0}, intervals=20, scheme=scheme)
    assert found.success and found.trajectory.hold == hold
    inputs = arc.InputSeries.from_trajectory(found.trajectory)
    assert inputs.hold == hold
    end = arc.odeint(lambda t, x, u: np.stack([x[1], u]), (0.0, 1.0), np.zeros(2), inputs=inputs)
    # Exact for a held control; the trapezoidal rule itself is second order.
    np.testing.assert_allclose(end, [1.0, 0.0], atol=1e-9 if hold == "zoh" else 1.0 / 20**2)


def test_inputs_of_a_simulation_drive_another_one():
    series = arc.InputSeries(TS, US, "foh")
    given = (lambda t, x, u: u - x, (0.0, 4.0), 0.0)
    first = arc.solve_ode(*given, inputs=series, t_eval=TS)
    again = arc.solve_ode(*given, inputs=arc.InputSeries.from_trajectory(first), t_eval=TS)
    np.testing.assert_array_equal(first.x, again.x)
    with pytest.raises(ValueError, match="hold must be given"):
        arc.InputSeries.from_trajectory(BY_FUNCTION)
    with pytest.raises(ValueError, match="the trajectory has no inputs: its u is None"):
        arc.InputSeries.from_trajectory(arc.Trajectory(TS, TS))


def test_held_inputs_are_drawn_as_steps():
    data = Timeseries([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], [0.0, 1.0, 0.0])
    for hold, points in (("zoh", [1.0, 1.0, 3.0, 3.0, 5.0]), ("foh", [1.0, 3.0, 5.0])):
        above, below = arc.plot(data.replace(hold=hold)).axes
        assert above.lines[0].get_ydata().tolist() == points
        assert below.lines[0].get_ydata().tolist() == [0.0, 1.0, 0.0]
