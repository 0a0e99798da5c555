"""The base of configurations: typed fields of a parameter file, and the part they are made into.

Every key is needed, so that a file says all there is to say. Values are in SI units and radians;
the parameter file beside each vehicle names the unit of each. A configuration makes its part once
when it is read: what the part refuses is reported with the file and the key it stands under.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from archimedes.tree import StructConfig
from archimedes.vehicles.worlds import FlatEarth, RotatingEarth

__all__ = ["PartConfig", "Vector", "VehicleConfig", "World"]

Vector = tuple[float, float, float]
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
