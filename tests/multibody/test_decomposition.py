"""Concave meshes as convex parts: what they fill, and what touches them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archimedes import multibody as mb
from tests.optional_packages import skip_without

if importlib.util.find_spec("coacd") is None:
    skip_without("coacd", ModuleNotFoundError("coacd"))

ROOT = Path(__file__).parents[2]


def l_profile():
    """An L of three unit cubes."""
    outline = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]
    vertices = [[x, y, z] for z in (0, 1) for x, y in outline]
    bottom = [[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 5, 4]]
    top = [[6 + a, 6 + c, 6 + b] for a, b, c in bottom]
    walls = [[k, (k + 1) % 6, k + 6] for k in range(6)]
    walls += [[(k + 1) % 6, (k + 1) % 6 + 6, k + 6] for k in range(6)]
    return mb.Surface(vertices, bottom + top + walls)


@pytest.mark.long
def test_a_ball_fits_into_the_notch():
    from scipy.spatial import ConvexHull

    b = mb.Builder()
    b.add_body("corner", mass=1.0, inertia=[0.1, 0.1, 0.1])
    b.add_shape("corner", "mesh", [0.5, 0.5, 0.5], "collision", surface=l_profile())
    model = b.build(base="floating")
    parts = mb.contact_shapes(model, concavity=0.05)
    volume = sum(ConvexHull(part.centers).volume for part in parts)
    assert len(parts) == 2 and volume == pytest.approx(3.0 / 8.0, rel=0.08)  # less the rounding
    ball = mb.sphere("world", 0.1, [0.7, 0.7, 0.25])  # 0.2 m from both walls of the notch
    q = mb.neutral(model)
    gaps = [float(mb.distance(model, q, ball, part).distance) for part in parts]
    assert gaps == pytest.approx([0.1, 0.1], abs=0.01)
    (whole,) = mb.contact_shapes(model)
    assert mb.distance(model, q, ball, whole).distance < 0.0


@pytest.mark.long
def test_the_same_mesh_gives_the_same_parts():
    first, again = mb.convex_parts(l_profile()), mb.convex_parts(l_profile())
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert len(mb.convex_parts(l_profile(), most=1)) == 1


def test_its_library_stays_out_of_this_process():
    """CoACD's library, once loaded, breaks Pinocchio's reader of URDF files."""
    lines = (
        "import sys; from tests.multibody.test_decomposition import l_profile, mb",
        "assert len(mb.convex_parts(l_profile())) == 2 and 'coacd' not in sys.modules",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=ROOT, check=True)


def test_a_mesh_that_cannot_be_cut():
    """CoACD ends the process on a mesh without triangles; only its own one."""
    with pytest.raises(RuntimeError, match="CoACD could not cut the mesh into parts"):
        mb.convex_parts(mb.Surface(np.zeros((0, 3)), np.zeros((0, 3), int)))


def test_messages(monkeypatch):
    with pytest.raises(ValueError, match=r"concavity must be between 0.01 and 1, got 2"):
        mb.convex_parts(l_profile(), 2)
    with pytest.raises(ValueError, match="most, the largest number of parts,"):
        mb.convex_parts(l_profile(), most=0)
    with pytest.raises(TypeError, match="surface"):
        mb.convex_parts(np.zeros((4, 3)))
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(ImportError, match="convex"):
        mb.convex_parts(l_profile())
