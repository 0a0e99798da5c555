"""Every function against Pinocchio, on robots of example-robot-data, at random states."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb
from tests.optional_packages import import_or_skip

from ..long_parameters import long_but
from .robots import FILES, Peer

import_or_skip("pinocchio")
STATES = 200
TOLERANCE = 1e-10
#: Errors are relative to the largest entry of a result, or to this where that is smaller.
FLOOR = 1e-3
AXES = {"body": "LOCAL", "world": "WORLD", "aligned": "LOCAL_WORLD_ALIGNED"}


def symmetric(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def close(ours, theirs, what):
    """Compare arrays (states, ...), each state relative to its largest entry."""
    ours, theirs = np.asarray(ours), np.stack(theirs)
    assert ours.shape == theirs.shape, what
    count = len(ours)
    size = np.abs(theirs).reshape(count, -1).max(axis=1, initial=0.0)
    error = np.abs(ours - theirs).reshape(count, -1).max(axis=1, initial=0.0)
    # What is zero for one may be what rounding left of larger terms for the other.
    worst = (error / np.maximum(size, FLOOR)).max()
    assert worst < TOLERANCE, f"{what}: {worst:.2g}"


@pytest.fixture(scope="module")
def peers():
    return {}


def peer_named(peers, name):
    if name not in peers:
        peers[name] = Peer(name)
    return peers[name]


robots = pytest.mark.parametrize("name", long_but(["panda", "go1"], FILES))


@robots
def test_dynamics(peers, name):
    peer = peer_named(peers, name)
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    q, v, a = peer.states(STATES)
    ours = {
        "rnea": mb.rnea(peer.model, q, v, a),
        "crba": mb.crba(peer.model, q),
        "gravity_torque": mb.gravity_torque(peer.model, q),
        "kinetic_energy": mb.kinetic_energy(peer.model, q, v),
        "potential_energy": mb.potential_energy(peer.model, q),
        "center_of_mass": mb.center_of_mass(peer.model, q),
        "centroidal_matrix": mb.centroidal_matrix(peer.model, q),
        "centroidal_momentum": mb.centroidal_momentum(peer.model, q, v),
        "torque_regressor": mb.torque_regressor(peer.model, q, v, a),
    }
    C = mb.coriolis_matrix(peer.model, q, v)
    ours["C v"] = np.einsum("nij,nj->ni", C, v)
    ours["C + C'"] = C + np.swapaxes(C, 1, 2)
    theirs = {key: [] for key in ours}
    for k in range(STATES):
        x, vk, ak = peer.q_of(q[k]), G @ v[k], G @ a[k]
        theirs["rnea"].append(G.T @ pin.rnea(model, data, x, vk, ak))
        theirs["crba"].append(G.T @ symmetric(pin.crba(model, data, x)) @ G)
        theirs["gravity_torque"].append(G.T @ pin.computeGeneralizedGravity(model, data, x))
        theirs["kinetic_energy"].append(pin.computeKineticEnergy(model, data, x, vk))
        theirs["potential_energy"].append(pin.computePotentialEnergy(model, data, x))
        theirs["center_of_mass"].append(pin.centerOfMass(model, data, x).copy())
        theirs["torque_regressor"].append(
            G.T @ pin.computeJointTorqueRegressor(model, data, x, vk, ak)
        )
        pin.ccrba(model, data, x, vk)
        theirs["centroidal_matrix"].append(data.Ag @ G)
        theirs["centroidal_momentum"].append(data.hg.vector.copy())
        C_peer = G.T @ pin.computeCoriolisMatrix(model, data, x, vk) @ G
        theirs["C v"].append(C_peer @ v[k])
        theirs["C + C'"].append(C_peer + C_peer.T)
    for key, value in ours.items():
        close(value, theirs[key], key)


def is_singular(model):
    """Whether forward dynamics are refused: of one robot here, whose fingers have no mass."""
    try:
        mb.inverse_mass_matrix(model, mb.neutral(model))
    except ValueError as error:
        assert "no acceleration follows from a torque of joint" in str(error)
        return True
    return False


def accelerations(peer, x, v, tau):
    """Return Pinocchio's accelerations; of mimic joints by its mass matrix and bias."""
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    if not peer.mimics:
        return pin.aba(model, data, x, v, tau)
    M = G.T @ symmetric(pin.crba(model, data, x)) @ G
    return np.linalg.solve(M, tau - G.T @ pin.nonLinearEffects(model, data, x, G @ v))


