"""Files written by `save`: read again they are the same model, here and in other libraries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.multibody.files import as_builder
from archimedes.multibody.files.xml_text import angles_of, quaternion_of
from archimedes.multibody.models.model import LIMITS, PER_VELOCITY
from archimedes.multibody.parts.joints import KINDS
from tests.optional_packages import import_or_skip

from ..long_parameters import long_but
from .robots import FILES, FLOATING, Peer, path_of

ARRAYS = (*as_builder.PLACES, *PER_VELOCITY, *LIMITS, "masses", "centers", "inertias")
#: What MuJoCo cannot have: joints that follow others, massless bodies that move, limits that are
#: equal, inertias of no body.
NOT_IN_MUJOCO = {
    "panda", "baxter", "tiago_pro", "talos_full", "romeo", "pr2", "icub", "icub_reduced", "human",
    "double_pendulum", "double_pendulum_simple", "pendulum_continuous", "quadruped", "centauro",
    "romeo_small",
}  # fmt: skip


def base_of(name):
    return "floating" if name in FLOATING else "fixed"


def load(name):
    return mb.load(path_of(name), base_of(name), physical=name != "romeo_small")


def looks(model, meshes=True):
    """Return the shapes in one order; those of meshes by what MuJoCo leaves of them."""
    simple = [s for s in model.geometry if meshes or s.kind != "mesh"]
    rest = [] if meshes else [s for s in model.geometry if s.kind == "mesh"]
    return sorted(map(repr, simple)), sorted(repr((s.body, s.role, s.color)) for s in rest)


def assert_same(ours, again, meshes=True):
    """Compare all of two models, numbers by their bits."""
    for name in ARRAYS:
        one, other = (np.asarray(getattr(m, name), dtype=float) for m in (ours, again))
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), (name, np.abs(one - other).max())
    assert (ours.name, ours.links, ours.frames) == (again.name, again.links, again.frames)
    assert ours.closures == again.closures
    for name in ("tendons", "actuators", "transmissions", "fluid", "keyframes", "compensation"):
        (one, own), (other, theirs) = (arc.tree.flatten(getattr(m, name)) for m in (ours, again))
        assert own == theirs, name
        assert [*map(bits, one)] == [*map(bits, other)], name
    assert looks(ours, meshes) == looks(again, meshes)


def bits(leaf):
    """Return shape and bits of numbers, other leaves as they are."""
    return leaf if isinstance(leaf, str) else (np.shape(leaf), np.array(leaf, float).tobytes())


def agree(ours, theirs, what):
    size = max(float(np.abs(theirs).max()), 1e-3)
    assert np.abs(ours - theirs).max() < 1e-12 * size, (what, np.abs(ours - theirs).max() / size)


@pytest.mark.parametrize("name", long_but(["panda", "go2", "kinova"], FILES))
def test_urdf_restores_every_bit(name, tmp_path):
    import_or_skip("pinocchio")
    model = load_or_skip(name)
    file = tmp_path / "again.urdf"
    mb.save(model, file)
    assert_same(model, mb.load(file, physical=name != "romeo_small"))


def load_or_skip(name):
    try:
        return load(name)
    except ValueError as error:
        assert "no joint that moves" in str(error)
        pytest.skip("is one body")


@pytest.mark.parametrize("name", long_but(["panda", "solo"], FILES))
def test_pinocchio_loads_the_urdf(name, tmp_path):
    """Its mass matrix and bias are ours, and those of the file that we read."""
    import_or_skip("pinocchio")
    model = load_or_skip(name)
    mb.save(model, file := tmp_path / "again.urdf")
    first, second = Peer(name), Peer(name, file=file)
    q, v, _ = first.states(3)
    for one, other in zip(q, v, strict=True):
        known = []
        for peer in (first, second):
            x, rate = peer.q_of(one), peer.G @ other
            M = peer.pin.crba(peer.peer, peer.data, x)
            M = np.triu(M) + np.triu(M, 1).T
            bias = peer.pin.nonLinearEffects(peer.peer, peer.data, x, rate)
            known.append((peer.G.T @ M @ peer.G, peer.G.T @ bias))
        ours = mb.crba(model, one), mb.rnea(model, one, other, 0.0 * other)
        for k, what in enumerate(("mass matrix", "bias")):
            agree(known[1][k], known[0][k], what)
            agree(ours[k], known[1][k], what)


@pytest.mark.parametrize("name", long_but(["so100", "bolt"], sorted({*FILES} - NOT_IN_MUJOCO)))
def test_mjcf_restores_every_bit_of_urdf(name, tmp_path):
    import_or_skip("mujoco")
    import_or_skip("pinocchio")
    model = load_or_skip(name)
    if name != "so100":  # meshes are most of the time
        model = model.replace(geometry=tuple(s for s in model.geometry if s.kind != "mesh"))
    model = model.replace(actuators=())  # motors are drives in MJCF
    mb.save(model, file := tmp_path / "again.xml")
    assert_same(model, mb.load(file), meshes=False)
    mujoco_agrees(file, model)


@pytest.mark.parametrize("name", sorted(NOT_IN_MUJOCO))
@pytest.mark.long
def test_what_mujoco_cannot_have_is_refused(name, tmp_path):
    import_or_skip("mujoco")
    with pytest.raises(ValueError, match=r"MJCF|MuJoCo"):
        mb.save(load(name).replace(geometry=()), file := tmp_path / "again.xml")
    assert not file.exists() and not [*tmp_path.iterdir()]


def gym_names():
    from .test_mujoco import FILES

    return [name for name in FILES if name.startswith("gym")]


@pytest.mark.parametrize("name", long_but(["gym hopper", "gym humanoid"], gym_names()))
def test_mjcf_restores_every_bit(name, tmp_path, monkeypatch):
    from .test_mujoco import peer_named

    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its warnings
    first = peer_named(name)
    model = mb.load(first_file(name))
    report = mb.save(model, file := tmp_path / "again.xml")
    assert not report.approximated and not report.ignored
    assert_same(model, mb.load(file))
    mujoco_agrees(file, model, first)


def first_file(name):
    from .test_mujoco import FILES

    return FILES[name]


def mujoco_agrees(file, model, first=None):
    """Compare mass matrix and bias of a file in MuJoCo with ours, and with those of another."""
    from .test_mujoco import Peer, theirs

    peer = Peer(file)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, a = peer.state(rng)
        M, bias, *_ = theirs(peer, q, v, a, a)
        agree(mb.crba(model, q), M, "mass matrix")
        agree(mb.rnea(model, q, v, 0.0 * a), bias, "bias")
        if first is not None:
            known, known_bias, *_ = theirs(first, q, v, a, a)
            agree(M, known, "mass matrix of the first file")
            agree(bias, known_bias, "bias of the first file")


WITH_EVERYTHING = """
<mujoco model="all">
<compiler angle="radian" autolimits="true"/>
<option gravity="0.1 0 -3.7"/>
<worldbody>
  <site name="station" pos="1 2 3" quat=".6 .8 0 0"/>
  <body name="cart" pos="0 0 .5"><joint name="x" type="slide" axis="1 0 0" range="-1 2"
      solreflimit=".013 .7"/>
    <joint name="turn" axis="0 1 0" ref=".3" springref=".4" stiffness="5" damping=".1"
      armature=".02" frictionloss=".03" actuatorfrcrange="-7 7" pos=".1 .2 .3"/>
    <geom type="box" size=".1 .2 .3" rgba=".1 .2 .3 1" mass="2"/>
    <site name="tip" pos=".1 0 0" euler=".1 .2 .3"/>
    <body name="shelf" pos="0 .1 0" euler="0 .3 0"><geom type="sphere" size=".1" mass=".1"/></body>
    <body name="arm" pos=".2 0 0" quat=".1 .2 .3 .4"><joint name="elbow" axis="1 2 3"/>
      <inertial mass="1" pos=".1 0 0" fullinertia=".2 .3 .35 .01 .02 .03"/>
      <geom type="capsule" size=".1 .2" group="1" contype="0" conaffinity="0"/>
      <geom type="ellipsoid" size=".1 .2 .3" euler="1 2 3"/>
      <site name="hand" pos="0 0 .4"/></body>
    <body name="ball" pos="0 0 1"><joint name="socket" type="ball" pos="0 .1 0" range="0 .7"
      solreflimit="-400 -3"/>
      <geom type="cylinder" size=".1 .2" mass="1"/></body>
  </body>
  <body name="stone" pos="3 0 1" euler="0 0 1"><freejoint name="fly"/>
    <geom type="sphere" size=".2" mass="3"/><site name="eye"/></body>
