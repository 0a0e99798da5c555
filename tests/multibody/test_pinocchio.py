"""Every function against Pinocchio, on robots of example-robot-data, at random states."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb

from ..marking import long_but
from .robots import FILES, Peer

pytest.importorskip("pinocchio")
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


@robots
def test_forward_dynamics(peers, name):
    """Accelerations, as exact as the mass matrix lets them be."""
    peer = peer_named(peers, name)
    q, v, tau = peer.states(STATES)
    M = mb.crba(peer.model, q)
    condition = np.linalg.cond(M)
    if condition.max() > 1e15:
        pytest.skip("its mass matrix is singular")
    ours = mb.aba(peer.model, q, v, tau)
    back = np.einsum("nij,nj->ni", M, ours) + mb.rnea(peer.model, q, v, 0 * v)
    size = np.abs(M).max(axis=(1, 2)) * np.abs(ours).max(axis=1) + np.abs(tau).max(axis=1)
    assert (np.abs(back - tau).max(axis=1) / size).max() < 1e-12
    if peer.mimics:
        return
    for k in range(STATES):
        theirs = peer.pin.aba(peer.peer, peer.data, peer.q_of(q[k]), v[k], tau[k])
        error = np.abs(ours[k] - theirs).max() / np.abs(theirs).max()
        assert error < max(TOLERANCE, 1e-15 * condition[k]), f"{error:.2g} at {condition[k]:.2g}"


@robots
def test_frames(peers, name):
    peer = peer_named(peers, name)
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    count = STATES // 10
    q, v, a = peer.states(count)
    names = peer.model.frame_names
    chosen = {names[0], names[len(names) // 2], names[-1]}
    for frame in chosen:
        index = model.getFrameId(frame, pin.BODY)
        for axes, theirs in AXES.items():
            kind = getattr(pin, theirs)
            J = mb.frame_jacobian(peer.model, q, frame, axes)
            rate = mb.frame_jacobian_rate(peer.model, q, v, frame, axes)
            found = {"J": [], "rate": [], "twist": [], "acceleration": [], "pose": []}
            for k in range(count):
                x = peer.q_of(q[k])
                pin.forwardKinematics(model, data, x, G @ v[k], G @ a[k])
                pin.updateFramePlacements(model, data)
                pin.computeJointJacobians(model, data, x)
                found["J"].append(pin.getFrameJacobian(model, data, index, kind) @ G)
                pin.computeJointJacobiansTimeVariation(model, data, x, G @ v[k])
                dJ = pin.getFrameJacobianTimeVariation(model, data, index, kind)
                found["rate"].append(dJ @ G)
                found["twist"].append(pin.getFrameVelocity(model, data, index, kind).vector.copy())
                moved = (
                    pin.getFrameClassicalAcceleration
                    if axes == "aligned"
                    else pin.getFrameAcceleration
                )
                found["acceleration"].append(moved(model, data, index, kind).vector.copy())
                found["pose"].append(data.oMf[index].homogeneous.copy())
            close(J, found["J"], f"frame_jacobian {frame} {axes}")
            close(mb.frame_twist(peer.model, q, v, frame, axes), found["twist"], frame)
            ours = mb.frame_acceleration(peer.model, q, v, a, frame, axes)
            close(ours, found["acceleration"], frame)
            pose = mb.frame_pose(peer.model, q, frame).as_matrix()
            close(np.broadcast_to(pose, (count, 4, 4)), found["pose"], frame)
            close(rate, found["rate"], f"frame_jacobian_rate {frame} {axes}")


@robots
def test_configurations(peers, name):
    peer = peer_named(peers, name)
    pin, model = peer.pin, peer.peer
    count = STATES // 10
    q, v, _ = peer.states(count)
    v = 0.5 * v  # turns of less than pi
    moved = mb.integrate(peer.model, q, v)
    close(mb.difference(peer.model, q, moved), [*v], "difference after integrate")
    if peer.mimics:
        return
    for k in range(count):
        theirs = pin.integrate(model, peer.q_of(q[k]), v[k])
        np.testing.assert_allclose(peer.q_of(moved[k]), theirs, rtol=0, atol=1e-12)


@robots
def test_derivatives(peers, name):
    peer = peer_named(peers, name)
    pin, model, data, G = peer.pin, peer.peer, peer.data, peer.G
    count = STATES // 10
    q, v, a = peer.states(count)
    ours = mb.rnea_derivatives(peer.model, q, v, a)
    theirs = ([], [])
    for k in range(count):
        dq, dv, _ = pin.computeRNEADerivatives(model, data, peer.q_of(q[k]), G @ v[k], G @ a[k])
        theirs[0].append(G.T @ dq @ G)
        theirs[1].append(G.T @ dv @ G)
    close(ours[0], theirs[0], "rnea_derivatives dq")
    close(ours[1], theirs[1], "rnea_derivatives dv")
    close(ours[2], [*mb.crba(peer.model, q)], "rnea_derivatives da")
    condition = np.linalg.cond(mb.crba(peer.model, q)).max()
    if peer.mimics or condition > 1e12:
        return
    found = mb.aba_derivatives(peer.model, q, v, a)
    parts = ([], [], [])
    for k in range(count):
        each = pin.computeABADerivatives(model, data, peer.q_of(q[k]), v[k], a[k])
        for kept, part in zip(parts, each, strict=True):
            kept.append(part.copy())
    for one, other, part in zip(found, parts, ("dq", "dv", "dtau"), strict=True):
        scale = max(np.abs(np.stack(other)).max(), FLOOR)
        error = np.abs(one - np.stack(other)).max() / scale
        assert error < max(TOLERANCE, 1e-15 * condition), f"aba_derivatives {part}: {error:.2g}"
