"""Frames by name: against hand-composed chains, geodetic formulas and differences."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from archimedes.spatial import (
    EulerAngles,
    KinematicTree,
    Motion,
    PoseSpline,
    Quaternion,
    RigidBody,
    RotationVector,
    Transformation,
)

OMEGA = 7.292115e-5
LAT, LON, RADIUS = 0.7, -1.9, 6378137.0
T0 = 5000.0


def earth(t):
    return Transformation(np.zeros(3), EulerAngles(OMEGA * t, "z"))


def ned():
    """North, east, down at a point of a sphere: R = Ry(-lat - pi/2) Rz(lon), passive."""
    site = RADIUS * np.array([np.cos(LAT) * np.cos(LON), np.cos(LAT) * np.sin(LON), np.sin(LAT)])
    return Transformation.from_pose(site, EulerAngles([LON, -LAT - np.pi / 2], "ZY"))


def body(t, x):
    return Transformation.from_pose(x.pos, x.att)


def camera(t):
    return Transformation(
        np.stack([0.1, 0.2 * np.sin(t), 0.0 * t]), RotationVector([0.1, 0.3 * np.sin(t), 0.5 * t])
    )


def frames():
    ktree = KinematicTree("eci")
    ktree.add_frame("ecef", "eci", earth)
    ktree.add_frame("ned", "ecef", ned())
    ktree.add_frame("body", "ned", body)
    ktree.add_frame("camera", "body", camera)
    ktree.add_frame(
        "moon",
        "eci",
        pose=lambda t: Transformation(
            np.stack([3.8e8 * np.cos(1e-6 * t), 3.8e8 * np.sin(1e-6 * t), 0.0 * t]),
            EulerAngles(-1e-6 * t, "z"),
        ),
    )
    return ktree


@pytest.fixture
def ktree():
    return frames()


@pytest.fixture
def state():
    att = Quaternion.from_euler([0.1, 0.2, 0.3])
    return RigidBody.State(
        np.array([100.0, -200.0, -1000.0]),
        att,
        np.array([50.0, 1.0, 2.0]),
        np.array([0.1, 0.2, 0.3]),
    )


def rate_of(state):
    u = RigidBody.Input(np.array([1.0, 2, 3]), np.array([0.1, 0.2, 0.3]), 2.0, np.eye(3))
    return RigidBody.dynamics(0.0, state, u)


def test_against_hand_composed_chain(ktree, state):
    """ECI to ECEF to NED to body, each by its textbook formula."""
    r_eci = np.array([7e6, 1e5, -2e5])
    c, s = np.cos(OMEGA * T0), np.sin(OMEGA * T0)
    r_ecef = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ r_eci
    sl, cl, so, co = np.sin(LAT), np.cos(LAT), np.sin(LON), np.cos(LON)
    R_ned = np.array([[-sl * co, -sl * so, cl], [-so, co, 0], [-cl * co, -cl * so, -sl]])
    site = RADIUS * np.array([cl * co, cl * so, sl])
    r_ned = R_ned @ (r_ecef - site)
    r_body = state.att.as_matrix() @ (r_ned - state.pos)
    X = ktree.get_transform("eci", "body", T0, state)
    np.testing.assert_allclose(X.apply(r_eci), r_body, rtol=1e-13)
    back = ktree.get_transform("body", "eci", T0, state)
    np.testing.assert_allclose(back.apply(r_body), r_eci, rtol=1e-12)
    np.testing.assert_allclose((back @ X).as_matrix()[:3, :3], np.eye(3), atol=1e-15)
    compiled = arc.compile(lambda t, x: ktree.get_transform("eci", "body", t, x))(T0, state)
    np.testing.assert_allclose(compiled.as_matrix(), X.as_matrix(), rtol=1e-14, atol=1e-8)


def test_between_any_two_frames(ktree, state):
    names = ktree.frames
    to_root = {n: ktree.get_transform("eci", n, T0, state).as_matrix() for n in names}
    for a in names:
        for b in names:
            X = ktree.get_transform(a, b, T0, state).as_matrix()
            expected = to_root[b] @ np.linalg.inv(to_root[a])
            np.testing.assert_allclose(X[:3, :3], expected[:3, :3], atol=1e-14)
            np.testing.assert_allclose(X[:3, 3], expected[:3, 3], atol=1e-6)
    same = ktree.get_transform("ned", "ned")
    np.testing.assert_array_equal(same.as_matrix(), np.eye(4))


def test_twist_of_a_rigid_body_is_its_state(ktree, state):
    V = ktree.get_twist("ned", "body", T0, state, rate_of(state))
    np.testing.assert_allclose(V.linear, state.v_B, atol=1e-12)
    np.testing.assert_allclose(V.angular, state.w_B, atol=1e-14)


def test_earth_rotation(ktree):
    """The site moves east at omega r cos(lat); its frame turns with the Earth."""
    V = ktree.get_twist("eci", "ned", T0)
    np.testing.assert_allclose(V.linear, [0, OMEGA * RADIUS * np.cos(LAT), 0], atol=1e-9)
    np.testing.assert_allclose(
        V.angular, OMEGA * np.array([np.cos(LAT), 0, -np.sin(LAT)]), atol=1e-18
    )
    A = ktree.get_acceleration("eci", "ned", T0)
    # centripetal acceleration of the origin, in NED: A + w x v
    centripetal = A.linear + np.cross(V.angular, V.linear)
    expected = OMEGA**2 * RADIUS * np.cos(LAT) * np.array([np.sin(LAT), 0, np.cos(LAT)])
    np.testing.assert_allclose(centripetal, expected, atol=1e-12)
    w = ktree.get_angular_velocity("eci", "ned", T0, expressed_in="eci")
    np.testing.assert_allclose(w, [0, 0, OMEGA], atol=1e-19)


def local_frames():
    """Frames of metres and seconds, where differences are accurate."""
    ktree = KinematicTree("world")
    ktree.add_frame(
        "a",
        "world",
        lambda t: Transformation(
            np.stack([np.sin(t), 0.1 * t * t, np.cos(2 * t)]),
            EulerAngles([0.3 * t, 0.2, np.sin(t)], "zyx"),
        ),
    )
    ktree.add_frame("b", "a", body)
    ktree.add_frame("camera", "b", camera)
    ktree.add_frame(
        "c",
        "world",
        pose=lambda t: Transformation(np.stack([t, 2.0, 3.0]), RotationVector([0.2 * t, 0.1, 0.0])),
    )
    return ktree


def differentiated(function, h=1e-3):
    """Eighth-order central difference at zero."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(c * (function(k * h) - function(-k * h)) for k, c in weights.items()) / h


