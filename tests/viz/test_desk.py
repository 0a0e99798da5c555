"""Plots as people read them: joints by name, angles in degrees, dispersions, no random keys."""

from __future__ import annotations

import json

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

import archimedes as arc
from archimedes import multibody as mb
from archimedes.demos.reporting import Report
from archimedes.multibody.parts.joints import KINDS
from archimedes.simulate import Normal, RunKey, Trajectory, Uniform, monte_carlo
from archimedes.viewer.viewing import chart_of
from archimedes.viz import plot_robot, sensitivities
from tests.display.samples import first_order_fit, flight_record, snake, tumbling


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def labels(figure):
    return [axes.get_ylabel() for axes in figure.axes]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


T = np.linspace(0.0, 1.0, 30)


def test_joints_have_names_and_units():
    """Issue 29: joints by name and unit."""
    robot = snake(5).build()
    q, v = np.outer(T, [0.1, 0.2, 0.3, 0.4, 0.5]), np.ones((30, 5))
    figure = arc.plot(robot, Trajectory(T, mb.State(q, v)))
    assert labels(figure) == ["joint angle (deg)", "j4 (m)", "joint speed (deg/s)", "j4 (m/s)"]
    assert legend(figure.axes[0]) == ["j0", "j1", "j2", "j3"]
    lines = figure.axes[0].get_lines()
    np.testing.assert_allclose(lines[1].get_ydata(), np.rad2deg(q[:, 1]))
    np.testing.assert_allclose(figure.axes[1].get_lines()[0].get_ydata(), q[:, 4])
    one = plot_robot(robot, Trajectory(T, mb.State(q, v)), "j1")
    assert labels(one) == ["j1 (deg)", "j1 (deg/s)"]
    with pytest.raises(KeyError, match="no joint 'knee' in 'snake'; there are"):
        plot_robot(robot, Trajectory(T, mb.State(q, v)), ["knee"])
    with pytest.raises(ValueError, match="the states have no q and v"):
        plot_robot(robot, Trajectory(T, T))


