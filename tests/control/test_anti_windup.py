"""Controllers with limits: their gains, their loops, and the same bits in C."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control as ac

DT = 0.05
s = ac.tf("s")
#: 4 (1 + 1 / s) and a lag of 1 / (s + 1), which limits of +-1.2 keep from following at once.
CONTROLLER = ac.c2d(ac.ss(4.0 * (1.0 + 2.0 / s)), DT)
PLANT = ac.c2d(ac.ss(1.0 / (s + 1.0)), DT)


def follow(block, steps=400):
    def tick(carry, _):
        state, x = carry
        y = PLANT.output(x, np.zeros(1))
        state, u = block.step(state, 1.0 - y)
        return (state, PLANT.rates(x, u)), (y[0], u[0])

    return arc.scan(tick, (block.start(), np.zeros(1)), length=steps)[1]


def test_limits_do_not_add_overshoot():
    y, u = follow(ac.AntiWindup(CONTROLLER, lower=-1.2, upper=1.2))
    assert np.max(u) == 1.2
    assert abs(y[-1] - 1.0) < 1e-6
    wound, _ = follow(ac.AntiWindup(CONTROLLER, lower=-1.2, upper=1.2, gain=np.zeros((1, 1))))
    free, _ = follow(ac.AntiWindup(CONTROLLER))
    assert np.max(y) < np.max(free) < np.max(wound) - 0.05
    closed = ac.feedback(PLANT * CONTROLLER)
    t = DT * np.arange(400)
    np.testing.assert_allclose(free, ac.step_response(closed, t).y[:, 0], atol=1e-9)


def test_gain_is_hanus_conditioning_where_that_is_stable():
    gain = ac.AntiWindup(CONTROLLER).gain
    np.testing.assert_allclose(gain, CONTROLLER.B @ np.linalg.inv(CONTROLLER.D), rtol=1e-6)
    # Zeros outside the unit circle, and no feedthrough: stable all the same.
    for system in (ac.tf([1.0, -2.0], [1.0, -1.0], 0.1), ac.tf([0.1], [1.0, -1.9, 0.9], 0.1)):
        K = ac.ss(system)
        gain = ac.AntiWindup(K).gain
        assert np.max(np.abs(np.linalg.eigvals(K.A - gain @ K.C))) < 1.0 - 1e-6


def test_several_channels_and_rates():
    K = ac.append(CONTROLLER, CONTROLLER)
    block = ac.AntiWindup(K, lower=-1.0, upper=np.array([1.0, 2.0]), rate=10.0)
    state, u = block.step(block.start(), [1.0, 1.0])
    np.testing.assert_allclose(u, [0.5, 0.5])  # 10 per second, for 0.05 s
    assert state.x.shape == (2,)


def test_same_bits_compiled_and_in_c(tmp_path):
    block = ac.AntiWindup(CONTROLLER, lower=-1.2, upper=1.2)
    state, u = block.step(block.start(), [3.0])
    again, same = arc.compile(block.step)(block.start(), np.array([3.0]))
    assert u[0] == same[0] and state.x[0] == again.x[0]
    project = arc.codegen(
        block.step,
        (block.start(), np.array([0.5])),
        output_dir=tmp_path,
        return_names=["state", "u"],
    )
    assert project.verify(samples=8).outputs == 3


def test_messages():
    with pytest.raises(ValueError, match="StateSpace in discrete time"):
        ac.AntiWindup(ac.ss(1 / s))
    hidden = ac.StateSpace(np.diag([1.0, 0.5]), np.ones((2, 1)), [[0.0, 1.0]], [[0.0]], 0.1)
    with pytest.raises(ValueError, match=r"Use minreal\(controller\), or give gain"):
        ac.AntiWindup(hidden)
    with pytest.raises(ValueError, match="lower and upper"):
        ac.AntiWindup(CONTROLLER, lower=1.0, upper=-1.0)