</worldbody>
<tendon>
  <fixed name="t" stiffness="30" damping=".7" springlength=".1 .2" actuatorfrcrange="-3 2">
    <joint joint="x" coef="2"/><joint joint="elbow" coef="-1"/></fixed>
</tendon>
<equality>
  <connect site1="hand" site2="eye"/><weld site1="station" site2="tip"/>
  <joint joint1="x" joint2="elbow" polycoef=".1 2 0 0 0"/>
  <connect body1="arm" body2="stone" anchor="0 0 .1"/>
</equality>
<actuator>
  <motor joint="x" gear="3" ctrlrange="-1 1"/>
  <position tendon="t" kp="50" kv="3" gear="2" forcerange="-4 4"/>
  <general joint="elbow" dyntype="filter" dynprm=".05" gainprm="2 1 .5" gaintype="affine"
    actlimited="true" actrange="0 1" ctrlrange="0 2"/>
  <intvelocity joint="elbow" kp="3" actrange="-1 1"/>
</actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A model of nearly all that MJCF files have."""
    import_or_skip("mujoco")
    file = tmp_path_factory.mktemp("robots") / "all.xml"
    file.write_text(WITH_EVERYTHING)
    return mb.load(file)


def test_mjcf_with_everything(everything, tmp_path):
    report = mb.save(everything, file := tmp_path / "again.xml")
    assert not report.ignored and not report.approximated
    assert_same(everything, mb.load(file))
    mb.save(mb.load(file), twice := tmp_path / "twice.xml")
    assert twice.read_text() == file.read_text()


IN_WATER = """
<mujoco>
<compiler angle="radian"/>
<option density="30" viscosity=".1" wind="1 2 3"/>
<worldbody>
<body name="hull" pos="0 0 1" euler=".1 .2 .3"><freejoint/>
  <geom type="box" size=".2 .15 .05" pos=".1 .2 .3" euler="1 .3 .2" mass="3"/>
  <geom type="capsule" size=".1 .3" euler=".3 .3 .3" mass="2"/>
  <body name="oar" pos=".25 0 0"><joint axis="0 1 0"/>
    <geom type="capsule" size=".05 .2" pos="0 .1 0" euler=".4 .5 .6" mass="1" BLADE/></body>
  <body name="rod" pos=".25 .3 0" euler=".1 .5 .3"><joint type="ball"/>
    <geom type="capsule" size=".1 .3" euler=".3 .3 .3" mass="2"/></body>
  OTHER
