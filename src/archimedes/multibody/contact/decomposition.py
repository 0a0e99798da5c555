"""Concave meshes as several convex parts, by CoACD.

CoACD runs in a process of its own: its library breaks how others of the same process read
numbers (Pinocchio's reader of URDF files).
Source: Wei, Liu, Ling and Su, Approximate convex decomposition for 3D meshes with collision-aware
concavity and tree search, ACM Transactions on Graphics 41, 2022.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from archimedes.checks import check_that, check_type, check_whole
from archimedes.installation import install_command
from archimedes.multibody.parts.geometry import Surface
from archimedes.system.programs import run_program
from archimedes.typing import Array

__all__ = ["convex_parts"]

#: Reads mesh.npz in a folder, and writes parts.npz.
PROGRAM = """
import json, sys
folder, given, *sys.path = sys.argv[1:]
import coacd, numpy as np
coacd.set_log_level("error")
with np.load(folder + "/mesh.npz") as mesh:
    mesh = coacd.Mesh(mesh["vertices"], mesh["triangles"])
parts = coacd.run_coacd(mesh, **json.loads(given))
np.savez(folder + "/parts.npz", *(vertices for vertices, _ in parts))
"""


def convex_parts(surface: Surface, concavity: float = 0.05, most: int = 64) -> list[Array]:
    """Return the vertices of convex parts that cover a mesh, for `hull`.

    The same mesh gives the same parts. Needs the extra ``convex``.

    Parameters
    ----------
    surface : Surface
        The mesh: a closed surface.
    concavity : float, optional
        How concave a part may be, from 0.01 to 1, relative to the size of the mesh. 0.05 by
        default. Smaller values give more parts, which bulge out of the mesh less.
    most : int, optional
        The largest number of parts, 64 by default.

    Returns
    -------
    list of array (k, 3)
        Vertices of each part in m.

    Examples
    --------
    An L is cut into two boxes:

    >>> from archimedes.multibody import Surface, convex_parts
    >>> outline = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]
    >>> vertices = [[x, y, z] for z in (0, 1) for x, y in outline]
    >>> bottom = [[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 5, 4]]
    >>> top = [[6 + a, 6 + c, 6 + b] for a, b, c in bottom]
    >>> walls = [[k, (k + 1) % 6, k + 6] for k in range(6)]
    >>> walls += [[(k + 1) % 6, (k + 1) % 6 + 6, k + 6] for k in range(6)]
    >>> len(convex_parts(Surface(vertices, bottom + top + walls)))
    2
    """
    check_type(surface, "surface", Surface, "Surface(vertices, triangles) makes one")
    check_that(
        lambda x: (x >= 0.01) & (x <= 1.0), concavity, "concavity", "must be between 0.01 and 1"
    )
    check_whole(most, "most, the largest number of parts,", 1)
    if importlib.util.find_spec("coacd") is None:
        raise ImportError(f"coacd cuts meshes into parts: {install_command('convex')}")
    with TemporaryDirectory() as folder:
        np.savez(Path(folder) / "mesh.npz", vertices=surface.vertices, triangles=surface.triangles)
        given = json.dumps({"threshold": float(concavity), "max_convex_hull": int(most)})
        done = run_program([sys.executable, "-c", PROGRAM, folder, given, *sys.path])
        if done.returncode:
            raise RuntimeError(f"CoACD could not cut the mesh into parts: {done.stderr[-1000:]}")
        with np.load(Path(folder) / "parts.npz") as parts:
            return [parts[name] for name in parts]
