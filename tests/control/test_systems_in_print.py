"""What systems look like in print, by which names they are known, and how they unpack."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control as ac


def test_state_space_prints_without_noise():
    system = ac.StateSpace(
        [[1e-35, 1.0], [-9.81, -0.4]],
        [[-3e-34], [1.0]],
        [[1.0, 1e-36]],
        [[0.0]],
        states=("angle", "rate"),
        inputs="torque",
        outputs="angle",
        state_units=("rad", "rad/s"),
        input_units="N m",
        output_units="rad",
    )
    text = str(system)
    assert "e-3" not in text and repr(system) == text
    assert text.splitlines() == [
        "StateSpace: 2 states, 1 input, 1 output, continuous time",
        "             angle (rad)  rate (rad/s)  |  torque (N m)",
        "d angle/dt             0             1  |             0",
        "d rate/dt          -9.81          -0.4  |             1",
        "angle (rad)            1             0  |             0",
    ]
    small = ac.StateSpace([[1e-9, 1e6], [0.0, -1e-9]], np.eye(2), np.eye(2), np.zeros((2, 2)))
    assert "1e-09" in str(small)  # an entry, not noise


def test_large_systems_print_short():
    text = str(ac.StateSpace(-np.eye(60), np.ones((60, 1)), np.ones((1, 60)), [[0.0]]))
    assert len(text.splitlines()) < 8 and max(map(len, text.splitlines())) <= 100
    assert "report()" in text
    many = arc.vmap(lambda k: ac.ss(-k * np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2))))
    assert "A (3, 2, 2)" in str(many(np.arange(3.0)))


def test_transfer_functions_print_without_noise():
    turned = ac.ss2tf(
        ac.StateSpace([[0.0, 1.0], [-4.0, -0.4]], [[0.0], [1.0]], [[1.0, 0.0]], [[0]])
    )
    assert str(turned).split() == ["1", "-----------------", "s^2", "+", "0.4", "s", "+", "4"]


def test_results_print_short():
    s = ac.tf("s")
    plant = 1 / (s + 1)
    for result in (
        ac.mixsyn(plant, 0.5, 0.1),
        ac.loop_functions(plant, 2.0 / s),
        ac.balanced_truncation(ac.ss(plant * plant), 1),
        ac.margins(10.0 * plant * plant * plant),
        ac.disk_margins(plant),
        ac.step_response(plant),
        ac.frequency_response(plant, np.logspace(-1, 1, 500)),
        ac.feedback(plant, ac.delay(0.1)),
        ac.pidtune(plant, "pi"),
        ac.modes(ac.ss(plant)),
    ):
        lines = repr(result).splitlines()
        assert len(lines) <= 24 and max(map(len, lines)) <= 200, lines


def test_unpacking():
    A, B, C, D = ac.tf2ss([2.0], [1.0, 3.0])
    assert (A[0, 0], (C @ B)[0, 0], D[0, 0]) == (-3.0, 2.0, 0.0)
    for gain in (2.5, [2.5], np.array(2.5)):
        A, B, C, D = ac.tf2ss(gain)
        assert A.shape == (0, 0) and D[0, 0] == 2.5
    assert ac.tf2ss(5.0, 2.0).D[0, 0] == 2.5


def test_forms_that_users_of_python_control_type():
    s = ac.tf("s")
    lag, two = ac.ss(1 / (s + 1)), ac.ss(-np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2)))
    assert lag(1j) == 1.0 / (1j + 1.0) and two(0.0).shape == (2, 2)
    one = ac.ss(-1, 2, 3, 0)
    assert one.dcgain()[0, 0] == 6.0
    # Entries of several lengths: zero, and a lag.
    assert ac.ss2tf(two).num[0][1].tolist() == [0.0]
    assert ac.ss2tf(*lag).den[0][0].tolist() == [1.0, 1.0]
    assert ac.step_response(lag, 5.0).t[-1] == 5.0
    assert ac.step_response(ac.c2d(lag, 0.1), 0.55).t[-1] == pytest.approx(0.6)
    assert ac.frequency_response(lag, 1.0).values.shape == (1, 1, 1)
    K, X = ac.lqr(lag, 3.0, 1.0)
    assert K[0, 0] == pytest.approx(1.0) and X.shape == (1, 1)
    with pytest.raises(ValueError, match="use dlqr"):
        ac.lqr(ac.c2d(lag, 0.1), 3.0, 1.0)
    with pytest.raises(TypeError, match="R, the weights of the inputs, is missing"):
        ac.lqr(lag.A, lag.B, 3.0)
    for result in (ac.modes(1 / (s + 1)), ac.gramians(1 / (s + 1)), ac.pidtune(1 / (s + 1), "PI")):
        assert result
    assert [p.tolist() for p in ac.pade(0.0, 3)] == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="delay must not be negative"):
        ac.pade(-1.0, 2)
    t, y = ac.lsim(lag, np.ones(11), np.linspace(0.0, 1.0, 11))
    np.testing.assert_allclose(y[:, 0], 1.0 - np.exp(-t), atol=1e-12)


def test_transfer_functions_combine_with_everything():
    s = ac.tf("s")
    lag = (1 / (s + 1)).rename(inputs="u", outputs="y", input_units="N")
    assert isinstance(ac.feedback(lag, lag), ac.TransferFunction)
    assert isinstance(ac.feedback(1, lag), ac.TransferFunction)
    assert isinstance(ac.feedback(ac.ss(lag), lag), ac.StateSpace)
    assert isinstance(ac.series(lag, 2.0, lag), ac.TransferFunction)
    assert isinstance(ac.parallel(lag, ac.ss(lag)), ac.StateSpace)
    for scaled in (2.0 * lag, lag * 2.0, lag / 2.0, -lag, lag + 1.0, lag - 1.0):
        assert (scaled.inputs, scaled.outputs, scaled.input_units) == (("u",), ("y",), ("N",))
    assert ac.append(lag, lag).outputs == ("y", "y_2")
    np.testing.assert_allclose(ac.frequency_response(s + 2.0, [3.0]).values, 2.0 + 3.0j)
    assert ac.margins(lag / s).phase > 0.0
    z = ac.tf("z", dt=0.1)
    found = ac.frequency_response(1 / (z - 0.5), [2.0]).values[0, 0]
    np.testing.assert_allclose(found, 1.0 / (np.exp(0.2j) - 0.5), rtol=1e-14)


def test_names_and_units_pass_through_interconnections():
    plant = ac.StateSpace(
        [[0.0, 1.0], [0.0, 0.0]],
        [[0.0], [1.0]],
        np.eye(2),
        np.zeros((2, 1)),
        states=("pos", "vel"),
        inputs="force",
        outputs=("x", "v"),
        state_units=("m", "m/s"),
        input_units="N",
        output_units=("m", "m/s"),
    )
    filters = ac.ss(1 / (0.1 * ac.tf("s") + 1)).rename(inputs="command", outputs="force")
    both = ac.series(filters, plant)
    assert both.states == ("x[0]", "pos", "vel") and both.state_units == ("", "m", "m/s")
    assert both.inputs == ("command",) and both.output_units == ("m", "m/s")
    closed = ac.feedback(plant, np.array([[1.0, 2.0]]))
    assert (closed.inputs, closed.outputs, closed.input_units) == (("force",), ("x", "v"), ("N",))
    assert closed["v", "force"].output_units == ("m/s",)
    twice = ac.append(plant, plant)
    assert twice.states == ("pos", "vel", "pos_2", "vel_2")
    small = ac.lft(plant.part(["x", "v"]), np.array([[-1.0]]))
    assert small.outputs == ("x",) and small.output_units == ("m",)
