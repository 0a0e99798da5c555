"""solve_ode against closed forms and SciPy; how solves end; what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import archimedes as arc
from archimedes.simulate import solve_ode
from archimedes.simulate.statuses import Status


def oscillator(t, x, w):
    return np.stack([x[1], -(w**2) * x[0]])


def exact(t, w=2.0):
    return np.stack([np.cos(w * t), -w * np.sin(w * t)], axis=-1)


@pytest.mark.parametrize("method", ["heun", "bs3", "dopri5", "tsit5", "dop853"])
def test_tolerance_is_kept(method):
    rtol = 1e-4 if method == "heun" else 1e-7
    t = np.linspace(0.0, 3.0, 31)
    traj = solve_ode(
        oscillator, (0.0, 3.0), [1.0, 0.0], method=method, t_eval=t, args=(2.0,), rtol=rtol,
        atol=rtol,
    )  # fmt: skip
    assert traj.status == Status.FINISHED
    assert traj.message == "the end of the time span was reached"
    assert np.array_equal(traj.t, t)
    assert np.abs(traj.x - exact(t)).max() < 60 * rtol


def test_natural_steps_and_dense_output():
    traj = solve_ode(oscillator, (0.0, 3.0), np.array([1, 0]), args=(2.0,))
    assert traj.t[0] == 0.0
    assert traj.t[-1] == 3.0
    assert len(traj.t) == traj.stats["steps"] + 1
    assert np.abs(traj.x - exact(traj.t)).max() < 1e-7
    times = np.linspace(0.0, 3.0, 301)
    assert np.abs(traj(times) - exact(times)).max() < 1e-7
    assert traj(times).shape == (301, 2)
    assert traj(1.5).shape == (2,)
    assert np.array_equal(traj(traj.t), traj.x)
    with pytest.raises(ValueError, match=r"t = 3\.5 is outside the part that was computed"):
        traj(3.5)


def test_outputs_and_dense_outputs_agree():
    t = np.linspace(0.0, 3.0, 200)
    a = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=t)
    b = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=t, dense=True)
    assert np.array_equal(a.x, b.x)
    assert np.abs(b(1.23) - exact(np.array(1.23))).max() < 1e-7


def test_chunks_do_not_matter():
    # 1, 64 and 1,024 outputs a kernel call; the steps are the same.
    few = np.linspace(0.0, 3.0, 7)
    many = np.linspace(0.0, 3.0, 6 * 500 + 1)
    a = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=few)
    b = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=many)
    assert np.array_equal(a.x, b.x[::500])
    assert a.stats == b.stats


def test_backward_in_time():
    t = np.linspace(3.0, 0.0, 16)
    traj = solve_ode(oscillator, (3.0, 0.0), exact(np.array(3.0)), args=(2.0,), t_eval=t)
    assert np.abs(traj.x - exact(t)).max() < 1e-7
    natural = solve_ode(oscillator, (3.0, 0.0), exact(np.array(3.0)), args=(2.0,))
    assert (np.diff(natural.t) < 0.0).all()
    assert np.abs(natural(1.1) - exact(np.array(1.1))).max() < 1e-7


def test_against_scipy_on_the_lorenz_system():
    def lorenz(t, x, p):
        return np.stack(
            [p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]]
        )

    p = np.array([10.0, 28.0, 8.0 / 3.0])
    t = np.linspace(0.0, 5.0, 51)
    x0 = np.array([1.0, 2.0, 3.0])
    theirs = solve_ivp(
        lambda t, x: lorenz(t, x, p), (0.0, 5.0), x0, "DOP853", t, rtol=1e-12, atol=1e-13
    )
    traj = solve_ode(lorenz, (0.0, 5.0), x0, args=(p,), t_eval=t, rtol=1e-11, atol=1e-12)
    assert np.abs(traj.x - theirs.y.T).max() < 1e-7


def linear(t, x, a):
    return a @ x


@given(
    arrays(np.float64, (3, 3), elements=st.floats(-2.0, 2.0)),
    arrays(np.float64, 3, elements=st.floats(-3.0, 3.0)),
    st.floats(-2.0, 2.0).filter(lambda t: abs(t) > 1e-3),
)
@settings(max_examples=40)
def test_linear_systems(a, x0, end):
    traj = solve_ode(linear, (0.0, end), x0, args=(a,))
    expected = expm(a * end) @ x0
    assert traj.success
    assert np.abs(traj.x[-1] - expected).max() < 1e-6 * (1.0 + np.abs(traj.x).max())
    middle = traj(0.4 * end)
    assert np.abs(middle - expm(0.4 * a * end) @ x0).max() < 1e-6 * (1.0 + np.abs(traj.x).max())


def test_many_threads_at_once():
    t = np.linspace(0.0, 3.0, 100)
    run = lambda w: solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(w,), t_eval=t).x
    rates = np.linspace(1.0, 3.0, 40)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, rates))
    for w, x in zip(rates, found):
        assert np.abs(x - exact(t, w)).max() < 1e-6


def test_few_or_no_outputs():
    none = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=[])
    assert none.success
    assert none.x.shape == (0, 2)
    start = solve_ode(oscillator, (0.0, 3.0), [1.0, 0.0], args=(2.0,), t_eval=[0.0, 0.0])
    assert start.x.tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_arenstorf_orbit_closes():
    # Hairer, Norsett, Wanner I, eq. II.0.1: a periodic orbit of the restricted three-body problem.
    mu = 0.012277471
    period = 17.0652165601579625588917206249

    def arenstorf(t, y):
        x, z, vx, vz = y
        d1 = ((x + mu) ** 2 + z**2) ** 1.5
        d2 = ((x - (1 - mu)) ** 2 + z**2) ** 1.5
        return np.stack(
            [
                vx,
                vz,
                x + 2 * vz - (1 - mu) * (x + mu) / d1 - mu * (x - (1 - mu)) / d2,
                z - 2 * vx - (1 - mu) * z / d1 - mu * z / d2,
            ]
        )

    x0 = np.array([0.994, 0.0, 0.0, -2.00158510637908252240537862224])
    traj = solve_ode(arenstorf, (0.0, period), x0, rtol=1e-13, atol=1e-13)
    assert traj.success
    assert np.abs(traj.x[-1] - x0)[:2].max() < 1e-6
    assert traj.stats["rejected"] < 0.2 * traj.stats["steps"]


@arc.struct
class Ball:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0


def fall(t, x):
    return Ball(x.vel, np.array([0.0, 0.0, -9.81]), -0.1)


def test_tree_states_of_numbers():
    x0 = Ball(np.array([0, 0, 10]), np.zeros(3), 1)
    traj = solve_ode(fall, (0, 1), x0, t_eval=[0, 0.5, 1])
    assert isinstance(traj.x, Ball)
    assert traj.x.pos.shape == (3, 3)
    assert traj.x.mass.shape == (3,)
    assert np.allclose(traj.x.pos[:, 2], 10.0 - 9.81 / 2 * np.array([0.0, 0.25, 1.0]), atol=1e-12)
    assert np.allclose(traj.x.mass, [1.0, 0.95, 0.9])
    pair = solve_ode(lambda t, x: {"a": x["b"][0], "b": [-x["a"]]}, (0, 1), {"a": 1.0, "b": [0]})
    assert abs(pair.x["a"][-1] - np.cos(1.0)) < 1e-8
    assert abs(pair.x["b"][0][-1] + np.sin(1.0)) < 1e-8


def test_tolerances_of_leaves():
    x0 = Ball(np.array([0.0, 0.0, 10.0]), np.zeros(3))
    loose = Ball(np.full(3, 1e-3), np.full(3, 1e-3), 1e-3)
    traj = solve_ode(fall, (0.0, 1.0), x0, atol=loose, rtol=1e-12)
    assert traj.success
    with pytest.raises(ValueError, match="atol must be a number, a vector"):
        solve_ode(fall, (0.0, 1.0), x0, atol=np.ones(3))


def test_fixed_steps():
    traj = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, method="rk4", dt=0.1)
    h = 0.1
    growth = 1 - h + h**2 / 2 - h**3 / 6 + h**4 / 24
    assert np.allclose(traj.x, growth ** np.arange(11), rtol=1e-14)
    assert np.allclose(traj.t, 0.1 * np.arange(11), rtol=1e-14)
    # A last step that is shorter; an adaptive method with fixed steps.
    odd = solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, method="tsit5", dt=0.3)
    assert np.allclose(odd.t, [0.0, 0.3, 0.6, 0.9, 1.0])
    assert abs(odd.x[-1] - np.exp(-1.0)) < 1e-5


def test_first_and_largest_step():
    traj = solve_ode(lambda t, x: -x, (0.0, 2.0), 1.0, first_step=1e-3, max_step=0.05)
    assert abs(traj.t[1] - 1e-3) < 1e-15
    assert np.diff(traj.t).max() < 0.05 * 1.02


def test_large_functions_are_called_not_copied():
    def f(t, x):
        y = x
        for _ in range(60):
            y = np.sqrt(1.0 + y * y) - 0.5
        return -y

    x0 = np.linspace(0.1, 1.0, 3)
    traj = solve_ode(f, (0.0, 0.5), x0, method="bs3", rtol=1e-6)
    theirs = solve_ivp(f, (0.0, 0.5), x0, rtol=1e-10, atol=1e-12)
    assert np.abs(traj.x[-1] - theirs.y[:, -1]).max() < 1e-5


# ---- how solves end ----------------------------------------------------------------------


def test_blow_up_ends_with_the_part_before():
    traj = solve_ode(lambda t, x: x**2, (0.0, 2.0), 1.0)
    assert traj.status == Status.STEP_UNDERFLOW
    assert not traj.success
    assert "the step size became too small at t = 1.0000" in traj.message
    assert np.isfinite(traj.x).all()
    before = traj.t < 0.9
    assert np.allclose(traj.x[before], 1.0 / (1.0 - traj.t[before]), rtol=1e-6)


def test_outputs_after_a_failure_are_left_out():
    t = np.linspace(0.0, 2.0, 21)
    traj = solve_ode(lambda t, x: x**2, (0.0, 2.0), 1.0, t_eval=t)
    assert traj.status == Status.STEP_UNDERFLOW
    assert np.array_equal(traj.t, t[t <= 1.0])
    assert np.isfinite(traj.x).all()


def test_derivative_that_becomes_nan():
    traj = solve_ode(lambda t, x: np.sqrt(1.0 - t) * x, (0.0, 2.0), 1.0)
    assert traj.status == Status.NON_FINITE
    assert "nan or infinite right after t = " in traj.message
    assert 0.99 < traj.t[-1] <= 1.0
    assert abs(traj.x[-1] - np.exp(2.0 / 3.0)) < 1e-2
    at_once = solve_ode(lambda t, x: np.log(-x), (0.0, 2.0), 1.0)
    assert at_once.status == Status.NON_FINITE
    assert len(at_once.t) == 1
    fixed = solve_ode(lambda t, x: np.log(0.5 - t) * x, (0.0, 2.0), 1.0, dt=0.1)
    assert fixed.status == Status.NON_FINITE
    assert np.isfinite(fixed.x).all()


def test_too_many_steps():
    traj = solve_ode(lambda t, x: -x, (0.0, 100.0), 1.0, max_steps=7)
    assert traj.status == Status.TOO_MANY_STEPS
    assert traj.stats["steps"] + traj.stats["rejected"] == 7
    assert "the limit of max_steps = 7 steps was reached at t = " in traj.message
    assert "rodas5p" in traj.message


def test_interrupted_solve_returns_its_part():
    calls = []

    def stop(part, t):
        calls.append((part, t))
        if len(calls) == 2:
            raise KeyboardInterrupt

    t = np.linspace(0.0, 100.0, 5000)
    traj = solve_ode(oscillator, (0.0, 100.0), [1.0, 0.0], args=(2.0,), t_eval=t, progress=stop)
    assert traj.status == Status.INTERRUPTED
    assert not traj.success
    assert traj.message.startswith("interrupted at t = ")
    assert 100 < len(traj.t) < 5000
    assert np.array_equal(traj.t, t[: len(traj.t)])
    assert np.abs(traj.x[:, 0] - np.cos(2.0 * traj.t)).max() < 1e-7
    parts = [part for part, _ in calls]
    assert parts == sorted(parts)
    assert 0.0 < parts[0] <= 1.0


def test_progress_bar(capsys):
    solve_ode(lambda t, x: -x, (0.0, 1.0), 1.0, progress=True)
    assert "100%" in capsys.readouterr().err


# ---- what is refused ---------------------------------------------------------------------

decay = lambda t, x: -x


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"t_span": (0.0, 0.0)}, "is empty: start and end are equal"),
        ({"t_span": (0.0, np.inf)}, "must be finite"),
        ({"t_span": (0.0, np.nan)}, "must be finite"),
        ({"t_span": 1.0}, r"t_span must be a pair \(start, end\)"),
        ({"x0": np.array([1.0, np.nan])}, "x0 is nan or infinite"),
        ({"x0": Ball(np.zeros(3), np.array([0, 0, np.inf]))}, r"x0\.vel is nan or infinite"),
        ({"x0": []}, "x0 has no numbers in it"),
        ({"t_eval": [0.0, 1.5]}, r"t_eval holds 1\.5, which is outside"),
        ({"t_eval": [0.5, 0.2]}, r"sorted .* t_eval\[0\] = 0\.5 comes before t_eval\[1\] = 0\.2"),
        ({"t_eval": [[0.5]]}, r"t_eval must have shape \(m,\), got \(1, 1\)"),
        ({"t_eval": [np.nan]}, "t_eval must be finite"),
        ({"rtol": -1.0}, "rtol must be finite and not negative"),
        ({"atol": np.nan}, "atol must be finite and not negative"),
        ({"atol": 0.0, "rtol": 0.0}, "must not both be zero"),
        ({"dt": 0.0}, r"dt = 0\.0 must be positive"),
        ({"max_step": -1.0}, r"max_step = -1\.0 must be positive"),
        ({"max_steps": 0}, "max_steps = 0 must be at least 1"),
        ({"method": "rk4"}, "has no error estimate, so it takes fixed steps only: give .* dt="),
    ],
)
def test_bad_numbers(options, message):
    given = {"x0": 1.0, "t_span": (0.0, 1.0), **options}
    with pytest.raises(ValueError, match=message):
        solve_ode(decay, **given)


def test_bad_derivatives():
    x0 = Ball(np.zeros(3), np.zeros(3))
    with pytest.raises(TypeError, match=r"the derivative of x\.pos has shape \(2,\), but x\.pos"):
        solve_ode(lambda t, x: Ball(x.vel[:2], x.vel, 0.0), (0.0, 1.0), x0)
    with pytest.raises(TypeError, match="must have the structure of the state, it differs"):
        solve_ode(lambda t, x: (x.vel, x.vel, 0.0), (0.0, 1.0), x0)
    with pytest.raises(TypeError, match=r"the derivative of x has shape \(3,\)"):
        solve_ode(lambda t, x: np.ones(3), (0.0, 1.0), np.ones(2))
    with pytest.raises(TypeError, match="func must be a function"):
        solve_ode(np.ones(2), (0.0, 1.0), np.ones(2))
    with pytest.raises(TypeError, match=r"x0\['name'\] is a str"):
        solve_ode(decay, (0.0, 1.0), {"name": "a"})
