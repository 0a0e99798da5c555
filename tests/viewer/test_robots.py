"""Robots of the usual files as they are: meshes, materials, charts, ground, missing files."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import archimedes as arc
from archimedes import multibody as mb
from archimedes.cli import main
from archimedes.simulate import Trajectory
from archimedes.viewer import Camera, view
from archimedes.viewer.html import pack
from archimedes.viewer.mesh_files import read_parts
from tests.optional_packages import import_or_skip
from tests.viewer.scenes import falling

LINK = (
    '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
    'iyz="0"/></inertial>{1}</link>'
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0 0 1"/>'
    '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
)
SQUARE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def visual(shape, material=""):
    return f"<visual><geometry>{shape}</geometry>{material}</visual>"


def urdf(folder, *parts, name="robot.urdf"):
    path = folder / name
    path.write_text(f'<robot name="robot">{"".join(parts)}</robot>')
    return path


def colors(scene):
    return [mesh.color for body in scene.bodies for mesh in body.meshes]


# ---- materials of meshes ------------------------------------------------------------------------


def test_materials_of_obj_files(tmp_path):
    (tmp_path / "a.mtl").write_text(
        "newmtl red paint\nKd 1 0 0\nnewmtl glass\nKd 0 0 1\nd 0.5\nnewmtl clear\nTr 0.25\n"
        "newmtl broken\nKd spam\nnewmtl gone\nd 0\n"
    )
    (tmp_path / "a.obj").write_text(
        f"mtllib a.mtl\n{SQUARE}usemtl red paint\nf 1 2 3\nusemtl glass\nf 1 3 4\n"
        "usemtl red paint\nf 1 2 4\nusemtl clear\nf 1 2 3\nusemtl nobody\nf 1 2 3\n"
    )
    parts = read_parts(tmp_path / "a.obj")
    assert [len(part.triangles) for part in parts] == [2, 1, 1, 1]
    assert [part.color for part in parts] == [
        [1, 0, 0, 1], [0, 0, 1, 0.5], [1, 1, 1, 0.75], None
    ]  # fmt: skip
    (tmp_path / "a.mtl").unlink()
    assert {part.color for part in read_parts(tmp_path / "a.obj")} == {None}


def test_textures_count_with_their_mean_where_the_mesh_has_them(tmp_path):
    image_module = import_or_skip("PIL.Image")
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:32], pixels[32:, :32] = [200, 100, 0], [0, 0, 255]  # above; below on the left
    image_module.fromarray(pixels).save(tmp_path / "skin.png")
    (tmp_path / "a.mtl").write_text("newmtl skin\nmap_Kd -clamp on skin.png\n")
    corners = "vt 0.1 0.1\nvt 0.4 0.1\nvt 0.4 0.4\nvt 0.1 0.9\nvt 0.9 0.9\nvt 0.9 0.6\n"
    head = f"mtllib a.mtl\n{SQUARE}{corners}usemtl skin\n"
    for face, color in (
        ("f 1/1 2/2 3/3", [0.0, 0.0, 1.0]),  # v counts from below
        ("f 1/4 2/5 3/6", [200 / 255, 100 / 255, 0.0]),
        ("f 1 2 3", np.mean(pixels, axis=(0, 1)) / 255.0),
    ):
        (tmp_path / "a.obj").write_text(head + face)
        (part,) = read_parts(tmp_path / "a.obj")
        assert part.color == pytest.approx([*color, 1.0], abs=0.01)
    (tmp_path / "skin.png").write_bytes(b"not a picture")
    assert read_parts(tmp_path / "a.obj")[0].color == [1, 1, 1, 1]


DAE = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><created>2024-01-01T00:00:00</created><modified>2024-01-01T00:00:00</modified>
<unit name="millimeter" meter="0.001"/><up_axis>Y_UP</up_axis></asset>
<library_effects>{effects}</library_effects>
<library_materials>{materials}</library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 100 200 0 0 200 0</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles material="one" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 1 2</p></triangles>
<triangles material="two" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<p>0 2 3</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node>
<translate>0 0 50</translate><instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="one" target="#m1"/><instance_material symbol="two" target="#m2"/>
</technique_common></bind_material></instance_geometry></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
EFFECT = (
    '<effect id="e{0}"><profile_COMMON><technique sid="t"><lambert><diffuse><color>{1}</color>'
    "</diffuse></lambert></technique></profile_COMMON></effect>"
)


def test_collada_files_have_their_unit_places_and_materials(tmp_path):
    import_or_skip("trimesh")
    import_or_skip("collada")
    effects = EFFECT.format(1, "1 0.5 0 1") + EFFECT.format(2, "0 0 1 1")
    materials = "".join(
        f'<material id="m{k}"><instance_effect url="#e{k}"/></material>' for k in (1, 2)
    )
    (tmp_path / "a.dae").write_text(DAE.format(effects=effects, materials=materials))
    parts = read_parts(tmp_path / "a.dae")
    points = np.concatenate([part.vertices for part in parts])
    # Millimetres, moved up by 50 of them; as in RViz, y does not become z.
    assert points.min(axis=0) == pytest.approx([0, 0, 0.05])
    assert points.max(axis=0) == pytest.approx([0.1, 0.2, 0.05])
    assert sorted(np.round(part.color, 2).tolist() for part in parts) == [
        [0.0, 0.0, 1.0, 1.0], [1.0, 0.5, 0.0, 1.0]
    ]  # fmt: skip
    (tmp_path / "b.dae").write_text("<COLLADA")
    with pytest.raises(ValueError, match=r"b\.dae: trimesh cannot read it"):
        read_parts(tmp_path / "b.dae")


# ---- materials of robots ------------------------------------------------------------------------


def test_colours_of_urdf_files(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl own\nKd 0 1 0\n")
    (tmp_path / "own.obj").write_text(f"mtllib a.mtl\n{SQUARE}usemtl own\nf 1 2 3\n")
    (tmp_path / "plain.obj").write_text(f"{SQUARE}f 1 2 3\n")
    box, sphere = '<box size="1 1 1"/>', '<sphere radius="0.1"/>'
    dark = '<material name="dark"><color rgba="0.2 0.2 0.2 0.5"/></material>'
    file = urdf(
        tmp_path,
        '<material name="orange"><color rgba="1 0.5 0 1"/></material>',
        LINK.format("base", visual(box, '<material name="orange"/>')),
        LINK.format(
            "arm",
            visual(box, dark)
            + visual(sphere, '<material name="dark"/>')
            + visual(sphere, '<material name="nobody"/>')
            + visual(sphere, '<material name="x"><color rgba="green"/></material>')
            + visual('<mesh filename="own.obj"/>', dark)
            + visual('<mesh filename="plain.obj"/>', dark),
        ),
        JOINT.format("hinge", "revolute", "base", "arm"),
    )
    model = mb.load(file)
    scene = view(model).scene
    standard = "#b8c0cc"
    assert colors(scene) == [
        *("#333333", "#333333", standard, standard, "#00ff00", "#333333"),
        "#ff8000",
    ]
    assert scene.bodies[0].meshes[0].opacity == 0.5
    assert "'green' is no colour" in mb.read(file).report.ignored[0]
    # What is fixed to the world is shown too, and stands still.
    base = scene.bodies[-1]
    assert base.name == "robot: world" and len(base.t) == 1


def test_colours_of_sdf_files(tmp_path):
    file = tmp_path / "a.sdf"
    file.write_text(
        '<sdf version="1.7"><model name="m"><static>true</static><link name="a"><visual name="v">'
        "<geometry><sphere><radius>1</radius></sphere></geometry><material>"
        "<ambient>0 0 0 1</ambient><diffuse>0 0.5 1 1</diffuse></material>"
        '<transparency>0.25</transparency></visual></link><link name="b"><inertial><mass>1</mass>'
        '</inertial></link><joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
    )
    (shape,) = mb.load(file).geometry
    assert shape.color == (0.0, 0.5, 1.0, 0.75)


def test_builders_take_colours():
    b = mb.Builder()
    b.add_body("bob", mass=1.0, inertia=[1.0, 1.0, 1.0])
    b.add_shape("bob", "box", [1, 1, 1], color=[1, 0, 0])
    assert b.geometry[0].color == (1.0, 0.0, 0.0, 1.0)
    for wrong, says in (([2.0, 0, 0], "must be within 0 and 1"), ([0.5, 0.5], "must have shape")):
        with pytest.raises(ValueError, match=f"shape of 'bob': color {says}"):
            b.add_shape("bob", "box", [1, 1, 1], color=wrong)


MJCF = """<mujoco model="m"><compiler meshdir="meshes" texturedir="pictures"/>
<default><default class="look"><geom group="2" contype="0" conaffinity="0" material="skin"/>
</default></default>
<asset><mesh name="wedge" file="wedge.obj" scale="2 1 1" refpos="0.1 0.2 0.3"
  refquat="0.9 0.1 0.3 -0.2"/>
