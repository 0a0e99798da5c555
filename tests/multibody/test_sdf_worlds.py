"""SDF worlds: models in models and from other files, several roots, loops, gearboxes."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb

LINK = """<inertial><pose>0 0 0.1 0 0 0.3</pose><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy>
<izz>0.25</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"""
#: A shoulder with a spring; the pose of the model is that of whoever includes it.
ARM = f"""<sdf version="1.9"><model name="arm" canonical_link="base"><pose>9 9 9 0 0 0</pose>
<link name="base">{LINK}</link>
<link name="upper"><pose>0 0.1 0.4 0.3 0 0.2</pose>{LINK}</link>
<frame name="tip" attached_to="upper"><pose>0 0 0.5 0.1 0.2 0.3</pose></frame>
<joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
<axis><xyz expressed_in="__model__">0 1 0</xyz><dynamics><damping>0.2</damping>
<spring_stiffness>3</spring_stiffness><spring_reference>0.2</spring_reference></dynamics></axis>
</joint></model></sdf>"""
TABLE = f"""<sdf version="1.9"><model name="table"><static>true</static>
<link name="top">{LINK}</link><link name="leg"><pose>0 0 -0.5 0 0 0</pose>{LINK}</link>
<joint name="j" type="fixed"><parent>top</parent><child>leg</child></joint></model></sdf>"""
LAB = f"""<sdf version="1.9"><world name="lab">
<frame name="corner"><pose>1 2 0 0 0 0.5</pose></frame>
<include><uri>model://table</uri><pose relative_to="corner">0 0 0.7 0 0 0.1</pose></include>
<include><uri>model://arm</uri><name>left</name>
<pose relative_to="table::leg">0 0 0.5 0 0 0</pose></include>
<include><uri>model://arm</uri><name>right</name><placement_frame>tip</placement_frame>
<pose relative_to="corner">0.3 0.1 2 0.4 0 0</pose></include>
<model name="box"><pose relative_to="left::tip">0 0 1 0.2 0.3 0.1</pose>
<link name="b">{LINK}</link>
<model name="lid"><pose>0 0 0.3 0 0.2 0</pose><link name="l">{LINK}</link>
<frame name="grip"><pose>0 0.1 0 0 0 0.7</pose></frame></model>
<joint name="hinge" type="revolute"><pose>0.1 0 0 0 0 0</pose><parent>b</parent>
<child>lid::l</child><axis><xyz>0 1 0</xyz></axis></joint>
<include merge="true"><uri>models/arm/new.sdf</uri>
<pose relative_to="lid::grip">0 0 0.2 0 0 0.3</pose></include>
<joint name="m" type="fixed"><parent>lid::l</parent><child>base</child></joint></model>
<joint name="bolt" type="fixed"><parent>table::top</parent><child>left::base</child></joint>
</world></sdf>"""


@pytest.fixture
def lab(tmp_path):
    """A folder with two models, as Gazebo has them, and a world that includes them."""
    for name, text, file in (("arm", ARM, "new.sdf"), ("table", TABLE, "model.sdf")):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        (folder / file).write_text(text)
    config = '<model><sdf version="1.5">old.sdf</sdf><sdf version="1.10">new.sdf</sdf></model>'
    (tmp_path / "models/arm/old.sdf").write_text("<sdf/>")
    (tmp_path / "models/arm/model.config").write_text(config)
    (tmp_path / "lab.sdf").write_text(LAB)
    return tmp_path


def write(tmp_path, text, head='<sdf version="1.9">', tail="</sdf>"):
    file = tmp_path / "robots.sdf"
    file.write_text(head + text + tail)
    return file


def link(name, pose="", inside=LINK):
    return f'<link name="{name}">{pose and f"<pose>{pose}</pose>"}{inside}</link>'


def joint(name, parent, child, inside="<axis><xyz>0 1 0</xyz></axis>", kind="revolute"):
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{inside}</joint>"
    )


def lost(file, **options):
    report = mb.read(file, **options).report
    return [line.split(": ", 1)[1] for line in [*report.approximated, *report.ignored]]


#: Positions in the world and accelerations (angular, linear) at rest, springs acting, by Drake
#: 1.51.1 of the same files, with the URIs of its packages.
DRAKE = {
    "left::upper": (
        [0.9435357526604965, 2.0825335614909677, 1.0999999999999999],
        [-2.01153839343329, 2.94025751707343, 0.0, -0.0, -0.0, -0.0],
    ),
    "right::base": (
        [1.2631515748537958, 2.330825447816115, 1.1276259561638151],
        [
            0.09647420020016,
            -2.47614574851458,
            -0.06874839001674,
            0.45030310042473,
            0.03985296473691,
            -9.76568953477573,
        ],
    ),
    "right::upper": (
        [1.2330787006976458, 2.4062963827173625, 1.5318533182079004],
        [
            0.34859161058763,
            3.53148860392181,
            0.3189566231107,
            -0.54543425826648,
            0.0029229149661,
            -9.83287335618014,
        ],
    ),
    "box::b": (
        [1.4337154820063842, 1.9108463832020282, 2.49836249697687],
        [
            -0.05868541725494,
            0.6911939101732,
            -0.21274856336902,
            -0.20735763586524,
            0.12398652377828,
            -9.66165113220879,
        ],
    ),
    "box::lid::l": (
        [1.621510757481743, 1.953976549786312, 2.7283031920257153],
        [
            0.39991600305931,
            0.47077157111711,
            -0.54594894724472,
            -0.07896719493941,
            0.07783058601083,
            -9.83562250844106,
        ],
    ),
    "box::upper": (
        [1.8912486322129285, 2.130567874891678, 3.2638991488349474],
        [
            -1.56009673396693,
            -1.79451255436907,
            2.3953786429677,
            0.26958600316547,
            -0.28362591703257,
            -9.89198573460697,
        ],
    ),
}


def test_a_world_of_included_and_nested_models(lab):
    model = mb.load(lab / "lab.sdf", strict=True, packages=lab / "models", gravity=[0, 0, -9.81])
    free = [x.joint for x in model.links if x.kind.name == "free"]
    assert free == ["right::base::root_joint", "box::b::root_joint"]
    q, v = np.array(model.rest), np.zeros(model.nv)
    for name in ("left::shoulder", "right::shoulder", "box::shoulder"):
        q[model.q_slice(name)] = 0.0
    a = mb.aba(model, q, v, mb.passive_torque(model, q, v))
    for name, (position, acceleration) in DRAKE.items():
        X = mb.frame_pose(model, q, name)
        at = mb.frame_acceleration(model, q, v, a, name, axes="aligned")
        assert np.allclose(X.t, position, rtol=0, atol=1e-14)
        assert np.allclose([*at[3:], *at[:3]], acceleration, rtol=0, atol=1e-12)


def test_what_stands_for_files_that_are_not_there(lab, monkeypatch):
    text = LAB.replace("model://arm", "model://nobody").replace("model://table", "https://x.org/t")
    text = text.replace(' relative_to="table::leg"', "").replace(' relative_to="left::tip"', "")
    text = text[: text.index('<joint name="bolt"')] + "</world></sdf>"
    file = lab / "lab.sdf"
    file.write_text(text)
    missing = [line for line in lost(file) if line.startswith("<include>")]
    assert [line.split("'")[1] for line in missing] == ["https://x.org/t"] + 2 * ["model://nobody"]
    assert mb.load(file).joint_names[0] == "root_joint"
    (lab / "models/nobody").symlink_to(lab / "models/arm")
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(lab / "models"))
    assert len(lost(file)) == 1


def test_files_that_include_themselves_are_refused(tmp_path):
    text = '<model name="a"><link name="l"/><include><uri>robots.sdf</uri></include></model>'
    with pytest.raises(ValueError, match="more than 20 files include each other"):
        mb.load(write(tmp_path, text))
    twice = "<include><uri>robots.sdf</uri><name>{}</name></include>"
    text = f'<model name="a"><link name="l"/>{twice.format("b")}{twice.format("c")}</model>'
    with pytest.raises(ValueError, match=r"more than 20 files|elements are included"):
        mb.load(write(tmp_path, text))
    text = f'<model name="a">{link("l")}</model><model name="b">{link("l")}</model>'
    (tmp_path / "two.sdf").write_text(f"<sdf>{text}</sdf>")
    include = "<include><uri>two.sdf</uri></include>"
    with pytest.raises(ValueError, match=r"'two\.sdf' has 2 models; an <include> takes one"):
        mb.load(write(tmp_path, include))


def test_several_models_and_roots(tmp_path):
    """All float, from where the file has them; a static one stands."""
    ball = link("l", "0 0 0.5 0 0 0")
    models = f"""<model name="a"><pose>1 0 0 0 0 0</pose>{ball}</model>
    <model name="b"><pose>2 0 0 0 0 0.4</pose>{ball}{link("m")}</model>
    <model name="b">{ball}</model>
    <model name="c"><static>1</static><pose>3 0 0 0 0 0</pose>{ball}</model>"""
    file = write(tmp_path, models)
    model = mb.load(file)
    assert model.nq == 4 * 7 and model.name == "world"
    places = {"a::l": [1, 0, 0.5], "b::l": [2, 0, 0.5], "b::m": [2, 0, 0], "c::l": [3, 0, 0.5]}
    for name, place in {**places, "b_0::l": [0, 0, 0.5]}.items():
        assert np.allclose(mb.frame_pose(model, model.rest, name).t, place, atol=1e-15)
    assert lost(file) == ["a second model 'b' is 'b_0' here"]
    a = mb.aba(model, model.rest, np.zeros(24), np.zeros(24))
    for name in ("a::l", "b::m"):
        fall = mb.frame_acceleration(model, model.rest, np.zeros(24), a, name, axes="aligned")
        assert np.allclose(fall, [0, 0, -9.81, 0, 0, 0], atol=1e-12)
    with pytest.raises(ValueError, match="no joint that moves"):
        mb.load(file, base="fixed")
    two = mb.load(write(tmp_path, f'<model name="r">{link("a")}{link("b")}</model>'))
    assert two.joint_names == ("a::root_joint", "b::root_joint")
    both = mb.Builder("hall")
    both.merge(mb.read(write(tmp_path, models)), position=[0, 5, 0])
    assert both.frames == {} and both.joints["world_a::l"].at.p.tolist() == [1, 5, 0.5]


def test_weights_and_shapes(tmp_path):
    shapes = """<link name="l"><gravity>false</gravity><collision name="p"><geometry>
    <plane><normal>0 1 0</normal><size>4 5</size></plane></geometry></collision>
    <visual name="v"><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></visual>
    <visual name="e"><geometry><empty/></geometry></visual></link>"""
    model = mb.load(write(tmp_path, f'<model name="r">{shapes}</model>'), strict=True)
    v = np.zeros(6)
    lift = mb.passive_torque(model, model.rest, v)
    assert np.allclose(mb.aba(model, model.rest, v, lift), 0.0, atol=1e-12)
    plane, ball = model.geometry
    assert (plane.size, ball.size) == ((4.0, 5.0), (1.0, 2.0, 3.0))
    R = np.array(plane.rotation)
    assert np.allclose(R[:, 2], [0, 1, 0]) and np.allclose(R.T @ R, np.eye(3))
    assert np.isclose(np.linalg.det(R), 1.0)


# ---- loops -----------------------------------------------------------------------------------

#: A four-bar linkage in the plane y = 0: cranks of 1 m and 1.5 m on a ground of 2 m.
CRANK, COUPLER, ROCKER, GROUND = 1.0, 2.2, 1.5, 2.0


def four_bar(order, theta=1.1, more=""):
    """Return the linkage at an angle of the crank, its joints in an order."""
    A = np.array([CRANK * np.cos(theta), CRANK * np.sin(theta)])
    B = pin(theta)
    turn = {"crank": theta, "coupler": np.arctan2(*(B - A)[::-1])}
    turn["rocker"] = np.arctan2(B[1], B[0] - GROUND)
    at = {"crank": [0, 0], "coupler": A, "rocker": [GROUND, 0]}

    def body(name, length):
        inertia = "<ixx>0.1</ixx><iyy>0.3</iyy><izz>0.3</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz>"
        own = f"<pose>{length / 2} 0 0 0 0 0</pose><mass>2</mass><inertia>{inertia}</inertia>"
        x, z = at[name]
        pose = f"{x!r} 0 {z!r} 0 {-turn[name]!r} 0".replace("np.float64(", "").replace(")", "")
        return link(name, pose, f"<inertial>{own}</inertial>")

    joints = {
        "a": joint("a", "world", "crank", f"<axis><xyz>0 -1 0</xyz>{more}</axis>"),
        "b": joint("b", "crank", "coupler"),
        "c": joint("c", "world", "rocker"),
        "d": joint("d", "coupler", "rocker", f"<pose>{ROCKER} 0 0 0 0 0</pose>"
                   "<axis><xyz>0 1 0</xyz></axis>"),
        "e": joint("d", "rocker", "coupler", f"<pose>{COUPLER} 0 0 0 0 0</pose>"
                   "<axis><xyz>0 1 0</xyz></axis>"),
    }  # fmt: skip
    bodies = body("crank", CRANK) + body("coupler", COUPLER) + body("rocker", ROCKER)
    return f'<model name="four">{bodies}{"".join(joints[k] for k in order)}</model>'


def pin(theta):
    """Return where coupler and rocker meet: two circles."""
    A = np.array([CRANK * np.cos(theta), CRANK * np.sin(theta)])
    way = np.array([GROUND, 0.0]) - A
    far = np.sqrt(way @ way)
    along = (COUPLER**2 - ROCKER**2 + far**2) / (2 * far)
    up = np.array([-way[1], way[0]]) / far
    return A + along * way / far + np.sqrt(COUPLER**2 - along**2) * up


def crank_acceleration(theta):
    """Return that of the crank at rest, ``-V' / M``, by differences over the geometry."""

    def heights_and_angles(t):
        A, B = np.array([CRANK * np.cos(t), CRANK * np.sin(t)]), pin(t)
        centres = [A / 2, (A + B) / 2, (B + np.array([GROUND, 0.0])) / 2]
        angles = [t, np.arctan2(*(B - A)[::-1]), np.arctan2(B[1], B[0] - GROUND)]
        return np.array(centres), np.array(angles)

    h = 1e-5
    (c1, w1), (c0, w0) = heights_and_angles(theta + h), heights_and_angles(theta - h)
    dc, dw = (c1 - c0) / (2 * h), (w1 - w0) / (2 * h)
    return -2 * 9.81 * dc[:, 1].sum() / (2 * (dc**2).sum() + 0.3 * (dw**2).sum())