</body>
</worldbody>
</mujoco>
"""
ELLIPSOID = 'fluidshape="ellipsoid" fluidcoef=".4 .2 1.2 .8 .9"'


def fluid_file(folder, blade="", other=""):
    (file := folder / "water.xml").write_text(
        IN_WATER.replace("BLADE", blade).replace("OTHER", other)
    )
    return file


@pytest.mark.parametrize("blade", ["", ELLIPSOID], ids=["boxes", "and an ellipsoid"])
def test_mjcf_keeps_the_fluid(blade, tmp_path):
    """Its forces in MuJoCo are those of the first file and ours, whatever their axes of inertia."""
    mujoco = import_or_skip("mujoco")
    from .mujoco_peer import world_axes

    first = fluid_file(tmp_path, blade)
    model = mb.load(first)
    report = mb.save(model, file := tmp_path / "again.xml")
    assert not report.approximated and not report.ignored
    assert_same(model, mb.load(file))
    mb.save(mb.load(file), twice := tmp_path / "twice.xml")
    assert twice.read_text() == file.read_text()
    rng = np.random.default_rng(0)
    q, v = mb.random_configuration(model, rng), rng.normal(size=model.nv)
    T = world_axes(model, q)
    for each in (first, file):
        peer = mujoco.MjModel.from_xml_path(str(each))
        data = mujoco.MjData(peer)
        data.qpos[:], data.qvel[:] = q, T @ v
        mujoco.mj_forward(peer, data)
        assert np.abs(data.qfrc_fluid).max() > 1.0
        agree(mb.passive_torque(model, q, v), T.T @ data.qfrc_passive, "forces of the fluid")


def test_fluids_that_mujoco_cannot_have(tmp_path):
    import_or_skip("mujoco")
    fin = '<body name="fin" pos="0 .3 .2"><geom type="box" size=".1 .1 .02"/></body>'
    welded = mb.load(fluid_file(tmp_path, other=fin))
    model = mb.load(fluid_file(tmp_path))
    boxes = model.fluid.shapes
    ball = mb.FluidEllipsoid("oar", [0.1, 0.2, 0.3])
    for wrong, message in (
        (welded, "what is on 'fin' in the fluid: body 'hull' has one box"),
        (in_fluid(model, boxes[1:]), "body 'hull': nothing of it is in the fluid; in MuJoCo"),
        (in_fluid(model, [*boxes, ball]), "body 'oar': a box in the fluid beside ellipsoids"),
        (in_fluid(model, [boxes[0], ball, boxes[2]]), "whose added mass is not what MuJoCo"),
        (in_fluid(model, [replace(boxes[0], sides=2.0 * boxes[0].sides), *boxes[1:]]),
         "body 'hull': a box in the fluid that is not that of its mass and inertia"),
        (model.replace(fluid=mb.Fluid(shapes=boxes)), "a fluid that has neither density nor"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            mb.save(wrong, file := tmp_path / "again.xml")
        assert not file.exists()


def in_fluid(model, shapes):
    return model.replace(fluid=model.fluid.with_shapes(shapes))


def test_added_mass_is_that_of_mujoco_and_of_a_sphere():
    """A sphere takes half of its volume along (Lamb, Hydrodynamics, section 92)."""
    from archimedes.multibody.files.mjcf_fluid import SAME, added_mass

    mujoco = import_or_skip("mujoco")
    for axes in ([0.1, 0.2, 0.35], [0.01, 0.2, 1.5], [0.1, 0.1, 0.35], [0.1, 0.1, 0.1]):
        size = " ".join(map(str, axes))
        geom = f'<geom type="ellipsoid" size="{size}" fluidshape="ellipsoid" mass="1"/>'
        text = f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>"
        theirs = mujoco.MjModel.from_xml_string(text).geom_fluid[0][6:12]
        mass, inertia = added_mass(np.array(axes))
        np.testing.assert_allclose(mass, theirs[:3], rtol=0, atol=SAME * theirs[:3].max())
        np.testing.assert_allclose(inertia, theirs[3:], rtol=0, atol=SAME * theirs[3:].max())
    np.testing.assert_allclose(mass, 0.5 * 4.0 / 3.0 * np.pi * 0.1**3, rtol=1e-6)
    assert not inertia.any()


def test_sockets_without_a_limit_of_angle_have_none_in_mjcf(tmp_path):
    import_or_skip("mujoco")
    b = mb.Builder("socket")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="socket", kind="spherical")
    mb.save(b.build(), file := tmp_path / "socket.xml")
    assert np.isinf(mb.load(file).angle_limits).all()


@pytest.mark.parametrize("part", [0.3, 1.0])
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_carried_weights_keep_their_bits(part, suffix, tmp_path):
    """The whole weight, a part of it, and that of one of two bodies that are welded together."""
    if suffix == ".xml":
        import_or_skip("mujoco")
    b = mb.Builder("crane")
    b.add_body("load", 0.7, [0.1, 0.2, 0.3], [0.1, 0.1, 0.1], gravity_compensation=part)
    b.attach("load", joint="hinge", axis=[0, 1, 0], lower=-1.0, upper=1.0)
    model = b.build()
    report = mb.save(model, file := tmp_path / f"crane{suffix}")
    assert bool(report.approximated) == (suffix == ".urdf" and part == 0.3) and not report.ignored
    assert_same(model, mb.load(file))
    b.add_body("hook", 0.3, [0.1, 0.0, 0.0], [0.1, 0.1, 0.1], gravity_compensation=0.0)
    b.attach("hook", "load", kind="fixed", position=[0.0, 0.0, 1.0], rotation=turn_about_x(0.3))
    if suffix == ".xml":
        with pytest.raises(ValueError, match="'load': its weight is carried beside its centre"):
            mb.save(b.build(), file)
        return
    mb.save(b.build(), file)
    again = mb.load(file)
    assert_same(b.build(), again)
    q, v = np.array([0.2]), np.zeros(1)
    # What is carried is a part of 0.7 kg at its own place.
    place = mb.frame_pose(again, q, "load").r.as_matrix() @ [0.1, 0.2, 0.3]
    agree(mb.passive_torque(again, q, v), np.array([-part * 0.7 * 9.81 * place[0]]), "torque")


def test_whole_weights_of_welded_bodies_are_carried_in_mjcf(tmp_path):
    """Their sum is a part of the weight that rounding keeps from being whole."""
    mujoco = import_or_skip("mujoco")
    b = mb.Builder("crane")
    for k, mass in enumerate((0.7, 0.13, 0.31)):
        body = f"load{k}"
        b.add_body(body, mass, [0.1, 0.2, 0.37], [0.1, 0.1, 0.1], gravity_compensation=1.0)
        joint = {"joint": "hinge", "axis": [0, 1, 0]} if k == 0 else {"kind": "fixed"}
        at = {"position": [0.0, 0.0, 0.1 * k], "rotation": turn_about_x(0.3 * k)}
        b.attach(body, f"load{k - 1}" if k else "world", **joint, **at)
    model = b.build()
    report = mb.save(model, file := tmp_path / "crane.xml")
    assert report.approximated == ["body 'load0': the carried part of its weight, in its last bits"]
    q, v = np.array([0.2]), np.zeros(1)
    peer = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(peer)
    data.qpos[:] = q
    mujoco.mj_forward(peer, data)
    agree(mb.passive_torque(model, q, v), data.qfrc_passive, "carried weight")
    agree(mb.passive_torque(mb.load(file), q, v), data.qfrc_passive, "carried weight")


def turn_about_x(angle):
    """Return a rotation about x."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def test_what_urdf_has_no_place_for(everything, tmp_path):
    file = tmp_path / "all.urdf"
    with pytest.raises(ValueError, match=r"joint 'socket': URDF has no spherical.*MJCF \(.xml\)"):
        mb.save(everything, file)
    assert not file.exists()


