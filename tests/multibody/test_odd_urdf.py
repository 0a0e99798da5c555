"""Odd URDF files: nothing in them is without effect and without a line of the report."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb

LINKS = "".join(
    f'<link name="{name}"><inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
    for name in "ab"
)


def written(tmp_path, inside="", kind="continuous", more=""):
    file = tmp_path / "odd.urdf"
    file.write_text(
        f'<robot name="odd">\n{LINKS}\n<joint name="j" type="{kind}"><parent link="a"/>'
        f'<child link="b"/>{inside}</joint>\n<link name="tip"/>'
        '<joint name="last" type="continuous">'
        f'<parent link="b"/><child link="tip"/></joint>{more}</robot>'
    )
    return file


@pytest.mark.parametrize(
    ("kind", "inside", "said"),
    [
        ("revolute", "", "joint 'j' is revolute and has no <limit>; it moves without one"),
        (
            "continuous",
            '<limit lower="-1" upper="1"/>',
            "lower and upper of joint 'j', which is co",
        ),
        ("planar", '<limit lower="-1"/>', "lower of joint 'j', which is planar"),
        ("fixed", '<limit lower="-1" upper="1"/>', "<limit> of joint 'j', fixed"),
        ("fixed", '<dynamics damping="1"/>', "<dynamics> of joint 'j', fixed"),
        ("fixed", '<mimic joint="last"/>', "<mimic> of joint 'j', fixed"),
        ("continuous", '<limit effort="1" jerk="1"/>', "jerk in <limit> of joint 'j'"),
        ("continuous", '<origin xyz="1 0 0" yaw="1"/>', "yaw in <origin> of joint 'j'"),
        ("continuous", '<mimic joint="last" ratio="2"/>', "ratio in <mimic> of joint 'j'"),
        (
            "revolute",
            '<limit lower="-1" upper="1"/><mimic joint="last"/>',
            "<limit> of joint 'j': that of 'last', which it follows",
        ),
        ("continuous", "<axis>0 0 1</axis>", "text in <axis> of joint 'j'"),
    ],
)
def test_what_has_no_effect_is_reported(tmp_path, kind, inside, said):
    file = written(tmp_path, inside, kind)
    report = mb.read(file).report
    (line,) = [*report.approximated, *report.ignored]
    assert line.startswith("odd.urdf:3: ") and said in line
    with pytest.raises(ValueError, match="strict=True: 1 elements are not in the model"):
        mb.load(file, strict=True)


def test_what_has_no_effect_in_a_link_is_reported(tmp_path):
    file = written(
        tmp_path,
        more="""<link name="x"><inertial><mass value="1" unit="g"/><density/><inertia ixx="1"
        ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial><visual><material name="red"/><geometry>
        <mesh filename="none.stl" units="mm"/></geometry></visual></link>
        <joint name="x" type="fixed"><parent link="b"/><child link="x"/></joint>""",
    )
    lost = [line.split(": ", 1)[1] for line in mb.read(file).report.ignored]
    assert lost[:3] == [
        "unit in <mass> of link 'x'",
        "<density> of link 'x'",
        "units in <mesh> of link 'x'",
    ]


def test_origins_with_a_quaternion(tmp_path):
    """As younger URDF has them: x y z w."""
    q = "0.2705980500730985 -0.6532814824381882 0.2705980500730985 0.6532814824381882"
    found = mb.load(written(tmp_path, f'<origin xyz="1 2 3" quat_xyzw="{q}"/>'))
    x, y, z, w = (float(word) for word in q.split())
    wanted = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    assert np.allclose(found.rotations[0], wanted, rtol=0, atol=1e-15)
    for wrong, message in (
        ('quat_xyzw="0 0 0 0"', "must be four numbers x y z w of length 1"),
        ('quat_xyzw="0 0 1"', "must be four numbers x y z w of length 1"),
        ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "has both rpy and quat_xyzw"),
    ):
        with pytest.raises(ValueError, match=r"odd\.urdf:3: .*" + message):
            mb.load(written(tmp_path, f"<origin {wrong}/>"))


def test_a_mesh_whose_name_no_file_can_have(tmp_path):
    shape = f'<visual><geometry><mesh filename="{"x" * 5000}.stl"/></geometry></visual>'
    file = written(
        tmp_path,
        more=f'<link name="x">{shape}</link><joint name="x" type="fixed"><parent link="b"/>'
        '<child link="x"/></joint>',
    )
    assert "was not found" in mb.read(file).report.ignored[0]


def test_packages_in_several_folders(tmp_path):
    mesh = tmp_path / "two" / "hand" / "a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_text("")
    (tmp_path / "robot").mkdir()
    shape = '<visual><geometry><mesh filename="package://hand/a.stl"/></geometry></visual>'
    fixed = '<joint name="x" type="fixed"><parent link="b"/><child link="x"/></joint>'
    file = written(tmp_path / "robot", more=f'<link name="x">{shape}</link>{fixed}')
    found = mb.load(file, packages=[tmp_path / "one", tmp_path / "two"]).geometry[0]
    assert found.file == str(mesh)