@pytest.mark.parametrize("order", ["abcd", "abdc", "dcba", "abce"])
def test_a_four_bar_linkage_moves_as_its_geometry_says(order, tmp_path):
    model = mb.load(write(tmp_path, four_bar(order)), strict=True)
    q, v = np.zeros(3), np.zeros(3)
    assert model.nq == 3 and [c.kind for c in model.closures] == ["revolute"]
    assert np.abs(mb.constraint_error(model, model.closures, q)).max() < 1e-14
    a, _ = mb.constrained_acceleration(model, model.closures, q, v, np.zeros(3))
    angular = mb.frame_acceleration(model, q, v, a, "crank", axes="aligned")[4]
    assert np.isclose(-angular, crank_acceleration(1.1), rtol=1e-8)


def test_a_loop_falls_without_loss_of_energy(tmp_path):
    model = mb.load(write(tmp_path, four_bar("abcd")), strict=True)

    def rates(t, x):
        return mb.constrained_dynamics(model, model.closures, t, x, np.zeros(3))

    x0 = mb.State(np.zeros(3), np.zeros(3))
    end = arc.solve_ode(rates, (0.0, 0.5), x0, rtol=1e-10, atol=1e-10).final
    energies = [
        mb.kinetic_energy(model, x.q, x.v) + mb.potential_energy(model, x.q) for x in (x0, end)
    ]
    assert np.abs(end.v).max() > 1.0 and np.isclose(*energies, rtol=0, atol=1e-7)
    assert np.abs(mb.constraint_error(model, model.closures, end.q)).max() < 1e-8
    B = mb.frame_pose(model, end.q, "d:child").t
    theta = 1.1 + end.q[model.q_slice("a")][0]
    assert np.allclose(B[[0, 2]], pin(theta), atol=1e-7)