def test_left_out_and_reported(tmp_path):
    b = mb.Builder("spring")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", armature=0.1, limit_damping=2.0, lower=-1, upper=1)
    motor = mb.Motor("hinge", stall_torque=2.0)
    model = b.build(gravity=[0.0, 0.0, -1.62]).replace(actuators=(motor,))
    with pytest.raises(ValueError) as caught:
        mb.save(model, tmp_path / "spring.urdf")
    message = str(caught.value)
    said = ("spring.urdf", "armature of joint 'hinge'", "damping of the stops", "gravity", "1 act")
    for part in said:
        assert part in message
    assert "Write MJCF (.xml), or leave it out with strict=False" in message
    assert not [*tmp_path.iterdir()]
    report = mb.save(model, tmp_path / "spring.urdf", strict=False)
    assert len(report.ignored) == 4
    again = mb.load(tmp_path / "spring.urdf")
    assert not again.armature.any() and again.lower.tolist() == [-1.0]


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        (k.name, suffix)
        for k in KINDS.values()
        for suffix, own in ((".urdf", k.urdf), (".xml", k.mjcf))
        if own is None and k.nq and k.name != "continuous"
    ],
)
def test_joints_that_a_format_lacks(kind, suffix, tmp_path):
    b = mb.Builder()
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    extra = {"second_axis": [1, 0, 0]} if kind == "universal" else {}
    b.attach("bob", joint="knee", kind=kind, **extra)
    with pytest.raises(ValueError, match=f"joint 'knee': .* has no (screw|{kind}) joint"):
        mb.save(b.build(), tmp_path / f"m{suffix}")
    assert not [*tmp_path.iterdir()]


