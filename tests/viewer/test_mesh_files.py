"""Meshes of robots' files: read, placed, made coarser, refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.simulate import Trajectory
from archimedes.viewer import box, sphere, view
from archimedes.viewer.meshes import MOST_TRIANGLES, MeshFileError, read_mesh

URDF = """<robot name="arm"><link name="base"/>
<link name="bar"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial><visual><origin xyz="0 0 1"/><geometry><mesh filename="{file}"
scale="0.001 0.001 0.001"/></geometry></visual></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="bar"/>
<axis xyz="0 1 0"/></joint></robot>"""


def stl(mesh, binary=True):
    corners = mesh.vertices[mesh.triangles]
    if binary:
        rows = [struct.pack("<12fH", 0, 0, 0, *c.ravel(), 0) for c in corners]
        return b"\0" * 80 + struct.pack("<I", len(rows)) + b"".join(rows)
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*p) for p in c)
        + "endloop\nendfacet\n"
        for c in corners
    )
    return f"solid made\n{facets}endsolid made\n".encode()


def obj(mesh):
    lines = [f"v {x} {y} {z}" for x, y, z in mesh.vertices]
    lines += [f"f {a + 1}/1/1 {b + 1}/1/1 {c + 1}/1/1" for a, b, c in mesh.triangles]
    return ("mtllib other.mtl\n# made\n" + "\n".join(lines)).encode()


def volume(mesh):
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6.0)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.stl", stl(box([1, 2, 3]))), ("b.STL", stl(box([1, 2, 3]), False)),
     ("c.obj", obj(box([1, 2, 3])))],
)  # fmt: skip
def test_files_give_the_solid_they_hold(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    made = read_mesh(tmp_path / name, [2.0, 1.0, 1.0], color="#112233")
    assert volume(made) == pytest.approx(12.0) and len(made.triangles) == 12
    assert made.color == "#112233"
    assert volume(read_mesh(tmp_path / name, [-1.0, 1.0, 1.0])) == pytest.approx(6.0)


def test_very_many_triangles_become_fewer(tmp_path):
    fine = sphere(1.0, n=240)
    assert len(fine.triangles) > 4 * MOST_TRIANGLES
    (tmp_path / "fine.stl").write_bytes(stl(fine))
    made = read_mesh(tmp_path / "fine.stl")
    assert 1000 < len(made.triangles) <= MOST_TRIANGLES
    assert volume(made) == pytest.approx(4 / 3 * np.pi, rel=0.05)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.stl", b"", "neither binary STL"),
        ("a.stl", b"\0" * 80 + struct.pack("<I", 4_000_000_000), "neither binary STL"),
        ("a.stl", b"solid x\nvertex 0 0 0\n", "not whole triangles"),
        ("a.stl", b"solid x\nvertex 0 0 spam\n" * 3, "not three numbers"),
        ("a.stl", b"solid x\nvertex nan 0 0\nvertex 1 0 0\nvertex 0 1 0\n", "nan or inf"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nf 1 2 9\n", "a face refers to a vertex"),
        ("a.obj", b"v 0 0 0\nf 1 -5 1\n", "a face refers to a vertex"),
        ("a.obj", b"v 0 0 0\nf a b c\n", "is not a face"),
        ("a.obj", b"nothing", "no triangles"),
    ],
)
def test_broken_files_are_named(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(MeshFileError, match=says) as error:
        read_mesh(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    with pytest.raises(MeshFileError, match="cannot be read"):
        read_mesh(tmp_path / "missing.stl")


def test_other_formats_say_what_reads_them(tmp_path, monkeypatch):
    (tmp_path / "a.dae").write_text("<COLLADA/>")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MeshFileError, match="pip install trimesh"):
        read_mesh(tmp_path / "a.dae")


def shown(tmp_path, file):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.format(file=file))
    arm = mb.load(path)
    t = np.array([0.0, 1.0])
    state = mb.rest_state(arm)
    x = type(state)(np.zeros((2, arm.nq)), np.zeros((2, arm.nv)))
    return view({"arm": (arm, Trajectory(t, x))}).scene


def test_robots_wear_the_meshes_of_their_files(tmp_path):
    (tmp_path / "bar.stl").write_bytes(stl(box([100, 200, 300])))  # mm
    (body,) = [b for b in shown(tmp_path, "bar.stl").bodies if b.meshes]
    corners = body.meshes[0].vertices
    assert corners.min(axis=0) == pytest.approx([-0.05, -0.1, 0.85])
    assert corners.max(axis=0) == pytest.approx([0.05, 0.1, 1.15])


def test_a_broken_mesh_is_named_on_the_page_and_rods_stand_for_it(tmp_path):
    (tmp_path / "bar.stl").write_bytes(b"<script>alert(1)</script>")
    scene = shown(tmp_path, "bar.stl")
    assert "Not shown" in scene.note and "bar.stl" in scene.note
    assert any(body.meshes for body in scene.bodies)