def test_which_joint_of_a_loop_is_cut(tmp_path):
    """Joints whose coordinate acts are in the tree; what cannot act in a closure is reported."""
    spring = "<dynamics><spring_stiffness>3</spring_stiffness></dynamics>"
    axis = f"<axis><xyz>0 1 0</xyz>{spring}</axis>"
    text = four_bar("abc").replace("</model>", "") + joint("d", "coupler", "rocker", axis)
    model = mb.load(write(tmp_path, text + "</model>"), strict=True)
    assert model.joint_names == ("a", "b", "d") and model.closures[0].first == "c:parent"
    for name, ends in (("b", ("crank", "coupler")), ("c", ("world", "rocker"))):
        text = text.replace(joint(name, *ends), joint(name, *ends, axis))
    text = text.replace("<axis><xyz>0 -1 0</xyz>", "<axis><xyz>0 -1 0</xyz>" + spring)
    (line,) = lost(write(tmp_path, text + "</model>"))
    assert line == "limits, dynamics and <mimic> of joint 'd', which closes a loop"


def test_a_joint_taken_the_other_way_round(tmp_path):
    """The child is carried already, the parent by nothing: no loop, and the same motion."""
    limit = "<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis>"
    pose = "<pose>0.3 0 0 0 0 0</pose>"
    for kind in ("revolute", "prismatic"):
        bodies = link("a") + link("b", "0.5 0 0 0 0 0")
        text = joint("j", "world", "a") + joint("k", "b", "a", pose + limit, kind)
        text = f'<model name="r">{bodies}{text}</model>'
        model = mb.load(write(tmp_path, text), strict=True)
        plain = text.replace(
            "<parent>b</parent><child>a</child>", "<parent>a</parent><child>b</child>"
        )
        plain = plain.replace("0.3 0 0", "-0.2 0 0")
        other = mb.load(write(tmp_path, plain))
        assert model.closures == () and np.array_equal(model.upper, other.upper)
        # The coordinate is that of the child in the parent: opposite in the world.
        ours, theirs = (mb.frame_pose(m, np.array([0.4, s * 0.7]), "b").as_matrix()
                        for m, s in ((model, 1.0), (other, -1.0)))  # fmt: skip
        assert np.allclose(ours, theirs, atol=1e-15)


