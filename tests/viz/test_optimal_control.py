"""Plots of solutions of optimal control, by reading the axes back."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

import archimedes as arc
from archimedes import viz
from archimedes.optimize import OptimalControl, Phases
from archimedes.spatial import Quaternion


@pytest.fixture(autouse=True)
def closed():
    with matplotlib.rc_context():
        yield
    pyplot.close("all")


@arc.struct
class Cart:
    position: float = arc.field(units="m")
    speed: float = arc.field(units="m/s")
    tilt: float = arc.field(units="rad", default=0.0)


@arc.struct
class Push:
    force: float = arc.field(units="N")


FAST = {"terminal_cost": lambda t0, x0, tf, xf: tf - t0, "control_bounds": (-1.0, 1.0)}
CART = OptimalControl(
    lambda t, x, u: Cart(x.speed, u.force, 0.3 * u.force),
    initial=Cart(0.0, 0.0, 0.0),
    final=Cart(1.0, 0.0, None),
    tf=(0.1, 10.0),
    state_bounds=(Cart(None, -50.0, None), Cart(None, 0.8, np.deg2rad(20.0))),
    path=lambda t, x, u: {"power": x.speed * u.force},
    path_bounds=(-2.0, 2.0),
    **FAST,
)
GUESS = {"x": Cart(0.0, 0.0, 0.0), "u": Push(0.0), "tf": 1.5}


@pytest.fixture(scope="module")
def cart():
    return CART.solve(GUESS, intervals=13, mesh_tol=1e-2)


def drawn(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


def limits_of(axes):
    return sorted(float(line.get_ydata()[0]) for line in drawn(axes, "_limit"))


def test_a_panel_for_each_quantity_with_units(cart):
    figure = arc.plot(cart)
    labels = [
        "position (m)",
        "speed (m/s)",
        "tilt (deg)",
        "u.force (N)",
        "path.power",
        "mesh error",
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == labels
    assert figure.axes[-1].get_xlabel() == "time (s)"
    assert "cost" in figure.axes[0].get_title(loc="right")


def test_lines_are_the_solution_and_dots_its_nodes(cart):
    axes = arc.plot(cart).axes[1]
    (line,) = drawn(axes, "speed")
    np.testing.assert_allclose(line.get_ydata(), cart.at(line.get_xdata())[0].speed, atol=1e-9)
    (dots,) = drawn(axes, "_nodes")
    np.testing.assert_allclose(dots.get_xdata(), cart.t)
    np.testing.assert_allclose(dots.get_ydata(), cart.x.speed, atol=1e-12)


def test_limits_are_drawn_in_the_units_of_the_axes(cart):
    figure = arc.plot(cart)
    position, speed, tilt, force, power, _ = figure.axes
    assert limits_of(position) == []
    assert limits_of(speed) == [0.8]  # -50 m/s is too far away to be in the picture
    assert limits_of(tilt) == pytest.approx([20.0])
    assert limits_of(force) == [-1.0, 1.0]
    assert limits_of(power) == [-2.0, 2.0]
    assert speed.get_ylim()[0] > -5.0


@pytest.mark.parametrize("scheme", ["hermite-simpson", "radau3", "multiple-shooting"])
def test_controls_are_never_drawn_beyond_their_limits(scheme):
    found = CART.solve(GUESS, intervals=11, scheme=scheme)
    (axes, _) = arc.plot(found, "u.force").axes
    for line in axes.get_lines():
        assert np.abs(line.get_ydata()).max() <= 1.0


def test_controls_that_jump_are_drawn_as_steps():
    found = CART.solve(GUESS, intervals=10, scheme="multiple-shooting")
    (axes,) = arc.plot(found, "u.force", mesh=False).axes
    (line,) = drawn(axes, "u.force")
    # Constant in each interval: a change takes no time.
    change = np.abs(np.diff(line.get_ydata())) > 1e-12
    assert change.any() and np.all(np.diff(line.get_xdata())[change] == 0.0)


def test_mesh_and_errors(cart):
    axes = arc.plot(cart).axes[-1]
    (stairs,) = axes.patches
    values, edges, _ = stairs.get_data()
    np.testing.assert_allclose(edges, cart.t)
    np.testing.assert_allclose(values, np.maximum(cart.errors, 1e-16))
    assert axes.get_yscale() == "log"
    assert f"{len(cart.errors)} intervals by hermite-simpson" in axes.get_title(loc="right")
    assert 0.01 in [line.get_ydata()[0] for line in axes.get_lines()]  # mesh_tol
    assert len(arc.plot(cart, mesh=False).axes) == 5


def test_names_labels_title_and_file(cart, tmp_path):
    path = tmp_path / "cart.png"
    figure = arc.plot(cart, ["speed", "u.force"], labels={"speed": "v"}, title="Cart", file=path)
    assert [axes.get_ylabel() for axes in figure.axes] == ["v (m/s)", "u.force (N)", "mesh error"]
    assert figure.get_suptitle() == "Cart" and path.stat().st_size > 10_000
    with pytest.raises(KeyError, match=r"no 'sped' in this solution; there are \['position'"):
        arc.plot(cart, "sped")


def test_arrays_have_a_panel_for_each_number():
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], u]),
        initial=[0.0, 0.0],
        final=[1.0, 0.0],
        tf=(0.1, 9.0),
        **FAST,
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0, "tf": 1.5}, intervals=10)
    figure = arc.plot(found, labels=["position (m)", "speed (m/s)"])
    names = ["position (m)", "speed (m/s)", "u", "mesh error"]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    assert arc.plot(found, "x[1]").axes[0].get_ylabel() == "x[1]"


def test_large_arrays_have_panels_of_some_numbers_each():
    n = 14
    problem = OptimalControl(
        lambda t, x, u: u * np.ones(n), running_cost=lambda t, x, u: u**2, initial=np.zeros(n)
    )
    found = problem.solve({"x": np.zeros(n), "u": 0.0}, intervals=2)
    labels = ["x[0] to x[5]", "x[6] to x[11]", "x[12] to x[13]", "u", "mesh error"]
    assert [axes.get_ylabel() for axes in arc.plot(found).axes] == labels
    assert arc.plot(found, "x[7]", mesh=False).axes[0].get_ylabel() == "x[7]"


def test_phases_are_drawn_one_after_the_other():
    rate = lambda t, x, u: np.array([x[1], u])
    first = OptimalControl(rate, initial=[0.0, 0.0], final=[1.0, 0.0], tf=(0.1, 9.0), **FAST)
    second = OptimalControl(
        rate,
        final=[2.0, 0.0],
        t0=(0.1, 9.0),
        tf=(0.2, 9.0),
        **{**FAST, "control_bounds": (-2.0, 2.0)},
    )
    still = {"x": np.zeros(2), "u": 0.0}
    found = Phases(first, second).solve(
        [{**still, "tf": 1.5}, {**still, "t0": 1.5, "tf": 3.0}], intervals=8
    )
    figure = arc.plot(found)
    assert [axes.get_ylabel() for axes in figure.axes] == ["x[0]", "x[1]", "u", "mesh error"]
    control = figure.axes[2]
    assert limits_of(control) == [-2.0, -1.0, 1.0, 2.0]
    for line in drawn(control, "_limit"):
        end = found[0].tf if abs(line.get_ydata()[0]) == 1.0 else found[1].tf
        assert line.get_xdata()[-1] == pytest.approx(end)
    for axes in figure.axes:
        assert found[1].t0 in [line.get_xdata()[0] for line in axes.get_lines()]


def test_attitudes_are_angles_and_have_no_limits():
    @arc.struct
    class Body:
        att: Quaternion
        rate: np.ndarray = arc.field(units="rad/s")

    start = Body(Quaternion([1.0, 0.0, 0.0, 0.0]), np.zeros(3))
    problem = OptimalControl(
        lambda t, x, u: Body(x.att.kinematics(x.rate), u),
        running_cost=lambda t, x, u: np.sum(u**2),
        initial=start,
        boundary=lambda t0, x0, tf, xf: xf.rate - np.array([0.3, 0.0, 0.0]),
        state_bounds=(-1.0, 1.0),
    )
    found = problem.solve({"x": start, "u": np.zeros(3)}, intervals=6)
    assert found.success, found.message
    att, rate, *controls, _ = arc.plot(found).axes
    assert att.get_ylabel() == "att (deg)" and drawn(att, "_limit") == []
    roll = drawn(att, "roll")[0].get_ydata()
    assert roll[-1] == pytest.approx(np.rad2deg(0.15), abs=1e-4)
    assert rate.get_ylabel() == "rate (deg/s)" and len(controls) == 3


def test_what_failed_says_so():
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], u]), initial=[0.0, 0.0], final=[1.0, 0.0], tf=0.5, **FAST
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0}, intervals=5)
    assert viz.plot_solution(found).axes[0].get_title(loc="right").startswith("FAILED")


@arc.struct
class Turning:
    att: arc.spatial.Quaternion


def test_angles_go_on_from_phase_to_phase():
    """A drone that has turned by more than half a turn at a gate: yaw does not jump there."""
    level = arc.spatial.Quaternion([1.0, 0.0, 0.0, 0.0])

    def turn(t, x, u):
        return Turning(x.att.kinematics(u * np.array([0.0, 0.0, 1.0])))

    fixed = {"control_bounds": (4.0, 4.0), "running_cost": lambda t, x, u: u**2}
    first = OptimalControl(turn, initial=Turning(level), tf=1.0, **fixed)
    second = OptimalControl(turn, t0=1.0, tf=2.0, **fixed)
    guess = {"x": Turning(level), "u": 4.0}
    found = Phases(first, second).solve([guess] * 2, intervals=10)
    axes = viz.plot(found, "att", mesh=False).axes[0]
    yaw = [line.get_ydata() for line in axes.get_lines() if len(line.get_ydata()) > 50][2::3]
    assert yaw[1][0] == pytest.approx(yaw[0][-1], abs=0.1)
    assert yaw[1][-1] == pytest.approx(np.rad2deg(8.0), abs=0.5)
