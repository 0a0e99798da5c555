"""`read` and `load`: files of robots by their suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from archimedes.multibody.files.mjcf import read_mjcf
from archimedes.multibody.files.robot_elements import Packages
from archimedes.multibody.files.sdf import read_sdf
from archimedes.multibody.files.urdf import read_urdf
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.model import Model
from archimedes.typing import ArrayLike

__all__ = ["load", "read"]

READERS: dict[str, Callable[..., Builder]] = {
    ".urdf": read_urdf,
    ".xml": read_mjcf,
    ".mjcf": read_mjcf,
    ".sdf": read_sdf,
}


def read(path: str | os.PathLike[str], packages: Packages = None) -> Builder:
    """Return a `Builder` of a robot file (URDF, SDF, MJCF), to change it or read its `report`.

    Parameters
    ----------
    path : path
        The file.
    packages : path or sequence of path, optional
        Folders of the packages that paths in the file name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from archimedes.multibody import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "bob.urdf"
    ...     _ = file.write_text('<robot name="bob"><link name="base"/><link name="bob"/>'
    ...         '<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/>'
    ...         '</joint><sensor/></robot>')
    ...     print(read(file).report)
    used: 1 joint, 2 link
    ignored:
      bob.urdf:1: <sensor> is not part of a robot
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".xacro":
        remedy = "run xacro on the file and load the result as .urdf"
        raise ValueError(f"{os.fspath(path)}: macros of xacro are not expanded here: {remedy}")
    if suffix not in READERS:
        raise ValueError(
            f"{os.fspath(path)}: robots are read from files {', '.join(READERS)}, not {suffix!r}"
        )
    return READERS[suffix](path, packages)


def load(
    path: str | os.PathLike[str],
    base: str | None = None,
    *,
    gravity: ArrayLike | None = None,
    strict: bool = False,
    packages: Packages = None,
    physical: bool = True,
    density: float | None = None,
) -> Model:
    """Return the model of a robot file: URDF, SDF, or MJCF with the extra `robots`.

    Parameters
    ----------
    path : path
        The file.
    base : {"fixed", "floating"}, optional
        Whether the root is fixed to the world or floats on a joint ``"root_joint"``. By default as
        the file says: a model of an SDF file floats unless it is static or joined to the world,
        others are fixed.
    gravity : array (3,), optional
        Gravitational acceleration in m/s^2. By default that of the file, else (0, 0, -9.81).
    strict : bool, optional
        Raise if something in the file is not in the model as it stands there; ``read(path).report``
        lists that. False by default.
    packages : path or sequence of path, optional
        Folders of the packages that paths in the file name.
    physical : bool, optional
        Refuse bodies whose inertia no distribution of mass has. True by default.
    density : float, optional
        Density in kg/m^3 from which links without mass get that of their shapes. None by default.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from archimedes.multibody import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "bob.urdf"
    ...     _ = file.write_text('<robot name="bob"><link name="base"/><link name="bob"/>'
    ...         '<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/>'
    ...         '</joint></robot>')
    ...     load(file)
    Model('bob': 1 body, 0 kg, nq=1, nv=1)
    """
    builder = read(path, packages)
    if strict:
        builder.report.check()
    if density is not None:
        builder.fill_inertias(density)
    try:
        return builder.build(base, gravity, physical)
    except ValueError as error:
        raise ValueError(f"{Path(path).name}: {error}") from None
