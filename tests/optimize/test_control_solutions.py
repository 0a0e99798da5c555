"""What solutions of optimal control give: trajectories, controls within limits, reports, meshes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.errors import StructError
from archimedes.optimize import OptimalControl, Phases, Status
from archimedes.simulate import Trajectory

SCHEMES = [
    *("trapezoidal", "hermite-simpson", "radau3", "multiple-shooting"),
    pytest.param("radau6", marks=pytest.mark.long),
]


@arc.struct
class Cart:
    position: float = arc.field(units="m")
    speed: float = arc.field(units="m/s")


@arc.struct
class Push:
    force: float = arc.field(units="N")


def moved(t, x, u):
    return Cart(x.speed, u.force)


REST = Cart(0.0, 0.0)
FASTEST = OptimalControl(
    moved,
    terminal_cost=lambda t0, x0, tf, xf: tf,
    initial=REST,
    final=Cart(1.0, 0.0),
    tf=(0.1, 10.0),
    control_bounds=(-1.0, 1.0),
)
#: With a limit of the speed: 0.8 s of thrust, 0.45 s of coasting, 0.8 s of braking.
SPEED_LIMIT = OptimalControl(
    moved,
    terminal_cost=lambda t0, x0, tf, xf: tf,
    initial=REST,
    final=Cart(1.0, 0.0),
    tf=(0.1, 10.0),
    state_bounds=(None, Cart(None, 0.8)),
    control_bounds=(-1.0, 1.0),
)
LIMITLESS = ("terminal_cost", "initial", "final", "tf", "control_bounds")
GUESS = {"x": REST, "u": Push(0.0), "tf": 1.5}
PUSHED = {
    "dynamics": lambda t, x, u: np.array([x[1], u]),
    "terminal_cost": lambda t0, x0, tf, xf: tf - t0,
}
STILL = {"x": np.zeros(2), "u": 0.0}


def two_moves(strength=2.0, **options):
    """From rest to rest twice: 2 sqrt(distance / strength) each."""
    first = OptimalControl(
        **PUSHED, initial=[0.0, 0.0], final=[1.0, 0.0], tf=(0.1, 9.0), control_bounds=(-1.0, 1.0)
    )
    second = OptimalControl(
        **PUSHED,
        final=[2.0, 0.0],
        t0=(0.1, 9.0),
        tf=(0.2, 9.0),
        control_bounds=(-strength, strength),
    )
    guesses = [{**STILL, "tf": 1.5}, {**STILL, "t0": 1.5, "tf": 3.0}]
    return Phases(first, second).solve(guesses, **options)


# ---- controls within limits -------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("problem", [FASTEST, SPEED_LIMIT], ids=["bang-bang", "speed limit"])
@pytest.mark.parametrize("intervals", [10, 13])
def test_controls_are_never_beyond_their_limits(scheme, problem, intervals):
    found = problem.solve(GUESS, intervals=intervals, scheme=scheme)
    assert found.success, found.message
    t = np.linspace(found.t0, found.tf, 3001)
    for u in (found.at(t)[1], found.u, found.trajectory.u, found.sample(20).u):
        assert np.all(np.abs(u.force) <= 1.0)
    for moment in t[::500]:
        assert abs(found.at(moment)[1].force) <= 1.0


def test_the_polynomials_would_leave_the_limits():
    """So that the test above means something."""
    beyond = []
    for scheme in ("hermite-simpson", "radau3", "radau6"):
        found = FASTEST.solve(GUESS, intervals=13, scheme=scheme)
        k, s = np.repeat(np.arange(13), 50), np.tile(np.linspace(0.0, 1.0, 50), 13)
        beyond.append(np.abs(found._within(k, s, clip=False)[2]).max())
    assert max(beyond) > 1.05


def test_controls_of_phases_are_never_beyond_their_limits():
    found = two_moves(intervals=7)
    t = np.linspace(found.t0, found.tf, 2001)
    for phase, limit in zip(found, (1.0, 2.0)):
        assert np.abs(phase.at(np.linspace(phase.t0, phase.tf, 999))[1]).max() <= limit
    assert np.abs(found.at(t)[1]).max() <= 2.0
    assert np.abs(found.trajectory.u[:8]).max() <= 1.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_flying_the_control_leads_where_the_solution_says(scheme):
    """The control that is returned, flown by SciPy, reaches the goal as well as the errors say."""
    found = FASTEST.solve(GUESS, intervals=21, scheme=scheme, mesh_tol=1e-4)
    assert found.success, found.message
    x, u = np.zeros(2), lambda t: found.at(t)[1].force
    for begin, end in zip(found.t[:-1], found.t[1:]):
        edge = 1e-12 * (end - begin)
        rate = lambda t, x, a=begin + edge, b=end - edge: [x[1], u(min(max(t, a), b))]
        x = solve_ivp(rate, (begin, end), x, rtol=1e-9, atol=1e-11).y[:, -1]
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-3)


# ---- the trajectory inside --------------------------------------------------------------------


def test_a_trajectory_is_inside():
    found = SPEED_LIMIT.solve(GUESS, intervals=12)
    traj = found.trajectory
    assert isinstance(traj, Trajectory) and traj.success and traj.message == found.message
    np.testing.assert_array_equal(traj.t, found.t)
    np.testing.assert_array_equal(traj.x.speed, found.x.speed)
    np.testing.assert_array_equal(traj.u.force, found.u.force)
    assert traj.units == {"position": "m", "speed": "m/s"}
    np.testing.assert_allclose(traj(0.37).position, found.at(0.37)[0].position)
    assert traj.y is None and traj.stats["intervals"] == 12
    back = Trajectory.from_csv(_as_file(traj.to_csv()), like=REST, u_like=Push(0.0))
    np.testing.assert_array_equal(back.u.force, traj.u.force)


def _as_file(text):
    import io

    return io.StringIO(text)


@pytest.mark.parametrize(
    ("scheme", "hold"),
    [("multiple-shooting", "zoh"), ("trapezoidal", "foh"), ("hermite-simpson", None)],
)
def test_the_trajectory_says_how_its_inputs_go_on(scheme, hold):
    assert FASTEST.solve(GUESS, intervals=6, scheme=scheme).trajectory.hold == hold


def test_outputs_of_the_trajectory_are_path_constraints():
    problem = OptimalControl(
        lambda t, x, u, p, k: moved(t, x, u),
        running_cost=lambda t, x, u, p, k: u.force**2 + p**2,
        initial=REST,
        final=Cart(1.0, 0.0),
        path=lambda t, x, u, p, k: {"power": k * x.speed * u.force + 0.0 * p},
        path_bounds=(-3.0, 3.0),
    )
    found = problem.solve({"x": REST, "u": Push(0.0), "p": 0.1}, intervals=8, args=(2.0,))
    assert found.success, found.message
    traj = found.sample(5)
    np.testing.assert_allclose(traj.y["power"], 2.0 * traj.x.speed * traj.u.force, atol=1e-14)
    assert len(traj.t) == 40 and traj.t[4] == traj.t[5]
    assert found.limits()["y"] == ({"power": -3.0}, {"power": 3.0})
    low, high = found.limits()["u"]
    assert low.force == -np.inf and high.force == np.inf


def test_phases_are_one_trajectory_with_events_at_junctions():
    found = two_moves(intervals=6)
    traj = found.trajectory
    assert traj.t.shape == (14,) and traj.t[6] == pytest.approx(traj.t[7])
    np.testing.assert_allclose(traj.events["t"], [found[1].t0])
    np.testing.assert_allclose(traj.events["x_before"], [[1.0, 0.0]], atol=1e-7)
    t = np.array([3.0, 0.5, 2.5, 0.1])
    x, u = found.at(t)
    for k, phase in enumerate([1, 0, 1, 0]):
        own = found[phase].at(t[k])
        np.testing.assert_array_equal(x[k], own[0])
        assert u[k] == own[1]
    np.testing.assert_array_equal(traj(0.5), found.at(0.5)[0])
    with pytest.raises(ValueError, match=r"t must lie between t0 = 2"):
        found.at(9.0)


def test_phases_with_different_states_have_their_own_trajectories():
    first = OptimalControl(
        lambda t, x, u: u, running_cost=lambda t, x, u: u**2, initial=0.0, tf=1.0
    )
    second = OptimalControl(
        **{**PUSHED, "running_cost": lambda t, x, u: u**2, "terminal_cost": None},
        final=[1.0, 0.0],
        t0=1.0,
        tf=2.0,
    )
    link = lambda tf, xf, t0, x0: x0[0] - xf
    found = Phases(first, second, links=[link]).solve([{"x": 0.0, "u": 0.0}, STILL], intervals=3)
    with pytest.raises(StructError, match=r"\[phase.trajectory for phase in solution\]"):
        _ = found.trajectory
    assert [phase.trajectory.t[0] for phase in found] == [0.0, 1.0]
    assert "phase 1" in found.report()


# ---- meshes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("intervals", [9, 10])
def test_bang_bang_to_a_mesh_tolerance(scheme, intervals):
    """Rest to rest over 1 m with 1 m/s^2 takes 2 s; a short interval is put around the switch."""
    found = FASTEST.solve(GUESS, intervals=intervals, scheme=scheme, mesh_tol=1e-5)
    assert found.success, found.message
    assert found.mesh_error <= 1e-5
    assert found.tf == pytest.approx(2.0, abs=1e-5)
    assert len(found.errors) <= 60
    counts = [mesh["intervals"] for mesh in found.meshes]
    assert counts[0] == intervals and counts[-1] == len(found.errors)
    assert found.meshes[-1]["error"] == found.mesh_error


@pytest.mark.parametrize("scheme", ["hermite-simpson", "multiple-shooting"])
def test_limits_of_states_hold_within_intervals_too(scheme):
    """With limits at the nodes only, the speed is higher in between, and 2.05 s are undercut."""
    found = SPEED_LIMIT.solve(GUESS, intervals=13, scheme=scheme)
    middle = 0.5 * (found.t[1:] + found.t[:-1])
    assert found.success and found.at(middle)[0].speed.max() <= 0.8 + 1e-6
    refined = SPEED_LIMIT.solve(GUESS, intervals=13, scheme=scheme, mesh_tol=1e-5)
    assert refined.success, refined.message
    assert refined.tf == pytest.approx(2.05, abs=1e-5)


def test_problems_with_other_limits_share_no_equations():
    free = OptimalControl(moved, **{k: getattr(FASTEST, k) for k in LIMITLESS})
    for problem, tf in ((SPEED_LIMIT, 2.05), (free, 2.0), (SPEED_LIMIT, 2.05)):
        assert problem.solve(GUESS, intervals=40).tf == pytest.approx(tf, abs=2e-3)


@pytest.mark.parametrize("scheme", ["hermite-simpson", "radau3"])
def test_phases_reach_a_mesh_tolerance_in_all_of_them(scheme):
    coarse = two_moves(intervals=[9, 5], scheme=scheme)
    found = two_moves(intervals=[9, 5], scheme=scheme, mesh_tol=1e-5)
    assert coarse.mesh_error > 1e-3
    assert found.success, found.message
    for phase in found:
        assert phase.mesh_error <= 1e-5 and phase.mesh_tol == 1e-5 and phase.success
    assert found[0].tf == pytest.approx(2.0, abs=1e-5)
    assert found.tf - found[1].t0 == pytest.approx(np.sqrt(2.0), abs=1e-5)
    assert found.meshes[0]["intervals"] == 14 and len(found.meshes) > 1
    np.testing.assert_array_equal(found.errors, np.concatenate([p.errors for p in found]))


def test_only_phases_that_need_it_are_refined():
    smooth = {"running_cost": lambda t, x, u: u**2}
    first = OptimalControl(
        PUSHED["dynamics"], initial=[0.0, 0.0], final=[1.0, 0.0], tf=1.0, **smooth
    )
    second = OptimalControl(
        lambda t, x, u: np.array([x[1], u - 40.0 * np.sin(x[0])]),
        final=[2.0, 0.0],
        t0=1.0,
        tf=2.0,
        **smooth,
    )
    found = Phases(first, second).solve([STILL, STILL], intervals=4, mesh_tol=1e-6)
    assert found.success, found.message
    assert len(found[0].errors) == 4 < len(found[1].errors)


def test_a_mesh_tolerance_that_phases_do_not_reach_names_the_phase():
    found = two_moves(intervals=[8, 5], mesh_tol=1e-8, max_refinements=0)
    assert found.status is Status.COARSE_MESH and not found.success
    worst = int(np.argmax([phase.mesh_error for phase in found]))
    assert f"(phase {worst}), mesh_tol = 1e-08" in found.message
    with pytest.raises(ValueError, match="mesh_tol"):
        two_moves(intervals=4, mesh_tol=-1.0)
    with pytest.raises((TypeError, ValueError), match="max_refinements"):
        two_moves(intervals=4, mesh_tol=1.0, max_refinements=-1)


def test_time_does_not_run_backwards():
    """Where limits of free times overlap, a phase of negative duration would cost less."""
    first = OptimalControl(**PUSHED, initial=[0.0, 0.0], tf=(0.1, 5.0), control_bounds=(-1.0, 1.0))
    second = OptimalControl(
        **{**PUSHED, "dynamics": lambda t, x, u: np.array([x[1], 2.0 * u])},
        final=[1.0, 0.0],
        t0=(0.1, 5.0),
        tf=(0.2, 9.0),
        control_bounds=(-1.0, 1.0),
    )
    guesses = [{**STILL, "tf": 0.7}, {**STILL, "t0": 0.7, "tf": 1.5}]
    found = Phases(first, second).solve(guesses, intervals=20)
    # 0.1 s of thrust 1, then s of thrust 2, then s + 0.05 of braking: 2 s^2 + 0.2 s = 0.9925.
    s = (-0.2 + np.sqrt(0.04 + 8 * 0.9925)) / 4
    assert found.fun == pytest.approx(0.1 + s + s + 0.05, rel=1e-3)
    assert all(phase.tf >= phase.t0 for phase in found)


def test_a_phase_may_vanish():
    first = OptimalControl(**PUSHED, initial=[0.0, 0.0], tf=(0.0, 5.0), control_bounds=(-1.0, 1.0))
    second = OptimalControl(
        **PUSHED, final=[1.0, 0.0], t0=(0.0, 5.0), tf=(0.0, 9.0), control_bounds=(-2.0, 2.0)
    )
    guesses = [{**STILL, "tf": 0.7}, {**STILL, "t0": 0.7, "tf": 1.5}]
    found = Phases(first, second).solve(guesses, intervals=10)
    assert found.success and found.fun == pytest.approx(np.sqrt(2.0), rel=1e-3)
    assert found[0].tf == pytest.approx(0.0, abs=1e-6)
    assert "phase 0: 0 s to" in found.report()


def test_a_single_problem_does_not_run_backwards_either():
    problem = OptimalControl(
        lambda t, x, u: u,
        running_cost=lambda t, x, u: u**2 + 1.0,
        initial=0.0,
        final=1.0,
        tf=(-2.0, 3.0),
    )
    found = problem.solve({"x": 0.0, "u": 0.0, "tf": 1.5}, intervals=5)
    # The cost 1/T + T is least at T = 1, and less for T below 0.
    assert found.success and found.fun == pytest.approx(2.0) and found.tf > found.t0


# ---- reports ----------------------------------------------------------------------------------


def test_the_report_of_a_solution():
    found = SPEED_LIMIT.solve(GUESS, intervals=40, scheme="radau3")
    lines = dict(
        line.strip().split(": ", 1) for line in found.report().splitlines() if ": " in line
    )
    assert lines["status"].startswith("solved")
    assert float(lines["cost"]) == pytest.approx(2.05, abs=1e-3)
    assert re.match(r"0 s to 2\.0\d* s", lines["time"])
    assert re.match(rf"{found.iterations} in [\d.]+ s", lines["iterations"])
    assert lines["mesh"] == "40 intervals by radau3"
    assert lines["mesh error"].startswith(f"{found.mesh_error:.2g} of the states' size, from ")
    assert re.match(r"[\d.e-]+ (m|m/s|N) (in|beyond)", lines["violation"])
    assert "speed at its upper limit 0.8 m/s" in found.report()
    assert "u.force at its upper limit 1 N, 0 s to 0.7" in found.report()
    assert "u.force at its lower limit -1 N" in found.report()
    assert "position at" not in found.report()
    assert len(found.report().splitlines()) < 15


def test_the_report_of_a_refined_mesh_and_of_phases():
    found = two_moves(intervals=[9, 5], mesh_tol=1e-4)
    text = found.report()
    counts = " -> ".join(str(mesh["intervals"]) for mesh in found.meshes)
    assert f"{counts} intervals in 2 phases" in text
    for k, phase in enumerate(found):
        assert f"phase {k}: {phase.t0:.6g} s to {phase.tf:.6g} s" in text
        own = f"{len(phase.errors)} intervals by hermite-simpson, mesh error {phase.mesh_error:.2g}"
        assert own in text
    assert "(mesh_tol = 0.0001)" in text and "u at its upper limit 2" in text
    assert found[0].report().count("\n") >= 6


@pytest.mark.parametrize(("unit", "size"), [("m", 1.0), ("mm", 1e3)])
def test_the_largest_violation_is_in_the_users_units(unit, size):
    """A goal that is out of reach: the gap is left somewhere, in m or in mm."""
    goal = np.array([1.0, 0.0]) * size
    problem = OptimalControl(
        PUSHED["dynamics"],
        terminal_cost=lambda t0, x0, tf, xf: 0.0 * tf,
        initial=[0.0, 0.0],
        boundary=lambda t0, x0, tf, xf: (xf - goal) / size,
        tf=1.0,
        control_bounds=(-0.1 * size, 0.1 * size),
    )
    found = problem.solve(STILL, intervals=5)
    assert not found.success
    text = found.report()
    value, kind, what = re.search(
        r"violation: ([\d.e-]+) (in|beyond a limit of) (.*)", text
    ).groups()
    assert (kind, what[:4]) == ("in", "boun") or what.startswith("the dynamics")
    assert float(value) > 0.1


def test_violations_of_the_dynamics_get_their_size_back():
    found = OptimalControl(
        lambda t, x, u: np.array([1e6 * u]),
        running_cost=lambda t, x, u: u**2,
        initial=[0.0],
        final=[1e6],
    ).solve({"x": np.zeros(1), "u": 0.0}, intervals=2)
    found.answer.x[found.program.layout.X[1, 0, 0]] += 0.25  # a quarter of the size
    value = float(re.search(r"violation: ([\d.e+-]+) in the dynamics of x\[0\]", found.report())[1])
    assert value == pytest.approx(0.25 * found.state_scale[0], rel=0.01)


def test_reports_name_parameters_integrals_and_free_times_in_degrees():
    @arc.struct
    class Swing:
        angle: float = arc.field(units="rad")
        rate: float = arc.field(units="rad/s")

    problem = OptimalControl(
        lambda t, x, u, p: Swing(x.rate, u * p["gain"]),
        running_cost=lambda t, x, u, p: 1.0 + 0.0 * u,
        initial=Swing(0.0, 0.0),
        final=Swing(np.pi / 2, 0.0),
        tf=(0.5, 20.0),
        state_bounds=(None, Swing(None, np.deg2rad(45.0))),
        control_bounds=(-1.0, 1.0),
        parameter_bounds=({"gain": 0.1}, {"gain": 4.0}),
        integrals=lambda t, x, u, p: {"effort": u**2},
        integral_bounds=({"effort": 0.0}, {"effort": 0.3}),
    )
    found = problem.solve(
        {"x": Swing(0.5, 0.0), "u": 0.1, "p": {"gain": 1.0}, "tf": 4.0}, intervals=30
    )
    assert found.success, found.message
    text = found.report()
    assert "rate at its upper limit 45 deg/s" in text
    assert "p.gain at its upper limit 4" in text and "parameters: p.gain = 4" in text
    assert re.search(r"integrals: effort = 0\.\d+", text)


def test_a_report_of_what_failed():
    problem = OptimalControl(
        **PUSHED, initial=[0.0, 0.0], final=[1.0, 0.0], tf=0.5, control_bounds=(-1.0, 1.0)
    )
    text = problem.solve(STILL, intervals=5).report()
    assert "no point near here satisfies the constraints" in text and "violation: " in text