def test_a_joint_that_follows_becomes_an_equality(tmp_path):
    import_or_skip("mujoco")
    b = mb.Builder("gripper")
    for name, mimic in (("left", None), ("right", mb.Mimic("left", -1.0, 0.5))):
        b.add_body(name, mass=0.1, inertia=[1e-3, 1e-3, 1e-3])
        b.attach(name, joint=name, kind="prismatic", mimic=mimic)
    report = mb.save(b.build(), tmp_path / "gripper.xml", strict=False)
    assert "'right', which follows 'left'" in report.ignored[0]
    again = mb.load(tmp_path / "gripper.xml")
    held = replace(again.closures[0], softness=mb.Softness())
    assert again.nq == 2 and held == mb.Coupling({"right": 1.0, "left": 1.0}, 0.5)


def test_servos_and_motors_are_general_actuators(tmp_path):
    import_or_skip("mujoco")
    b = mb.Builder("arm")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge")
    servo = mb.Servo("hinge", stiffness=20.0, damping=0.5, effort_limit=3.0)
    motor = mb.Motor("hinge", gear=4.0, stall_torque=0.25)
    model = b.build().replace(actuators=(servo, mb.Lagged(motor, 0.1)))
    with pytest.raises(ValueError, match="range of the activation"):
        mb.save(model, tmp_path / "arm.xml")
    model = model.replace(actuators=(servo, motor))
    report = mb.save(model, tmp_path / "arm.xml")
    assert len(report.approximated) == 2
    again = mb.load(tmp_path / "arm.xml")
    for q, v, u in ((0.1, 0.0, 0.2), (0.0, 1.0, -0.1), (0.0, 0.0, 9.0)):
        args = np.array([q]), np.array([v]), np.array([u, u])
        ours, theirs = (mb.actuator_torque(m, m.actuators, *args) for m in (model, again))
        np.testing.assert_allclose(theirs, ours, rtol=1e-14)