<texture name="skin" type="2d" file="skin.png"/>
<texture name="half" type="2d" builtin="flat" rgb1="0 1 0" width="8" height="8"/>
<material name="skin" texture="skin"/><material name="half" texture="half" rgba="1 0.5 1 1"/>
<material name="plain" rgba="0.1 0.2 0.3 0.4"/></asset>
<worldbody><body name="arm" pos="0 0 1"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
<joint name="hinge" axis="0 1 0"/>
<geom class="look" type="mesh" mesh="wedge" pos="0 .5 0" euler="10 20 90"/>
<geom type="box" size="1 1 1" material="half"/><geom type="sphere" size="1" material="plain"/>
<geom type="sphere" size="1" material="plain" rgba="1 0 0 1"/><geom type="sphere" size="1"/>
</body></worldbody></mujoco>"""


@pytest.fixture
def mjcf(tmp_path):
    import_or_skip("mujoco")
    image_module = import_or_skip("PIL.Image")
    for name in ("meshes", "pictures"):
        (tmp_path / name).mkdir()
    pixels = np.full((8, 8, 3), [255, 51, 0], np.uint8)
    image_module.fromarray(pixels).save(tmp_path / "pictures" / "skin.png")
    wedge = "v 1 0 0\nv 1.4 0 0\nv 1 0.2 0\nv 1 0 0.1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
    (tmp_path / "meshes" / "wedge.obj").write_text(wedge)
    (tmp_path / "m.xml").write_text(MJCF)
    return tmp_path / "m.xml"


def test_mjcf_materials_textures_and_default_classes(mjcf):
    looks = [shape.color for shape in mb.load(mjcf).geometry if shape.role == "visual"]
    wanted = [
        [1.0, 0.2, 0.0, 1.0], [0.0, 0.5, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4], [1, 0, 0, 1],
        [0.5, 0.5, 0.5, 1.0],
    ]  # fmt: skip
    assert np.array(looks) == pytest.approx(np.array(wanted), abs=0.01)


def test_mjcf_meshes_are_where_mujoco_has_them(mjcf):
    """With scale, refpos, refquat and the pose of the geom: MuJoCo's own vertices in the world."""
    mujoco = import_or_skip("mujoco")
    model, peer = mb.load(mjcf), mujoco.MjModel.from_xml_path(str(mjcf))
    data = mujoco.MjData(peer)
    data.qpos[:] = 0.7
    mujoco.mj_forward(peer, data)
    wanted = peer.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    body = view(model, mb.rest_state(model, [0.7])).scene.bodies[0]
    R = arc.spatial.Quaternion(body.attitude[0]).as_matrix().T
    seen = body.meshes[-1].vertices @ R.T + body.position[0]
    np.testing.assert_allclose(seen, wanted, atol=1e-6)


