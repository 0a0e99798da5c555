"""Meshes of robots' files: read, placed, made coarser, refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.simulate import Trajectory
from archimedes.viewer import Mesh, box, sphere, view
from archimedes.viewer.html import pack
from archimedes.viewer.mesh_files import MeshFileError, read_parts, scale_part, simplify

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
    (part,) = read_parts(tmp_path / name)
    assert volume(scale_part(part, [2.0, 1.0, 1.0])) == pytest.approx(12.0)
    assert len(part.triangles) == 12 and part.color is None
    assert volume(scale_part(part, [-1.0, 1.0, 1.0])) == pytest.approx(6.0)


def test_very_many_triangles_become_fewer():
    fine = sphere(1.0, n=240)
    assert len(fine.triangles) > 20_000
    vertices, triangles = simplify(fine.vertices, fine.triangles, 3000)
    assert 1000 < len(triangles) <= 3000
    # The vertices lie on the planes of the sphere, not inside it.
    assert np.linalg.norm(vertices, axis=1) == pytest.approx(1.0, abs=0.01)
    assert volume(Mesh(vertices, triangles)) == pytest.approx(4 / 3 * np.pi, rel=0.02)


def test_flat_sides_stay_flat_where_a_mesh_is_made_coarser():
    """A box of many small triangles: the edges and corners remain."""
    n = 40
    u, v = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    k = np.arange(n * n).reshape(n, n)
    square = np.stack([k[:-1, :-1], k[:-1, 1:], k[1:, 1:]], -1).reshape(-1, 3)
    other = np.stack([k[:-1, :-1], k[1:, 1:], k[1:, :-1]], -1).reshape(-1, 3)
    sides, faces = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            rows = [u.ravel(), v.ravel()]
            rows.insert(axis, np.full(n * n, sign))
            faces += [square + len(sides) * n * n, other + len(sides) * n * n]
            sides.append(np.stack(rows, 1))
    vertices, triangles = simplify(np.concatenate(sides), np.concatenate(faces), 2000)
    assert len(triangles) <= 2000
    assert np.abs(vertices).max(axis=1) == pytest.approx(1.0, abs=0.01)
    assert np.abs(vertices).max() < 1.01


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.stl", b"", "is not STL: text begins"),
        ("a.stl", b"\0" * 80 + struct.pack("<I", 4_000_000_000), "is not STL: text begins"),
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
        read_parts(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    with pytest.raises(MeshFileError, match=r"missing\.stl: no such file"):
        read_parts(tmp_path / "missing.stl")


def test_other_formats_say_what_reads_them(tmp_path, monkeypatch):
    (tmp_path / "a.dae").write_text("<COLLADA/>")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MeshFileError, match=r"\.dae files are read by trimesh and pycollada"):
        read_parts(tmp_path / "a.dae")
    (tmp_path / "a.glb").write_text("")
    with pytest.raises(MeshFileError, match=r"\.glb files are read by trimesh: pip.*robots"):
        read_parts(tmp_path / "a.glb")


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
    assert len(scene.left_out) == 1 and "bar.stl" in scene.left_out[0]
    assert "Not shown" in pack(scene)[0]["note"] and "bar.stl" in pack(scene)[0]["note"]
    assert any(body.meshes for body in scene.bodies)
