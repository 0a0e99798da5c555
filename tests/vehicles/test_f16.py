"""The F-16 against published rates, trims and modes (Stevens, Lewis and Johnson, 3rd edition)."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import Air, UniformGravity
from archimedes.spatial import EulerAngles, Quaternion, RigidBody
from archimedes.vehicles import (
    F16,
    F16Engine,
    FlatEarth,
    FlightCase,
    FlightState,
    fly,
    linearize,
    load,
    trim,
)
from tests.environment.backends import check_everywhere

FOOT, SLUG = 0.3048, 14.593902937206364
MASS = 20500.0 / 32.17 * SLUG


class BookAtmosphere:
    """The atmosphere of the book's appendix A.6, in SI."""

    def __call__(self, alt):
        h = alt / FOOT
        factor = 1.0 - 0.703e-5 * h
        T = np.where(h >= 35000.0, 390.0, 519.0 * factor)
        rho = 2.377e-3 * factor**4.14
        sound = np.sqrt(1.4 * 1716.3 * T) * FOOT
        return Air(T / 1.8, 1715.0 * rho * T * 47.88026, rho * 515.378818, sound, 0.0 * T)


def book_plane(xcg):
    gravity = UniformGravity(np.array([0.0, 0.0, 32.17 * FOOT]))
    return F16(mass=MASS, xcg=xcg, world=FlatEarth(gravity, BookAtmosphere()))


def book_state(VT, alpha, beta, phi, theta, psi, p, q, r, north, east, h, power):
    v = [np.cos(alpha) * np.cos(beta), np.sin(beta), np.sin(alpha) * np.cos(beta)]
    motion = RigidBody.State(
        FOOT * np.array([north, east, -h]),
        Quaternion.from_euler(EulerAngles(np.array([phi, theta, psi]), "xyz")),
        FOOT * VT * np.array(v),
        np.array([p, q, r]),
    )
    return F16.State(motion, np.array(float(power)))


def book_rates(x, rates, rpy):
    """Rates in the book's terms: of VT, alpha, beta, angles, body rates, place and power."""
    v, dv = x.motion.v_B, rates.motion.v_B
    V = np.linalg.norm(v)
    dV = v @ dv / V
    alpha = (v[0] * dv[2] - v[2] * dv[0]) / (v[0] ** 2 + v[2] ** 2)
    beta = (V * dv[1] - v[1] * dV) / (V * np.hypot(v[0], v[2]))
    turning = EulerAngles(np.array(rpy), "xyz").kinematics(x.motion.w_B).array
    place = rates.motion.pos / FOOT * [1.0, 1.0, -1.0]
    return np.array([dV / FOOT, alpha, beta, *turning, *rates.motion.w_B, *place, rates.power])


def level(speed=502.0, alt=0.0):
    return FlightState(
        0.0, 0.0, alt, np.array([speed * FOOT, 0.0, 0.0]), np.array([0.0, 0.04, 0.0]), np.zeros(3)
    )


START = F16.Input(0.15, -0.02, 0.0, 0.0)


def test_published_rates():
    """Table 3.5-2: 11 of 13 to 0.05 %, roll and yaw accelerations to 0.3 % (the Cl table)."""
    x = book_state(500, 0.5, -0.2, -1, 1, -1, 0.7, -0.8, 0.9, 1000, 900, 10000, 90)
    u = F16.Input(0.9, *np.deg2rad([20.0, -15.0, -20.0]))
    got = book_rates(x, book_plane(0.4).dynamics(0.0, x, u), (-1.0, 1.0, -1.0))
    expected = np.array(
        [
            *(-75.23724, -0.8813491, -0.4759990, 2.505734, 0.3250820, 2.145926),
            *(12.62679, 0.9649671, 0.5809759, 342.4439, -266.7707, 248.1241, -58.68999),
        ]
    )
    error = np.abs(got / expected - 1.0)
    assert np.all(np.delete(error, [6, 8]) < 5e-4), error
    assert error[6] < 3e-3 and error[8] < 1e-3


