"""Meshes of MJCF files: kept with the model as MuJoCo's compiler leaves them, and shown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.multibody.parts.geometry import Surface
from archimedes.simulate import Trajectory
from archimedes.viewer import view
from tests.optional_packages import import_or_skip

from . import mujoco_peer  # noqa: F401 - skips these tests where there is no MuJoCo

#: A wedge far from its own origin, so that the compiler moves and turns it.
CORNERS = np.array([[1, 0, 0], [1.4, 0, 0], [1, 0.2, 0], [1, 0, 0.1], [1.4, 0, 0.1], [1, 0.2, 0.1]])
FACES = [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3], [2, 3, 5]]
OBJ = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
OBJ += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in FACES)
XML = """<mujoco model="wedge"><asset><mesh name="wedge" file="wedge.obj" scale="2 1 1"/></asset>
<worldbody><geom type="plane" size="1 1 .1"/>
<body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
  <geom type="mesh" mesh="wedge" pos="0 .5 0" euler="0 0 90" {more}/>
</body></worldbody></mujoco>"""


@pytest.fixture
def load(tmp_path):
    (tmp_path / "wedge.obj").write_text(OBJ)

    def load(more=""):
        file = tmp_path / "wedge.xml"
        file.write_text(XML.format(more=more))
        return mb.load(file)

    return load


def in_body(shape):
    """Return the vertices of a mesh in the axes of its body."""
    return shape.surface.vertices @ np.array(shape.rotation).T + np.array(shape.position)


def as_given():
    x, y, z = (CORNERS * [2, 1, 1]).T
    return np.stack([-y, x + 0.5, z], axis=1)  # a quarter turn about z, then moved


def by_rows(points):
    return points[np.lexsort(np.round(points, 5).T)]


def test_vertices_are_those_of_the_file(load):
    model = load()
    assert [(s.kind, s.role) for s in model.geometry] == [("mesh", "collision"), ("mesh", "visual")]
    for shape in model.geometry:
        np.testing.assert_allclose(by_rows(in_body(shape)), by_rows(as_given()), atol=1e-6)
    a, b, c = np.moveaxis(in_body(model.geometry[0])[model.geometry[0].surface.triangles], 1, 0)
    volume = np.sum(a * np.cross(b, c)) / 6.0
    assert volume == pytest.approx(2 * 0.4 * 0.2 * 0.1 / 2, rel=1e-5)  # faces look outwards


@pytest.mark.parametrize(
    ("more", "roles"),
    [
        ("", ["collision", "visual"]),
        ('contype="0" conaffinity="0"', ["visual"]),
        ('group="3"', ["collision"]),
        ('group="3" contype="0" conaffinity="0"', ["visual"]),
    ],
)
def test_what_is_shown_and_what_collides(load, more, roles):
    assert [s.role for s in load(more).geometry] == roles


@pytest.mark.long
def test_the_viewer_shows_them(load):
    model = load()
    x = mb.State(np.zeros((2, 1)), np.zeros((2, 1)))
    scene = view({"arm": (model, Trajectory(np.array([0.0, 1.0]), x))}).scene
    (body,) = [b for b in scene.bodies if b.meshes]
    (mesh,) = body.meshes
    np.testing.assert_allclose(by_rows(mesh.vertices), by_rows(as_given()), atol=1e-6)


@pytest.mark.long
def test_mass_of_a_density(load):
    """The compiler's inertia, of 1,000 kg/m^3, is that of the mesh kept."""
    model = load()
    import_or_skip("trimesh")
    mass, center, inertia = mb.inertia_of_shapes(model.geometry[:1], 1000.0)
    np.testing.assert_allclose(mass, model.masses[0], rtol=1e-5)
    np.testing.assert_allclose(center, model.centers[0], atol=1e-6)
    np.testing.assert_allclose(inertia, model.inertias[0], rtol=1e-4, atol=1e-6)


def test_surfaces_are_values(load):
    model, again = load(), load()
    assert model.geometry == again.geometry and hash(model.geometry) == hash(again.geometry)
    back = pickle.loads(pickle.dumps(model))
    assert back.geometry == model.geometry
    for surface in (model.geometry[0].surface, back.geometry[0].surface):
        with pytest.raises(ValueError, match="read-only"):
            surface.vertices[0, 0] = 1.0
    with pytest.raises(ValueError, match="triangles must be numbers of the 3 vertices"):
        Surface(np.zeros((3, 3)), [[0, 1, 3]])
    with pytest.raises(ValueError, match="vertices must be finite"):
        Surface(np.full((3, 3), np.nan), [[0, 1, 2]])
