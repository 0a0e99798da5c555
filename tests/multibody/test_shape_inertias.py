"""Inertias of shapes: closed forms against meshes, and links of files without numbers."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes import multibody as mb
from archimedes.multibody.parts.joints import rotation_about
from tests.optional_packages import import_or_skip

trimesh = import_or_skip("trimesh")

R = rotation_about((0.6, 0.0, 0.8), 0.7)
P = np.array([0.1, -0.2, 0.3])
MADE = {
    "box": ((0.1, 0.2, 0.3), lambda s: trimesh.creation.box(s)),
    "sphere": ((0.2,), lambda s: trimesh.creation.icosphere(5, s[0])),
    "cylinder": ((0.2, 0.5), lambda s: trimesh.creation.cylinder(s[0], s[1], sections=400)),
    "capsule": ((0.2, 0.5), lambda s: trimesh.creation.capsule(s[1], s[0], count=[200, 200])),
}


def shapes_of(kind, size, file=None):
    b = mb.Builder()
    b.add_body("body")
    b.add_shape("body", kind, size, rotation=R, position=P, file=file)
    return b.geometry


@pytest.mark.long
@pytest.mark.parametrize("kind", MADE)
def test_closed_forms_against_meshes(kind, tmp_path):
    size, make = MADE[kind]
    file = tmp_path / "shape.stl"
    surface = make(size)
    surface.apply_translation(-surface.center_mass)
    surface.export(file)
    ours = mb.inertia_of_shapes(shapes_of(kind, size), 700.0)
    theirs = mb.inertia_of_shapes(shapes_of("mesh", (1, 1, 1), file), 700.0)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4 * np.abs(np.max(b)))


def test_a_scaled_mesh_is_the_box_exactly(tmp_path):
    file = tmp_path / "box.stl"
    trimesh.creation.box([1.0, 1.0, 1.0]).export(file)
    ours = mb.inertia_of_shapes(shapes_of("box", (0.1, 0.2, 0.3)), 1000.0)
    theirs = mb.inertia_of_shapes(shapes_of("mesh", (0.1, 0.2, 0.3), file), 1000.0)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_links_of_a_file_without_numbers(tmp_path):
    """With a density, links that have shapes but no <inertial> get theirs."""
    trimesh.creation.box([1.0, 1.0, 1.0]).export(tmp_path / "box.stl")
    file = tmp_path / "robot.urdf"
    file.write_text(
        '<robot name="r"><link name="a"/><link name="b"><collision><origin xyz="0 0 1"/><geometry>'
        '<mesh filename="box.stl" scale="0.1 0.2 0.3"/></geometry></collision><visual><geometry>'
        '<sphere radius="9"/></geometry></visual></link><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
    assert mb.load(file).masses[0] == 0.0
    model = mb.load(file, density=1000.0)
    assert model.masses[0] == pytest.approx(6.0)
    np.testing.assert_allclose(model.centers[0], [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(np.diag(model.inertias[0]), [0.065, 0.05, 0.025], rtol=1e-6)
    builder = mb.read(file)
    builder.fill_inertias(1000.0)
    assert "'b': mass and inertia of its shapes" in builder.report.approximated[0]


def test_refusals(tmp_path):
    file = tmp_path / "open.stl"
    surface = trimesh.creation.box([1.0, 1.0, 1.0])
    surface.update_faces(np.arange(12) > 0)
    surface.export(file)
    with pytest.raises(ValueError, match=r"open\.stl, the mesh of 'body', is not a closed surface"):
        mb.inertia_of_shapes(shapes_of("mesh", (1, 1, 1), file), 1000.0)
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid nonsense" + bytes(200))
    with pytest.raises(ValueError, match=r"broken\.stl"):
        mb.inertia_of_shapes(shapes_of("mesh", (1, 1, 1), broken), 1000.0)
    with pytest.raises(ValueError, match="was not found"):
        mb.inertia_of_shapes(shapes_of("mesh", (1, 1, 1)), 1000.0)
    with pytest.raises(ValueError, match="density must be positive"):
        mb.inertia_of_shapes(shapes_of("sphere", (1,)), 0.0)
    with pytest.raises(ValueError, match="no shape has a volume"):
        mb.inertia_of_shapes((), 1.0)
