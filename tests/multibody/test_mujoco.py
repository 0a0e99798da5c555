"""Models of gymnasium and dm_control against MuJoCo: mass matrix, bias, both dynamics."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.systems.dynamics import activate

from ..long_parameters import long_but
from .mujoco_peer import mujoco, transport, world_axes


def folder(package, *parts):
    """Return a folder of an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    return Path(found.submodule_search_locations[0]).joinpath(*parts) if found else Path("none")


GYM, SUITE = folder("gymnasium", "envs", "mujoco", "assets"), folder("dm_control", "suite")
FILES = {
    **{f"gym {n}": GYM / f"{n}.xml" for n in (
        "ant", "half_cheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum",
        "inverted_pendulum", "point", "pusher", "pusher_v5", "reacher", "swimmer", "walker2d",
        "walker2d_v5",
    )},
    **{f"suite {n}": SUITE / f"{n}.xml" for n in (
        "acrobot", "ball_in_cup", "cartpole", "cheetah", "finger", "fish", "hopper", "humanoid",
        "humanoid_CMU", "manipulator", "pendulum", "point_mass", "quadruped", "reacher", "stacker",
        "walker",
    )},
}  # fmt: skip
QUICK = ["gym ant", "gym walker2d"]
STATES = 200


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
        # Tendons along joints of several coordinates are reported as ignored
        known = () if self.model.tendons is None else self.model.tendons.names
        for k in range(self.peer.ntendon):
            if self.peer.tendon(k).name not in known:
                self.peer.tendon_stiffness[k] = self.peer.tendon_damping[k] = 0.0
        self.data = mujoco.MjData(self.peer)
        assert (self.model.nq, self.model.nv) == (self.peer.nq, self.peer.nv)

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


def theirs(peer, q, v, a, tau):
    """Return what MuJoCo makes of a state, in our velocities."""
    m, d = peer.peer, peer.data
    T, carried = world_axes(peer.model, q), transport(peer.model, q, v)
    d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, T @ v, 0.0
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    bias = T.T @ (d.qfrc_bias + M @ carried)
    d.qacc[:] = T @ a + carried
    mujoco.mj_inverse(m, d)
    torques = T.T @ d.qfrc_inverse
    d.qfrc_applied[:] = T @ tau  # T is orthogonal
    mujoco.mj_forward(m, d)
    moved = T.T @ (d.qacc_smooth - carried)
    return T.T @ M @ T, bias, torques, moved


@pytest.mark.parametrize("name", long_but(QUICK, FILES))
def test_dynamics(name):
    """All states are one batch here, one after the other there."""
    peer = peer_named(name)
    model, rng = peer.model, np.random.default_rng(0)
    q, v, a = (np.stack(x) for x in zip(*(peer.state(rng) for _ in range(STATES)), strict=True))
    tau = rng.normal(size=v.shape)
    known = [np.stack(x) for x in zip(*map(theirs, [peer] * STATES, q, v, a, tau), strict=True)]
    M = mb.crba(model, q)
    found = (
        M,
        mb.rnea(model, q, v, 0.0 * a),
        mb.rnea(model, q, v, a, passive=True),
        mb.aba(model, q, v, tau, passive=True),
    )
    names = ("mass matrix", "bias", "inverse dynamics", "forward dynamics")
    sizes = [np.abs(x).reshape(STATES, -1).max(axis=1) for x in known]
    sizes[3] = sizes[3] * np.maximum(1.0, 1e-6 * np.linalg.cond(M))
    for what, ours, wanted, size in zip(names, found, known, sizes, strict=True):
        for k in range(STATES):
            near(ours[k], wanted[k], f"{what} of state {k}", size[k])


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


@pytest.mark.parametrize("name", long_but(["gym ant"], FILES))
def test_actuators(name):
    peer = peer_named(name)
    model, m, d = peer.model, peer.peer, peer.data
    if len(model.actuators) != m.nactuator:
        pytest.skip("has actuators on what has no one coordinate, which are reported as ignored")
    m.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, _ = peer.state(rng)
        u, act = rng.normal(size=m.nu), rng.uniform(-0.5, 0.5, size=m.na)
        d.qpos[:], d.qvel[:], d.ctrl[:], d.act[:] = q, world_axes(peer.model, q) @ v, u, act
        mujoco.mj_forward(m, d)
        acting, rates = activate(model.actuators, act, u)
        ours = mb.actuator_torque(model, model.actuators, q, v, acting)
        np.testing.assert_allclose(ours, world_axes(peer.model, q).T @ d.qfrc_actuator, atol=1e-10)
        np.testing.assert_allclose(rates, d.act_dot, atol=1e-12)


