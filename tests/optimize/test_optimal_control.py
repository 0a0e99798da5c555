"""Optimal control: closed forms and published values, all schemes on one description."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import OptimalControl
from archimedes.optimize.collocation import radau
from archimedes.optimize.optimal_control.schemes import find_scheme

ALL = ["trapezoidal", "hermite-simpson", "radau3", "multiple-shooting"]


def double_integrator(t, x, u):
    return np.array([x[1], u])


REST = {"initial": [0.0, 0.0], "final": [1.0, 0.0], "t0": 0.0}
MINIMUM_TIME = OptimalControl(
    double_integrator,
    terminal_cost=lambda t0, x0, tf, xf: tf,
    tf=(0.1, 10.0),
    control_bounds=(-1.0, 1.0),
    **REST,
)
MINIMUM_EFFORT = OptimalControl(
    double_integrator, running_cost=lambda t, x, u: u**2, tf=1.0, **REST
)
START = {"x": np.zeros(2), "u": 0.0, "tf": 1.5}


@pytest.mark.long_cases("multiple*", "radau*", "trapez*")
@pytest.mark.parametrize(("method", "tol"), list(zip(ALL, [2e-3, 1e-5, 1e-5, 1e-5])))
def test_minimum_time_is_two_seconds(method, tol):
    found = MINIMUM_TIME.solve(START, intervals=40, scheme=method)
    assert found.success, found.message
    assert found.tf == pytest.approx(2.0, abs=tol)
    assert np.all(np.abs(found.u) < 1 + 1e-6)


@pytest.mark.long_cases("radau*")
@pytest.mark.parametrize("method", ["hermite-simpson", "radau3", "radau5"])
def test_minimum_effort_is_exact_for_schemes_of_its_degree(method):
    # u = 6 - 12 t, x = 3 t^2 - 2 t^3, costates (-24, -12 + 24 t), cost 12.
    found = MINIMUM_EFFORT.solve(START, intervals=5, scheme=method)
    assert found.fun == pytest.approx(12.0, abs=1e-7)
    t = np.linspace(0, 1, 11)
    x, u = found.at(t)
    np.testing.assert_allclose(x[:, 0], 3 * t**2 - 2 * t**3, atol=1e-7)
    np.testing.assert_allclose(u, 6 - 12 * t, atol=1e-6)
    np.testing.assert_allclose(found.costates[:, 0], -24.0, atol=1e-5)
    np.testing.assert_allclose(found.costates[:, 1], -12 + 24 * found.t, atol=1e-5)
    assert found.errors.max() < 1e-10


def test_errors_fall_with_the_order_of_the_scheme():
    # dx/dt = u, cost of x^2 + u^2: x = cosh(1 - t) / cosh(1), cost tanh(1).
    problem = OptimalControl(
        lambda t, x, u: u, running_cost=lambda t, x, u: x**2 + u**2, initial=1.0, tf=1.0
    )
    for method, order in (("trapezoidal", 2), ("hermite-simpson", 4), ("radau2", 3)):
        off = [
            abs(problem.solve({"x": 1.0, "u": 0.0}, intervals=n, scheme=method).fun - np.tanh(1.0))
            for n in (4, 8)
        ]
        assert np.log2(off[0] / off[1]) > order - 0.3, (method, off)


@pytest.mark.long
def test_brachistochrone():
    # Betts 2010, example 4.10: from rest to x = 1; tf = sqrt(pi / g) for g = 32.174.
    g = 32.174

    def slide(t, x, u):
        return np.array([x[2] * np.cos(u), x[2] * np.sin(u), g * np.sin(u)])

    problem = OptimalControl(
        slide,
        terminal_cost=lambda t0, x0, tf, xf: tf,
        initial=[0.0, 0.0, 0.0],
        final=[1.0, None, None],
        tf=(0.05, 2.0),
        control_bounds=(0.0, np.pi / 2),
    )
    guess = {"x": lambda s: np.array([s, s, 5 * s]), "u": 0.8, "tf": 0.4}
    found = problem.solve(guess, intervals=15, scheme="radau3")
    assert found.success
    assert found.tf == pytest.approx(np.sqrt(np.pi / g), abs=1e-6)
    # The Hamiltonian of a minimum-time problem is -1 all along. At the very ends of a Radau
    # mesh there is no collocation point with a control.
    H = [c @ slide(0.0, a, b) for c, a, b in zip(found.costates, found.x, found.u)]
    np.testing.assert_allclose(H[1:], -1.0, atol=1e-4)


@pytest.mark.long_cases("True*")
@pytest.mark.parametrize(("bounded", "cost"), [(False, 1.433508), (True, 1.6857)])
def test_van_der_pol(bounded, cost):
    # Vlassenbroeck, Van Dooren, IEEE Trans. Autom. Control 33(4), 1988: without and with
    # x1(5) - x2(5) + 1 = 0 at the end.
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], -x[0] + (1 - x[0] ** 2) * x[1] + u]),
        running_cost=lambda t, x, u: 0.5 * (x[0] ** 2 + x[1] ** 2 + u**2),
        initial=[1.0, 0.0],
        tf=5.0,
        boundary=(lambda t0, x0, tf, xf: xf[0] - xf[1] + 1.0) if bounded else None,
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0}, intervals=15, scheme="radau3")
    assert found.success
    assert found.fun == pytest.approx(cost, abs=5e-5)


@arc.struct
class Rocket:
    height: float
    speed: float
    mass: float


def goddard(t, x, thrust):
    # Betts 2010, example 4.9, in its units.
    drag = 5.49153484923381010e-5 * x.speed**2 * np.exp(-x.height / 23800.0)
    c, g = 1580.9425279876559, 32.174
    return Rocket(x.speed, (thrust - drag) / x.mass - g, -thrust / c)


@pytest.mark.long
def test_goddard_rocket_with_structs():
    problem = OptimalControl(
        goddard,
        terminal_cost=lambda t0, x0, tf, xf: -xf.height,
        initial=Rocket(0.0, 0.0, 3.0),
        final=Rocket(None, None, 1.0),
        tf=(20.0, 60.0),
        control_bounds=(0.0, 193.044),
        state_bounds=(Rocket(0.0, 0.0, 1.0), Rocket(3e4, 2e3, 3.0)),
    )
    guess = {
        "x": lambda s: Rocket(18e3 * s, 800.0 * s * (1 - s), 3.0 - 2.0 * s),
        "u": 100.0,
        "tf": 40.0,
    }
    found = problem.solve(guess, intervals=60, scheme="hermite-simpson")
    assert found.success, found.message
    assert isinstance(found.x, Rocket)
    # Published: height 18550.872 ft, with the switching times as unknowns; on a mesh that does
    # not know them the cost is off by as much as the singular arc is.
    assert -found.fun == pytest.approx(18550.872, rel=8e-4)
    assert found.tf == pytest.approx(42.89, abs=0.05)


def test_meshes_are_refined_where_the_error_is():
    problem = OptimalControl(
        lambda t, x, u: -30.0 * (x - np.exp(-50.0 * (t - 0.3) ** 2)) + u,
        running_cost=lambda t, x, u: u**2 + (x - 0.5) ** 2,
        initial=0.0,
        tf=1.0,
    )
    coarse = problem.solve({"x": 0.0, "u": 0.0}, intervals=6)
    fine = problem.solve({"x": 0.0, "u": 0.0}, intervals=6, mesh_tol=1e-5)
    assert coarse.errors.max() > 1e-5 >= fine.errors.max()
    steps = np.diff(fine.mesh)
    assert steps.max() > 1.9 * steps.min()
    # Nothing was recorded again for the other meshes.
    kernels = fine.transcription.recordings.kernels["intervals"]
    assert kernels is coarse.transcription.recordings.kernels["intervals"]
    assert len(kernels["value 3"]._cache) == 1


@pytest.mark.long
def test_path_and_boundary_constraints_parameters_and_arguments():
    problem = OptimalControl(
        lambda t, x, u, p, k: np.array([x[1], u - k * x[1]]),
        running_cost=lambda t, x, u, p, k: u**2 + 0.0 * p,
        terminal_cost=lambda t0, x0, tf, xf, p, k: p**2,
        initial=[0.0, 0.0],
        tf=1.0,
        path=lambda t, x, u, p, k: {"speed": x[1], "power": u * x[1]},
        path_bounds={"speed": (None, 1.2), "power": (None, 20.0)},
        boundary=lambda t0, x0, tf, xf, p, k: np.array([xf[0] - p, xf[1]]),
        boundary_bounds=([0.0, 0.0], [0.0, 0.0]),
        parameter_bounds=(1.0, 2.0),
    )
    guess = {"x": np.zeros(2), "u": 1.0, "p": 1.5}
    for method in ("trapezoidal", "radau2"):
        found = problem.solve(guess, intervals=20, scheme=method, args=(0.1,))
        assert found.success, (method, found.message)
        assert found.p == pytest.approx(1.0, abs=1e-6)
        x, _ = found.at(found.t)
        assert x[-1, 0] == pytest.approx(1.0, abs=1e-6)
        assert x[:, 1].max() == pytest.approx(1.2, abs=1e-4)
        assert max(found.residuals().values()) < 1e-6


def test_a_solution_is_a_warm_start():
    cold = MINIMUM_TIME.solve(START, intervals=20)
    warm = MINIMUM_TIME.solve(cold, intervals=20)
    assert warm.success
    assert warm.iterations < cold.iterations / 2
    finer = MINIMUM_TIME.solve(cold, intervals=40)
    assert finer.tf == pytest.approx(2.0, abs=1e-5)


def test_the_code_does_not_grow_with_the_mesh():
    problem = OptimalControl(
        double_integrator, running_cost=lambda t, x, u: u**2 * np.exp(x[0]), tf=1.0, **REST
    )
    for n in (5, 50, 200):
        found = problem.solve(START, intervals=n)
        assert found.success
    kernels = found.transcription.recordings.kernels["intervals"]
    assert len(kernels["value 3"]._cache) == 1
    assert len(kernels["slope 3"].values._cache) == 1


def test_a_problem_made_anew_finds_the_recordings(recordings):
    def solve(target, weight):
        problem = OptimalControl(
            lambda t, x, u: np.array([x[1], u]),
            running_cost=lambda t, x, u: weight * u**2,
            initial=[0.0, 0.0],
            final=[target, 0.0],
        )
        return problem.solve(START, intervals=4)

    # From rest to rest over a distance: 12 times its square.
    assert solve(1.0, 1.0).fun == pytest.approx(12.0, abs=1e-6)
    recordings.clear()
    assert solve(2.0, 1.0).fun == pytest.approx(48.0, abs=1e-6)
    assert not recordings
    # Another weight is another function.
    assert solve(1.0, 3.0).fun == pytest.approx(36.0, abs=1e-6)


def test_what_the_functions_of_a_problem_read_may_change():
    gain = np.array([1.0])

    class Model:
        drag = 0.0

    model = Model()
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], gain[0] * u - model.drag * x[1]]),
        running_cost=lambda t, x, u: u**2,
        **REST,
    )
    assert problem.solve(START, intervals=4).fun == pytest.approx(12.0, abs=1e-6)
    gain[0] = 2.0
    assert problem.solve(START, intervals=4).fun == pytest.approx(3.0, abs=1e-6)
    model.drag = 1.0
    assert problem.solve(START, intervals=4).fun > 3.1


def test_points_and_weights_of_radau():
    # Hairer, Wanner, "Solving ODEs II", table 5.5 (Radau IIA of order 5).
    root = np.sqrt(6)
    np.testing.assert_allclose(
        find_scheme("radau3").control_points, [(4 - root) / 10, (4 + root) / 10, 1], atol=1e-14
    )
    np.testing.assert_allclose(
        radau(3, (0.0, 1.0))[1], [(16 - root) / 36, (16 + root) / 36, 1 / 9], atol=1e-14
    )


def test_errors_name_the_argument():
    make = {"running_cost": lambda t, x, u: u**2}
    with pytest.raises(ValueError, match="give a running_cost"):
        OptimalControl(double_integrator)
    with pytest.raises(ValueError, match=r"tf = \(3, 2\): lower limit above"):
        OptimalControl(double_integrator, tf=(3, 2), **make)
    problem = OptimalControl(double_integrator, tf=(1.0, np.inf), **make)
    with pytest.raises(ValueError, match=r"tf is free: give a guess"):
        problem.solve({"x": np.zeros(2), "u": 0.0})
    with pytest.raises(ValueError, match="dict with 'x' and 'u'"):
        problem.solve({"x": np.zeros(2)})
    with pytest.raises(ValueError, match="scheme='euler' is not one of"):
        problem.solve(START, scheme="euler")
    with pytest.raises(ValueError, match="mesh that rises from 0 to 1"):
        problem.solve(START, intervals=np.array([0.0, 0.6, 0.5, 1.0]))
    with pytest.raises(ValueError, match="dynamics returns 1 numbers for a state of 2"):
        OptimalControl(lambda t, x, u: u, **make).solve(START)
    with pytest.raises(ValueError, match="outside state_bounds"):
        OptimalControl(double_integrator, initial=[5.0, 0.0], state_bounds=(0, 1), **make).solve(
            START
        )


@pytest.mark.parametrize("ends", [{"final": [1.0, 0.0]}, {"running_cost": lambda t, x, u: x[0]}])
def test_trajectories_without_a_solution_say_so(ends, monkeypatch):
    """Too far for the time, or a cost without a lower end: proven, without IPOPT, at once."""
    from archimedes.optimize.solvers import ipopt

    monkeypatch.setattr(ipopt, "solve", lambda *_: (_ for _ in ()).throw(ImportError("none")))
    far = "final" in ends
    more = {"control_bounds": (-1.0, 1.0), "running_cost": lambda t, x, u: u**2} if far else {}
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], u]), initial=[0.0, 0.0], tf=0.5, **{**more, **ends}
    )
    found = problem.solve({"x": np.zeros(2), "u": 0.0}, intervals=20)
    assert found.answer.status.name == ("INFEASIBLE" if far else "UNBOUNDED"), found.message
    assert found.iterations <= 16