@pytest.mark.parametrize(
    ("xcg", "alpha", "throttle", "elevator"),
    [
        (0.35, 0.03691, 0.1385, -0.7588),
        (0.30, 0.03936, 0.1485, -1.931),
        (0.38, 0.03544, 0.1325, -0.0559),
    ],
)
def test_published_level_flight(xcg, alpha, throttle, elevator):
    """Table 3.6-3, nominal speed at sea level."""
    found = trim(book_plane(xcg), level(), START, {"power": 9.0})
    assert found.success, found.message
    assert found.flight.rpy[1] == pytest.approx(alpha, abs=5e-5)
    assert found.input.throttle == pytest.approx(throttle, abs=2e-4)
    assert np.rad2deg(found.input.elevator) == pytest.approx(elevator, abs=2e-3)


def test_published_turn():
    """Table 3.6-3: a coordinated turn of 0.3 rad/s; the aileron rests on the Cl table."""
    plane = book_plane(0.30)
    found = trim(plane, level(), START, {"power": 9.0}, turn_rate=0.3)
    assert found.success, found.message
    out = plane.outputs(0.0, found.state, found.input)
    assert out.alpha == pytest.approx(0.2485, abs=3e-4)
    assert out.beta == pytest.approx(4.8e-4, abs=2e-5)
    np.testing.assert_allclose(found.flight.rpy[:2], [1.367, 0.05185], atol=5e-4)
    np.testing.assert_allclose(found.flight.w_B, [-0.01555, 0.2934, 0.06071], atol=5e-5)
    assert found.input.throttle == pytest.approx(0.8499, abs=5e-4)
    surfaces = np.rad2deg([found.input.elevator, found.input.aileron, found.input.rudder])
    np.testing.assert_allclose(surfaces, [-6.256, 0.09891, -0.4218], atol=6e-3)


def test_modes_of_level_flight():
    """Short period, phugoid, dutch roll, roll and spiral, where the literature has them."""
    plane = book_plane(0.30)
    found = trim(plane, level(), START, {"power": 9.0})
    small = linearize(plane, found.flight, found.input, {"power": found.state.power})
    assert small.states[:4] == ("alt", "v_N", "v_E", "v_D") and small.states[-1] == "power"
    assert small.inputs == ("throttle", "elevator", "aileron", "rudder")
    # Each Jacobian against central differences of the rates.
    eigenvalues = np.array(small.poles())
    pairs = sorted((e for e in eigenvalues if e.imag > 1e-6), key=abs)
    phugoid, *fast = pairs
    assert 0.05 < abs(phugoid) < 0.12 and 0.0 < -phugoid.real / abs(phugoid) < 0.3
    (dutch,) = [e for e in fast if 2.0 < abs(e) < 4.5 and e.real > -1.0]
    (short,) = [e for e in fast if 0.8 < abs(e) < 3.5 and -e.real / abs(e) > 0.5]
    assert 0.05 < -dutch.real / abs(dutch) < 0.4
    real = sorted(e.real for e in eigenvalues if abs(e.imag) < 1e-6)
    assert any(-5.0 < e < -2.0 for e in real), real  # roll subsidence
    assert any(-0.1 < e < 0.05 for e in real), real  # spiral
    assert short.real < 0.0