@pytest.mark.parametrize(("source", "target"), [("world", "camera"), ("camera", "c"), ("c", "b")])
def test_twist_and_acceleration_against_differences(source, target, state):
    ktree, rate = local_frames(), rate_of(state)
    state = state.replace(pos=np.array([0.3, 0.4, 0.5]), v_B=np.array([0.3, 0.1, -0.2]))
    rate = rate_of(state)
    t0 = 0.7
    moved = lambda h: tree.map(lambda x, v: x + h * v, state, rate)
    pose = lambda h: ktree.get_transform(target, source, t0 + h, moved(h)).as_matrix()
    body_twist = np.linalg.solve(pose(0.0), differentiated(pose))
    V = ktree.get_twist(source, target, t0, state, rate)
    expected = [*body_twist[:3, 3], body_twist[2, 1], body_twist[0, 2], body_twist[1, 0]]
    np.testing.assert_allclose(V.array, expected, atol=1e-8)
    twist = lambda h: ktree.get_twist(source, target, t0 + h, moved(h), rate).array
    A = ktree.get_acceleration(source, target, t0, state, rate)
    np.testing.assert_allclose(A.array, differentiated(twist), atol=1e-8)
    compiled = arc.compile(lambda t, x, v: ktree.get_acceleration(source, target, t, x, v))
    np.testing.assert_allclose(compiled(t0, state, rate).array, A.array, atol=1e-13)
    back = ktree.get_twist(target, source, t0, state, rate)
    X = ktree.get_transform(source, target, t0, state)
    np.testing.assert_allclose(X.apply_motion(back).array, -V.array, atol=1e-13)