@robots
def test_forward_dynamics(peers, name):
    """Accelerations, as exact as the mass matrix lets them be."""
    peer = peer_named(peers, name)
    q, v, tau = peer.states(STATES)
    M = mb.crba(peer.model, q)
    condition = np.linalg.cond(M)
    if is_singular(peer.model):
        assert name == "romeo" and condition.max() > 1e15
        return
    ours = mb.aba(peer.model, q, v, tau)
    back = np.einsum("nij,nj->ni", M, ours) + mb.rnea(peer.model, q, v, 0 * v)
    size = np.abs(M).max(axis=(1, 2)) * np.abs(ours).max(axis=1) + np.abs(tau).max(axis=1)
    assert (np.abs(back - tau).max(axis=1) / size).max() < 1e-12
    for k in range(STATES):
        theirs = accelerations(peer, peer.q_of(q[k]), v[k], tau[k])
        error = np.abs(ours[k] - theirs).max() / np.abs(theirs).max()
        assert error < max(TOLERANCE, 1e-15 * condition[k]), f"{error:.2g} at {condition[k]:.2g}"


def frame_results(peer, frames, q, v, a):
    """Return what Pinocchio says of frames, by (frame, axes, function), a list over states."""
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    found = {}
    for k in range(len(q)):
        x, vk = peer.q_of(q[k]), G @ v[k]
        pin.forwardKinematics(model, data, x, vk, G @ a[k])
        pin.updateFramePlacements(model, data)
        pin.computeJointJacobians(model, data, x)
        pin.computeJointJacobiansTimeVariation(model, data, x, vk)
        for frame in frames:
            index = model.getFrameId(frame, pin.BODY)
            for axes, theirs in AXES.items():
                kind = getattr(pin, theirs)
                ordinary = axes == "aligned"
                moved = pin.getFrameClassicalAcceleration if ordinary else pin.getFrameAcceleration
                dJ = pin.getFrameJacobianTimeVariation(model, data, index, kind)
                values = {
                    "J": pin.getFrameJacobian(model, data, index, kind) @ G,
                    "rate": dJ @ G,
                    "twist": pin.getFrameVelocity(model, data, index, kind).vector.copy(),
                    "acceleration": moved(model, data, index, kind).vector.copy(),
                    "pose": data.oMf[index].homogeneous.copy(),
                }
                for what, value in values.items():
                    found.setdefault((frame, axes, what), []).append(value)
    return found