def test_linearization_against_differences():
    plane = book_plane(0.30)
    found = trim(plane, level(), START, {"power": 9.0})
    small = linearize(plane, found.flight, found.input, {"power": found.state.power})

    def rates(z, u):
        flight = FlightState(0.0, 0.0, z[0], z[1:4], z[4:7], z[7:10])
        x = plane.state(flight, z[10])
        dx = plane.dynamics(0.0, x, F16.Input(*u))
        h = 1e-6
        ahead, behind = (
            plane.world.flight(
                0.0, arc.tree.map(lambda a, b, s=s: a + s * h * b, x.motion, dx.motion)
            )
            for s in (1.0, -1.0)
        )
        change = arc.tree.map(lambda a, b: (a - b) / (2 * h), ahead, behind)
        return np.concatenate([[change.alt], change.v_NED, change.rpy, change.w_B, [dx.power]])

    f = found.flight
    z = np.concatenate([[f.alt], f.v_NED, f.rpy, f.w_B, [found.state.power]])
    u = np.array(arc.tree.leaves(found.input), dtype=float)
    steps = np.array([10.0, 0.1, 0.1, 0.1, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 0.1])
    for k in range(11):
        e = np.zeros(11)
        e[k] = steps[k]
        column = (rates(z + e, u) - rates(z - e, u)) / (2 * steps[k])
        np.testing.assert_allclose(small.A[:, k], column, rtol=2e-2, atol=2e-3)
    for k in range(4):
        e = np.zeros(4)
        e[k] = 1e-4
        column = (rates(z, u + e) - rates(z, u - e)) / 2e-4
        np.testing.assert_allclose(small.B[:, k], column, rtol=2e-2, atol=2e-3)


def test_engine_lag_and_thrust():
    engine = F16Engine()
    assert engine.commanded(0.77) == pytest.approx(50.0, abs=0.02)
    assert engine.commanded(1.0) == pytest.approx(100.0)
    assert engine.power_rate(90.0, 0.9) == pytest.approx(5.0 * (78.262 - 90.0))
    assert engine.power_rate(0.0, 1.0) == pytest.approx(60.0 * 0.1)
    assert engine.power_rate(60.0, 0.1) == pytest.approx(5.0 * (40.0 - 60.0))
    plane = book_plane(0.3)
    around = plane.world.surroundings(0.0, plane.state(level(speed=0.2 * 1116.45)).motion)
    assert engine.thrust(50.0, around) / 4.4482216152605 == pytest.approx(12680.0, rel=1e-3)


def test_another_engine_by_passing_a_part():
    @arc.struct
    class Glider:
        angular_momentum: float = 0.0
        lag: bool = arc.field(static=True, default=False)

        def commanded(self, throttle):
            return 0.0 * throttle

        def thrust(self, power, around):
            return 0.0 * around.alt

    plane = book_plane(0.3)
    glider = arc.tree.replace(plane, engine=Glider())
    start = level(alt=3000.0)
    u = F16.Input(0.0, -0.03, 0.0, 0.0)
    record = fly(FlightCase(glider, start, 10.0, u), t_eval=np.array([10.0]))
    with_engine = fly(
        FlightCase(plane, start, 10.0, u.replace(throttle=1.0)), t_eval=np.array([10.0])
    )
    assert record.flight.v_NED[0, 0] < with_engine.flight.v_NED[0, 0] - 10.0


def climbing(speed, climb, alt):
    """Return a state of flight that climbs, with the nose up."""
    v_NED, rpy = np.array([speed, 0.0, -climb]), np.array([0.0, 0.3, 0.0])
    return FlightState(0.6, -1.3, alt, v_NED, rpy, np.zeros(3))


@pytest.mark.parametrize(
    ("flight", "throttle"),
    [(climbing(150.0, 100.0, 8000.0), 1.098), (climbing(120.0, 60.0, 12000.0), 1.574)],
)
def test_controls_stay_within_their_stops(flight, throttle):
    plane, start, power = F16(), F16.Input(0.15, -0.03), {"power": 10.0}
    found = trim(plane, flight, start, power)
    assert not found.success
    assert f"it would take throttle = {throttle}, beyond its stop 1" in found.message
    low, high = plane.stops
    for u, least, most in zip(*map(arc.tree.leaves, (found.input, low, high))):
        assert least <= u <= most
    # Whoever asks for more gets it, and is told.
    wide = (F16.Input(0.0, -1.0, -1.0, -1.0), F16.Input(2.0, 1.0, 1.0, 1.0))
    loose = trim(plane, flight, start, power, bounds=wide)
    assert loose.success
    assert f"trimmed, with throttle = {throttle}, beyond its stop 1" in loose.message


