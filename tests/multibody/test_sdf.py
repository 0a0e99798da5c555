"""SDF files: the same robot as from URDF, poses relative to others, and what is refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from archimedes import multibody as mb

#: Models of these files are joined to nothing: they would float.
load_fixed = functools.partial(mb.load, base="fixed")

LINK = """<inertial><pose>0 0 0.1 0 0 0.3</pose><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy>
<izz>0.25</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"""
AXIS = """<axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper><effort>4</effort>
<velocity>-1</velocity></limit><dynamics><damping>0.5</damping><friction>0.25</friction></dynamics>
</axis>"""


@pytest.fixture
def write(tmp_path):
    def write(inside, head='<sdf version="1.9"><model name="r">', tail="</model></sdf>"):
        file = tmp_path / "robot.sdf"
        file.write_text(head + inside + tail)
        return file

    return write


def link(name, pose="", inside=LINK):
    return f'<link name="{name}">{pose and f"<pose>{pose}</pose>"}{inside}</link>'


def joint(name, parent, child, inside=AXIS, kind="revolute"):
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{inside}</joint>"
    )


def test_the_same_robot_as_urdf(write, tmp_path):
    """Links with poses in the model, a joint away from its child's origin: the same dynamics."""
    text = (
        link("a")
        + link("b", "0.1 0.2 0.5 0 0 0.4")
        + link("c", "0.1 0.2 1.0 0.3 0 0.4")
        + joint("j", "a", "b")
        + joint("k", "b", "c", "<pose>0 0.1 -0.2 0 0 0</pose>" + AXIS)
    )
    model = load_fixed(write(text), strict=True)
    inertial = (
        '<inertial><origin xyz="0 0 0.1" rpy="0 0 0.3"/><mass value="2"/>'
        '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial>'
    )
    # In URDF the child's origin is at the joint: another body carries c from there.
    urdf = tmp_path / "robot.urdf"
    limits = (
        '<limit lower="-1" upper="2" effort="4" velocity="9"/>'
        '<dynamics damping="0.5" friction="0.25"/>'
    )
    c, s = np.cos(0.3), np.sin(0.3)
    turned = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    offset = np.array([0, 0, 0.5]) + turned @ np.array([0, 0.1, -0.2])
    urdf.write_text(
        '<robot name="r">'
        + "".join(f'<link name="{n}">{inertial}</link>' for n in "abc")
        + '<link name="at_joint"/>'
        + '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
        + f'<origin xyz="0.1 0.2 0.5" rpy="0 0 0.4"/><axis xyz="0 1 0"/>{limits}</joint>'
        + '<joint name="k" type="revolute"><parent link="b"/><child link="at_joint"/>'
        + f'<origin xyz="{offset[0]} {offset[1]!r} {offset[2]!r}" rpy="0.3 0 0"/>'.replace(
            "np.float64(", ""
        ).replace(")", "")
        + f'<axis xyz="0 1 0"/>{limits}</joint>'
        + '<joint name="fix" type="fixed"><parent link="at_joint"/><child link="c"/>'
        + '<origin xyz="0 -0.1 0.2"/></joint></robot>'
    )
    peer = load_fixed(urdf)
    assert model.joint_names == peer.joint_names == ("j", "k")
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, 2))
        ours, theirs = (mb.rnea(x, q, v, a, passive=True) for x in (model, peer))
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        poses = [mb.frame_pose(x, q, "c").as_matrix() for x in (model, peer)]
        np.testing.assert_allclose(*poses, atol=1e-14)
    assert model.effort_limits[0] == 4 and np.isinf(model.speed_limits[0])