@robots
def test_frames(peers, name):
    peer = peer_named(peers, name)
    q, v, a = peer.states(STATES)
    names = peer.model.frame_names
    chosen = {names[0], names[len(names) // 2], names[-1]}
    theirs = frame_results(peer, chosen, q, v, a)
    for frame in chosen:
        pose = mb.frame_pose(peer.model, q, frame).as_matrix()
        for axes in AXES:
            ours = {
                "J": mb.frame_jacobian(peer.model, q, frame, axes),
                "rate": mb.frame_jacobian_rate(peer.model, q, v, frame, axes),
                "twist": mb.frame_twist(peer.model, q, v, frame, axes),
                "acceleration": mb.frame_acceleration(peer.model, q, v, a, frame, axes),
                "pose": np.broadcast_to(pose, (STATES, 4, 4)),
            }
            for what, value in ours.items():
                close(value, theirs[frame, axes, what], f"{what} of {frame}, {axes}")


@robots
def test_configurations(peers, name):
    peer = peer_named(peers, name)
    pin, model = peer.pin, peer.peer
    q, v, _ = peer.states(STATES)
    assert np.all((q >= peer.model.lower) & (q <= peer.model.upper))
    v = 0.5 * v  # turns of less than pi
    moved = mb.integrate(peer.model, q, v)
    close(mb.difference(peer.model, q, moved), [*v], "difference after integrate")
    scale = [link.scale * link.offset for link in peer.model.links]
    if not any(scale):
        start = peer.q_of(mb.neutral(peer.model))
        np.testing.assert_array_equal(start, pin.neutral(model))
    for k in range(STATES):
        x, y = peer.q_of(q[k]), peer.q_of(moved[k])
        theirs = pin.integrate(model, x, peer.G @ v[k])
        np.testing.assert_allclose(y, theirs, rtol=0, atol=1e-12)
        apart = pin.difference(model, x, y)
        np.testing.assert_allclose(peer.G @ v[k], apart, rtol=0, atol=1e-9)


@robots
def test_derivatives(peers, name):
    peer = peer_named(peers, name)
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    q, v, a = peer.states(STATES)
    ours = mb.rnea_derivatives(peer.model, q, v, a)
    theirs = ([], [])
    for k in range(STATES):
        dq, dv, _ = pin.computeRNEADerivatives(model, data, peer.q_of(q[k]), G @ v[k], G @ a[k])
        theirs[0].append(G.T @ dq @ G)
        theirs[1].append(G.T @ dv @ G)
    close(ours[0], theirs[0], "rnea_derivatives dq")
    close(ours[1], theirs[1], "rnea_derivatives dv")
    close(ours[2], [*mb.crba(peer.model, q)], "rnea_derivatives da")


def forward_derivatives(peer, x, v, tau):
    """Return Pinocchio's derivatives of accelerations; of mimic joints by those of torques."""
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    if not peer.mimics:
        return [part.copy() for part in pin.computeABADerivatives(model, data, x, v, tau)]
    a = accelerations(peer, x, v, tau)
    dq, dv, _ = pin.computeRNEADerivatives(model, data, x, G @ v, G @ a)
    inverse = np.linalg.inv(G.T @ symmetric(pin.crba(model, data, x)) @ G)
    return [-inverse @ G.T @ dq @ G, -inverse @ G.T @ dv @ G, inverse]


@robots
def test_forward_derivatives(peers, name):
    peer = peer_named(peers, name)
    q, v, tau = peer.states(STATES)
    if is_singular(peer.model):
        return
    condition = np.linalg.cond(mb.crba(peer.model, q)).max()
    ours = mb.aba_derivatives(peer.model, q, v, tau)
    each = [forward_derivatives(peer, peer.q_of(q[k]), v[k], tau[k]) for k in range(STATES)]
    for n, part in enumerate(("dq", "dv", "dtau")):
        theirs = np.stack([parts[n] for parts in each])
        size = np.maximum(np.abs(theirs).max(axis=(1, 2)), FLOOR)
        error = (np.abs(ours[n] - theirs).max(axis=(1, 2)) / size).max()
        assert error < max(TOLERANCE, 1e-15 * condition), f"aba_derivatives {part}: {error:.2g}"


@robots
def test_inverse_kinematics(peers, name):
    """What is found puts the frame where it should be, by Pinocchio's own kinematics."""
    peer = peer_named(peers, name)
    pin, model, data = peer.pin, peer.peer, peer.data
    frame = peer.model.frame_names[-1]
    index = model.getFrameId(frame, pin.BODY)
    (q, *_), (near, *_) = peer.states(3), peer.states(3, seed=1)
    for k in range(3):
        goal = mb.frame_pose(peer.model, q[k], frame)
        start = mb.integrate(peer.model, q[k], 0.1 * mb.difference(peer.model, q[k], near[k]))
        found = mb.inverse_kinematics(peer.model, frame, goal, q0=start)
        assert found.success
        pin.framesForwardKinematics(model, data, peer.q_of(np.asarray(found.q)))
        reached = data.oMf[index].homogeneous
        np.testing.assert_allclose(reached, goal.as_matrix(), rtol=0, atol=1e-9)
        assert np.all((found.q >= peer.model.lower) & (found.q <= peer.model.upper))
