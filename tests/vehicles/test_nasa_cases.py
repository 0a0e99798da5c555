"""NASA's check cases, eager, native and in C, and what must hold in those without data here."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.environment import WGS84
from archimedes.vehicles import F16, F16Engine, FlightCase, FlightState, fly, trim
from tests.truth import TRUTH, needs_truth
from tests.vehicles.nasa_cases import CASES, FOOT
from tests.vehicles.nasa_checkpoints import CHECKPOINTS

#: Tolerance of altitude in ft and of angles in degrees.
TOLERANCES = {
    "01": (1e-5, 1e-6),
    "02": (1e-5, 1e-6),
    "04": (1e-3, 1e-6),
    "06": (1e-3, 1e-6),
    "09": (1e-2, 1e-6),
}
TIGHT = {"method": "dop853", "rtol": 1e-11, "atol": 1e-11}


def published(case, sim="04"):
    data = np.genfromtxt(TRUTH / "nesc" / f"Atmos_{case}_sim_{sim}.csv", delimiter=",", names=True)
    angles = [data[f"eulerAngle_deg_{n}"] for n in ("Roll", "Pitch", "Yaw")]
    return np.round(data["time"], 4), data["altitudeMsl_ft"], np.stack(angles, axis=-1)


def wrapped(degrees):
    return (degrees + 180.0) % 360.0 - 180.0


@needs_truth
@pytest.mark.parametrize("case", TOLERANCES)
def test_against_nasa(case):
    t, alt, angles = published(case)
    record = fly(CASES[case], t_eval=t, **TIGHT)
    assert record.trajectory.success
    assert np.abs(record.flight.alt / FOOT - alt).max() < TOLERANCES[case][0]
    assert np.abs(wrapped(np.rad2deg(record.flight.rpy) - angles)).max() < TOLERANCES[case][1]


@pytest.mark.parametrize("case", TOLERANCES)
def test_checkpoints(case):
    rows = CHECKPOINTS[case]
    record = fly(CASES[case], t_eval=rows[:, 0], **TIGHT)
    flight = record.flight
    assert np.abs(flight.alt / FOOT - rows[:, 1]).max() < TOLERANCES[case][0]
    assert np.abs(wrapped(np.rad2deg(flight.rpy) - rows[:, 2:5])).max() < TOLERANCES[case][1]
    # NASA's own simulations differ from each other by as much (case 9: 4e-3 ft in altitude).
    np.testing.assert_allclose(flight.v_NED / FOOT, rows[:, 5:], rtol=0, atol=5e-4)


@pytest.mark.parametrize("case", ["02", "06"])
def test_eager_interpreter_and_native_agree(case):
    """One rate of change in each way, and a short flight by hand with the eager function."""
    vehicle, begin = CASES[case].vehicle, CASES[case].start
    x = vehicle.state(begin)
    eager = arc.tree.ravel(vehicle.dynamics(0.0, x))[0]
    slow, native = (
        arc.tree.ravel(arc.compile(vehicle.dynamics, backend=b)(0.0, x))[0]
        for b in ("interpreter", "llvm")
    )
    np.testing.assert_allclose(slow, eager, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(native, slow)
    flat, unravel = arc.tree.ravel(x)

    def rate(z):
        return arc.tree.ravel(vehicle.dynamics(0.0, unravel(z)))[0]

    for _ in range(20):  # RK4, 1 s, plain NumPy
        k1 = rate(flat)
        k2 = rate(flat + 0.025 * k1)
        k3 = rate(flat + 0.025 * k2)
        k4 = rate(flat + 0.05 * k3)
        flat = flat + 0.05 / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    record = fly(CASES[case], t_eval=np.array([1.0]), **TIGHT)
    end = arc.tree.ravel(arc.tree.map(lambda a: a[0], record.trajectory.x))[0]
    np.testing.assert_allclose(flat, end, rtol=1e-9, atol=1e-7)


def test_rate_damping_slows_the_brick():
    """Case 3: kinetic energy of rotation only falls, and more than without air."""
    t = np.linspace(0.0, 30.0, 61)
    damped, free = (fly(CASES[c], t_eval=t, **TIGHT).flight.w_B for c in ("03", "02"))
    J = np.diag(CASES["03"].vehicle.inertia)
    energy = np.sum(J * damped**2, axis=-1)
    assert np.all(np.diff(energy) < 0.0)
    assert energy[-1] < 0.9 * np.sum(J * free[-1] ** 2)


def test_a_turning_round_earth_adds_its_spin():
    """Cases 4 and 5: without drag the fall on a turning sphere is an inertial Kepler fall."""
    case = CASES["05"].replace(vehicle=CASES["05"].vehicle.replace(drag=0.0))
    record = fly(case, t_eval=np.array([30.0]), **TIGHT)
    world = case.vehicle.world
    p0 = world.state(case.start).pos
    v0 = np.array([0.0, WGS84.omega * p0[0], 0.0])

    def kepler(t, x):
        r = np.sqrt(np.sum(x[:3] ** 2))
        return np.concatenate([x[3:], -world.ellipsoid.mu / r**3 * x[:3]])

    end = arc.odeint(kepler, (0.0, 30.0), np.concatenate([p0, v0]), rtol=1e-12, atol=1e-12)
    assert np.linalg.norm(record.trajectory.x.pos[0]) == pytest.approx(
        np.linalg.norm(end[:3]), abs=1e-6
    )


def test_the_ball_on_a_turning_round_earth_tumbles_as_on_one_at_rest():
    """Case 5 from the published attitudes of case 4, which starts with the same rates.

    Nothing turns the ball, so its attitude in inertial axes is that of case 4, where the local
    frame stays at latitude and longitude zero. Case 5 shows it in a local frame that moves east
    with the Earth.
    """
    rows = CHECKPOINTS["04"]
    flight = fly(CASES["05"], t_eval=rows[:, 0], **TIGHT).flight
    assert np.abs(flight.rpy).max() > 1.0  # it does tumble
    for k, (t, *_) in enumerate(rows):
        roll, pitch, yaw = np.deg2rad(rows[k, 2:5])
        R_BI = euler_matrix(roll, pitch, yaw) @ north_east_down(0.0, 0.0)
        R_NI = north_east_down(flight.lat[k], flight.lon[k] + WGS84.omega * t)
        found = euler_matrix(*flight.rpy[k])
        np.testing.assert_allclose(found, R_BI @ R_NI.T, rtol=0, atol=np.deg2rad(1e-6))


def euler_matrix(roll, pitch, yaw):
    """Rx(roll) Ry(pitch) Rz(yaw), coordinates of the local frame to those of the body."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return (
        np.array([[1, 0, 0], [0, cr, sr], [0, -sr, cr]])
        @ np.array([[cp, 0, -sp], [0, 1, 0], [sp, 0, cp]])
        @ np.array([[cy, sy, 0], [-sy, cy, 0], [0, 0, 1]])
    )


