"""Pictures of linear systems: what is drawn is what python-control or a formula says."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import control as ac
from tests.optional_packages import import_or_skip

plt = import_or_skip("matplotlib.pyplot")
s = ac.tf("s")
LOOP = (10 / (s * (s + 2) * (s + 5))).rename(
    inputs="torque", outputs="angle", input_units="N m", output_units="rad"
)
MIMO = ac.StateSpace(
    np.diag([-1.0, -3.0]),
    [[1.0, 0.5], [0.0, 1.0]],
    np.eye(2),
    np.zeros((2, 2)),
    inputs=("aileron", "rudder"),
    outputs=("roll rate", "yaw rate"),
    input_units=("rad", "rad"),
    output_units=("rad/s", "rad/s"),
)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def curve(axes, k=0):
    return np.asarray(axes.lines[k].get_xdata()), np.asarray(axes.lines[k].get_ydata())


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_bode_has_values_and_margins():
    figure = arc.plot(LOOP, kind="bode")
    above, below = figure.axes
    w, decibels = curve(above)
    value = 10.0 / (1j * w * (1j * w + 2) * (1j * w + 5))
    np.testing.assert_allclose(decibels, 20 * np.log10(np.abs(value)), atol=1e-9)
    _, phase = curve(below)
    np.testing.assert_allclose(phase, np.rad2deg(np.unwrap(np.angle(value))), atol=1e-9)
    # Im is zero at sqrt(10) rad/s, where the gain is 10 / 70.
    assert above.get_title().startswith("gain margin 16.9 dB at 3.16 rad/s; phase margin")
    assert legend(above) == ["torque (N m) to angle (rad)"]
    labels = (above.get_ylabel(), below.get_ylabel(), below.get_xlabel())
    assert labels == ("magnitude (dB)", "phase (deg)", "frequency (rad/s)")
    assert arc.plot(LOOP, kind="bode", margin=False).axes[0].get_title() == ""
    unstable = arc.plot(10 * LOOP, kind="bode").axes[0].get_title()
    assert unstable.endswith("the closed loop is unstable")


def test_delays_turn_the_phase():
    late = arc.plot({"now": LOOP, "late": LOOP * ac.delay(0.3)}, kind="bode")
    (w, now), (_, after) = (curve(late.axes[1], k) for k in (0, 1))
    np.testing.assert_allclose(after, now - np.rad2deg(0.3 * w), atol=1e-6)


def test_nyquist_nichols_and_singular_values():
    real, imag = curve(arc.plot([LOOP, 4 * LOOP], kind="nyquist").axes[0])
    w = ac.frequency_response(LOOP, [1.0]).values[0, 0, 0]
    assert np.min(np.abs(real + 1j * imag - w)) < 0.05
    figure = arc.plot([LOOP, 4 * LOOP], kind="nichols")
    assert legend(figure.axes[0]) == ["system 1", "system 2"]
    for kind in ("singular_values", "sigma"):
        axes = arc.plot(MIMO, kind=kind).axes[0]
        w, top = curve(axes)
        peak = np.linalg.norm(ac.frequency_response(MIMO, w[:1]).values[..., 0], 2)
        assert 10 ** (top[0] / 20) == pytest.approx(peak)
    assert len(axes.lines) == 2


def test_root_locus_says_where_it_becomes_unstable():
    for kind in ("rlocus", "root_locus"):
        axes = arc.plot(LOOP, kind=kind).axes[0]
    # s^3 + 7 s^2 + 10 s + 10 k is on the axis for k = 7.
    assert "gain 7" in [text.get_text() for text in axes.texts]
    real, imag = curve(axes)
    points = real + 1j * imag
    gains = -(points**3 + 7 * points**2 + 10 * points) / 10.0
    np.testing.assert_allclose(gains.imag, 0.0, atol=1e-6 * np.abs(gains).max())
    assert np.all(gains.real > -1e-6)
    circle = arc.plot(ac.c2d(LOOP, 0.2), kind="rlocus").axes[0]
    assert circle.get_xlabel() == "real part"


def test_steps_have_names_units_and_degrees():
    figure = arc.plot(MIMO, kind="step")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["roll rate (deg/s)"] * 2 + ["yaw rate (deg/s)"] * 2
    assert [axes.get_title() for axes in figure.axes[:2]] == [
        "step of aileron (rad)",
        "step of rudder (rad)",
    ]
    t, y = curve(figure.axes[0])
    np.testing.assert_allclose(y, np.rad2deg(1.0 - np.exp(-t)), atol=1e-9)
    response = ac.impulse_response(1 / (s + 1))
    t, y = curve(arc.plot(response).axes[0])
    np.testing.assert_allclose(y, np.exp(-t), atol=1e-9)
    both = arc.plot({"a": response, "b": response})
    assert legend(both.axes[0]) == ["a", "b"]
    steps = arc.plot(ac.c2d(1 / (s + 1), 0.1), kind="step").axes[0]
    assert steps.lines[0].get_drawstyle() == "steps-post"


def uncertain(k):
    return ac.StateSpace(np.array([[0.0, 1.0], [-k, -0.4]]), [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])


@pytest.mark.parametrize(
    "kind", ["bode", "step", "impulse", "sigma", "nyquist", "nichols", "pzmap"]
)
def test_uncertain_systems_are_bands(kind):
    values = np.linspace(1.0, 2.0, 11)
    batch = arc.vmap(uncertain)(values)
    several = [uncertain(k) for k in values]
    for systems in (batch, several, {"plant": several, "nominal": uncertain(1.5)}):
        axes = arc.plot(systems, kind=kind).axes[0]
        if kind in ("bode", "step", "impulse", "sigma"):
            assert len(axes.collections) == 1  # one band
    if kind == "step":
        low, high = axes.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
        ends = [ac.step_response(one, curve(axes)[0]).y for one in several]
        assert low == pytest.approx(np.min(ends)) and high == pytest.approx(np.max(ends))


def test_default_kinds_and_files(tmp_path):
    assert arc.plot(uncertain(1.0)).axes[0].get_xlabel() == "real part (1/s)"  # modes
    assert len(arc.plot(LOOP).axes) == 2  # Bode
    assert len(arc.plot([LOOP, LOOP]).axes) == 2
    data = ac.frequency_response(LOOP, np.logspace(-1, 1, 20))
    assert len(curve(arc.plot(data).axes[0])[0]) == 20
    path = tmp_path / "bode.png"
    arc.plot(LOOP, kind="bode", title="a loop", file=path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arc.plot(LOOP, kind="boda"), "kind='boda'.*'bode'"),
        (lambda: arc.plot({"a": [LOOP, MIMO]}, kind="bode"), "as many outputs and inputs"),
        (lambda: arc.plot(MIMO, kind="rlocus"), "one input and one output"),
        (lambda: arc.plot(LOOP * ac.delay(1.0), kind="pzmap"), "has delays"),
    ],
)
def test_messages(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
