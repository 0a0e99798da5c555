"""Powers, means over axes, Davenport angles and exact alignment, against SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import archimedes as arc
from archimedes.spatial import (
    EulerAngles,
    Quaternion,
    QuaternionSpline,
    RotationMatrix,
    RotationVector,
    align_vectors,
    davenport_to_quaternion,
    mean,
    quaternion_to_davenport,
    slerp,
)
from archimedes.spatial import Rotation as OldName
from tests.environment.backends import check_everywhere
from tests.spatial.samples import CLASSES, scipy_of, turns, up_to_sign

# ---- powers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
def test_powers_against_scipy(cls):
    attitudes = cls.random(3, (200,))
    theirs = scipy_of(attitudes)
    for t in (-2.5, -1, 0, 0.3, 1, 2, 7.5):
        power = attitudes**t
        assert type(power) is cls and power.shape == (200,)
        assert up_to_sign(power.as_quat().array, turns(theirs**t)) < 3e-14


@pytest.mark.parametrize("cls", CLASSES)
def test_laws_of_powers(cls):
    a = cls.random(5)
    half = a**0.5
    assert (half * half).angle_to(a) < 1e-14
    assert (a**-1).angle_to(a.inv()) < 1e-14
    assert (a**0).angle_to(cls.identity()) < 1e-15
    assert (a**0.25).angle_to(slerp(cls.identity(), a, 0.25)) < 1e-14
    # Exponents broadcast against the batch, and one attitude against many exponents.
    t = np.linspace(-1.0, 2.0, 7)
    path = a**t
    assert path.shape == (7,)
    for k in range(7):
        assert path[k].angle_to(a ** t[k]) < 1e-14
    grid = cls.random(6, (3, 1)) ** t
    assert grid.shape == (3, 7)


def test_powers_take_the_short_way_and_any_length():
    q = Quaternion.exp([0.0, 0.0, 1.0])
    for same in (q, -q, 3.0 * q):
        np.testing.assert_allclose((same**0.5).log(), [0.0, 0.0, 0.5], atol=1e-15)
    long = RotationVector([0.0, 0.0, 2 * np.pi - 0.2])
    np.testing.assert_allclose((long**0.5).array, [0.0, 0.0, -0.1], atol=1e-14)
    single = EulerAngles(370.0, "z", degrees=True)
    np.testing.assert_allclose((single**0.5).array, [5.0], atol=1e-12)
    assert (single**0.5).seq == "z"
    assert EulerAngles([[1.0], [2.0]], "x").__pow__(2.0).shape == (2,)


@pytest.mark.parametrize("t", [0.0, 2.5])
def test_derivatives_of_powers_at_the_identity(t):
    """q^t of a small turn v is t v: the Jacobian at no turn is t, and so on to second order."""
    power = lambda v: (Quaternion.exp(v) ** t).log()
    zero = np.zeros(3)
    np.testing.assert_allclose(arc.jac(power)(zero), t * np.eye(3), atol=1e-15)
    H = arc.jac(arc.jac(power))(zero)
    np.testing.assert_allclose(H, 0.0, atol=1e-14)
    # Of the components of the quaternion itself, and of the matrix.
    one = np.array([1.0, 0.0, 0.0, 0.0])
    J = arc.jac(lambda q: (Quaternion(q) ** t).array)(one)
    np.testing.assert_allclose(J, np.diag([0.0, t, t, t]), atol=1e-15)
    assert np.isfinite(arc.jac(arc.jac(lambda q: (Quaternion(q) ** t).array))(one)).all()
    for cls in (RotationMatrix, EulerAngles):
        array = cls.identity().array
        f = lambda x, cls=cls: (cls(x) ** t).as_matrix()
        assert np.isfinite(arc.jac(arc.jac(f))(array)).all()
    # By the exponent: the turn's own rate.
    q = Quaternion.random(1)
    rate = arc.jac(lambda s: (q**s).array)(t)
    np.testing.assert_allclose((q**t).angular_velocity(rate), q.log(), atol=1e-14)


def test_powers_recorded():
    q = np.array([0.9, 0.1, -0.3, 0.2])
    check_everywhere(lambda q, t: (Quaternion(q) ** t).array, q, 0.3)
    check_everywhere(lambda q, t: (Quaternion(q) ** t).array, q, np.array([0.0, 1.0]))


def test_bad_powers():
    q = Quaternion.random(1)
    with pytest.raises(ValueError, match="exponent must be finite"):
        q ** float("nan")
    with pytest.raises(TypeError, match="exponent must be an array of real numbers, got str"):
        q ** "2"
    with pytest.raises(ValueError, match="seq must have three letters here"):
        EulerAngles([0.1, 0.2], "xy") ** 2.0
    with pytest.raises(ValueError, match="must be finite and not zero"):
        Quaternion([0.0, 0.0, 0.0, 0.0]) ** 2.0
    with pytest.raises(TypeError, match="unsupported operand"):
        2.0**q
    with pytest.raises(TypeError, match="the exponent must be a number, got Quaternion; to comp"):
        q**q


# ---- means ---------------------------------------------------------------------------------------


def test_mean_over_axes():
    rng = np.random.default_rng(0)
    q = Quaternion.exp(rng.normal(size=(4, 3, 5, 3)))
    theirs = Rotation.from_quat(q.array.reshape(-1, 4), scalar_first=True)
    everything = mean(q, axis=None)
    assert everything.shape == () and up_to_sign(everything.array, turns(theirs.mean())) < 1e-13
    weights = rng.uniform(size=(4, 3, 5))
    for axis, shape in ((0, (3, 5)), (1, (4, 5)), (-1, (4, 3)), ((0, 2), (3,)), ((-1, 0), (3,))):
        for w in (None, weights):
            found = q.mean(w, axis)
            assert found.shape == shape
            axes = tuple(k % 3 for k in (axis if isinstance(axis, tuple) else (axis,)))
            kept = [k for k in range(3) if k not in axes]
            order = (*kept, *sorted(axes))
            rows = q.array.transpose(*order, 3).reshape(int(np.prod(shape)), -1, 4)
            own = None if w is None else w.transpose(order).reshape(len(rows), -1)
            for k, row in enumerate(rows):
                one = Rotation.from_quat(row, scalar_first=True)
                expected = turns(one.mean(None if own is None else own[k]))
                assert up_to_sign(found.array.reshape(-1, 4)[k], expected) < 1e-11
    # Weights of the axis alone hold for the rest of the batch.
    w = rng.uniform(size=3)
    all_alike = np.broadcast_to(w[:, None], (4, 3, 5))
    np.testing.assert_allclose(q.mean(w, 1).array, q.mean(all_alike, 1).array, atol=1e-14)
    assert mean(q, [1.0, 0, 0, 0]).approx_equal(q[0], 1e-7).all()


def test_weights_near_the_largest_number_count_by_their_ratio():
    q = Quaternion(np.array([[1.0, 0.0, 0.0, 0.0], [0.9, 0.1, 0.0, 0.0]]))
    huge = q.mean(weights=[1e308, 1.5e308]).array
    np.testing.assert_allclose(huge, q.mean(weights=[2.0, 3.0]).array, rtol=1e-15, atol=0)


def test_means_with_the_weights_of_a_particle_filter():
    """Likelihoods may all be tiny: their ratios alone count."""
    q, w = Quaternion.random(0, (5,)), np.array([1.0, 3.0, 0.2, 0.0, 0.5])
    for scale in (1e-300, 1e300):
        assert mean(q, scale * w).angle_to(mean(q, w)) < 1e-14
    assert q.mean(axis=np.int64(0)).shape == ()


@pytest.mark.parametrize("cls", CLASSES)
def test_mean_of_any_class(cls):
    batch = cls.random(2, (6,))
    assert type(batch.mean()) is Quaternion
    assert batch.mean().angle_to(mean(batch)) < 1e-15


def test_mean_recorded_with_derivatives():
    rng = np.random.default_rng(1)
    v = 0.5 * rng.normal(size=(5, 3))
    f = lambda v, w: mean(Quaternion.exp(v), w).log()
    w = rng.uniform(0.5, 1, 5)
    check_everywhere(f, v, w, rtol=1e-11)
    d = rng.normal(size=(5, 3))
    slope = np.einsum("iab,ab->i", arc.jac(f)(v, w), d)
    np.testing.assert_allclose(slope, (f(v + 1e-5 * d, w) - f(v - 1e-5 * d, w)) / 2e-5, atol=1e-8)
    # All equal: the mean moves with the mean of the changes.
    J = arc.jac(f)(np.zeros((4, 3)), np.ones(4))
    np.testing.assert_allclose(J, np.broadcast_to(np.eye(3)[:, None] / 4, (3, 4, 3)), atol=1e-12)


def test_bad_means():
    q = Quaternion.random(1, (2, 3))
    for axis in (2, -3, (0, 0), ()):
        with pytest.raises(ValueError, match="does not name axes of a batch of shape"):
            mean(q, axis=axis)
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\) or \(2, 3\), got \(3,\)"):
        mean(q, np.ones(3))
    with pytest.raises(ValueError, match="weights must be finite, got"):
        mean(q, [1.0, np.inf])
    with pytest.raises(ValueError, match="nor all zero"):
        mean(q, [[1.0, 1, 0], [1, 1, 0]])
    with pytest.raises(ValueError, match="mean needs a batch"):
        mean(Quaternion.identity())
    with pytest.raises(ValueError, match="mean needs a batch"):
        mean(np.zeros((0, 4)))


# ---- Davenport angles ----------------------------------------------------------------------------


def random_axes(rng) -> np.ndarray:
    """Three axes, neighbours orthogonal, the outer ones at any angle, of any length."""
    second = rng.normal(size=3)
    outer = [np.cross(second, rng.normal(size=3)) for _ in range(2)]
    return np.array([outer[0], second, outer[1]])


@pytest.mark.parametrize("order", ["extrinsic", "intrinsic", "e", "i"])
def test_davenport_against_scipy(order):
    rng = np.random.default_rng(7)
    for _ in range(40):
        axes = random_axes(rng)
        angles = rng.uniform(-3, 3, (20, 3))
        theirs = Rotation.from_davenport(axes, order, angles)
        ours = Quaternion.from_davenport(axes, order, angles)
        assert up_to_sign(ours.array, turns(theirs)) < 1e-14
        found = ours.as_davenport(axes, order)
        np.testing.assert_allclose(found, theirs.as_davenport(axes, order), atol=1e-9)
        assert Quaternion.from_davenport(axes, order, found).approx_equal(ours, 1e-13).all()
    for n in (1, 2):
        theirs = Rotation.from_davenport(axes[:n], order, angles[0, :n])
        ours = Quaternion.from_davenport(axes[:n], order, angles[0, :n])
        assert up_to_sign(ours.array, turns(theirs)) < 1e-15
    degrees = Quaternion.from_davenport(axes, order, np.rad2deg(angles[0]), degrees=True)
    np.testing.assert_allclose(
        degrees.as_davenport(axes, order, degrees=True),
        np.rad2deg(Quaternion.from_davenport(axes, order, angles[0]).as_davenport(axes, order)),
        atol=1e-10,
    )


@pytest.mark.parametrize("seq", ["xyz", "zyx", "xzx", "XYZ", "ZYX", "ZXZ", "yxz"])
def test_davenport_of_coordinate_axes_is_euler(seq):
    axes = np.eye(3)[["xyz".index(c) for c in seq.lower()]]
    order = "e" if seq.islower() else "i"
    q = Quaternion.random(3, (500,))
    np.testing.assert_allclose(q.as_davenport(axes, order), q.as_euler(seq).array, atol=1e-9)


@pytest.mark.parametrize("order", ["e", "i"])
def test_davenport_in_lock(order):
    """The last angle is 0, as SciPy has it, and values and derivatives are finite."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        axes = random_axes(rng)
        n1, n2, n3 = (a / np.linalg.norm(a) for a in axes)
        between = np.arctan2(np.dot(np.cross(n1, n2), n3), np.dot(n1, n3))
        for middle in (-between, np.pi - between, between, between - np.pi):
            q = Quaternion.from_davenport(axes, order, [0.4, middle, 0.7])
            found = q.as_davenport(axes, order)
            assert np.isfinite(found).all()
            assert Quaternion.from_davenport(axes, order, found).angle_to(q) < 1e-7
            if found[2] == 0.0:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    theirs = scipy_of(q).as_davenport(axes, order)
                np.testing.assert_allclose(np.cos(found - theirs), 1.0, atol=1e-6)
    same = np.array([[1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0]])
    at = Quaternion.from_davenport(same, order, [0.4, 0.0, 0.7])
    np.testing.assert_allclose(at.as_davenport(same, order), [1.1, 0.0, 0.0], atol=1e-15)
    assert np.isfinite(arc.jac(lambda x: quaternion_to_davenport(x, same, order))(at.array)).all()