WITH_PARTS = """
<mujoco>
<compiler angle="radian"/>
<worldbody>
  <body name="a"><joint name="j" axis="0 1 0" ref="0.1"/>
    <geom type="capsule" size=".1 .2" mass="1"/>
    <body name="b" pos="0 0 1"><joint name="k" axis="0 1 0"/>
      <geom type="box" size=".1 .2 .3" pos="0 .1 0" contype="0" conaffinity="0" mass="2"/>
    </body>
  </body>
  <body name="c" pos="1 0 0"><joint name="l" type="slide" axis="0 0 1"/>
    <geom type="sphere" size=".1" mass="1"/></body>
</worldbody>
<tendon>
  <fixed name="t" stiffness="30" damping=".7" springlength=".1 .2">
    <joint joint="j" coef="2"/><joint joint="k" coef="-1"/></fixed>
</tendon>
<actuator>
  <motor joint="j" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
  <position tendon="t" kp="50" kv="3" gear="2" forcerange="-4 4" forcelimited="true"/>
  <velocity joint="l" kv="5"/>
  <damper joint="k" kv="2" ctrlrange="0 1"/>
  EXTRA
</actuator>
<equality>EQUALITY</equality>
</mujoco>
"""


def with_parts(tmp_path, extra="", equality=""):
    file = tmp_path / "parts.xml"
    file.write_text(WITH_PARTS.replace("EXTRA", extra).replace("EQUALITY", equality))
    return file


def test_tendons_servos_and_shapes(tmp_path):
    file = with_parts(tmp_path)
    model = mb.load(file)
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    rng = np.random.default_rng(2)
    for _ in range(20):
        q, v, u = 0.3 * rng.normal(size=3), rng.normal(size=3), 2 * rng.normal(size=4)
        d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(mb.passive_torque(model, q, v), d.qfrc_passive, atol=1e-12)
        torque = mb.actuator_torque(model, model.actuators, q, v, u)
        np.testing.assert_allclose(torque, d.qfrc_actuator, atol=1e-12)
        moved = mb.dynamics(model, 0.0, mb.State(q, v), torque).v
        np.testing.assert_allclose(moved, d.qacc_smooth, atol=1e-9)
    roles = [(shape.body, shape.kind, shape.role) for shape in model.geometry]
    both = [("capsule", "collision"), ("capsule", "visual")]
    assert [entry[1:] for entry in roles if entry[0] == "a"] == both
    assert ("b", "box", "visual") in roles and ("b", "box", "collision") not in roles
    shapes = {shape.body: shape for shape in model.geometry}
    assert shapes["a"].size == (0.1, 0.4) and shapes["b"].size == (0.2, 0.4, 0.6)
    np.testing.assert_array_equal(shapes["b"].position, [0, 0.1, 0])
    report = mb.read(file).report
    assert report.used["tendon"] == 1 and report.used["actuator"] == 4
    assert not report.ignored
    assert mb.load(file, strict=True).nv == 3


LAGS = """<general joint="k" dyntype="filter" dynprm="0.1" ctrlrange="-1 1" gainprm="3"/>
<general joint="j" dyntype="integrator" actlimited="true" actrange="-0.4 0.4" gear="2"
 gainprm="5" biastype="affine" biasprm="0 -5 -1"/>
<general joint="k" dyntype="filterexact" dynprm="0.02"/>"""


