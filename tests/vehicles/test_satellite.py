"""Satellites: orbits against Basilisk, momentum, detumbling and slews."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.environment import (
    WGS84,
    ExponentialAtmosphere,
    J2Gravity,
    PointMassGravity,
    StandardAtmosphere1976,
)
from archimedes.spatial import Quaternion
from archimedes.vehicles import Satellite
from archimedes.vehicles.parts import Magnetorquers, ReactionWheels, Thrusters
from tests.environment.backends import check_everywhere
from tests.truth import TRUTH, needs_truth

MU = 3.986004415e14
STATION = np.array([[1.02e8, -6.96e6, -5.48e6], [-6.96e6, 9.1e7, 5.9e5], [-5.48e6, 5.9e5, 1.64e8]])
CYLINDER = np.diag([500.0, 12250.0, 12250.0])
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-12}
#: A pair of thrusters whose forces cancel and whose moment is 10 N m about x.
COUPLE = Thrusters(
    positions=np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]),
    directions=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]),
    thrust=5.0,
)
SMALL = Satellite(
    mass=20.0,
    inertia=np.array([[0.5, 0.02, 0.0], [0.02, 0.6, -0.01], [0.0, -0.01, 0.4]]),
    wheels=ReactionWheels(np.eye(3), inertia=2e-4, max_torque=0.02, max_momentum=0.4),
    coils=Magnetorquers(max_dipole=2.0),
)


def low_orbit(w_B=(0.0, 0.0, 0.0), h=(0.0, 0.0, 0.0)):
    r, tilt = 6.9e6, 1.2
    v = np.sqrt(MU / r) * np.array([0.0, np.cos(tilt), np.sin(tilt)])
    return Satellite.State(
        np.array([r, 0.0, 0.0]), v, Quaternion.identity(), np.array(w_B), np.array(h)
    )


def body(name):
    if name == "10A":
        return Satellite(1000.0, CYLINDER, gravity=PointMassGravity(MU))
    gravity = PointMassGravity(MU)
    return Satellite(4e5, STATION, thrusters=COUPLE, gravity=gravity, gravity_gradient=False)


@needs_truth
@pytest.mark.parametrize("name", ["02", "09B", "10A"])
def test_orbits_against_basilisk(name):
    """8 h to 1e-4 m and 1e-9 rad; 09B is pushed from 1000 to 2000 s."""
    rows = np.genfromtxt(
        TRUTH / "orbit" / f"orbit_{name}_basilisk.csv", delimiter=",", skip_header=1
    )
    satellite, t = body(name), rows[:, 0]
    x = Satellite.State(
        rows[0, 1:4], rows[0, 4:7], Quaternion(rows[0, 7:11]), rows[0, 11:14], np.zeros(3)
    )
    pieces = [(0.0, 1000.0, 0.0), (1000.0, 2000.0, 1.0), (2000.0, t[-1], 0.0)]
    if name != "09B":
        pieces = [(0.0, t[-1], 0.0)]
    position, attitude = [], []
    for start, end, throttle in pieces:
        u = satellite.idle()
        if satellite.thrusters is not None:
            u = u.replace(throttle=np.full(2, throttle))
        times = np.union1d(t[(t >= start) & (t <= end)], [end])
        run = arc.solve_ode(satellite.dynamics, (start, end), x, args=(u,), t_eval=times, **TIGHT)
        kept = np.isin(times, t) & ((times < end) | (end == t[-1]))
        position.append(run.x.pos[kept])
        attitude.append(run.x.att.array[kept])
        x = arc.tree.map(lambda a: a[-1], run.x)
    q, expected = np.concatenate(attitude), rows[:, 7:11]
    angle = 2.0 * np.minimum(*(np.linalg.norm(q - s * expected, axis=1) for s in (1.0, -1.0)))
    assert np.abs(np.concatenate(position) - rows[:, 1:4]).max() < 1e-4
    assert angle.max() < 1e-9


def test_total_momentum_is_conserved_while_wheels_turn_the_body():
    satellite = arc.tree.replace(SMALL, gravity_gradient=False)
    u = satellite.idle().replace(torque=np.array([0.004, -0.003, 0.001]))
    x0 = low_orbit((0.01, -0.02, 0.03), (0.02, 0.01, -0.03))
    run = arc.solve_ode(
        lambda t, x: satellite.dynamics(t, x, u),
        (0.0, 60.0),
        x0,
        t_eval=np.linspace(0, 60, 31),
        **TIGHT,
    )
    momenta = [
        satellite.outputs(t, arc.tree.map(lambda a, k=k: a[k], run.x)).momentum
        for k, t in enumerate(run.t)
    ]
    assert np.ptp(run.x.w_B, axis=0).max() > 0.1
    np.testing.assert_allclose(momenta, np.tile(momenta[0], (31, 1)), rtol=0, atol=1e-10)


def test_wheels_keep_their_limits():
    wheels = SMALL.wheels
    h = np.array([0.4, -0.4, 0.1])
    np.testing.assert_array_equal(wheels.torque(h, np.full(3, 1.0)), [0.0, 0.02, 0.02])
    np.testing.assert_array_equal(wheels.torque(h, np.full(3, -1.0)), [-0.02, 0.0, -0.02])
    skewed = ReactionWheels(np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, -1]]) / np.sqrt(3))
    wanted = np.array([0.01, -0.02, 0.005])
    motors = skewed.distribute(wanted)
    np.testing.assert_allclose(-motors @ skewed.axes, wanted, atol=1e-16)


def test_coils_detumble():
    """The B-dot law takes a tumbling body's energy out through the magnetic field."""
    satellite = arc.tree.replace(SMALL, gravity_gradient=False)

    def damped(t, x):
        B = satellite.outputs(t, x).B_B
        rate = -np.cross(x.w_B, B)  # of the field in body axes, as far as the turning makes it
        return satellite.dynamics(t, x, satellite.idle().replace(dipole=-5e5 * rate))

    x0 = low_orbit((0.1, -0.08, 0.12))
    run = arc.solve_ode(damped, (0.0, 6000.0), x0, t_eval=np.linspace(0.0, 6000.0, 61))
    energy = 0.5 * np.einsum("ni,ij,nj->n", run.x.w_B, satellite.inertia, run.x.w_B)
    assert np.all(np.diff(energy) < 0.0)
    assert np.linalg.norm(run.x.w_B[-1]) < 0.03 * np.linalg.norm(run.x.w_B[0])


