"""Plots: what is on the axes, by reading them back."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

import archimedes as arc
from archimedes.simulate import Trajectory
from archimedes.spatial import Quaternion, RigidBody
from archimedes.viz import plot, set_theme, themes


@pytest.fixture(autouse=True)
def closed():
    with matplotlib.rc_context():
        yield
        set_theme("light")
    pyplot.close("all")


def tumbling(lead=(50,)):
    rng = np.random.default_rng(0)
    t = np.broadcast_to(np.linspace(0.0, 2.0, lead[-1]), lead)
    x = RigidBody.State(
        rng.normal(size=(*lead, 3)),
        Quaternion(rng.normal(size=(*lead, 4))),
        rng.normal(size=(*lead, 3)),
        rng.normal(size=(*lead, 3)),
    )
    return Trajectory(t, x)


def test_axes_carry_names_and_units():
    traj = tumbling()
    figure = plot(traj, title="Tumbling")
    assert [a.get_ylabel() for a in figure.axes] == [
        "pos (m)",
        "att (deg)",
        "v_B (m/s)",
        "w_B (deg/s)",
    ]
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert figure.get_suptitle() == "Tumbling"
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["roll", "pitch", "yaw"]


def test_lines_are_the_data():
    traj = tumbling()
    lines = plot(traj, "pos").axes[0].get_lines()
    assert len(lines) == 3
    for k, line in enumerate(lines):
        np.testing.assert_array_equal(line.get_xdata(), traj.t)
        np.testing.assert_array_equal(line.get_ydata(), traj.x.pos[:, k])


def test_names_choose_leaves_and_components():
    figure = plot(tumbling(), ["w_B[1]", "pos"])
    assert [a.get_ylabel() for a in figure.axes] == ["w_B[1] (deg/s)", "pos (m)"]
    assert len(figure.axes[0].get_lines()) == 1 and figure.axes[0].get_legend() is None
    with pytest.raises(KeyError, match="no 'speed' in this trajectory; there are"):
        plot(tumbling(), ["speed"])


def test_inputs_and_outputs_have_panels():
    t = np.arange(3.0)
    figure = plot(Trajectory(t, t[:, None], u={"F": t}, y=t))
    assert [a.get_ylabel() for a in figure.axes] == ["x", "u.F", "y"]


def test_events_are_marked():
    t = np.arange(3.0)
    events = {"t": np.array([0.5, 1.5, 9.0])}
    lines = plot(Trajectory(t, t, events=events)).axes[0].get_lines()
    assert [line.get_xdata()[0] for line in lines[1:]] == [0.5, 1.5]


def test_small_batches_are_lines_and_large_ones_bands():
    few = plot(tumbling((5, 20)), "pos").axes[0]
    assert len(few.get_lines()) == 15 and len(few.get_legend().get_texts()) == 3
    traj = tumbling((100, 20))
    many = plot(traj, "pos[0]").axes[0]
    assert len(many.get_lines()) == 1
    median = np.median(traj.x.pos[..., 0], axis=0)
    np.testing.assert_allclose(many.get_lines()[0].get_ydata(), median)
    edges = many.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(edges.max(), np.quantile(traj.x.pos[..., 0], 0.95, axis=0).max())


@pytest.mark.long
def test_files(tmp_path):
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"plot.{ending}"
        plot(tumbling(), file=path)
        assert path.read_bytes().startswith(start)


def test_themes():
    for theme in ("dark", "light"):
        set_theme(theme)
        assert themes._current == theme
        figure = plot(tumbling(), "pos")
        assert sum(figure.get_facecolor()[:3]) < 1 if theme == "dark" else True
    with pytest.raises(ValueError, match="theme='pink' is not one of 'light', 'dark'"):
        set_theme("pink")
    assert themes._current == "light"


def test_colours_stay_those_of_the_theme():
    """A figure that is drawn later, by show() or savefig, has the colours that it was made with."""
    set_theme("dark")
    (axes,) = plot(tumbling(), "pos").axes
    set_theme("light")
    drawn = [matplotlib.colors.to_hex(line.get_color()) for line in axes.get_lines()]
    assert drawn == list(themes.DARK_CYCLE[:3])


def test_what_cannot_be_plotted():
    with pytest.raises(TypeError, match="expected a Trajectory, got ndarray"):
        plot(np.zeros(3))
    wide = Trajectory(np.arange(2.0), {"image": np.zeros((2, 4, 4))})
    with pytest.raises(ValueError, match=r"image has 16 components.*names=\['image\[0,0\]'"):
        plot(wide)
    assert len(plot(wide, ["image[0,0]", "image[3,3]"]).axes) == 2
    with pytest.raises(ValueError, match="nothing to plot"):
        plot(Trajectory(np.arange(2.0), {}))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plot needs matplotlib: pip install matplotlib"):
        plot(tumbling())


# ---- dense output, names of one's own ----------------------------------------------------------


def swing(t, x):
    return np.stack([x[1], -x[0]])


def test_lines_follow_the_dense_output():
    traj = arc.solve_ode(swing, (0.0, 20.0), [1.0, 0.0])
    assert len(traj.t) < 80
    for line, exact in zip(plot(traj).axes[0].get_lines(), (np.cos, lambda t: -np.sin(t))):
        t, x = line.get_data()
        assert len(t) > 500 and t[0] == 0.0 and t[-1] == 20.0 and (np.diff(t) > 0.0).all()
        assert np.abs(x - exact(t)).max() < 1e-6
        assert np.isin(traj.t, t).all()
    # Without dense output, and with outputs that are close, the data are drawn as they are.
    few = arc.solve_ode(swing, (0.0, 20.0), [1.0, 0.0], t_eval=np.linspace(0.0, 20.0, 5))
    assert len(plot(few).axes[0].get_lines()[0].get_xdata()) == 5
    back = arc.solve_ode(swing, (20.0, 0.0), [1.0, 0.0])
    t, x = plot(back).axes[0].get_lines()[0].get_data()
    assert np.abs(x - np.cos(t - 20.0)).max() < 1e-6


def test_lines_jump_at_events():
    bounce = arc.Event(lambda t, x: x[0], direction=-1, reset=lambda t, x: x * [1.0, -0.8])
    traj = arc.solve_ode(
        lambda t, x: np.stack([x[1], -9.81]), (0.0, 1.2), [1.0, 0.0], events=bounce
    )
    height, speed = (line.get_data() for line in plot(traj).axes[0].get_lines()[:2])
    assert height[1].min() > -1e-9
    jump = np.argmax(np.diff(speed[1]))
    assert speed[0][jump] == speed[0][jump + 1] == traj.events["t"][0]
    assert np.abs(np.diff(np.delete(speed[1], jump))).max() < 8.0


@pytest.mark.long
def test_dense_output_of_batches_and_inputs():
    starts = np.array([[1.0, 0.0], [2.0, 0.0]])
    batch = arc.solve_ode(swing, (0.0, 20.0), starts, in_axes=0, dense=True)
    first, second = plot(batch).axes[0].get_lines()[:2]
    for line, scale in ((first, 1.0), (second, 2.0)):
        t, x = line.get_data()
        assert np.nanmax(np.abs(x - scale * np.cos(t))) < 1e-5 and len(t) > 500
    driven = arc.solve_ode(lambda t, x, u: u, (0.0, 20.0), 0.0, inputs=lambda t: np.cos(t))
    axes = plot(driven).axes
    t, x = axes[0].get_lines()[0].get_data()
    assert np.abs(x - np.sin(t)).max() < 1e-6 and axes[1].get_ylabel() == "u"
    many = arc.solve_ode(
        lambda t, x, u: u, (0.0, 1.0), np.zeros(2), inputs=np.cos, in_axes=0, dense=True
    )
    assert many[1](0.5) == pytest.approx(np.sin(0.5), abs=1e-6)


def test_names_of_ones_own():
    traj = arc.solve_ode(swing, (0.0, 1.0), [1.0, 0.0])

    def legend(axes):
        return [text.get_text() for text in axes.get_legend().get_texts()]

    assert legend(plot(traj).axes[0]) == ["x[0]", "x[1]"]
    assert legend(plot(traj, labels=["angle", "rate"]).axes[0]) == ["angle", "rate"]
    assert legend(plot(traj, labels={"x[1]": "rate"}).axes[0]) == ["x[0]", "rate"]
    assert plot(traj, "x[0]", labels=["angle", "rate"]).axes[0].get_ylabel() == "angle"
    assert plot(traj, labels={"x": "state"}).axes[0].get_ylabel() == "state"
    with pytest.raises(ValueError, match=r"labels must be one for each of \['x\[0\]', 'x\[1\]'\]"):
        plot(traj, labels=["angle"])


@pytest.mark.parametrize("count", [5, 40])
def test_batches_say_how_many_failed(count):
    t = np.tile(np.linspace(0.0, 1.0, 9), (count, 1))
    x = np.cos(t) * np.arange(1.0, count + 1.0)[:, None]
    x[1:3, 4:] = np.nan
    t[1:3, 4:] = np.nan
    figure = plot(Trajectory(t, {"x": x}, status=np.zeros(count, dtype=int)))
    (axes,) = figure.axes
    assert axes.get_title(loc="right") == f"2 of {count} failed"
    if count == 40:  # a band of those that have a value, over all times
        (line,) = axes.get_lines()
        expected = np.median(np.delete(x, [1, 2], axis=0)[:, -1])
        assert line.get_xdata()[-1] == 1.0 and line.get_ydata()[-1] == expected
    good = plot(Trajectory(t[:1], {"x": x[:1]}, status=np.zeros(1, dtype=int)))
    assert good.axes[0].get_title(loc="right") == ""
