"""Vehicles from files: the parameters that come with each, and those that users write.

A configuration is the typed fields of a parameter file, and the part they are made into. Every key
is needed, so that a file says all there is to say. Values are in SI units and radians; the
parameter file beside each vehicle names the unit of each. A configuration makes its part once when
it is read: what the part refuses is reported with the file and the key it stands under.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from archimedes.errors import StructError, refer_to
from archimedes.tree import StructConfig, UnionConfig
from archimedes.tree.config_files import read_data
from archimedes.tree.config_types import read
from archimedes.tree.struct_methods import nearest, replace
from archimedes.vehicles.worlds import FlatEarth, RotatingEarth

__all__ = ["load", "parameter_file"]

#: Three numbers of a parameter file.
Triple = tuple[float, float, float]
World = Literal["flat_earth", "rotating_earth"]
WORLDS = {"flat_earth": FlatEarth, "rotating_earth": RotatingEarth}


class PartConfig(StructConfig):
    """A configuration whose fields are the arguments of `makes`, the class of the part.

    It makes the part when it is read, so that an error appears under the part's own key.
    """

    makes: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        """Make the part; what it refuses becomes an error of this key."""
        if hasattr(type(self), "makes"):
            self.build()

    def build(self) -> Any:
        """Return the part."""
        names = [field.name for field in dataclasses.fields(self)]
        return type(self).makes(**{name: _argument(getattr(self, name)) for name in names})


class VehicleConfig(PartConfig):
    """The configuration of a whole vehicle: `load` finds it by its type.

    ``class GliderConfig(VehicleConfig, type="glider")`` reads files that say ``type: glider``.
    """


def _argument(value: Any) -> Any:
    """Return a field of a configuration as the argument of its part."""
    if isinstance(value, StructConfig):
        return value.build()
    if isinstance(value, list):
        return tuple(map(_argument, value))
    if isinstance(value, tuple):
        return np.array(value)
    return WORLDS[value]() if isinstance(value, str) else value


FOLDER = Path(__file__).parent
SUFFIXES = (".yaml", ".yml", ".json")


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
    known = sorted(p.stem for p in FOLDER.glob("*/*.yaml") if p.stem == p.parent.name)
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
    configurations = {c.config_type: c for c in VehicleConfig.__subclasses__()}
    try:
        vehicle = read(data, UnionConfig[tuple(configurations.values())], "").build()
    except StructError as error:
        raise StructError(f"{path}: {error}") from error
    return replace(vehicle, **parts) if parts else vehicle
