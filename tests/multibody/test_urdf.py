"""URDF files: what is read, what is reported, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb

BODY = (
    '<inertial><origin xyz="0 0 0.1" rpy="0 0 0.3"/><mass value="2"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial>'
)


def link(name, inside=BODY):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, inside="", kind="continuous"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>"
    )


@pytest.fixture
def write(tmp_path):
    def write(*parts, head='<robot name="r">', tail="</robot>"):
        file = tmp_path / "robot.urdf"
        file.write_text(head + "\n".join(parts) + tail)
        return file

    return write


def test_all_that_a_joint_has(write):
    inside = (
        '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><axis xyz="0 2 0"/>'
        '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
        '<dynamics damping="0.5" friction="0.25"/>'
    )
    model = mb.load(write(link("a"), link("b"), joint("j", "a", "b", inside, "revolute")))
    assert model.links[0].screw.axis == (0.0, 1.0, 0.0)
    np.testing.assert_array_equal(model.positions, [[1, 2, 3]])
    np.testing.assert_array_equal(model.rotations[0], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert [model.lower[0], model.upper[0]] == [-1, 2]
    assert [model.speed_limits[0], model.effort_limits[0]] == [3, 4]
    assert [model.damping[0], model.friction[0]] == [0.5, 0.25]
    assert model.masses[0] == 2
    c, s = np.cos(0.3), np.sin(0.3)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    np.testing.assert_allclose(model.inertias[0], R @ np.diag([0.1, 0.2, 0.25]) @ R.T, atol=1e-16)
    assert tuple(model.gravity) == (0, 0, -9.81)


def test_every_type_of_joint(write):
    kinds = {
        "revolute": "revolute",
        "continuous": "continuous",
        "prismatic": "prismatic",
        "planar": "planar",
        "floating": "free",
    }
    for name, kind in kinds.items():
        model = mb.load(write(link("a"), link("b"), joint("j", "a", "b", kind=name)))
        assert model.links[0].kind.name == kind
    model = mb.load(
        write(
            link("a"),
            link("b"),
            link("c"),
            joint("j", "a", "b"),
            joint("k", "b", "c", kind="fixed"),
        )
    )
    assert model.joint_names == ("j",)
    assert model.frame_names == ("a", "b", "c")
    assert model.masses[0] == 4


def test_order_is_that_of_other_tools(write):
    """Depth first, joints of a link by name."""
    model = mb.load(
        write(
            *(link(k) for k in "abcde"), joint("z", "a", "b"), joint("m", "a", "c"),
            joint("a1", "b", "d"), joint("b1", "c", "e"),
        )
    )  # fmt: skip
    assert model.joint_names == ("m", "b1", "z", "a1")


def test_a_link_named_world(write):
    file = write('<link name="world"/>', link("b"), joint("j", "world", "b"))
    assert mb.load(file).frame_names == ("world", "b")
    assert mb.load(file, base="floating").nv == 7


def test_report_and_strict(write):
    file = write(
        link("a"),
        link("b", BODY + '<visual><geometry><sphere radius="0.1"/></geometry></visual>'),
        joint("j", "a", "b", '<safety_controller k_velocity="1"/>'),
        "<sensor/>",
        '<transmission name="t"/>',
    )
    report = mb.read(file).report
    assert report.used == {"link": 2, "inertial": 2, "joint": 1, "visual": 1}
    assert [entry.split(": ", 1)[1] for entry in report.ignored] == [
        "<safety_controller> of joint 'j'",
        "<sensor> is not part of a robot",
        "transmission 't': no type with joints and actuators: 0 and 0",
    ]
    assert mb.load(file).nv == 1
    with pytest.raises(ValueError, match="strict=True: 3 elements are not in the model"):
        mb.load(file, strict=True)


def test_geometry(write, tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.stl").write_text("solid")
    parts = [
        '<visual><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry></visual>',
        '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>',
        '<visual><geometry><mesh filename="meshes/a.stl" scale="2 2 2"/></geometry></visual>',
        '<visual><geometry><mesh filename="package://robot/b.stl"/></geometry></visual>',
    ]
    builder = mb.read(write(link("a", BODY + "".join(parts)), link("b"), joint("j", "a", "b")))
    box, cylinder, mesh, lost = builder.geometry
    assert (box.kind, box.size, tuple(box.position)) == ("box", (1, 2, 3), (1, 0, 0))
    assert (cylinder.role, cylinder.size) == ("collision", (1, 2))
    assert mesh.file == str(tmp_path / "meshes" / "a.stl") and mesh.size == (2, 2, 2)
    assert lost.file == "package://robot/b.stl"
    assert "mesh 'package://robot/b.stl' was not found" in builder.report.ignored[0]


def test_mimic_of_a_joint_that_is_not_there(write):
    file = write(link("a"), link("b"), joint("j", "a", "b", '<mimic joint="nobody"/>'))
    assert "joint 'j' mimics 'nobody', which is not there" in mb.read(file).report.approximated[0]
    assert mb.load(file).nv == 1


REFUSED = {
    "entities": (
        '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot name="&b;">',
        [link("a")],
        "DOCTYPE has declarations of its own",
    ),
    "no robot": ("<mujoco>", [], "a URDF file is a <robot>, this is a <mujoco>"),
    "no links": ('<robot name="r">', [], "the robot has no links"),
    "two roots": (
        '<robot name="r">',
        [link("a"), link("b"), link("c"), joint("j", "a", "b")],
        r"2 links are the child of no joint: \['a', 'c'\]",
    ),
    "a cycle": (
        '<robot name="r">',
        [link("a"), link("b"), link("c"), joint("i", "a", "b"), joint("j", "b", "a")],
        "'a' already carries 'b'|'b' already carries 'a'",
    ),
    "two parents": (
        '<robot name="r">',
        [link("a"), link("b"), link("c"), joint("i", "a", "c"), joint("j", "b", "c")],
        "'c' is attached already by joint 'i'",
    ),
    "two links": ('<robot name="r">', [link("a"), link("a")], "'a' already exists"),
    "two joints": (
        '<robot name="r">',
        [link("a"), link("b"), joint("i", "a", "b"), joint("i", "a", "b")],
        "a second joint 'i'",
    ),
    "no such link": ('<robot name="r">', [link("a"), joint("i", "a", "b")], "'b' is not a body"),
    "negative mass": (
        '<robot name="r">',
        [link("a"), link("b", BODY.replace('"2"', '"-2"')), joint("i", "a", "b")],
        r"robot.urdf:2: body 'b': mass must be finite and not negative",
    ),
    "a mass that is no number": (
        '<robot name="r">',
        [link("a", BODY.replace('"2"', '"two"'))],
        "mass is 'two', which is not a finite number",
    ),
    "negative inertia": (
        '<robot name="r">',
        [link("a"), link("b", BODY.replace('"0.1"', '"-0.1"')), joint("i", "a", "b")],
        "inertia has negative moments",
    ),
    "no body's inertia": (
        '<robot name="r">',
        [link("a"), link("b", BODY.replace('"0.25"', '"2.5"')), joint("i", "a", "b")],
        "has an inertia that no body has",
    ),
    "unknown joint": (
        '<robot name="r">',
        [link("a"), link("b"), joint("i", "a", "b", kind="hinge")],
        "type 'hinge' is not one of",
    ),
    "limits upside down": (
        '<robot name="r">',
        [link("a"), link("b"), joint("i", "a", "b", '<limit lower="1" upper="0"/>', "revolute")],
        "the lower limit is above the upper limit",
    ),
    "an indefinite inertia": (
        '<robot name="r">',
        [link("a"), link("b", BODY.replace('ixy="0"', 'ixy="0.16"')), joint("i", "a", "b")],
        "its least principal moment is negative, -0.0176",
    ),
    "a negative effort": (
        '<robot name="r">',
        [link("a"), link("b"), joint("i", "a", "b", '<limit effort="-1"/>')],
        r"robot.urdf:3: joint 'i': effort_limit must not be negative",
    ),
    "a shape of two numbers": (
        '<robot name="r">',
        [
            link("a"),
            link("b", '<visual><geometry><box size="1 2"/></geometry></visual>'),
            joint("i", "a", "b"),
        ],
        r"robot.urdf:2: shape of 'b': size of a box must have shape \(3,\), got \(2,\)",
    ),
    "a negative sphere": (
        '<robot name="r">',
        [
            link("a"),
            link("b", '<collision><geometry><sphere radius="-1"/></geometry></collision>'),
            joint("i", "a", "b"),
        ],
        r"robot.urdf:2: shape of 'b': sizes must be finite and not negative",
    ),
    "macros": (
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">',
        ['<xacro:property name="m" value="2"/>', link("a"), link("b"), joint("i", "a", "b")],
        r"robot.urdf:1: macros of xacro are not expanded here: run xacro",
    ),
    "mimics of each other": (
        '<robot name="r">',
        [
            link("a"),
            link("b"),
            link("c"),
            joint("i", "a", "b", '<mimic joint="j"/>'),
            joint("j", "b", "c", '<mimic joint="i"/>'),
        ],
        "joint 'i' follows 'j', and that follows it in turn",
    ),
    "one link alone": (
        '<robot name="r">',
        [link("a")],
        "'r' has no joint that moves: .*base=\"floating\"",
    ),
    "zero axis": (
        '<robot name="r">',
        [link("a"), link("b"), joint("i", "a", "b", '<axis xyz="0 0 0"/>')],
        "the axis is zero",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(write, case):
    head, parts, message = REFUSED[case]
    tail = "</mujoco>" if head == "<mujoco>" else "</robot>"
    with pytest.raises(ValueError, match=message):
        mb.load(write(*parts, head=head, tail=tail))


SLIPS = {
    "degrees": (
        joint("i", "a", "b", '<limit lower="-90" upper="90"/>', "revolute"),
        BODY,
        "limits of -90 to 90 rad look like degrees",
    ),
    "millimetres": (
        joint("i", "a", "b", '<origin xyz="350 0 0"/>'),
        BODY,
        "joint 'i' is 350 m away from what carries it, which looks like mm",
    ),
    "short links in millimetres": (
        joint("i", "a", "b", '<origin xyz="30 0 0"/>'),
        BODY,
        "joint 'i' is 30 m away from what carries it, which looks like mm",
    ),
    "shapes in millimetres": (
        joint("i", "a", "b"),
        BODY + '<visual><geometry><box size="100 200 300"/></geometry></visual>',
        "a box of 'b' is 300 m large, which looks like mm",
    ),
    "kg mm^2": (
        joint("i", "a", "b", '<origin xyz="0.35 0 0"/>'),
        BODY.replace('"0.1"', '"1e5"').replace('"0.2"', '"2e5"').replace('"0.25"', '"2.5e5"'),
        "'b' of 2 kg has the inertia of a body that is 354 m wide.*looks like kg mm",
    ),
}


@pytest.mark.parametrize("case", SLIPS)
def test_slips_of_units_are_reported(write, case):
    text, body, message = SLIPS[case]
    file = write(link("a"), link("b", body), text)
    assert mb.load(file).nv == 1
    with pytest.raises(ValueError, match=message):
        mb.load(file, strict=True)


def test_missing_meshes_are_reported(write):
    shape = '<collision><geometry><mesh filename="package://lost/a.stl"/></geometry></collision>'
    file = write(link("a"), link("b", BODY + shape), joint("j", "a", "b"))
    assert mb.load(file).geometry[0].file == "package://lost/a.stl"
    with pytest.raises(ValueError, match=r"mesh 'package://lost/a\.stl' was not found; packages="):
        mb.load(file, strict=True)


def test_meshes_in_packages(write, tmp_path):
    place = tmp_path / "elsewhere" / "meshes"
    place.mkdir(parents=True)
    (place / "a.stl").write_text("solid")
    shape = '<visual><geometry><mesh filename="package://robot/meshes/a.stl"/></geometry></visual>'
    file = write(link("a"), link("b", BODY + shape), joint("j", "a", "b"))
    for packages in ({"robot": tmp_path / "elsewhere"},):
        found = mb.load(file, packages=packages, strict=True).geometry[0].file
        assert found == str(place / "a.stl")
    (tmp_path / "elsewhere").rename(tmp_path / "robot")
    assert mb.load(file, packages=tmp_path, strict=True).geometry[0].file is not None
    assert mb.load(file, strict=True).geometry[0].file is not None  # found beside the file


def test_hostile_files(tmp_path):
    """Nothing is fetched or expanded, and sizes have limits."""
    file = tmp_path / "robot.urdf"
    texts = {
        "declarations of its own": '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot>&x;</robot>',
        "inside each other": "<robot>" + "<link>" * 200 + "</link>" * 200 + "</robot>",
        "not well-formed": "<robot>" + "\x00" + "</robot>",
        "XInclude|is no part|has no links": (
            '<robot xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="a"/></robot>'
        ),
    }
    for message, text in texts.items():
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            mb.load(file)
    with pytest.raises(OSError):
        mb.load(tmp_path / "nothing.urdf")


def test_damaged_and_unknown_files(tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text('<robot name="r"><link')
    with pytest.raises(ValueError, match="not well-formed XML"):
        mb.load(file)
    with pytest.raises(ValueError, match=r"robots are read from files \.urdf"):
        mb.load(tmp_path / "robot.stl")
    with pytest.raises(FileNotFoundError):
        mb.load(tmp_path / "nothing.urdf")


def test_degrees_are_suspicious(write):
    file = write(
        link("a"), link("b"), joint("i", "a", "b", '<limit lower="-180" upper="180"/>', "revolute")
    )
    assert "look like degrees" in mb.read(file).report.approximated[0]
