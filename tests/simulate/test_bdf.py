"""``method="bdf"``: against SciPy and closed forms, its options, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.errors import ArchimedesError
from archimedes.simulate.methods.method_table import MOST_STEPS
from archimedes.simulate.solves.initial_value_problem import find_method

from ..optional_packages import import_or_skip


def robertson(t, x):
    slow, fast = 0.04 * x[0], 1e4 * x[1] * x[2]
    return np.array([-slow + fast, slow - fast - 3e7 * x[1] ** 2, 3e7 * x[1] ** 2])


def forced(t, x, k):
    """Its solution from 1 is cos(t)."""
    return -k * (x - np.cos(t)) - np.sin(t)


def errors(f, end, start, expected, tolerance, **options):
    """Return the largest errors at the end, ours and those of SciPy's BDF."""
    found = arc.solve_ode(f, (0.0, end), start, method="bdf", **tolerance, **options)
    assert found.success
    theirs = solve_ivp(f, (0.0, end), start, method="BDF", **tolerance, **options)
    scale = tolerance["atol"] + tolerance["rtol"] * np.abs(expected)
    ends = (found.x[-1], theirs.y[:, -1])
    return found, *(np.max(np.abs(end - expected) / scale) for end in ends)


@pytest.mark.long
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_robertson_beside_scipys(rtol):
    start, end = [1.0, 0.0, 0.0], 4e3
    tight = {"rtol": 1e-11, "atol": 1e-15}
    expected = solve_ivp(robertson, (0.0, end), start, method="LSODA", **tight).y[:, -1]
    tolerance = {"rtol": rtol, "atol": 1e-5 * rtol}
    found, ours, theirs = errors(robertson, end, start, expected, tolerance)
    assert ours < 4.0 * theirs + 4.0
    assert found.stats["factorisations"] < 100
    assert found.stats["jacobians"] < 20


@pytest.mark.long_cases("10000.0-1e-09")
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("k", [1.0, 1e4])
def test_closed_form_beside_scipys(rtol, k):
    tolerance = {"rtol": rtol, "atol": rtol}
    found, ours, theirs = errors(forced, 10.0, np.ones(3), np.cos(10.0), tolerance, args=(k,))
    assert ours < 4.0 * theirs + 4.0
    assert np.abs(found.x - np.cos(found.t)[:, None]).max() < 100.0 * rtol


@pytest.mark.long
def test_outputs_lie_on_the_steps_and_between_them():
    options = {"method": "bdf", "rtol": 1e-8, "atol": 1e-8, "args": (50.0,)}
    steps = arc.solve_ode(forced, (0.0, 2.0), np.ones(2), **options)
    at = arc.solve_ode(forced, (0.0, 2.0), np.ones(2), t_eval=steps.t, **options)
    np.testing.assert_allclose(at.x, steps.x, rtol=1e-12)
    many = np.linspace(0.0, 2.0, 201)
    found = arc.solve_ode(forced, (0.0, 2.0), np.ones(2), t_eval=many, **options)
    np.testing.assert_allclose(found.x[:, 0], np.cos(many), atol=2e-6)


def test_back_in_time():
    back = arc.solve_ode(
        lambda t, x: 5.0 * (x - np.sin(t)) + np.cos(t),
        (3.0, 0.0),
        np.full(2, np.sin(3.0)),
        method="bdf",
        t_eval=np.array([3.0, 1.5, 0.0]),
    )
    np.testing.assert_allclose(back.x[:, 1], np.sin([3.0, 1.5, 0.0]), atol=1e-5)


def test_steps_obey_their_options():
    options = {"method": "bdf", "args": (1.0,), "rtol": 1e-4}
    found = arc.solve_ode(forced, (0.0, 3.0), np.ones(1), max_step=0.1, **options)
    assert np.diff(found.t).max() < 0.1001
    assert found.t[-1] == 3.0
    first = arc.solve_ode(forced, (0.0, 3.0), np.ones(1), first_step=1e-3, **options)
    assert first.t[1] == pytest.approx(1e-3)
    few = arc.solve_ode(forced, (0.0, 3.0), np.ones(1), max_steps=5, **options)
    assert (few.status, len(few.t)) == (-3, 6)


def test_what_is_not_finite_ends_it():
    def falling(t, x):
        return -np.sqrt(1.0 - t) * x

    found = arc.solve_ode(falling, (0.0, 2.0), np.ones(2), method="bdf")
    assert not found.success
    assert 1.0 - 1e-9 < found.t[-1] <= 1.0
    assert np.isfinite(found.x).all()
    assert "nan" in found.message
    at_once = arc.solve_ode(lambda t, x: x * np.nan, (0.0, 1.0), np.ones(2), method="bdf")
    assert not at_once.success
    assert "nan" in at_once.message


def test_states_may_be_trees_and_progress_is_told():
    def model(t, s):
        return {"a": -2.0 * s["a"], "b": s["a"][0] - s["b"]}

    seen = []
    found = arc.solve_ode(
        model,
        (0.0, 1.0),
        {"a": np.ones(3), "b": 0.0},
        method="bdf",
        progress=lambda part, t: seen.append(part),
    )
    np.testing.assert_allclose(found.x["a"][-1], np.exp(-2.0), rtol=1e-6)
    assert seen[-1] == 1.0
    assert (np.diff(seen) > 0.0).all()


def test_an_interrupt_keeps_what_there_is():
    def stop(part, t):
        if part > 0.5:
            raise KeyboardInterrupt

    found = arc.solve_ode(forced, (0.0, 5.0), np.ones(2), method="bdf", args=(1.0,), progress=stop)
    assert found.status == -4
    assert 2.0 < found.t[-1] < 5.0


@pytest.mark.long
@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_backends_have_the_same_bits(backend):
    found = arc.solve_ode(
        robertson, (0.0, 10.0), [1.0, 0.0, 0.0], method="bdf", rtol=1e-4, backend=backend
    )
    default = arc.solve_ode(robertson, (0.0, 10.0), [1.0, 0.0, 0.0], method="bdf", rtol=1e-4)
    assert np.array_equal(found.x, default.x)


def test_what_it_is_not_for():
    with pytest.raises(ArchimedesError, match="method='bdf' has no events: use a built-in"):
        arc.solve_ode(forced, (0.0, 1.0), 1.0, method="bdf", args=(1.0,), events=lambda t, x, k: x)
    with pytest.raises(ArchimedesError, match="method='bdf' runs outside the kernels"):
        arc.compile(lambda x: arc.odeint(forced, (0.0, 1.0), x, method="bdf", args=(1.0,)))(1.0)
    with pytest.raises(ArchimedesError, match="method='bdf' runs outside the kernels"):
        arc.solve_ode(
            forced, (0.0, 1.0), np.ones((2, 3)), method="bdf", args=(1.0,), in_axes=(0, None)
        )


@pytest.mark.parametrize("name", ["bdf", "cvode", "ida"])
def test_chattering_ends_by_itself(name):
    if name != "bdf":
        import_or_skip("sksundae")

    def switching(t, x):
        return -np.sign(x - 0.5) * 1e3

    found = find_method(name)
    assert found.most_steps == MOST_STEPS
    fewer = replace(found, most_steps=500)
    end = arc.solve_ode(switching, (0.0, 1.0), np.ones(2), method=fewer)
    assert end.status == -3
    assert "max_steps = 500 steps was reached at t = 0.0005" in end.message
    assert "raise max_steps" in end.message
    told = arc.solve_ode(switching, (0.0, 1.0), np.ones(2), method=fewer, max_steps=600)
    assert "max_steps = 600 steps" in told.message