def north_east_down(lat, lon):
    """Rows are the axes of the local frame in the axes of the Earth."""
    (a, b), (c, d) = (np.cos(lat), np.sin(lat)), (np.cos(lon), np.sin(lon))
    return np.array([[-b * c, -b * d, a], [-d, c, 0.0], [-a * c, -a * d, -b]])


@pytest.mark.parametrize(("case", "east"), [("07", 20.0), ("08", 70.0)])
def test_wind_carries_the_ball_along(case, east):
    """Cases 7 and 8: drag pulls towards the wind's velocity, 20 and 70 ft/s at the start."""
    vehicle, begin = CASES[case].vehicle, CASES[case].start
    around = vehicle.world.surroundings(0.0, vehicle.state(begin))
    assert around.airspeed == pytest.approx(east * FOOT, rel=1e-9)
    calm = fly(CASES["06"], t_eval=np.array([30.0]), **TIGHT).flight.v_NED[0]
    windy = fly(CASES[case], t_eval=np.array([30.0]), **TIGHT).flight.v_NED[0]
    assert 0.1 * FOOT < windy[1] - calm[1] < east * FOOT


def test_the_northward_shot_drifts_by_coriolis():
    """Case 10: a shot to the north from the equator drifts to the west while it rises and falls."""
    record = fly(CASES["10"], t_eval=np.array([15.0, 30.0]), **TIGHT)
    assert np.all(record.flight.lat > 0.0)
    assert record.flight.lon[-1] < 0.0
    assert np.abs(record.flight.lon[-1]) * WGS84.a < 100.0


STEP, STEPS_PER_ROW = 0.02, 125  # the checkpoints lie 2.5 s apart