def test_mjcf_shapes_of_the_world_are_shown(mjcf):
    table = '<geom type="box" size="1 1 .5" pos="3 0 .5" rgba="0 1 0 1"/>'
    table += '<geom type="plane" size="1 1 1"/>'
    mjcf.write_text(MJCF.replace("<worldbody>", f"<worldbody>{table}"))
    model = mb.load(mjcf)
    world = view(model).scene.bodies[-1]
    assert world.name == "m: world" and [mesh.color for mesh in world.meshes] == ["#00ff00"]
    assert world.meshes[0].vertices.min(axis=0) == pytest.approx([2, -1, 0])
    assert not [s for s in model.geometry if s.body == "world" and s.role == "collision"]
    assert any("a shape of the world" in line for line in mb.read(mjcf).report.ignored)


def test_mjcf_files_without_their_meshes_go_on(mjcf):
    for name in ("meshes/wedge.obj", "pictures/skin.png"):
        (mjcf.parent / name).unlink()
    model = mb.load(mjcf)
    assert model.masses[0] == 1.0
    assert any("wedge.obj' was not found" in line for line in mb.read(mjcf).report.ignored)
    scene = view(model).scene
    assert len(scene.left_out) == 1 and "wedge.obj: no such file" in scene.left_out[0]
    assert len(colors(scene)) == 4
    with pytest.raises(ValueError, match=r"wedge\.obj' was not found"):
        mb.load(mjcf, strict=True)
    # Where the mesh is the mass of its body, there is no model.
    mjcf.write_text(
        '<mujoco><asset><mesh name="w" file="w.obj"/></asset><worldbody><body><joint/>'
        '<geom type="mesh" mesh="w"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match=r"MuJoCo's compiler: .*w\.obj"):
        mb.load(mjcf)


# ---- missing files, packages, the command line --------------------------------------------------


def test_packages_of_ros_and_folders_of_other_names(tmp_path, monkeypatch):
    shape = '<mesh filename="package://robot_description/meshes/a.stl"/>'
    folder = tmp_path / "checkout" / "urdf"
    folder.mkdir(parents=True)
    parts = [LINK.format("a", visual(shape)), LINK.format("b", "")]
    file = urdf(folder, *parts, JOINT.format("j", "revolute", "a", "b"))
    assert mb.load(file).geometry[0].file == "package://robot_description/meshes/a.stl"
    ros = tmp_path / "ws" / "share" / "robot_description" / "meshes"
    ros.mkdir(parents=True)
    (ros / "a.stl").write_text("solid")
    for name, value in (("ROS_PACKAGE_PATH", "ws/share"), ("AMENT_PREFIX_PATH", "ws")):
        with monkeypatch.context() as patch:
            patch.setenv(name, f"/nowhere:{tmp_path / value}")
            assert mb.load(file).geometry[0].file == str(ros / "a.stl")
    own = tmp_path / "checkout" / "meshes"
    own.mkdir()
    (own / "a.stl").write_text("solid")
    assert mb.load(file).geometry[0].file == str(own / "a.stl")


def test_the_command_line_says_what_is_missing_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.dae").write_text("<COLLADA/>")
    shapes = '<mesh filename="package://far/a.stl"/>', '<mesh filename="there.dae"/>'
    arm = "".join(visual(shape) for shape in shapes) + visual('<box size="1 1 1"/>')
    urdf(
        tmp_path,
        LINK.format("a", ""),
        LINK.format("b", arm),
        JOINT.format("j", "revolute", "a", "b"),
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["view", "robot.urdf"]) == 0
    told = capsys.readouterr().err
    assert "not shown: package://far/a.stl: no such file; name the folder of its package" in told
    assert "there.dae: .dae files are read by trimesh and pycollada: pip install" in told
    assert (tmp_path / "archimedes_view" / "robot.html").exists()
    (tmp_path / "pkg" / "far").mkdir(parents=True)
    (tmp_path / "pkg" / "far" / "a.stl").write_text("solid x\n" + "vertex 0 0 0\n" * 3)
    assert main(["view", "robot.urdf", "--packages", "pkg", "--json"]) == 0
    captured = capsys.readouterr()
    assert "far" not in captured.err and '"not_shown": [' in captured.out


# ---- charts, ground, camera, time ---------------------------------------------------------------


def chain(tmp_path, *kinds, shape='<box size="0.1 0.1 2"/>'):
    names = [f"l{k}" for k in range(len(kinds) + 1)]
    links = [LINK.format(name, visual(shape)) for name in names]
    joints = [JOINT.format(f"j{k}", kind, names[k], names[k + 1]) for k, kind in enumerate(kinds)]
    return mb.load(urdf(tmp_path, *links, *joints))


def test_charts_name_joints_in_deg_and_m(tmp_path):
    model = chain(tmp_path, "revolute", "prismatic", "continuous")
    t = np.linspace(0.0, 1.0, 5)
    q = np.outer(t, [1.0, 0.2, 7.0])
    scene = view(model, Trajectory(t, mb.State(q, np.tile([1.0, 0.2, 7.0], (5, 1))))).scene
    seen = {
        chart.title: (list(chart.labels), chart.units, chart.values[:, -1])
        for chart in scene.charts
    }
    assert list(seen) == ["joint angles", "joint positions", "joint rates", "joint speeds"]
    for title, names, units, values in (
        ("joint angles", ["j0", "j2"], "deg", np.rad2deg([1.0, 7.0])),  # more than a turn stays
        ("joint positions", ["j1"], "m", [0.2]),
        ("joint rates", ["j0", "j2"], "deg/s", np.rad2deg([1.0, 7.0])),
        ("joint speeds", ["j1"], "m/s", [0.2]),
    ):
        assert seen[title][:2] == (names, units)
        assert seen[title][2] == pytest.approx(values)
    (chosen, _) = view(model, Trajectory(t, mb.State(q, 0 * q)), charts=["q"]).scene.charts
    assert (chosen.title, list(chosen.labels), chosen.units) == (
        "joint angles",
        ["j0", "j2"],
        "deg",
    )


def test_charts_of_many_joints_have_those_that_move_most(tmp_path):
    model = chain(tmp_path, *["revolute"] * 9)
    t = np.linspace(0.0, 1.0, 5)
    q = np.outer(t, [0.1, 0.9, 0.2, 0.8, 0.7, 0.3, 0.6, 0.5, 0.4])
    scene = view(model, Trajectory(t, mb.State(q, 0 * q))).scene
    assert scene.charts[0].title == "joint angles (7 of 9)"
    assert list(scene.charts[0].labels) == ["j1", "j3", "j4", "j5", "j6", "j7", "j8"]


def test_what_has_no_joints_is_shown(tmp_path, monkeypatch):
    """A drone or a crate: its file has one link."""
    monkeypatch.chdir(tmp_path)
    urdf(tmp_path, LINK.format("crate", visual('<box size="1 1 1"/>')), name="crate.urdf")
    assert main(["view", "crate.urdf"]) == 0
    scene = view(mb.load("crate.urdf", base="floating")).scene
    assert scene.ground.height == pytest.approx(-0.5)  # nothing starts below the ground


def test_a_robot_alone_stands_on_the_ground_and_is_seen_in_full(tmp_path):
    model = chain(tmp_path, "revolute")
    scene = view(model).scene
    assert scene.bodies[0].name.startswith("robot: ")  # by its own name
    assert repr(view(model)) == "View('': robot, 0 to 0 s)"
    assert scene.ground.height == pytest.approx(-1.0)  # its base reaches below the origin
    assert scene.camera.mode == "free" and scene.camera.target == pytest.approx([0, 0, 0.5])
    assert not scene.charts and scene.span == (0.0, 0.0)
    assert pack(scene)[0]["camera"]["target"] == scene.camera.target
    bent = view(model, mb.rest_state(model, [1.0])).scene
    assert not np.allclose(bent.bodies[0].attitude, scene.bodies[0].attitude)
    with pytest.raises(ValueError, match=r"the state of a robot must have q \(1,\), got \(2, 1\)"):
        view(model, mb.State(np.zeros((2, 1)), np.zeros((2, 1))))
    with pytest.raises(ValueError, match="Camera: target must have shape"):
        Camera("free", target=[1.0, 2.0])


def test_the_live_view_listens_on_this_machine_alone(monkeypatch):
    class Asked(Exception):
        pass

    def server(**options):
        raise Asked(options)

    monkeypatch.setitem(sys.modules, "viser", types.SimpleNamespace(ViserServer=server))
    for options, host in (({}, "127.0.0.1"), ({"host": "0.0.0.0"}, "0.0.0.0")):
        with pytest.raises(Asked) as asked:
            view(falling()).live(**options)
        assert asked.value.args[0]["host"] == host
    with pytest.raises(TypeError, match=r"View\.live: host must be a str, got int"):
        view(falling()).live(host=5)


# ---- robots as they are -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ["panda", "ur5", "g1", "go2"])
def test_meshes_are_those_that_assimp_reads(name):
    """Pinocchio reads the files by assimp: same boxes, at the same places, for every visual."""
    pin = import_or_skip("pinocchio")
    from tests.multibody.robots import folder, path_of

    path = str(path_of(name))
    peer = pin.buildModelFromUrdf(path)
    share = str(folder().parent.parent)
    visuals = pin.buildGeomFromUrdf(peer, path, pin.GeometryType.VISUAL, package_dirs=[share])
    boxes = {}
    for each in visuals.geometryObjects:
        points = np.array([each.geometry.vertex(k) for k in range(each.geometry.num_vertices)])
        boxes[each.name.rsplit("_", 1)[0], each.meshPath] = points.min(0), points.max(0)
    shapes = [shape for shape in mb.load(path).geometry if shape.role == "visual"]
    assert len(shapes) == len(visuals.geometryObjects)
    for shape in shapes:
        parts = read_parts(shape.file)
        points = np.concatenate([p.vertices[p.triangles].reshape(-1, 3) for p in parts])
        low, high = boxes[shape.body, shape.file]
        np.testing.assert_allclose(points.min(0), low, atol=1e-5)
        np.testing.assert_allclose(points.max(0), high, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "count", "some"), [("panda", 4, "#ffffff"), ("ur5", 3, "#"), ("g1", 2, "#333333")]
)
def test_robots_have_their_colours(name, count, some):
    from tests.multibody.robots import path_of

    import_or_skip("collada")
    scene = view(mb.load(path_of(name))).scene
    assert scene.left_out == []
    seen = set(colors(scene))
    assert len(seen) >= count and any(color.startswith(some) for color in seen)
    assert sum(len(m.triangles) for b in scene.bodies for m in b.meshes) <= 160_000


@pytest.mark.parametrize("n, bad", [(5, np.nan), (200, np.inf)])
def test_a_robot_whose_state_is_not_finite_is_named(n, bad, tmp_path):
    bar = visual('<cylinder radius="0.1" length="1"/>')
    links = LINK.format("base", ""), LINK.format("bar", bar)
    model = mb.load(urdf(tmp_path, *links, JOINT.format("hinge", "revolute", "base", "bar")))
    q = np.zeros((n, 1))
    q[n // 2] = bad
    fall = Trajectory(np.linspace(0.0, 1.0, n), mb.State(q, np.zeros((n, 1))))
    with pytest.raises(ValueError, match=r"robot: q holds nan or inf: leave these samples out$"):
        view(model, fall)