def test_a_gearbox_holds_the_angles_of_two_hinges(tmp_path):
    """theta_2 = -ratio theta_1: a torque at the first moves J_1 + ratio^2 J_2."""
    gear = (
        "<gearbox_ratio>0.25</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
    )
    x, z = "<axis><xyz>0 1 0</xyz></axis>", "<axis><xyz>0 -1 0</xyz></axis>"
    still = "<inertial><mass>1</mass></inertial>"
    bodies = link("base") + link("one", inside=still) + link("two", inside=still)
    text = joint("w", "world", "base", kind="fixed") + joint("p", "base", "one", x)
    text += joint("s", "base", "two", z)
    text += joint("g", "one", "two", gear + x + x.replace("axis", "axis2"), "gearbox")
    model = mb.load(write(tmp_path, f'<model name="r">{bodies}{text}</model>'), strict=True)
    v = np.zeros(2)
    a, _ = mb.constrained_acceleration(model, model.closures, v, v, np.array([2.0, 0.0]))
    assert np.allclose(a, 2.0 / (1 + 0.25**2) * np.array([1.0, 0.25]), rtol=1e-12)
    apart = text.replace("<axis2><xyz>0 1 0", "<axis2><xyz>1 0 0")
    (line,) = lost(write(tmp_path, f'<model name="r">{bodies}{apart}</model>'))
    assert line == "joint 'g': no hinge between 'base' and 'two'"