def test_curved_state_path(state):
    """With the state's second derivative the acceleration is that of the true motion."""
    ktree = local_frames()
    path = lambda t: Transformation.exp(np.stack([t, t * t, 0.1, 0.3 * t, 0.2 * t * t, t]))
    ktree = KinematicTree("n")
    ktree.add_frame("p", "n", lambda t, x: Transformation.exp(x))
    ktree.add_frame("q", "n", path)
    t0 = 0.4
    x = np.array([t0, t0**2, 0.1, 0.3 * t0, 0.2 * t0**2, t0])
    v, a = np.array([1, 2 * t0, 0, 0.3, 0.4 * t0, 1.0]), np.array([0, 2.0, 0, 0, 0.4, 0])
    np.testing.assert_allclose(
        ktree.get_twist("n", "p", t0, x, v).array, ktree.get_twist("n", "q", t0).array, atol=1e-14
    )
    np.testing.assert_allclose(
        ktree.get_acceleration("n", "p", t0, x, v, a).array,
        ktree.get_acceleration("n", "q", t0).array,
        atol=1e-13,
    )


def test_given_twists():
    """A twist, and an acceleration, given by the user are used as they are."""
    ktree = KinematicTree("n")
    ktree.add_frame("a", "n", earth, twist=Motion(np.zeros(3), np.array([0, 0, OMEGA])))
    ktree.add_frame(
        "b",
        "n",
        lambda t: Transformation(np.stack([-t * t, 0.0, 0.0]), Quaternion.identity()),
        twist=lambda t: Motion(np.stack([2 * t, 0.0, 0.0]), np.zeros(3)),
    )
    ktree.add_frame(
        "c", "b", Transformation.identity(), acceleration=Motion(np.ones(3), np.zeros(3))
    )
    assert ktree.get_twist("n", "a", 1.0).angular[2] == OMEGA
    np.testing.assert_array_equal(ktree.get_acceleration("n", "a", 1.0).array, np.zeros(6))
    np.testing.assert_allclose(ktree.get_twist("n", "b", 3.0).linear, [6.0, 0, 0])
    np.testing.assert_allclose(ktree.get_acceleration("n", "b", 3.0).linear, [2.0, 0, 0])
    np.testing.assert_allclose(ktree.get_acceleration("n", "c", 3.0).linear, [3.0, 1.0, 1.0])


def test_point_velocity():
    """A wheel rolling without slipping: the contact point rests, the top moves at 2 v."""
    r, speed = 0.5, 3.0
    ktree = KinematicTree("road")
    ktree.add_frame(
        "wheel",
        "road",
        pose=lambda t: Transformation(
            np.stack([speed * t, 0.0, r]), EulerAngles(speed / r * t, "y").inv()
        ),
    )
    t = 0.8
    X = ktree.get_transform("road", "wheel", t)
    contact, top = X.apply([speed * t, 0, 0.0]), X.apply([speed * t, 0, 2 * r])
    velocity = lambda p, **kw: ktree.get_point_velocity(p, "wheel", "road", t, **kw)
    np.testing.assert_allclose(velocity(contact), np.zeros(3), atol=1e-14)
    np.testing.assert_allclose(velocity(top), [2 * speed, 0, 0], atol=1e-13)
    sliding = velocity(top, velocity=X.apply_vec([1.0, 0, 0]))
    np.testing.assert_allclose(sliding, [2 * speed + 1, 0, 0], atol=1e-13)
    in_wheel = velocity(top, expressed_in="wheel")
    np.testing.assert_allclose(in_wheel, X.apply_vec([2 * speed, 0, 0]), atol=1e-13)