def test_relative_poses_shapes_and_frames(write):
    text = (
        link("a")
        + '<link name="b"><pose relative_to="a">0 0 1 0 0 90</pose>'.replace(
            "0 0 90", "0 0 1.5707963267948966"
        )
        + LINK
        + '<visual name="v"><pose>1 0 0 0 0 0</pose>'
        + "<geometry><box><size>1 2 3</size></box></geometry></visual>"
        + '<collision name="c"><geometry><sphere><radius>0.2</radius></sphere></geometry>'
        + "</collision></link>"
        + joint("j", "world", "a", kind="prismatic")
        + joint("k", "a", "b", '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis>')
        + '<frame name="tool" attached_to="b"><pose relative_to="b">0 0 0.3 0 0 0</pose></frame>'
        + "<plugin/>"
    )
    builder = mb.read(write(text))
    model = builder.build()
    np.testing.assert_allclose(model.links[1].screw.axis, [0, -1, 0], atol=1e-12)
    np.testing.assert_allclose(mb.frame_pose(model, np.zeros(2), "tool").t, [0, 0, 1.3])
    box, ball = model.geometry
    assert (box.kind, box.size, box.role, ball.size) == ("box", (1, 2, 3), "visual", (0.2,))
    assert builder.report.used == {
        "link": 2, "inertial": 2, "joint": 2, "visual": 1, "collision": 1, "frame": 1,
    }  # fmt: skip
    assert builder.report.ignored[0].endswith("<plugin> of the model")
    with pytest.raises(ValueError, match="strict=True: 1 elements"):
        load_fixed(write(text), strict=True)


def test_every_type_of_joint(write):
    more = {"universal": AXIS + "<axis2><xyz>1 0 0</xyz></axis2>", "ball": ""}
    more["screw"] = AXIS + "<screw_thread_pitch>0.01</screw_thread_pitch>"
    for kind, ours in (("continuous", "continuous"), ("ball", "spherical"), ("screw", "helical")):
        text = link("a") + link("b") + joint("j", "a", "b", more.get(kind, AXIS), kind)
        assert load_fixed(write(text)).links[0].kind.name == ours
    text = link("a") + link("b") + joint("j", "a", "b", more["universal"], "universal")
    assert load_fixed(write(text)).nv == 2


REFUSED = {
    "no model": ("", "<sdf> has 0 models|<model>"),
    "a cycle of poses": (
        '<link name="a"><pose relative_to="b"/></link><link name="b"><pose relative_to="a"/></link>'
        + joint("j", "a", "b"),
        "relative to each other",
    ),
    "nobody": (link("a") + joint("j", "a", "b"), "there is no link, joint or frame 'b'"),
    "unknown joint": (
        link("a") + link("b") + joint("j", "a", "b", kind="spring"),
        "'spring' is not one of",
    ),
    "no number": (link("a", "0 0 zero 0 0 0"), "pose is 'zero', which is not a finite number"),
    "five numbers": (link("a", "0 0 0 0 0"), "must be six numbers"),
    "limits": (
        link("a") + link("b") + joint("j", "a", "b", AXIS.replace("-1<", "3<", 1)),
        "the lower limit is above the upper limit",
    ),
    "negative mass": (
        link("a") + link("b", inside=LINK.replace(">2<", ">-2<")) + joint("j", "a", "b"),
        "mass must be finite and not negative",
    ),
    "a gearbox on nothing": (
        link("a") + link("b") + joint("j", "a", "b", kind="gearbox"),
        "<joint> has no <gearbox_reference_body>",
    ),
    "a plane without a normal": (
        '<link name="a"><collision name="c"><geometry><plane><normal>0 0 0</normal>'
        "<size>1 1</size></plane></geometry></collision></link>",
        "the <normal> of a plane is zero",
    ),
    "a screw elsewhere": (
        link("a")
        + link("b")
        + joint(
            "j",
            "a",
            "b",
            "<pose>1 0 0 0 0 0</pose><screw_thread_pitch>1</screw_thread_pitch>",
            "screw",
        ),
        "the origin of the child must be at a screw joint",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(write, case):
    text, message = REFUSED[case]
    file = write(text) if text else write("", head='<sdf version="1.9">', tail="</sdf>")
    with pytest.raises(ValueError, match=message):
        load_fixed(file)


def test_not_sdf(write):
    with pytest.raises(ValueError, match="an SDF file is an <sdf>, this is a <robot>"):
        load_fixed(write("", head="<robot>", tail="</robot>"))