def test_a_floating_base_has_position_and_attitude():
    floating = mb.Builder("bird")
    floating.add_body("hull", mass=1.0, inertia=[1.0, 1.0, 1.0])
    floating.base = "floating"
    robot = floating.build()
    half = 0.5 * np.pi / 6.0 * T
    q = np.stack([T, 0 * T, 0 * T, np.cos(half), 0 * T, 0 * T, np.sin(half)], axis=1)
    figure = arc.plot(robot, Trajectory(T, mb.State(q, np.zeros((30, 6)))))
    assert [label.split(" ", 1)[1] for label in labels(figure)] == [
        *("position (m)", "attitude (deg)", "velocity (m/s)", "velocity (deg/s)")
    ]
    yaw = figure.axes[1].get_lines()[2].get_ydata()
    np.testing.assert_allclose(np.abs(yaw), 30.0 * T, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_joint_names_its_coordinates(name):
    kind = KINDS[name]
    for size, names, units in (
        (kind.nq, kind.q_names, kind.q_units),
        (kind.nv, kind.v_names, kind.v_units),
    ):
        assert len(names) in (0, size)
        assert len(units) == size or not names  # a universal joint is two, a fixed one none


def test_body_rates_are_in_degrees_and_data_in_radians():
    traj = tumbling((50,))
    figure = arc.plot(traj, "w_B")
    assert labels(figure) == ["w_B (deg/s)"]
    drawn = figure.axes[0].get_lines()[0].get_ydata()
    np.testing.assert_allclose(drawn, np.rad2deg(traj.x.w_B[:, 0]))
    chart = chart_of(traj, "w_B")
    assert chart.units == "deg/s"
    np.testing.assert_allclose(chart.values, np.rad2deg(traj.x.w_B).T)


def test_flights_are_plotted():
    figure = arc.plot(flight_record())
    assert labels(figure)[0] == "lat (deg)" and labels(figure)[2] == "alt (m)"
    assert legend(figure.axes[3]) == ["north", "east", "down"]
    assert legend(figure.axes[4]) == ["roll", "pitch", "yaw"]


def test_fits_show_measured_and_predicted():
    fit = first_order_fit(3)
    over, left, correlation = arc.plot(fit).axes
    np.testing.assert_array_equal(over.get_lines()[0].get_ydata(), fit.data.ys[0])
    np.testing.assert_array_equal(over.get_lines()[1].get_ydata(), fit.predicted[0])
    np.testing.assert_array_equal(left.get_lines()[0].get_ydata(), fit.residuals[0])
    assert [a.get_xlabel() for a in (over, left, correlation)] == [
        *("time (s)", "time (s)", "lag (samples)")
    ]


def test_dispersions_relative_to_the_mean():
    """Issue 29: a dispersion of 10 cm about a path of 10 m cannot be seen beside the path."""
    rng = np.random.default_rng(0)
    path = 10.0 * np.sin(6.0 * T)
    values = path + 0.1 * rng.normal(size=(50, 1)) + 0.0 * T
    batch = Trajectory(np.tile(T, (50, 1)), {"pos": values})
    (axes,) = arc.plot(batch, spread="fan", relative=True).axes
    assert axes.get_ylabel() == "pos - mean"
    middle = axes.get_lines()[0].get_ydata()
    np.testing.assert_allclose(middle, np.median(values - values.mean(axis=0), axis=0), atol=1e-12)
    states = tumbling((40, 20))
    assert labels(arc.plot(states, "w_B", relative=True)) == [
        f"w_B[{k}] - mean (deg/s)" for k in range(3)
    ]
    with pytest.raises(ValueError, match="relative=True needs several trajectories"):
        arc.plot(batch[0], relative=True)


def campaign():
    draws = {"speed": Normal(20.0, 1.0), "angle": Uniform(0.5, 0.9), "key": RunKey()}

    def model(p):
        return {"range": p["speed"] ** 2, "mass": 1000.0 + 1e-3 * arc.random.normal(p["key"])}

    return monte_carlo(model, draws, n=40)


def test_keys_are_not_on_axes():
    """Issue 29: keys of random numbers were shown as parameters."""
    found = campaign()
    figure = arc.plot(found, kind="scatter")
    shown = {axes.get_xlabel() for axes in figure.axes} - {""}
    assert shown == {"speed", "angle"}
    assert sensitivities(found)[1] == ["angle", "speed"]
    bars = arc.plot(found, kind="sensitivities").axes[0]
    assert {t.get_text() for t in bars.get_yticklabels()} == {"speed", "angle"}


def test_narrow_histograms_are_relative_to_the_mean():
    found = campaign()
    mass, distance = arc.plot(found).axes
    assert (mass.get_xlabel(), distance.get_xlabel()) == ("mass - mean", "range")
    assert max(abs(x) for x in mass.get_xlim()) < 0.01
    std = np.std(found.results["range"], ddof=1)
    assert f"± {std:.2g} (" in distance.get_title(loc="left")


def test_ticks_have_no_offsets():
    (axes,) = arc.plot(Trajectory(T, {"alt": 3000.0 + 1e-3 * T})).axes
    axes.figure.canvas.draw()
    assert axes.yaxis.get_major_formatter().get_offset() == ""


def test_summary_json_holds_numbers_once_each(tmp_path):
    """Issue 29: summary.json held texts such as "18 cm gust included"."""
    report = Report("demo", tmp_path, quiet=True)
    report.section("A flight")
    report.line("speed", np.float64(3.25), ".2f", "m/s", "at touchdown")
    report.line("steps", np.int64(7), "d")
    report.line("time", 0.0123, "", "s", "compilation included")
    report.line("copy 3 alone", "same bits")
    with pytest.raises(ValueError, match="'speed' is there already in 'A flight'"):
        report.line("speed", 1.0)
    report.close()
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["figures"] == {
        "A flight": {
            "speed": {"value": 3.25, "units": "m/s"},
            "steps": {"value": 7},
            "time": {"value": 0.0123, "units": "s"},
        }
    }