def test_wheels_slew_to_an_attitude():
    goal = Quaternion.from_euler([0.3, -0.5, 2.0], "xyz")

    def guided(t, x):
        error = (goal.inv() * x.att).array  # the way still to go
        sign = np.where(error[0] < 0.0, -1.0, 1.0)
        moment = -0.02 * sign * error[1:] - 0.15 * x.w_B
        return SMALL.dynamics(t, x, SMALL.idle().replace(torque=SMALL.wheels.distribute(moment)))

    run = arc.solve_ode(guided, (0.0, 300.0), low_orbit(), t_eval=np.linspace(0, 300, 31))
    left = (goal.inv() * Quaternion(run.x.att.array[-1])).as_rotvec()
    assert np.linalg.norm(np.asarray(getattr(left, "array", left))) < 1e-3
    assert np.linalg.norm(run.x.w_B[-1]) < 1e-4
    assert np.abs(run.x.h).max() < 0.4


@pytest.mark.parametrize("lat", [-90.0, -51.6, 0.0, 30.0, 90.0])
def test_altitude_and_drag_are_those_over_the_ellipsoid(lat):
    """400 km over any latitude: altitude 400 km, drag by the density of the air there."""
    atmosphere = StandardAtmosphere1976()
    satellite = arc.tree.replace(SMALL, atmosphere=atmosphere, area=0.5, gravity_gradient=False)
    # Normal sections of the ellipsoid: the point of the surface, and 400 km along its normal.
    a, b, s, c = 6378137.0, 6356752.314245179, np.sin(np.deg2rad(lat)), np.cos(np.deg2rad(lat))
    root = np.hypot(a * c, b * s)
    pos = np.array([a * a / root * c, 0.0, b * b / root * s]) + 4e5 * np.array([c, 0.0, s])
    x = low_orbit().replace(pos=pos)
    u = satellite.idle()
    assert satellite.outputs(0.0, x, u).altitude == pytest.approx(4e5, abs=1e-6)
    free = arc.tree.replace(satellite, atmosphere=None)
    slowed = satellite.dynamics(0.0, x, u).vel - free.dynamics(0.0, x, u).vel
    v = x.vel - np.cross([0.0, 0.0, WGS84.omega], pos)
    rho = atmosphere(4e5).density
    expected = -0.5 * rho * 0.5 * 2.2 / 20.0 * np.linalg.norm(v) * v
    np.testing.assert_allclose(slowed, expected, rtol=1e-6, atol=1e-13)
    check_everywhere(lambda pos: satellite.dynamics(0.0, x.replace(pos=pos), u).vel, pos)