def test_stops_do_not_hide_a_solution_within_them():
    # The search along the stops ends where the afterburner begins.
    found = trim(F16(), climbing(200.0, 150.0, 5000.0), START, {"power": 10.0})
    assert found.success and found.message == "trimmed"
    assert found.input.throttle == pytest.approx(0.951, abs=1e-3)


def test_trimmed_again_nothing_is_recorded(recordings):
    plane = load("f16")
    first = trim(plane, level(), START, {"power": 9.0})
    recordings.clear()
    for speed in (502.0, 530.0, 560.0, 590.0):
        assert trim(plane, level(speed=speed), START, {"power": 9.0}).success
    assert not recordings
    # Another centre of mass is another aircraft.
    other = trim(arc.tree.replace(plane, xcg=0.3), level(), START, {"power": 9.0})
    assert other.input.elevator > first.input.elevator + 1e-3


def test_no_steady_flight_says_what_is_left():
    found = trim(book_plane(0.3), level(speed=100.0), START, {"power": 9.0})
    assert not found.success
    assert "no steady flight found: the rate of" in found.message
    with pytest.raises(ValueError, match=r"flight\.v_NED is zero: steady flight needs a velocity"):
        trim(book_plane(0.3), level(speed=0.0), START, {"power": 9.0})
    with pytest.raises(ValueError, match="power starts at inf: give x and u finite numbers"):
        trim(book_plane(0.3), level(), START, {"power": np.inf})
    with pytest.raises(ValueError, match="trim: free='flaps' is not one of"):
        trim(book_plane(0.3), level(), START, {"power": 9.0}, free=("flaps",))
    with pytest.raises(ValueError, match=r"F16\.mass must be positive"):
        F16(mass=-1.0)


def test_backends():
    plane = F16()
    x = plane.state(level(alt=3000.0), 40.0)
    check_everywhere(plane.dynamics, 0.0, x, START, rtol=1e-11)
    check_everywhere(plane.outputs, 0.0, x, START, rtol=1e-11)


def test_dispersed_flights_are_one_batch():
    plane, alts = F16(), np.array([1000.0, 2000.0, 4000.0])
    states = [plane.state(level(alt=a), 20.0) for a in alts]
    many = arc.tree.map(lambda *parts: np.stack(parts), *states)
    rates = arc.vmap(plane.dynamics, in_axes=(None, 0, None))(0.0, many, START)
    single = arc.compile(plane.dynamics, backend="llvm")
    for k, x in enumerate(states):
        np.testing.assert_array_equal(rates.motion.w_B[k], single(0.0, x, START).motion.w_B)


def ahead(speed, alt):
    v, rpy = np.array([speed, 0.0, 0.0]), np.array([0.0, 0.03, 0.0])
    return FlightState(0.6, 0.0, alt, v, rpy, np.zeros(3))


def test_trims_end_when_only_rounding_is_left(monkeypatch):
    """Residuals of 1e-17 are terms that cancel: more steps would only shuffle their rounding."""
    from archimedes.control.operation import trim as operation

    counts, search = [], operation.least_squares

    def counted(*args, **options):
        found = search(*args, **options)
        counts.append(found.nfev)
        return found

    monkeypatch.setattr(operation, "least_squares", counted)
    plane = load("f16")
    for speed in (150.0, 200.0, 300.0):
        start = ahead(speed, 3000.0)
        assert trim(plane, start, F16.Input(0.15, -0.03), {"power": 10.0}).success
    assert max(counts) < 30, counts


def test_trims_go_on_behind_kinks_of_the_tables():
    """At 380 m/s the search meets a slope that jumps; the throttle grows with the speed."""
    plane, throttles = load("f16"), []
    for speed in (350.0, 380.0, 390.0):
        start = ahead(speed, 0.0)
        found = trim(plane, start, F16.Input(0.15, -0.03), {"power": 10.0})
        assert found.success, found.message
        throttles.append(float(found.input.throttle))
    assert np.all(np.diff(throttles) > 0.0) and throttles[-1] < 1.0