def test_actuators_with_a_lag(tmp_path):
    """Rates of activations and accelerations are MuJoCo's."""
    file = with_parts(tmp_path, extra=LAGS)
    model = mb.load(file, strict=True)
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    rng = np.random.default_rng(2)
    move = arc.compile(lambda x, u: mb.dynamics(model, 0.0, x, u, actuators=model.actuators))
    for _ in range(20):
        q, v, u = 0.3 * rng.normal(size=3), rng.normal(size=3), 2 * rng.normal(size=7)
        act = rng.uniform(-0.4, 0.4, size=3)
        d.qpos[:], d.qvel[:], d.ctrl[:], d.act[:] = q, v, u, act
        mujoco.mj_forward(m, d)
        x = mb.driven_state(model, model.actuators, q, act).replace(v=v)
        rates = move(x, u)
        np.testing.assert_allclose(rates.v, d.qacc_smooth, atol=1e-9)
        np.testing.assert_allclose(rates.activations, d.act_dot, atol=1e-12)


def test_actuators_of_unknown_kinds_are_reported(tmp_path):
    file = with_parts(tmp_path, extra='<adhesion body="a" ctrlrange="0 1"/>')
    assert "actuator 4: its kind is not known" in mb.read(file).report.ignored[0]


def test_equalities_hold(tmp_path):
    """What MuJoCo holds softly is held here: the same places where all holds there."""
    texts = (
        '<joint joint1="j" joint2="k" polycoef="0.2 2 0 0 0"/>',
        '<connect body1="b" body2="c" anchor="0.1 0.1 0.2"/>',
        '<weld body1="c" body2="a"/>',
    )
    for text in texts:
        file = with_parts(tmp_path, equality=text)
        model = mb.load(file)
        m = mujoco.MjModel.from_xml_path(str(file))
        d = mujoco.MjData(m)
        rng = np.random.default_rng(0)
        d.qpos[:] = 0.1 * rng.normal(size=3)
        mujoco.mj_forward(m, d)
        q, theirs = np.array(d.qpos), np.array(d.efc_pos[: d.ne])
        ours = mb.constraint_error(model, model.closures, q)
        if "connect" in text:  # there in axes of the world
            one, two = (mb.frame_pose(model, q, f"equality0:{k}").t for k in ("first", "second"))
            ours = one - two
        if "weld" not in text:  # whose turn is scaled there
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        start = mb.constraint_error(model, model.closures, np.array(m.qpos0))
        if "polycoef" not in text:
            np.testing.assert_allclose(start, 0.0, atol=1e-12)
        report = mb.read(file).report
        assert report.used["equality"] == 1
        assert "soft in MuJoCo, is exact" in report.approximated[0]


def test_numbers_without_a_place_are_reported(tmp_path):
    file = tmp_path / "ball.xml"
    file.write_text(
        """<mujoco><worldbody><camera/><body name="a"><joint name="socket" type="ball"
        limited="true" range="0 1"/><geom size=".1"/><body name="b"><joint name="hinge"
        actuatorfrcrange="-2 3"/><geom size=".1" friction=".3"/></body></body></worldbody>
        <contact><exclude body1="a" body2="b"/></contact><keyframe><key/></keyframe></mujoco>"""
    )
    builder = mb.read(file)
    lost = "\n".join([*builder.report.ignored, *builder.report.approximated])
    for what in (
        "1 cameras", "1 pairs of bodies without contact",
        "limits of joints and tendons, which", "joint 'hinge': actuatorfrcrange is an",
        "friction or softness of 1 geoms",
    ):  # fmt: skip
        assert what in lost, lost
    model = builder.build()
    np.testing.assert_array_equal(model.effort_limits, [np.inf] * 3 + [3.0])
    np.testing.assert_array_equal(model.angle_limits, np.deg2rad([1.0] * 3 + [np.inf]))


def test_report_and_refusals(tmp_path):
    peer_named("gym ant")
    report = mb.read(FILES["gym ant"]).report
    assert report.used["body"] == 13
    assert report.used["actuator"] == 8
    lost = "\n".join([*report.ignored, *report.approximated])
    for what in ("shape of the world", "1 lights", "friction or softness of 14 geoms"):
        assert what in lost, lost
    with pytest.raises(ValueError, match="strict=True"):
        mb.load(FILES["gym ant"], strict=True)
    file = tmp_path / "robot.xml"
    file.write_text("<robot/>")
    with pytest.raises(ValueError, match="an MJCF file is a <mujoco>, this is a <robot>"):
        mb.load(file)
    file.write_text('<mujoco><worldbody><body><joint type="screw"/></body></worldbody></mujoco>')
    with pytest.raises(ValueError, match="MuJoCo's compiler"):
        mb.load(file)