def stepper(case):
    """One Runge-Kutta step of a case as a function of its state alone."""
    vehicle = CASES[case].vehicle
    step = arc.discretize(vehicle.dynamics, dt=STEP, method="rk4")
    return vehicle, lambda x: step(0.0, x, None)


def check_rows(case, rows, states):
    flights = [CASES[case].vehicle.world.flight(0.0, x) for x in states]
    alt = np.array([flight.alt for flight in flights]) / FOOT
    angles = np.rad2deg([flight.rpy for flight in flights])
    assert np.abs(alt - rows[:, 1]).max() < TOLERANCES[case][0]
    assert np.abs(wrapped(angles - rows[:, 2:5])).max() < TOLERANCES[case][1]


@pytest.mark.long_cases("04", "06", "09")
@pytest.mark.parametrize("case", TOLERANCES)
def test_cases_as_c(case):
    """Generated C flies the cases within the tolerances, with the bits of the native code."""
    vehicle, step = stepper(case)

    def brick_step(x):
        return step(x)

    x = vehicle.state(CASES[case].start)
    native = arc.compile(step, backend="llvm")
    library = arc.codegen(brick_step, (x,), verify=True).load()
    library.init()
    leaves, structure = arc.tree.flatten(x)
    names = [path.lstrip(".") for path in structure.paths()]
    states = []
    for name, leaf in zip(names, leaves):
        library.inputs[f"x.{name}"][...] = leaf
    for _ in CHECKPOINTS[case]:
        for _ in range(STEPS_PER_ROW):
            library.step()
            for name in names:
                library.inputs[f"x.{name}"][...] = library.outputs[f"y.{name}"]
            x = native(x)
        states.append(
            structure.unflatten([np.array(library.outputs[f"y.{name}"]) for name in names])
        )
        for mine, other in zip(arc.tree.leaves(states[-1]), arc.tree.leaves(x)):
            np.testing.assert_array_equal(mine, other)
    check_rows(case, CHECKPOINTS[case], states)


@pytest.mark.long
@pytest.mark.parametrize("case", TOLERANCES)
def test_cases_as_plain_numpy(case):
    """The eager function under SciPy's integrator: nothing recorded, nothing of ours that steps."""
    vehicle, rows = CASES[case].vehicle, CHECKPOINTS[case]
    flat, unravel = arc.tree.ravel(vehicle.state(CASES[case].start))

    def rates(t, z):
        return arc.tree.ravel(vehicle.dynamics(t, unravel(z)))[0]

    run = solve_ivp(rates, (0.0, 30.0), flat, "DOP853", rows[:, 0], rtol=1e-11, atol=1e-11)
    check_rows(case, rows, [unravel(z) for z in run.y.T])


def f16_case():
    """Case 11: subsonic, trimmed with wings level at 10,013 ft; the rates are the memorandum's."""
    plane = F16(xcg=0.25, engine=F16Engine(angular_momentum=0.0, lag=False))
    begin = FlightState(
        lat=np.deg2rad(36.01916667),
        lon=np.deg2rad(-75.67444444),
        alt=10013.0 * FOOT,
        v_NED=FOOT * np.array([400.010306117, 400.010306117, 0.0]),
        rpy=np.deg2rad([0.0, 2.0, 45.0]),
        w_B=np.deg2rad([0.00250011334537, -0.00394714404607, -0.0023443260021]),
    )
    found = trim(
        plane,
        begin,
        F16.Input(0.2, -0.05, 0.0, 0.0),
        {"power": 0.0},
        free=("pitch", "throttle", "elevator"),
        steady=("speed", "climb", "q"),
    )
    return plane, found


def test_f16_trim_and_flight():
    plane, found = f16_case()
    assert found.success
    assert np.rad2deg(found.flight.rpy[1]) == pytest.approx(2.6389, abs=3e-4)
    assert np.rad2deg(found.input.elevator) == pytest.approx(-3.2328, abs=3e-4)
    assert plane.engine.commanded(found.input.throttle) == pytest.approx(13.874, abs=1e-3)
    rows = CHECKPOINTS["11"]
    case = FlightCase(plane, found.flight, 60.0, found.input, {"power": 0.0})
    flight = fly(case, t_eval=rows[:, 0]).flight
    assert np.abs(flight.alt / FOOT - rows[:, 1]).max() < 1.0
    assert np.abs(wrapped(np.rad2deg(flight.rpy) - rows[:, 2:5])).max() < 0.02
