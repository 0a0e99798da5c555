"""Models of gymnasium and dm_control against MuJoCo: mass matrix, bias, both dynamics."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.multibody.models.joints import KINDS

from ..marking import long_but

mujoco = pytest.importorskip("mujoco")


def folder(package, *parts):
    """Return a folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    return Path(found.submodule_search_locations[0]).joinpath(*parts) if found else Path("none")


GYM, SUITE = folder("gymnasium", "envs", "mujoco", "assets"), folder("dm_control", "suite")
FILES = {
    **{f"gym {n}": GYM / f"{n}.xml" for n in (
        "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
        "inverted_pendulum", "pusher", "reacher", "swimmer", "walker2d",
    )},
    **{f"suite {n}": SUITE / f"{n}.xml" for n in (
        "acrobot", "ball_in_cup", "cartpole", "cheetah", "finger", "fish", "hopper", "humanoid",
        "humanoid_CMU", "manipulator", "pendulum", "point_mass", "quadruped", "reacher", "stacker",
        "walker",
    )},
}  # fmt: skip
QUICK = ["gym ant", "gym walker2d"]
STATES = 20


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """MuJoCo writes its warnings to a file in the current folder."""
    monkeypatch.chdir(tmp_path)


class Peer:
    """A model here and in MuJoCo, whose free joints move in axes of the world."""

    def __init__(self, file):
        self.model = mb.load(file)
        self.model = self.model.replace(friction=0.0 * self.model.friction)  # a constraint there
        self.peer = mujoco.MjModel.from_xml_path(str(file))
        flags = mujoco.mjtDisableBit
        self.peer.opt.disableflags |= flags.mjDSBL_CONSTRAINT | flags.mjDSBL_ACTUATION
        # Fluids and tendons are reported as ignored
        self.peer.opt.density = self.peer.opt.viscosity = 0.0
        self.peer.tendon_stiffness[:] = self.peer.tendon_damping[:] = 0.0
        self.data = mujoco.MjData(self.peer)
        assert (self.model.nq, self.model.nv) == (self.peer.nq, self.peer.nv)

    def turned(self, q):
        """Return T with v_MuJoCo = T v."""
        T = np.eye(self.model.nv)
        for link in self.model.links:
            if link.kind is KINDS["free"]:
                R = link.kind.pose(link.screw, q[link.q : link.q + 7].tolist()).R
                T[link.v : link.v + 3, link.v : link.v + 3] = R
        return T

    def transport(self, q, v):
        """Return dT/dt v."""
        T, out = self.turned(q), np.zeros(self.model.nv)
        for link in self.model.links:
            if link.kind is KINDS["free"]:
                i = link.v
                out[i : i + 3] = T[i : i + 3, i : i + 3] @ np.cross(v[i + 3 : i + 6], v[i : i + 3])
        return out

    def state(self, rng):
        q = mb.random_configuration(self.model, rng)
        return q, rng.normal(size=self.model.nv), rng.normal(size=self.model.nv)


def peer_named(name):
    """Return a model; those of dm_control, which is large, only where that is installed."""
    if not FILES[name].is_file():
        pytest.skip(f"{name}: its package is not installed")
    return Peer(FILES[name])


def near(ours, theirs, what, size=None):
    size = max(np.abs(theirs).max() if size is None else size, 1e-3)
    assert np.abs(ours - theirs).max() / size < 1e-10, what


@pytest.mark.parametrize("name", long_but(QUICK, FILES))
def test_dynamics(name):
    peer = peer_named(name)
    model, m, d = peer.model, peer.peer, peer.data
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        q, v, a = peer.state(rng)
        T = peer.turned(q)
        d.qpos[:], d.qvel[:] = q, T @ v
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        ours = mb.crba(model, q)
        near(ours, T.T @ M @ T, "mass matrix")
        # dT/dt v is an acceleration that MuJoCo's coordinates have and ours have not
        bias = T.T @ (d.qfrc_bias + M @ peer.transport(q, v))
        near(mb.rnea(model, q, v, np.zeros(m.nv)), bias, "bias")
        d.qacc[:] = T @ a + peer.transport(q, v)
        mujoco.mj_inverse(m, d)
        torques = T.T @ d.qfrc_inverse
        near(mb.rnea(model, q, v, a, passive=True), torques, "inverse dynamics")
        tau = rng.normal(size=m.nv)
        d.qfrc_applied[:] = T @ tau  # T is orthogonal
        mujoco.mj_forward(m, d)
        moved = T.T @ (d.qacc_smooth - peer.transport(q, v))
        size = np.abs(moved).max() * max(1.0, 1e-6 * np.linalg.cond(ours))
        near(mb.aba(model, q, v, tau, passive=True), moved, "forward dynamics", size)
        d.qfrc_applied[:] = 0.0


@pytest.mark.parametrize("name", QUICK)
def test_places(name):
    peer = peer_named(name)
    rng = np.random.default_rng(1)
    q, _, _ = peer.state(rng)
    peer.data.qpos[:] = q
    mujoco.mj_forward(peer.peer, peer.data)
    for frame in peer.model.frame_names:
        k = mujoco.mj_name2id(peer.peer, mujoco.mjtObj.mjOBJ_BODY, frame)
        if k > 0:
            pose = mb.frame_pose(peer.model, q, frame)
            np.testing.assert_allclose(pose.t, peer.data.xpos[k], atol=1e-12)
            np.testing.assert_allclose(
                pose.r.as_matrix(), peer.data.xmat[k].reshape(3, 3), atol=1e-12
            )


def test_report_and_refusals(tmp_path):
    peer_named("gym ant")
    report = mb.read(FILES["gym ant"]).report
    assert report.used["body"] == 13
    assert any("actuators" in entry for entry in report.ignored)
    with pytest.raises(ValueError, match="strict=True"):
        mb.load(FILES["gym ant"], strict=True)
    file = tmp_path / "robot.xml"
    file.write_text("<robot/>")
    with pytest.raises(ValueError, match="an MJCF file is a <mujoco>, this is a <robot>"):
        mb.load(file)
    file.write_text('<mujoco><worldbody><body><joint type="screw"/></body></worldbody></mujoco>')
    with pytest.raises(ValueError, match="MuJoCo's compiler"):
        mb.load(file)
