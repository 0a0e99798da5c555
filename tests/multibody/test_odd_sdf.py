"""Odd SDF files: old and young versions, worlds, frames in joints, and the report."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from archimedes import multibody as mb

#: Models of these files are joined to nothing: they would float.
load_fixed = functools.partial(mb.load, base="fixed")

TURNED = '<link name="a"/><link name="b"><pose>1 0 0 0 0 1.5707963267948966</pose></link>'


def joint(inside="", of="<parent>a</parent><child>b</child>", kind="revolute", more=""):
    axis = f"<axis><xyz>1 0 0</xyz>{inside}</axis>"
    return f'<joint name="j" type="{kind}">{of}{axis}{more}</joint>'


@pytest.fixture
def write(tmp_path):
    def write(model, around="{}", version="1.9", attributes=""):
        file = tmp_path / "odd.sdf"
        inner = around.format(f'<model name="odd" {attributes}>{model}</model>')
        file.write_text(f'<sdf version="{version}">{inner}</sdf>')
        return file

    return write


def lost(file):
    report = mb.read(file).report
    return [line.split(": ", 1)[1] for line in [*report.approximated, *report.ignored]]


def test_a_world_around_the_model(write):
    around = (
        '<world name="w"><gravity>0 0 -1.62</gravity><light name="l"/>{}</world><model name="x"/>'
    )
    file = write(TURNED + joint(), around)
    assert np.array_equal(load_fixed(file).gravity, [0, 0, -1.62])
    assert lost(file) == ["<model> beside the model", "<light> beside the model"]
    with pytest.raises(ValueError, match=r"odd\.sdf:1: <gravity> must be three numbers"):
        load_fixed(write("", "<world><gravity>-9.81</gravity>{}</world>"))


def test_the_pose_of_the_model_counts_where_it_is_held(write):
    held = '<joint name="k" type="prismatic"><parent>world</parent><child>a</child></joint>'
    model = load_fixed(write("<pose>0 0 5 0 0 0</pose>" + TURNED + held + joint()), strict=True)
    assert np.array_equal(mb.frame_pose(model, np.zeros(2), "b").t, [1, 0, 5])
    moved = "<pose>0 0 5 0 0 0</pose><static>true</static>" + TURNED + joint()
    (line,) = lost(write(moved))
    assert line.startswith("<static> of the model")
    assert np.array_equal(mb.frame_pose(mb.load(write(moved)), np.zeros(1), "b").t, [1, 0, 5])
    floating = mb.load(write("<pose>0 0 5 0 0 0.2</pose>" + TURNED + joint()), strict=True)
    assert np.allclose(mb.frame_pose(floating, floating.rest, "a").t, [0, 0, 5], atol=1e-15)
    assert np.allclose(floating.rest[3:], [np.cos(0.1), 0, 0, np.sin(0.1), 0], atol=1e-15)


@pytest.mark.parametrize(
    ("version", "flag", "axis"),
    [
        ("1.4", "", [0, -1, 0]),
        ("1.6", "", [1, 0, 0]),
        ("1.10", "", [1, 0, 0]),
        ("1.6", "<use_parent_model_frame>true</use_parent_model_frame>", [0, -1, 0]),
        ("1.4", "<use_parent_model_frame>0</use_parent_model_frame>", [1, 0, 0]),
    ],
)
def test_what_axes_are_in(write, version, flag, axis):
    model = load_fixed(write(TURNED + joint(flag), version=version), strict=True)
    assert np.allclose(model.links[0].screw.axis, axis, rtol=0, atol=1e-15)


@pytest.mark.parametrize("words", [("-inf", "inf", "inf"), ("-1e16", "1e16", "-1")])
def test_limits_that_are_none(write, words):
    low, high, effort = words
    limit = f"<limit><lower>{low}</lower><upper>{high}</upper><effort>{effort}</effort></limit>"
    model = load_fixed(write(TURNED + joint(limit)), strict=True)
    assert (model.lower, model.upper, model.effort_limits) == (-np.inf, np.inf, np.inf)


def test_each_axis_of_a_universal_joint_has_its_numbers(write):
    def numbers(x):
        limit = f"<limit><lower>-{x}</lower><upper>{x}</upper></limit>"
        return f"{limit}<dynamics><damping>{x}</damping></dynamics>"

    second = f"<axis2><xyz>0 1 0</xyz>{numbers(3)}</axis2>"
    text = '<link name="a"/><link name="b"/>' + joint(numbers(2), kind="universal", more=second)
    model = load_fixed(write(text), strict=True)
    for name, value in (("lower", [-2, -3]), ("upper", [2, 3]), ("damping", [2, 3])):
        assert np.array_equal(getattr(model, name), value)
    with pytest.raises(ValueError, match="has an <axis> and an <axis2>"):
        load_fixed(write('<link name="a"/><link name="b"/>' + joint(kind="universal")))


def test_frames_in_joints_and_on_frames(write):
    """A frame stands for the link that carries it; one on nothing is on the first link."""
    frames = """<frame name="f" attached_to="a"><pose>0 0 1 0 0 0</pose></frame>
    <frame name="g" attached_to="f"><pose>0 1 0 0 0 0</pose></frame>
    <frame name="h" attached_to="b"><pose>0 2 0 0 0 0</pose></frame><frame name="i"/>
    <frame name="k" attached_to="j"/>"""
    file = write(TURNED + frames + joint(of="<parent>g</parent><child>h</child>"))
    model = load_fixed(file, strict=True)
    assert np.allclose(model.links[0].screw.anchor, [0, 2, 0], atol=1e-15)
    places = {"b": [1, 0, 0], "g": [0, 1, 1], "h": [-1, 0, 0], "i": [0, 0, 0], "k": [-1, 0, 0]}
    for name, place in places.items():
        assert np.allclose(mb.frame_pose(model, np.zeros(1), name).t, place, atol=1e-15)
    moved = mb.frame_pose(model, np.array([0.7]), "k").t
    assert np.allclose(moved, [-1, 0, 0], atol=1e-15)  # k is on the axis
    ring = '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>'
    with pytest.raises(ValueError, match="attached to frames that are attached to each other"):
        load_fixed(write(TURNED + ring + joint(of="<parent>g</parent><child>b</child>")))


def test_a_joint_named_as_a_link(write):
    links = TURNED.replace('"b"', '"j"')
    model = load_fixed(write(links + joint(of="<parent>a</parent><child>j</child>"), version="1.5"))
    assert np.array_equal(model.positions, [[1, 0, 0]])


def test_poses_with_quaternions_and_of_shapes_in_other_frames(write):
    shape = "<geometry><sphere><radius>1</radius></sphere></geometry>"
    links = f"""<link name="a"><visual name="v"><pose relative_to="b">1 0 0 0 0 0</pose>{shape}
    </visual></link><link name="b">
    <pose rotation_format="quat_xyzw">1 0 0 0 0 0.6 0.8</pose></link>"""
    model = load_fixed(write(links + joint()), strict=True)
    turned = [[0.28, -0.96, 0], [0.96, 0.28, 0], [0, 0, 1]]
    assert np.allclose(model.rotations[0], turned, rtol=0, atol=1e-15)
    assert np.allclose(model.geometry[0].position, [1.28, 0.96, 0], rtol=0, atol=1e-15)


def test_a_joint_that_follows(write):
    follows = """<mimic joint="k"><multiplier>-2</multiplier><offset>0.1</offset>
    <reference>0.3</reference></mimic>"""
    more = (
        '<link name="c"/><joint name="k" type="revolute"><parent>b</parent><child>c</child></joint>'
    )
    model = load_fixed(write(TURNED + more + joint(follows)), strict=True)
    assert model.joint_names == ("k",)
    assert (model.links[0].scale, model.links[0].offset) == (-2.0, 0.1 + 2 * 0.3)
    limited = joint(follows + "<limit><upper>1</upper></limit>")
    assert lost(write(TURNED + more + limited)) == [
        "<limit> of joint 'j': that of 'k', which it follows"
    ]


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (joint("<initial_position>1</initial_position>"), "<initial_position> of joint 'j'"),
        (joint("<limit><stiffness>1</stiffness></limit>"), "<stiffness> of joint 'j'"),
        (joint("<limit><upper>1</upper></limit>", kind="continuous"), "lower and upper of joint"),
        (
            joint("<dynamics><damping>1</damping></dynamics>", kind="ball"),
            "limits and dynamics in <axis> of joint 'j', which is ball",
        ),
        (
            joint()
            + '<frame name="f" attached_to="a"/><link name="c"><inertial auto="true"/></link>'
            '<joint name="k" type="fixed"><parent>b</parent><child>c</child></joint>',
            "auto in <inertial> of link 'c'",
        ),
    ],
)
def test_what_has_no_effect_is_reported(write, inside, said):
    (line,) = lost(write(TURNED + inside))
    assert line.startswith(said)


def test_a_model_that_is_joined_to_nothing_floats(write):
    file = write(TURNED + joint())
    assert mb.load(file).joint_names == ("root_joint", "j")
    assert mb.load(file, base="fixed").joint_names == ("j",)
    assert "1 floating base" in str(mb.read(file).report)
    still = write("<static>true</static>" + TURNED + joint())
    assert mb.load(still).joint_names == ("j",)
    assert "its base is fixed, its joints move" in str(mb.read(still).report)
    held = write(TURNED + joint() + joint(of="<parent>world</parent><child>a</child>", kind="fixed")
                 .replace('name="j"', 'name="k"'))  # fmt: skip
    assert mb.load(held).joint_names == ("j",)
    assert "floating" not in str(mb.read(held).report)