def test_drag_and_flattening_change_the_orbit():
    u, x0 = SMALL.idle(), low_orbit()
    thick = arc.tree.replace(
        SMALL,
        atmosphere=ExponentialAtmosphere(1e-9, 5e4, 1000.0),
        area=1.0,
        gravity=PointMassGravity(MU),
    )
    run = arc.solve_ode(thick.dynamics, (0.0, 6000.0), x0, args=(u,), rtol=1e-10)
    v, r = run.x.vel, np.linalg.norm(run.x.pos, axis=1)
    energy = 0.5 * np.sum(v**2, axis=1) - MU / r
    assert np.all(np.diff(energy) < 0.0)
    # J2 turns the plane of the orbit: the node moves west by the well-known rate.
    flat = arc.tree.replace(SMALL, gravity=J2Gravity(MU), gravity_gradient=False)
    run = arc.solve_ode(
        lambda t, x: flat.dynamics(t, x, u),
        (0.0, 57000.0),
        x0,
        t_eval=np.array([0, 57000.0]),
        rtol=1e-10,
    )
    normal = np.cross(run.x.pos, run.x.vel)
    node = np.unwrap(np.arctan2(normal[:, 0], -normal[:, 1]))
    n, tilt = np.sqrt(MU / 6.9e6**3), 1.2
    expected = -1.5 * 0.00108262982 * (6378137.0 / 6.9e6) ** 2 * n * np.cos(tilt) * 57000.0
    assert node[1] - node[0] == pytest.approx(expected, rel=0.02)


def test_backends():
    x = low_orbit((0.01, 0.02, -0.03), (0.1, 0.0, -0.1))
    u = SMALL.idle().replace(torque=np.full(3, 0.01), dipole=np.array([1.0, -3.0, 0.5]))
    check_everywhere(SMALL.dynamics, 10.0, x, u, rtol=1e-12)
    check_everywhere(SMALL.outputs, 10.0, x, u, rtol=1e-12)


def test_errors():
    with pytest.raises(ValueError, match=r"h must have shape \(3,\)"):
        SMALL.dynamics(0.0, low_orbit(h=(0.0, 0.0)), SMALL.idle())
    with pytest.raises(ValueError, match=r"ReactionWheels\.axes must be unit vectors"):
        ReactionWheels(2.0 * np.eye(3))
    with pytest.raises(ValueError, match=r"Thrusters\.thrust must not be negative"):
        Thrusters(np.zeros((1, 3)), np.array([[1.0, 0, 0]]), -1.0)
    with pytest.raises(ValueError, match="positions and directions must both have shape"):
        Thrusters(np.zeros((2, 3)), np.array([[1.0, 0, 0]]), 1.0)
    with pytest.raises(ValueError, match=r"Satellite\.mass must be positive"):
        Satellite(0.0, np.eye(3))