def test_davenport_recorded():
    axes = random_axes(np.random.default_rng(3))
    angles = np.array([0.3, 0.4, -0.2])
    f = lambda x, a: davenport_to_quaternion(x, a, "i")
    check_everywhere(f, angles, axes)
    back = lambda x, a: quaternion_to_davenport(f(x, a), a, "i")
    check_everywhere(back, angles, axes, rtol=1e-12)
    J = arc.jac(back)(angles, axes)
    np.testing.assert_allclose(J, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(arc.jac(arc.jac(back))(angles, axes), 0.0, atol=1e-10)


@pytest.mark.parametrize(
    ("axes", "order", "angles", "message"),
    [
        (
            np.eye(3),
            "up",
            np.zeros(3),
            "order='up' is not one of 'e', 'extrinsic', 'i', 'intrinsic'",
        ),
        (
            [[1.0, 0, 0], [1.0, 1, 0]],
            "e",
            [0.0, 0],
            r"the cosine between axes\[0\] and axes\[1\] is",
        ),
        ([0.0, 0, 0], "e", 1.0, "the squared length of axes must not be zero"),
        (np.eye(4), "e", np.zeros(4), r"axes must have shape \(1, 3\) or \(2, 3\) or \(3, 3\)"),
        (np.eye(3), "e", np.zeros(2), r"angles must have shape \(3,\) or \(..., 3\), one per axis"),
        (np.eye(3), "e", [0.0, np.nan, 0.0], "angles must be finite"),
    ],
)
def test_bad_davenport(axes, order, angles, message):
    with pytest.raises(ValueError, match=message):
        Quaternion.from_davenport(axes, order, angles)
    if np.shape(axes) == (3,):
        with pytest.raises(ValueError, match=r"axes must have shape \(3, 3\), got \(3,\)"):
            Quaternion.identity().as_davenport(axes, order)


# ---- exact alignment -----------------------------------------------------------------------------


def test_infinite_weight_against_scipy():
    rng = np.random.default_rng(0)
    for n in (2, 3, 6):
        for _ in range(50):
            v_B, v_E = rng.normal(size=(2, n, 3))
            weights = rng.uniform(0.1, 2, n)
            weights[rng.integers(n)] = np.inf
            theirs, rssd = Rotation.align_vectors(v_B, v_E, weights=weights)
            found = align_vectors(v_B, v_E, weights)
            assert up_to_sign(found.attitude.array, turns(theirs.inv())) < 1e-12
            assert found.rssd == pytest.approx(rssd, rel=1e-12)
            k = int(np.argmax(weights))
            aligned = found.attitude.rotate(v_E[k])
            np.testing.assert_allclose(np.cross(aligned, v_B[k]), 0.0, atol=1e-14)
            assert aligned @ v_B[k] > 0


def test_infinite_weight_is_the_limit_of_large_ones():
    rng = np.random.default_rng(4)
    truth = Quaternion.random(5)
    v_E = rng.normal(size=(4, 3))
    v_B = truth.rotate(v_E.T).T + 0.01 * rng.normal(size=(4, 3))
    v_B[1] *= np.linalg.norm(v_E[1]) / np.linalg.norm(v_B[1])
    exact = align_vectors(v_B, v_E, [1.0, np.inf, 2.0, 0.5])
    near = align_vectors(v_B, v_E, [1.0, 1e6, 2.0, 0.5])
    assert exact.attitude.angle_to(near.attitude) < 1e-5
    np.testing.assert_allclose(exact.covariance, near.covariance, atol=1e-5)


def test_infinite_weight_apart_parallel_and_alone():
    """Directions that point apart, others along the exact one, and one vector alone."""
    v = np.array([0.0, 0.0, 1.0])
    for u in (v, -v, np.array([0.6, 0.0, -0.8])):
        for others in ([], [[0.0, 0.0, 5.0]], [[1.0, 0.0, 0.0]]):
            v_E = np.array([v, *others])
            v_B = np.array([u, *others])
            weights = np.r_[np.inf, np.ones(len(others))]
            found = align_vectors(v_B, v_E, weights)
            np.testing.assert_allclose(found.attitude.rotate(v), u, atol=1e-15)
            assert np.isfinite(found.attitude.array).all()
    one = align_vectors([[0.0, 2.0, 0.0]], [[1.0, 0.0, 0.0]])
    np.testing.assert_allclose(one.attitude.rotate([1.0, 0, 0]), [0.0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(one.rssd, 1.0)
    assert np.isinf(one.covariance).all()


def test_infinite_weight_batches_and_derivatives():
    rng = np.random.default_rng(6)
    v_B, v_E = rng.normal(size=(2, 3, 4, 3))
    w = np.array([1.0, 2.0, np.inf, 0.5])
    together = align_vectors(v_B, v_E, w)
    assert together.attitude.shape == (3,) and together.covariance.shape == (3, 3, 3)
    for k in range(3):
        one = align_vectors(v_B[k], v_E[k], w)
        assert up_to_sign(together.attitude.array[k], one.attitude.array) < 1e-15
    f = lambda a, b: align_vectors(a, b, w).attitude.as_matrix()
    check_everywhere(f, v_B[0], v_E[0], rtol=1e-12)
    d = rng.normal(size=(4, 3))
    slope = np.einsum("ijab,ab->ij", arc.jac(f)(v_B[0], v_E[0]), d)
    by = (f(v_B[0] + 1e-6 * d, v_E[0]) - f(v_B[0] - 1e-6 * d, v_E[0])) / 2e-6
    np.testing.assert_allclose(slope, by, atol=1e-7)
    # Where the exact directions agree, or point apart, nothing is singular.
    for sign in (1.0, -1.0):
        a = np.array([[0.0, 0, sign], [1.0, 0, 0]])
        b = np.array([[0.0, 0, 1], [1.0, 0, 0]])
        g = lambda a, b=b: align_vectors(a, b, [np.inf, 1.0]).attitude.as_matrix()
        assert np.isfinite(arc.jac(arc.jac(g))(a)).all()


def test_bad_alignment():
    v = np.eye(3)
    with pytest.raises(ValueError, match="weights must not be infinite more than once"):
        align_vectors(v, v, [np.inf, np.inf, 1.0])
    with pytest.raises(ValueError, match="v_E of infinite weight must not be zero"):
        align_vectors(v, v * [[0.0], [1.0], [1.0]], [np.inf, 1.0, 1.0])
    with pytest.raises(ValueError, match="weights must not be negative"):
        align_vectors(v, v, [-np.inf, 1.0, 1.0])
    with pytest.raises(ValueError, match="weights must not be negative"):
        align_vectors(v, v, [np.nan, 1.0, 1.0])


# ---- names of earlier programs -------------------------------------------------------------------


def test_the_old_name_rotation():
    assert OldName is Quaternion
    angles = [0.1, 0.2, 0.3]
    R = OldName.from_euler(angles, "xyz")
    np.testing.assert_array_equal(R.as_matrix(), EulerAngles(angles).as_quat().as_matrix())


@pytest.mark.parametrize("cls", CLASSES)
def test_scipys_order_of_arguments(cls):
    with pytest.raises(TypeError, match=r"angles first.*write from_euler\(angles, 'xyz'\)"):
        cls.from_euler("xyz", [0.1, 0.2, 0.3])


def test_a_spline_at_no_time():
    spline = QuaternionSpline([0.0, 1.0], Quaternion.random(0, (2,)))
    with pytest.raises(ValueError, match="t must be finite, got nan"):
        spline(np.nan)