def test_spline_edge():
    times = np.linspace(0, 4, 5)
    rng = np.random.default_rng(0)
    attitudes = Quaternion.exp(np.cumsum(0.3 * rng.normal(size=(5, 3)), axis=0))
    spline = PoseSpline(times, rng.normal(size=(5, 3)), attitudes)
    ktree = KinematicTree("n")
    ktree.add_frame("b", "n", pose=spline)
    for t in (0.3, 2.0, 3.9):
        V = ktree.get_twist("n", "b", t)
        np.testing.assert_allclose(V.array, spline.twist(t).array, atol=1e-13)
        np.testing.assert_allclose(ktree.get_transform("b", "n", t).t, spline(t).t, atol=1e-14)
    for k, t in enumerate(times):
        assert spline(t).r.inv().angle_to(attitudes[k]) < 1e-13


def test_differentiable(ktree, state):
    target = np.array([7e6, 1e5, -2e5])
    gradient = arc.grad(lambda x: ktree.get_transform("eci", "body", T0, x).apply(target)[0])(state)
    assert isinstance(gradient, RigidBody.State)
    np.testing.assert_allclose(gradient.pos, -state.att.as_matrix()[0], atol=1e-14)


def test_printed(ktree):
    assert str(ktree) == (
        "eci\n"
        "├─ ecef (function of t)\n"
        "│  └─ ned (fixed)\n"
        "│     └─ body (function of t, state)\n"
        "│        └─ camera (function of t)\n"
        "└─ moon (function of t)"
    )
    assert repr(ktree).startswith("KinematicTree of 6 frames:\neci\n")
    assert ktree.frames == ["eci", "ecef", "ned", "body", "camera", "moon"]


X = Transformation.identity()
ERRORS = {
    "unknown source": (lambda k: k.get_transform("ecl", "ned", 0.0), "did you mean 'eci'"),
    "unknown target": (lambda k: k.get_twist("eci", "nde", 0.0), "target 'nde' is not a frame"),
    "unknown parent": (lambda k: k.add_frame("x", "bdy", X), "parent 'bdy' is not a frame"),
    "duplicate": (lambda k: k.add_frame("ned", "moon", X), "frame 'ned' exists already"),
    "cycle": (lambda k: k.add_frame("ecef", "body", X), "'ecef' is above it, which would close"),
    "own parent": (lambda k: k.add_frame("body", "body", X), "that frame itself"),
    "root below": (lambda k: k.add_frame("eci", "body", X), "close a cycle"),
    "neither": (lambda k: k.add_frame("x", "eci"), "either transform .* or pose"),
    "both": (lambda k: k.add_frame("x", "eci", X, pose=X), "not both"),
    "no time": (lambda k: k.get_transform("eci", "ecef"), "is a function of time: give t"),
    "no state": (lambda k: k.get_transform("ned", "body", 0.0), "function of state: give state"),
    "arguments": (lambda k: k.add_frame("x", "eci", lambda: X), "got 0 required arguments"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(ktree, name):
    action, words = ERRORS[name]
    with pytest.raises(ValueError, match=words):
        action(ktree)


def test_disconnected(ktree):
    ktree.add_root("mars")
    ktree.add_frame("rover", "mars", X)
    with pytest.raises(ValueError, match="not connected: their roots are 'mars' and 'eci'"):
        ktree.get_transform("rover", "ned", 0.0)
    with pytest.raises(ValueError, match="exists already"):
        ktree.add_root("eci")


def test_wrong_types(ktree):
    with pytest.raises(TypeError, match="must be a Transformation or a function"):
        ktree.add_frame("x", "eci", np.eye(4))
    ktree.add_frame("x", "eci", lambda t: np.eye(4))
    with pytest.raises(TypeError, match="must be a Transformation, got ndarray"):
        ktree.get_transform("eci", "x", 0.0)


def test_from_pose_given_as_a_pose_is_refused():
    """`from_pose` is the transform to the frame; the pose of the frame is its inverse."""
    X = Transformation.from_pose([1.0, 2.0, 3.0], EulerAngles([0.1, 0.2, 0.3], "xyz"))
    for wrong in (X, lambda t: Transformation.from_pose(X.t, X.r)):
        ktree = KinematicTree("world")
        ktree.add_frame("body", "world", pose=wrong)
        with pytest.raises(ValueError, match=r"pose of frame 'body'.*is the inverse of a pose"):
            ktree.get_transform("world", "body", 0.0)
