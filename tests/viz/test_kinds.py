"""Plots of campaigns, modes, structures and solvers, by reading the axes back."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot
from scipy.sparse import csc_array
from scipy.stats import spearmanr

import archimedes as arc
from archimedes import viz
from archimedes.control import StateSpace, modes
from archimedes.simulate import Normal, Trajectory, Uniform, monte_carlo
from archimedes.spatial import EulerAngles, Quaternion, RigidBody


@pytest.fixture(autouse=True)
def closed():
    with matplotlib.rc_context():
        yield
    viz.set_theme("light")
    pyplot.close("all")


# ---- attitudes, batches -----------------------------------------------------------------------


def turning(turns=3.0, lead=()):
    t = np.linspace(0.0, 6.0, 121)
    yaw = 2.0 * np.pi * turns * t / 6.0
    rpy = np.stack([0.3 + 0 * t, 0.2 + 0 * t, yaw], axis=1)
    q = Quaternion.from_euler(EulerAngles(rpy, "xyz")).array
    tile = lambda a: np.broadcast_to(a, (*lead, *np.shape(a))).copy()
    x = RigidBody.State(tile(np.zeros((121, 3))), Quaternion(tile(q)), tile(np.zeros((121, 3))),
                        tile(np.zeros((121, 3))))  # fmt: skip
    return Trajectory(tile(t), x), np.rad2deg(rpy)


def test_attitudes_are_angles_in_degrees_without_jumps():
    traj, rpy = turning()
    (axes,) = viz.plot(traj, "att").axes
    assert axes.get_ylabel() == "att (deg)"
    for line, expected in zip(axes.get_lines(), rpy.T):
        np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-9)
    raw = viz.plot(traj, "att", angles=False).axes[0]
    assert raw.get_ylabel() == "att" and len(raw.get_lines()) == 4
    one = viz.plot(traj, "att[3]").axes[0].get_lines()[0]
    np.testing.assert_array_equal(one.get_ydata(), traj.x.att.array[:, 3])


def test_attitudes_of_batches_that_ended_early():
    traj, rpy = turning(lead=(40,))
    for leaf in arc.tree.leaves(traj.x):
        leaf[3, 60:] = np.nan
    traj.t[3, 60:] = np.nan
    (axes,) = viz.plot(traj, "att").axes
    np.testing.assert_allclose(axes.get_lines()[2].get_ydata(), rpy[:, 2], atol=1e-9)


def test_fans_have_three_bands():
    t = np.tile(np.linspace(0.0, 1.0, 11), (50, 1))
    values = t * np.random.default_rng(0).normal(size=(50, 1))
    (axes,) = viz.plot(Trajectory(t, {"x": values}), spread="fan").axes
    tops = [c.get_paths()[0].vertices[:, 1].max() for c in axes.collections]
    expected = [np.quantile(values, q, axis=0).max() for q in (1.0, 0.95, 0.75)]
    np.testing.assert_allclose(tops, expected)
    (lines,) = viz.plot(Trajectory(t, {"x": values}), spread="lines").axes
    assert len(lines.get_lines()) == 50
    with pytest.raises(ValueError, match="is not one of 'auto'"):
        viz.plot(Trajectory(t, {"x": values}), spread="cloud")


# ---- campaigns --------------------------------------------------------------------------------


@arc.struct
class Thrown:
    reach: float = arc.field(units="m")
    height: float = arc.field(units="m")


def throw(p):
    v, a = p["speed"], p["angle"]
    return Thrown(v**2 * np.sin(2 * a) / 9.81, (v * np.sin(a)) ** 2 / 19.62)


@pytest.fixture(scope="module")
def campaign():
    draws = {"speed": Normal(10.0, 0.5), "angle": Uniform(0.5, 0.9), "mass": 1.0}
    return monte_carlo(throw, draws, n=300, seed=1)


def test_histograms(campaign):
    figure = viz.plot(campaign, title="throws")
    assert [a.get_xlabel() for a in figure.axes] == ["reach (m)", "height (m)"]
    counts = sum(p.get_height() for p in figure.axes[0].patches if p.get_height() >= 1)
    assert counts == pytest.approx(300, abs=1)
    assert figure.axes[-1].get_title(loc="right") == "300 runs"


def test_scatter_and_sensitivities(campaign):
    figure = viz.plot(campaign, "reach", kind="scatter")
    assert [a.get_xlabel() for a in figure.axes] == ["angle", "speed"]
    x, y = figure.axes[1].get_lines()[0].get_data()
    np.testing.assert_array_equal(x, campaign.params["speed"])
    np.testing.assert_array_equal(y, campaign.results.reach)
    results, params, table = viz.sensitivities(campaign)
    assert (results, params) == (["reach", "height"], ["angle", "speed"])
    exact = spearmanr(campaign.params["speed"], campaign.results.reach).statistic
    assert table[0, 1] == pytest.approx(exact, abs=1e-12)
    bars = viz.plot(campaign, kind="sensitivities").axes[0]
    assert [b.get_text() for b in bars.get_yticklabels()][-1] == "speed"


def test_results_of_a_campaign_by_the_names_that_users_write():
    """Keys with spaces and units, and arrays beside single numbers, which are what is shown."""

    def fly(p):
        return {"mean error (m)": p["a"] ** 2, "path": p["a"] * np.ones((200, 3)), "sag": p["a"]}

    found = monte_carlo(fly, {"a": Normal(0.0, 1.0)}, n=20)
    assert [a.get_xlabel() for a in viz.plot(found).axes] == ["mean error (m)", "sag"]
    assert len(viz.plot(found, "mean error (m)", kind="scatter").axes) == 1
    assert len(viz.plot(found, ["sag", "path"]).axes) == 8
    with pytest.raises(KeyError, match=r"no result 'error'; there are .* and 594 more") as caught:
        viz.plot(found, "error")
    assert len(str(caught.value)) < 300


def test_campaigns_that_cannot_be_plotted(campaign):
    with pytest.raises(ValueError, match="is not one of 'histograms'"):
        viz.plot(campaign, kind="pie")
    with pytest.raises(KeyError, match="no result 'range'; there are"):
        viz.plot(campaign, "range")
    still = monte_carlo(lambda p: p["a"] * 2.0, {"a": 1.0}, n=5)
    with pytest.raises(ValueError, match="no parameter of this campaign varies"):
        viz.plot(still, kind="scatter")
    with pytest.raises(ValueError, match="nothing varies"):
        viz.plot(still, kind="sensitivities")


# ---- modes ------------------------------------------------------------------------------------

A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.4, 0.0], [0.0, 0.0, 0.5]])


def points(axes):
    """Return what is drawn as crosses."""
    xy = [line.get_data() for line in axes.get_lines() if line.get_marker() == "x"]
    return np.sort_complex(np.concatenate([np.asarray(x) + 1j * np.asarray(y) for x, y in xy]))


def test_modes_are_the_eigenvalues():
    drawn = points(viz.plot_modes(A).axes[0])
    expected = np.linalg.eigvals(A)
    assert all(np.abs(drawn - value).min() < 1e-12 for value in expected)
    named = StateSpace(A, np.eye(3, 1), np.eye(3), np.zeros((3, 1)), states=("x", "v", "z"))
    axes = viz.plot(named).axes[0]
    assert "z" in [t.get_text() for t in axes.texts]
    np.testing.assert_allclose(points(viz.plot(modes(named)).axes[0]), points(axes))
    steps = points(viz.plot(named.discretize(0.1)).axes[0])
    assert all(np.abs(steps - value).min() < 1e-9 for value in expected)


def test_root_locus_follows_each_root():
    gains = np.linspace(0.0, 4.0, 200)
    figure = viz.plot_root_locus(lambda k: [[0.0, 1.0], [-k, -1.0]], gains, name="gain")
    drawn = figure.axes[0].collections[0].get_offsets().reshape(200, 2, 2)
    assert np.abs(np.diff(drawn, axis=0)).max() < 0.2
    last = np.sort(np.hypot(*drawn[-1].T))
    np.testing.assert_allclose(last, 2.0, atol=1e-9)  # the product of the roots is the gain
    assert figure.axes[1].get_ylabel() == "gain"


@pytest.mark.parametrize(
    "act, message",
    [
        (lambda: viz.plot_modes(np.zeros((0, 0))), "no states|shape"),
        (lambda: viz.plot_root_locus(lambda k: np.zeros((2, 3)), [0.0, 1.0]), r"\(n, n\)"),
        (lambda: viz.plot_root_locus(lambda k: [[np.inf]], [1.0, 2.0]), "nan or inf"),
        (lambda: viz.plot_root_locus(lambda k: [[k]], 1.0), "values must be"),
        (lambda: viz.plot_work_precision({}), "no results"),
        (lambda: viz.plot_work_precision({"a": [1.0]}), r"rows \(error, time\)"),
        (lambda: viz.plot_sparsity(np.zeros(3)), "expected a matrix"),
    ],
)
def test_what_cannot_be_drawn(act, message):
    with pytest.raises(ValueError, match=message):
        act()


# ---- structures -------------------------------------------------------------------------------


def test_sparsity():
    dense = np.diag(np.ones(5)) + np.diag(np.ones(4), 1)
    for matrix in (dense, csc_array(dense), arc.sparsity(lambda x: dense @ x)(np.zeros(5))):
        (axes,) = viz.plot_sparsity(matrix).axes
        columns, rows = axes.get_lines()[0].get_data()
        assert {*zip(rows, columns)} == {*zip(*np.nonzero(dense))}
        assert axes.get_title(loc="right") == "9 of 25 entries, 36 %"


def test_graphs():
    f = arc.compile(lambda x: np.sin(x[0]) * x[1] + 2.0)
    (axes,) = viz.plot(f, np.zeros(2)).axes
    words = [t.get_text() for t in axes.texts]
    assert sorted(words) == ["add", "in", "in", "mul", "sin"]
    places = {t.get_text(): t.get_position()[1] for t in axes.texts}
    assert places["in"] > places["sin"] > places["mul"] > places["add"]

    def long(x):
        for k in range(150):
            x = np.sin(x) + k
        return x

    (many,) = viz.plot(arc.compile(long), 0.0).axes
    assert many.get_xlabel() == "operations"
    assert {"sin", "add"} <= {t.get_text() for t in many.get_yticklabels()}
    with pytest.raises(TypeError, match=r"write arc.compile\(f\)"):
        viz.plot_graph(np.sin, 1.0)


def test_work_precision():
    found = viz.measure_work_precision(
        lambda t, x: -x, (0.0, 1.0), np.ones(1), ["dop853"], [1e-4, 1e-8],
        reference=np.exp([-1.0]), repeats=1,
    )  # fmt: skip
    errors = found["dop853"][:, 0]
    assert errors[1] < 1e-8 and errors[1] < errors[0] < 1e-3
    (axes,) = viz.plot_work_precision(found).axes
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), errors)
    assert axes.get_xscale() == axes.get_yscale() == "log"


@pytest.mark.long
def test_every_kind_in_the_dark(campaign, tmp_path):
    viz.set_theme("dark")
    for k, figure in enumerate((viz.plot(campaign), viz.plot_modes(A), viz.plot_sparsity(A))):
        assert sum(figure.get_facecolor()[:3]) < 0.5
        figure.savefig(tmp_path / f"{k}.png")
    traj, _ = turning()
    viz.plot(traj, file=tmp_path / "t.svg")
    assert (tmp_path / "t.svg").read_text().startswith("<?xml")


def test_what_is_plotted_by_plot():
    with pytest.raises(TypeError, match="expected a Trajectory, got ndarray; it plots Trajectory"):
        viz.plot(np.zeros(3))


def test_sparse_matrices_are_patterns_too(tmp_path):
    pattern = arc.sparsity(lambda x: np.stack([x[0] * x[1], x[1]]))(np.ones(2))
    open_before = len(pyplot.get_fignums())
    figure = viz.plot(pattern, file=tmp_path / "pattern.png")
    assert figure.axes[0].get_title(loc="right") == "3 of 4 entries, 75 %"
    assert len(pyplot.get_fignums()) == open_before  # what is in a file does not stay open
