"""Commands that arrive late, against MuJoCo: what arrives when, motions, files; derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

from .mujoco_peer import mujoco

#: A power of two, so that times of steps are exact and "zoh" has no ties that rounding decides.
STEP = 1.0 / 512.0
TEXT = f"""<mujoco><option timestep="{STEP}" integrator="RK4"/><worldbody>
 <body><joint name="slide" type="slide" axis="1 0 0" damping=".3"/><geom size=".1" mass="2"/>
 <body pos="0 0 -.1"><joint name="hinge" axis="0 1 0"/><geom size=".1" pos="0 0 -.3" mass="1"/>
 </body></body></worldbody><actuator>
 <motor joint="slide" delay="{{delay}}" nsample="5" interp="{{interp}}" ctrlrange="-2 3"/>
 <motor joint="hinge" gear="3"/>
 <general joint="hinge" dyntype="filter" dynprm=".01" delay="{2 * STEP}" nsample="2"
  interp="linear" gainprm="4"/></actuator></mujoco>"""


@pytest.fixture
def both(tmp_path):
    """Return a function that loads a model here and there."""

    def load(delay, interp):
        file = tmp_path / "late.xml"
        file.write_text(TEXT.format(delay=delay, interp=interp))
        return mb.load(file), mujoco.MjModel.from_xml_path(str(file))

    return load


def commands(t):
    return np.stack([3.0 * np.sin(9.0 * t + 1.0), np.cos(7.0 * t), 2.0 * np.sin(3.0 * t)])


def rk4(model, x, t, arriving):
    """Return the state after a step; commands are those of the time of each stage."""

    def rates(t, x):
        return mb.dynamics(model, t, x, arriving(t), actuators=model.actuators)

    def ahead(x, h, k):
        return x.replace(
            q=x.q + h * k.q, v=x.v + h * k.v, activations=x.activations + h * k.activations
        )

    k1 = rates(t, x)
    k2 = rates(t + 0.5 * STEP, ahead(x, 0.5 * STEP, k1))
    k3 = rates(t + 0.5 * STEP, ahead(x, 0.5 * STEP, k2))
    k4 = rates(t + STEP, ahead(x, STEP, k3))
    for k, part in ((k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)):
        x = ahead(x, part * STEP / 6.0, k)
    return x


@pytest.mark.parametrize("interp", ["zoh", "linear", "cubic"])
def test_steps_with_delays_are_those_of_mujoco(both, interp):
    """Less than a step, between samples, at a sample, and more than the history holds."""
    for delay in (0.3 * STEP, 2.6 * STEP, 4.0 * STEP, 9.0 * STEP):
        model, m = both(delay, interp)
        d, history = mujoco.MjData(m), mb.command_history(model.actuators, STEP)
        x = mb.driven_state(model, model.actuators)
        step = arc.compile(lambda x, t, h, u, model=model: rk4(model, x, t, lambda s: h.read(s, u)))
        for k in range(30):
            t, u = k * STEP, commands(k * STEP)
            d.ctrl[:] = u
            mujoco.mj_forward(m, d)
            arriving = np.clip(history.read(t, u)[0], -2.0, 3.0)
            np.testing.assert_allclose(arriving, d.actuator_force[0], rtol=1e-12, atol=1e-12)
            mujoco.mj_step(m, d)
            x, history = step(x, t, history, u), history.record(t, u)
            np.testing.assert_allclose(x.q, d.qpos, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(x.activations, d.act, rtol=1e-11)


def test_files_have_delays(both, tmp_path):
    """The report says how they act; `save` writes them."""
    model, m = both(0.006, "cubic")
    late, plain, lagged = model.actuators
    assert (late.delay, late.samples, late.hold) == (0.006, 5, "cubic")
    assert isinstance(plain, mb.Drive) and isinstance(lagged.actuator, mb.Lagged)
    builder = mb.read(tmp_path / "late.xml")
    assert sum("command_history" in line for line in builder.report.approximated) == 2
    assert not builder.report.ignored
    mb.save(model, tmp_path / "again.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    np.testing.assert_array_equal(again.actuator_delay, m.actuator_delay)
    np.testing.assert_array_equal(again.actuator_history, m.actuator_history)


def test_a_history_differentiates_and_is_recorded():
    """A loop of steps; closed form: the sum of what arrived, its derivatives ones and zeros."""
    motor = [mb.Delayed(mb.Motor("hinge"), delay=0.3, samples=3), mb.Motor("wheel")]

    def arrived(u):
        def one(k, state):
            history, total = state
            now = history.read(0.1 * k, u[k])
            return history.record(0.1 * k, u[k]), total + now

        start = mb.command_history(motor, 0.1, [7.0, 0.0]), np.zeros(2)
        return arc.fori_loop(0, 5, one, start)[1]

    u = np.arange(10.0).reshape(5, 2)
    np.testing.assert_allclose(arc.compile(arrived)(u), [3 * 7.0 + 0.0 + 2.0, u[:, 1].sum()])
    slope = arc.jac(arrived)(u)
    np.testing.assert_allclose(slope[0, :, 0], [1, 1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(slope[1, :, 1], 1.0)


def test_what_is_wrong_is_said():
    motor = mb.Motor("hinge")
    for values, error in (
        ({"delay": 0.0, "samples": 2}, "Delayed delay, in s, must be positive"),
        ({"delay": 0.1, "samples": 0}, "Delayed samples must be a whole number of at least 1"),
        ({"delay": 0.1, "samples": 2, "hold": "linear"}, "Delayed hold='linear' is not one of"),
    ):
        with pytest.raises(ValueError, match=error):
            mb.Delayed(motor, **values)
    with pytest.raises(ValueError, match="step, in s,"):
        mb.command_history([motor], 0.0)
    with pytest.raises(ValueError, match="one command per actuator"):
        mb.command_history([motor], 0.1).read(0.0, [1.0, 2.0])
