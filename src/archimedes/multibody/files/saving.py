"""`save`: files of robots by their suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from archimedes.checks import check_type
from archimedes.multibody.files.as_builder import builder_of
from archimedes.multibody.files.mjcf_writer import write_mjcf
from archimedes.multibody.files.urdf_writer import write_urdf
from archimedes.multibody.files.xml_text import MeshFiles
from archimedes.multibody.models.builder import Builder
from archimedes.multibody.models.builder_parts import Report
from archimedes.multibody.models.model import Model

__all__ = ["save"]

WRITERS: dict[str, Callable[[Builder, Path], tuple[str, MeshFiles, Report]]] = {
    ".urdf": write_urdf,
    ".xml": write_mjcf,
    ".mjcf": write_mjcf,
}
OTHER = {".urdf": "MJCF (.xml)", ".xml": "URDF (.urdf)", ".mjcf": "URDF (.urdf)"}


def save(model: Model, path: str | os.PathLike[str], *, strict: bool = True) -> Report:
    """Write a model as a URDF or MJCF file, by the ending of the path.

    `load` of the file returns the same model: its numbers have the same bits. Bodies that were
    welded to others are parts of these. Meshes that have no file of their own, or one that the
    format does not take, are written as OBJ files into a folder beside it, ``NAME_meshes``.

    Parameters
    ----------
    model : Model
        The model. Its numbers must be known, not traced.
    path : path
        The file: ``.urdf``, or ``.xml`` or ``.mjcf`` for MJCF.
    strict : bool, optional
        Write nothing if the format has no place for something in the model, and name it. With False
        that is left out, and the report says so. True by default.

    Returns
    -------
    Report
        What was used; ``approximated`` is what is in the file in another form, ``ignored`` what is
        not in it.

    Raises
    ------
    ValueError
        If the format has no such joint, or, with `strict`, no place for something else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0, 0, -0.5], inertia=[0.1, 0.1, 0.01])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0], lower=-1.0, upper=1.0)
    >>> model = b.build()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "pendulum.urdf"
    ...     report = mb.save(model, file)
    ...     again = mb.load(file)
    >>> report
    used: 1 joint, 2 link
    >>> np.array_equal(again.inertias, model.inertias), again.joint_names
    (True, ('hinge',))
    """
    check_type(model, "model", Model, "builder.build() returns the model of a builder")
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(
            f"{os.fspath(path)}: robots are written to files {', '.join(WRITERS)}, not {suffix!r}"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: there is no folder {target.parent}")
    try:
        text, meshes, report = WRITERS[suffix](builder_of(model), target)
    except ValueError as error:
        raise ValueError(f"{target.name}: {error}") from None
    if strict and report.ignored:
        lost = "\n  ".join(report.ignored[:10])
        more = f"\n  and {len(report.ignored) - 10} more" if len(report.ignored) > 10 else ""
        format = "URDF" if suffix == ".urdf" else "MJCF"
        remedy = f"Write {OTHER[suffix]}, or leave it out with strict=False"
        raise ValueError(f"{target.name}: {format} has no place for\n  {lost}{more}\n{remedy}")
    meshes.write()
    target.write_text(text, encoding="utf-8", newline="\n")
    return report