def test_a_follower_of_a_joint_in_another_model(tmp_path):
    inner = f'<model name="in">{link("a")}{link("b")}{joint("j", "a", "b")}</model>'
    mimic = '<axis><xyz>0 1 0</xyz><mimic joint="in::j"><multiplier>2</multiplier></mimic></axis>'
    text = inner + link("c") + joint("k", "in::b", "c", mimic)
    model = mb.load(write(tmp_path, f'<model name="r">{text}</model>'), base="fixed", strict=True)
    assert model.joint_names == ("in::j",) and model.links[1].scale == 2.0


def test_loops_and_roots_are_saved_as_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    text = four_bar("abcd").replace('"d" type="revolute"', '"d" type="ball"')
    model = mb.load(write(tmp_path, text))
    report = mb.save(model, tmp_path / "four.xml")
    again = mb.load(tmp_path / "four.xml")
    # In a file of MuJoCo a closure has the mobility that MuJoCo finds.
    (closure,) = again.closures
    softness = dataclasses.replace(closure.softness, mobility=None)
    assert (dataclasses.replace(closure, softness=softness),) == tuple(model.closures)
    assert np.array_equal(again.inertias, model.inertias) and report.ignored == []
    with pytest.raises(ValueError, match=r"(?s)URDF has no place for.*1 closure"):
        mb.save(model, tmp_path / "four.urdf")


def test_cassie_with_its_loops_and_gearboxes():
    """The loops of five files of the robot close; one has gearboxes at ten motors."""
    pinocchio = pytest.importorskip("pinocchio")
    prefix = pathlib.Path(pinocchio.__file__).parents[4]
    folder = prefix / "share/example-robot-data/robots/cassie_description/robots"
    if not folder.is_dir():
        pytest.skip("the robots of example-robot-data are not installed")
    for name, count in (("cassie", 16), ("cassie_v2", 4), ("cassie_simple", 4),
                        ("cassie_reduced", 4), ("cassie_wo_gearbox_spring", 4)):  # fmt: skip
        model = mb.load(folder / f"{name}.sdf", physical=False)
        assert len(model.closures) == count
        error = mb.constraint_error(model, model.closures, mb.neutral(model))
        assert np.abs(error).max() < 1e-15