def test_what_stands_in_the_world_is_kept(tmp_path):
    """MuJoCo's ball comes to rest on a plane of the world that a builder added."""
    mujoco = import_or_skip("mujoco")
    b = mb.Builder("ball")
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.add_shape("ball", "sphere", [0.1], "collision")
    b.add_shape("world", "plane", [0.0, 0.0], "collision", position=[0.0, 0.0, 0.5])
    ball = b.build(base="floating")
    mb.save(ball, tmp_path / "ball.xml")
    assert mb.load(tmp_path / "ball.xml", strict=True).geometry == ball.geometry[::-1]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "ball.xml"))
    data = mujoco.MjData(model)
    data.qpos[2] = 0.65
    for _ in range(1000):
        mujoco.mj_step(model, data)
    assert abs(data.qpos[2] - 0.6) < 1e-3


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_random_rotations_keep_their_bits(suffix, tmp_path):
    """Products of rotations, which no three angles and no quaternion restore."""
    if suffix == ".xml":
        import_or_skip("mujoco")
    rng = np.random.default_rng(3)
    b = mb.Builder("chain")
    parent = "world"
    for k in range(12):
        Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        Q = Q * np.linalg.det(Q)
        L = rng.normal(size=(3, 3)) * 0.1
        b.add_body(f"b{k}", mass=rng.uniform(), com=rng.normal(size=3), inertia=L @ L.T + np.eye(3))
        b.attach(
            f"b{k}", parent, rotation=Q, position=rng.normal(size=3), axis=rng.normal(size=3),
            lower=-1e-300, upper=np.inf, speed_limit=0.0, joint=f"j{k:02}",
        )  # fmt: skip
        b.add_frame(f"f{k}", f"b{k}", rotation=Q.T, position=[0.0, -0.0, 1e-310])
        parent = f"b{k}"
    model = b.build()
    mb.save(model, tmp_path / f"chain{suffix}")
    assert_same(model, mb.load(tmp_path / f"chain{suffix}"))


