"""Vehicles from files: the parameters that come with each, and those that users write.

Values are in SI units and radians; the parameter file beside each vehicle names the unit of each.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from archimedes.errors import StructError, refer_to
from archimedes.tracebacks import publish
from archimedes.tree import UnionConfig
from archimedes.tree.config import in_file, read
from archimedes.tree.config_files import read_data
from archimedes.tree.struct_methods import nearest, replace
from archimedes.vehicles.vehicle_folders import VehicleConfig

__all__ = ["load", "parameter_file"]

FOLDER = Path(__file__).parent
SUFFIXES = (".yaml", ".yml", ".json")


def vehicle_names() -> list[str]:
    """Return the names of the vehicles that have a folder here."""
    return sorted(p.stem for p in FOLDER.glob("*/*.yaml") if p.stem == p.parent.name)


def parameter_file(name: str) -> Path:
    """Return the parameter file that comes with a vehicle, to read or to copy.

    Parameters
    ----------
    name : str
        Name of the vehicle.

    Examples
    --------
    >>> from archimedes.vehicles import parameter_file
    >>> parameter_file("f16").name
    'f16.yaml'
    """
    known = vehicle_names()
    if name not in known:
        raise StructError(
            f"no vehicle {name!r} ({nearest(name, known)}); the name of a file of your own "
            f"ends in one of {', '.join(SUFFIXES)}" + refer_to("vehicle")
        )
    return FOLDER / name / f"{name}.yaml"


def load(source: str | os.PathLike[str], **parts: Any) -> Any:
    """Return the vehicle of a parameter file.

    Copy the file that `parameter_file` returns and change its numbers. Unknown and missing keys,
    wrong types and impossible values are errors that name file and key.

    Parameters
    ----------
    source : str or path
        Name of a vehicle ("f16", "car", ...), or path of a parameter file. Its key ``type`` says
        which vehicle it describes.
    **parts
        Fields that replace those of the file: ``load("f16", world=FlatEarth())``.

    Examples
    --------
    >>> from archimedes.vehicles import load
    >>> load("car").mass
    1500.0
    """
    named = isinstance(source, str) and not source.lower().endswith(SUFFIXES)
    path = parameter_file(str(source)) if named else Path(source)
    data = read_data(path)
    for name in vehicle_names():
        import_module(f"archimedes.vehicles.{name}.{name}")
    types: dict[Any, Any] = {c.config_type: c for c in VehicleConfig.__subclasses__()}
    try:
        vehicle = read(data, UnionConfig[tuple(types[name] for name in sorted(types))], "").build()
    except StructError as error:
        raise in_file(error, path) from error
    publish(type(vehicle), __package__)  # which may not have been asked for by its name
    return replace(vehicle, **parts) if parts else vehicle
