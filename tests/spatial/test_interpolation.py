"""Slerp, squad, splines, means and alignment against SciPy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline, Slerp

import archimedes as arc
from archimedes.spatial import (
    EulerAngles,
    PoseSpline,
    Quaternion,
    QuaternionSpline,
    align_vectors,
    mean,
    slerp,
    squad,
    squad_controls,
)
from tests.spatial.samples import CLASSES, turns, up_to_sign


def test_slerp_against_scipy():
    rotations = Rotation.random(2000, random_state=1)
    q = Quaternion(turns(rotations))
    for s in (0.0, 0.3, 0.5, 1.0):
        found = slerp(q[:-1], q[1:], s).array
        step = (rotations[:-1].inv() * rotations[1:]).as_rotvec()
        expected = turns(rotations[:-1] * Rotation.from_rotvec(s * step))
        assert up_to_sign(found, expected) < 1e-14
    grid = np.linspace(0, 1, 11)
    reference = Slerp([0, 1], rotations[:2])(grid)
    assert up_to_sign(slerp(q[0], q[1], grid).array, turns(reference)) < 1e-14
    np.testing.assert_allclose(np.linalg.norm(slerp(q[0], q[1], grid).array, axis=-1), 1.0)


@pytest.mark.parametrize("cls", CLASSES)
def test_slerp_of_any_class(cls):
    a, b = cls.random(1), cls.random(2)
    middle = slerp(a, b, 0.25)
    assert type(middle) is cls
    assert a.angle_to(middle) == pytest.approx(0.25 * a.angle_to(b))
    assert middle.angle_to(b) == pytest.approx(0.75 * a.angle_to(b))


def test_slerp_shortest_and_coincident():
    q = Quaternion.random(3)
    near = (q * Quaternion.exp([0.1, 0.0, 0.0])).array
    np.testing.assert_allclose(slerp(q.array, near, 0.5), -slerp(-q.array, near, 0.5), atol=1e-15)
    np.testing.assert_allclose(slerp(q.array, q.array, 0.3), q.array, atol=1e-15)
    np.testing.assert_allclose(slerp(q.array, -q.array, 0.3), q.array, atol=1e-15)
    # Turns by half: any way round, but a rotation by the asked part of it.
    half = (q * Quaternion([0.0, 0.6, 0.8, 0.0])).array
    assert Quaternion(slerp(q.array, half, 0.5)).angle_to(q) == pytest.approx(np.pi / 2)


def test_squad():
    rng = np.random.default_rng(0)
    q = Quaternion.exp(np.cumsum(0.5 * rng.normal(size=(6, 3)), axis=0))
    controls = squad_controls(q)
    assert isinstance(controls, Quaternion)
    curve = lambda i, s: squad(q[i], q[i + 1], controls[i], controls[i + 1], s)
    for i in range(5):
        assert curve(i, 0.0).angle_to(q[i]) < 1e-14
        assert curve(i, 1.0).angle_to(q[i + 1]) < 1e-14
    rate = lambda i, s: curve(i, s).angular_velocity(arc.jac(lambda s: curve(i, s).array)(s))
    for i in range(4):
        np.testing.assert_allclose(rate(i, 1.0), rate(i + 1, 0.0), atol=1e-12)
    # On a turn about one axis at constant speed it is that turn.
    even = Quaternion.exp(np.outer(np.arange(4), [0.3, 0.0, 0.0]))
    c = squad_controls(even)
    s = np.linspace(0, 1, 5)
    np.testing.assert_allclose(
        squad(even[1], even[2], c[1], c[2], s).log()[:, 0], 0.3 * (1 + s), atol=1e-14
    )
    np.testing.assert_allclose(squad_controls(even[:2]).array, even[:2].array, atol=1e-15)
    with pytest.raises(ValueError, match="two or more"):
        squad_controls(even[0])


@pytest.mark.parametrize("seed", range(4))
def test_spline_against_scipy(seed):
    rng = np.random.default_rng(seed)
    times = np.arange(8.0) + rng.uniform(0, 0.4, 8)
    rotations = Rotation.from_rotvec(np.cumsum(0.3 * rng.normal(size=(8, 3)), axis=0))
    ours = QuaternionSpline(times, Quaternion(turns(rotations)))
    theirs = RotationSpline(times, rotations)
    t = np.linspace(times[0], times[-1], 60)
    assert (
        Rotation.from_quat(ours(t).array, scalar_first=True).inv() * theirs(t)
    ).magnitude().max() < 1e-9
    np.testing.assert_allclose(ours.angular_velocity(t), theirs(t, 1), atol=1e-8)
    np.testing.assert_allclose(ours.angular_acceleration(t), theirs(t, 2), atol=1e-7)


@pytest.mark.parametrize("turn", [0.3, 1.0, 2.5])
def test_spline_is_twice_continuous(turn):
    """Value, rate and acceleration agree from both sides of each knot, also for large turns."""
    rng = np.random.default_rng(7)
    times = np.arange(7.0) + rng.uniform(0, 0.5, 7)
    q = Quaternion.exp(np.cumsum(turn * rng.normal(size=(7, 3)), axis=0))
    spline = QuaternionSpline(times, q)
    for k in range(7):
        assert spline(times[k]).angle_to(q[k]) < 1e-13
    inner = times[1:-1]
    before = np.nextafter(inner, -np.inf)
    assert np.all(spline(before).angle_to(spline(inner)) < 1e-13)
    for quantity in (spline.angular_velocity, spline.angular_acceleration):
        scale = np.abs(quantity(inner)).max()
        np.testing.assert_allclose(quantity(before), quantity(inner), atol=1e-10 * scale)


def test_spline_end_rates_and_two_knots():
    q = Quaternion.exp(np.array([[0.0, 0, 0], [0.2, 0, 0], [0.3, 0.1, 0]]))
    start, end = np.array([0.1, 0.2, 0.3]), np.array([-0.1, 0.0, 0.1])
    spline = QuaternionSpline([0.0, 1.0, 2.0], q, start_rate=start, end_rate=end)
    np.testing.assert_allclose(spline.angular_velocity(0.0), start, atol=1e-15)
    np.testing.assert_allclose(spline.angular_velocity(2.0), end, atol=1e-14)
    two = QuaternionSpline([0.0, 2.0], q[:2])
    np.testing.assert_allclose(two.angular_velocity(0.7), [0.1, 0, 0], atol=1e-15)
    assert two(1.0).angle_to(slerp(q[0], q[1], 0.5)) < 1e-15


def test_spline_about_one_axis_is_a_cubic_spline():
    times, angles = np.array([0.0, 1.0, 2.5, 3.0]), np.array([0.0, 0.5, 0.2, 1.0])
    slopes = np.diff(angles) / np.diff(times)
    reference = CubicSpline(times, angles, bc_type=((1, slopes[0]), (1, slopes[-1])))
    spline = QuaternionSpline(times, EulerAngles(angles[:, None], "z"))
    t = np.linspace(0, 3, 13)
    np.testing.assert_allclose(spline(t).log()[:, 2], reference(t), atol=1e-14)
    np.testing.assert_allclose(spline.angular_velocity(t)[:, 2], reference(t, 1), atol=1e-13)
    positions = np.stack([angles, -angles, 2 * angles], axis=-1)
    poses = PoseSpline(times, positions, EulerAngles(angles[:, None], "z"))
    np.testing.assert_allclose(poses(t).t[:, 2], 2 * reference(t), atol=1e-13)


def test_mean():
    rng = np.random.default_rng(1)
    rotations = Rotation.from_rotvec(rng.normal(size=(30, 3)))
    weights = rng.uniform(size=30)
    q = Quaternion(turns(rotations) * rng.choice([-1, 1], (30, 1)))
    for w in (None, weights):
        expected = turns(rotations.mean(w))
        assert up_to_sign(mean(q, w).array, expected) < 1e-14
        assert up_to_sign(mean(q.array, w).array, expected) < 1e-14
        assert up_to_sign(mean(list(q), w).array, expected) < 1e-14
    assert mean(q[:1]).angle_to(q[0]) < 1e-15
    same = Quaternion(np.tile(q.array[0], (9, 1)))
    assert mean(same).angle_to(q[0]) < 1e-15
    grid = Quaternion(q.array.reshape(10, 3, 4))
    assert up_to_sign(mean(grid).array[1], turns(rotations[1::3].mean())) < 1e-14
    # Two attitudes almost half a turn apart: the mean is half way.
    wide = [Quaternion.identity(), EulerAngles(np.pi - 1e-3, "x").as_quat()]
    assert mean(wide).log()[0] == pytest.approx((np.pi - 1e-3) / 2, abs=1e-8)


def test_align_vectors():
    rng = np.random.default_rng(2)
    truth = Rotation.random(random_state=3)
    v_B = rng.normal(size=(8, 3))
    weights = rng.uniform(0.5, 2, 8)
    for noise in (0.0, 1e-3, 0.3):
        v_E = truth.apply(v_B) + noise * rng.normal(size=(8, 3))
        reference, rssd, sensitivity = Rotation.align_vectors(
            v_B, v_E, weights=weights, return_sensitivity=True
        )
        found = align_vectors(v_B, v_E, weights)
        assert up_to_sign(found.attitude.array, turns(reference.inv())) < 1e-13
        assert found.rssd == pytest.approx(rssd, abs=1e-6)
        np.testing.assert_allclose(found.covariance * weights.mean(), sensitivity, rtol=1e-10)


def test_align_few_vectors():
    """Two directions fix the attitude, one does not: its covariance is infinite."""
    truth = Quaternion.random(4)
    v_E = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    found = align_vectors(truth.rotate(v_E.T).T, v_E)
    assert found.attitude.angle_to(truth) < 1e-13
    assert np.isfinite(found.covariance).all()
    one = align_vectors(truth.rotate(v_E[:1].T).T, v_E[:1])
    np.testing.assert_allclose(one.attitude.rotate(v_E[0]), truth.rotate(v_E[0]), atol=1e-12)
    # Almost coplanar and reflected data still give a proper rotation.
    mirrored = align_vectors(v_E * [1, -1, 1], v_E)
    assert np.linalg.det(mirrored.attitude.as_matrix()) == pytest.approx(1.0)


def test_covariance_by_experiment():
    """The spread of many estimates is the covariance that each of them states."""
    rng = np.random.default_rng(5)
    truth, sigma = Quaternion.random(6), 1e-3
    v_E = rng.normal(size=(5, 3))
    weights = np.full(5, sigma**-2)
    exact = truth.rotate(v_E.T).T
    errors = []
    for _ in range(2000):
        found = align_vectors(exact + sigma * rng.normal(size=(5, 3)), v_E, weights)
        errors.append((truth.inv() * found.attitude).log())
    spread = np.cov(np.array(errors).T)
    stated = align_vectors(exact, v_E, weights).covariance
    np.testing.assert_allclose(spread, stated, atol=0.15 * stated.max())


def test_align_batches():
    rng = np.random.default_rng(8)
    truth = Quaternion.random(1, (3, 2))
    v_E = rng.normal(size=(5, 3))
    v_B = truth[:, :, None].rotate(v_E) + 0.01 * rng.normal(size=(3, 2, 5, 3))
    together = align_vectors(v_B, np.broadcast_to(v_E, v_B.shape))
    assert together.attitude.shape == (3, 2)
    one = align_vectors(v_B[2, 1], v_E)
    np.testing.assert_allclose(together.attitude.array[2, 1], one.attitude.array, atol=1e-14)
    np.testing.assert_allclose(together.covariance[2, 1], one.covariance, rtol=1e-12)
    np.testing.assert_allclose(together.rssd[2, 1], one.rssd, rtol=1e-9)