def test_angles_and_quaternions_restore_what_files_say():
    """Rotations that came from angles or a quaternion go back without the matrix."""
    from archimedes.multibody.files.robot_elements import by_angles
    from archimedes.spatial.attitudes.quaternions import quaternion_to_dcm

    rng = np.random.default_rng(0)
    shorts = [0.0, 1.57, -1.5708, np.pi / 2, np.pi, 0.7854, 1e-9, -3.14159265, 1.5707963267948966]
    restored = []
    for _ in range(50):
        angles, exact = angles_of(R := by_angles(rng.choice(shorts, size=3)), rounded=False)
        assert np.abs(by_angles(angles) - R).max() < 1e-12
        assert exact == (by_angles(angles).tobytes() == R.tobytes())
        q = rng.normal(size=4)
        near, same = quaternion_of(R := quaternion_to_dcm(q / np.linalg.norm(q)).T)
        assert np.abs(quaternion_to_dcm(near).T - R).max() < 1e-15
        restored.append((exact, same))
    assert np.mean(restored, axis=0).min() > 0.7


def test_an_edited_rotation_is_no_longer_the_matrix(tmp_path):
    b = mb.Builder()
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    b.attach("bob", joint="hinge", kind="continuous", rotation=R * np.linalg.det(R))
    mb.save(b.build(), file := tmp_path / "bob.urdf")
    text = file.read_text()
    assert ' rotation="' in text
    rpy = text.split('rpy="')[1].split('"')[0]
    file.write_text(text.replace(rpy, "0.1 0.2 0.3"))
    with pytest.raises(ValueError, match=r"bob.urdf:\d+: <origin> has a rotation that is not that"):
        mb.load(file)


def test_wrong_uses(tmp_path):
    b = mb.Builder("x")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", kind="continuous")
    model = b.build()
    with pytest.raises(TypeError, match=r"model must be .*Model.*builder.build"):
        mb.save(b, tmp_path / "x.urdf")
    with pytest.raises(ValueError, match=r"written to files .urdf, .xml, .mjcf, not '.sdf'"):
        mb.save(model, tmp_path / "x.sdf")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        mb.save(model, tmp_path / "no" / "x.urdf")
    with pytest.raises(ValueError, match=r"name 'a.x00' has characters"):
        mb.save(model.replace(name="a\x00"), tmp_path / "x.urdf")
    batch = model.replace(masses=np.ones((4, 1)))
    with pytest.raises(ValueError, match="leading axes"):
        mb.save(batch, tmp_path / "x.urdf")

    @arc.compile
    def f(m):
        mb.save(model.replace(masses=m), tmp_path / "x.urdf")
        return m

    with pytest.raises(ValueError, match=r"model.masses is traced"):
        f(np.ones(1))
    assert not [*tmp_path.iterdir()]


def test_names_that_xml_escapes(tmp_path):
    b = mb.Builder('a<b>&"c"')
    b.add_body("b & 'x'", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("b & 'x'", joint="<hinge>", kind="continuous")
    model = b.build()
    mb.save(model, tmp_path / "x.urdf")
    assert_same(model, mb.load(tmp_path / "x.urdf"))


def test_meshes_that_come_with_a_model(tmp_path):
    """Triangles become files beside the robot's."""
    b = mb.Builder("m")
    b.add_body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.attach("bob", joint="hinge", kind="continuous")
    corners = [[0, 0, 0], [1 / 3, 0, 0], [0, 1, 0], [0, 0, 1]]
    surface = mb.Surface(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    b.add_shape("bob", "mesh", [1, 1, 1], surface=surface)
    b.add_shape("bob", "mesh", [2, 2, 2], "collision", surface=surface)
    report = mb.save(b.build(), tmp_path / "m.urdf")
    assert len(report.approximated) == 2
    shapes = mb.load(tmp_path / "m.urdf").geometry
    assert [s.file for s in shapes] == [str(tmp_path / "m_meshes" / "mesh0.obj")] * 2
    trimesh = import_or_skip("trimesh")
    mesh = trimesh.load(shapes[0].file)
    assert mesh.volume == pytest.approx(1 / 18)
    import_or_skip("mujoco")
    mb.save(b.build(), tmp_path / "m.xml")
    again = mb.load(tmp_path / "m.xml").geometry
    moved = [np.array(s.rotation) @ s.surface.vertices.T for s in again]
    sizes = sorted(np.round(np.ptp(m, axis=1).max(), 6) for m in moved)
    assert sizes == [1.0, 2.0]  # MuJoCo keeps vertices in single precision
