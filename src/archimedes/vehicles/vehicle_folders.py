"""What the folder of a vehicle has beside its model: a parameter file, a flight and a scene.

A configuration is the typed fields of a parameter file, and the part they are made into: its keys
are the fields of the part. Every key is needed, so that a file says all there is to say. A
configuration makes its part once when it is read: what the part refuses is reported with the file
and the key it stands under.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from archimedes.tree import StructConfig, field
from archimedes.tree.config_files import read_data
from archimedes.vehicles.worlds import FlatEarth, FlightState, RotatingEarth

if TYPE_CHECKING:
    from archimedes.viewer import Flight, Scene

#: Three numbers of a parameter file.
Triple = tuple[float, float, float]
World = Literal["flat_earth", "rotating_earth"]
WORLDS = {"flat_earth": FlatEarth, "rotating_earth": RotatingEarth}
#: What a parameter file holds for an argument of a part, by the annotation of the argument.
HINTS: dict[str, Any] = {"Scalar": float, "float": float, "int": int, "bool": bool}
HINTS |= {"Vec3": Triple, "Matrix": np.ndarray}


class FolderScene:
    """A vehicle ``NAME.py`` that the function `add_to_scene` of ``NAME_scene.py`` shows."""

    def add_to_scene(self, scene: Scene, flight: Flight) -> None:
        """Add shape, motion, arrows and charts to a scene of `archimedes.viewer`.

        Parameters
        ----------
        scene : Scene
            The scene to add to.
        flight : Flight
            The flight to show.
        """
        import_module(f"{type(self).__module__}_scene").add_to_scene(self, scene, flight)

    def example_start(self) -> tuple[Any, Any] | None:
        """Return state and inputs at the start of ``NAME_flight.yaml``, or None without the file.

        Examples
        --------
        >>> from archimedes.vehicles import load
        >>> state, inputs = load("car").example_start()
        >>> type(inputs).__name__
        'Input'
        """
        from archimedes.vehicles.steady_flight import trim

        kind: Any = type(self)
        folder, _, module = kind.__module__.rpartition(".")
        path = resources.files(folder) / f"{module}_flight.yaml"
        if not path.is_file():
            return None
        with resources.as_file(path) as real:
            data = read_data(real)
        begin = {name: np.asarray(value, dtype=float) for name, value in data["start"].items()}
        zero = np.zeros(3)
        flight = FlightState(
            np.deg2rad(begin.get("lat", 0.0)), np.deg2rad(begin.get("lon", 0.0)), begin["alt"],
            begin["v_NED"], np.deg2rad(begin.get("rpy", zero)), np.deg2rad(begin.get("w_B", zero)),
        )  # fmt: skip
        given, inner = (
            {name: np.asarray(value, dtype=float) for name, value in data.get(part, {}).items()}
            for part in ("controls", "inner")
        )
        required = [
            f.name for f in dataclasses.fields(kind.Input) if f.default is f.default_factory
        ]
        u = kind.Input(**{**dict.fromkeys(required, 0.0), **given})
        if not data.get("trim"):
            return kind.state(self, flight, **inner), u
        steady = trim(self, flight, u, inner)
        return steady.state, steady.input


class PartConfig(StructConfig):
    """A configuration whose fields are the arguments of `makes`, the class of the part.

    Numbers, truth values and arrays among the fields of the part need not be declared again. What
    is annotated otherwise there, a part of the part or Any, is a key only if it is declared here.
    Units are those of the part's fields, or declared here.

    It makes the part when it is read, so that an error appears under the part's own key.
    """

    makes: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, **options: Any) -> None:
        part: Any = inspect.unwrap(cls.__dict__.get("makes", object))
        hints = {name: HINTS.get(hint) for name, hint in inspect.get_annotations(part).items()}
        numbers = {name: hint for name, hint in hints.items() if hint is not None}
        cls.__annotations__ = {**numbers, **inspect.get_annotations(cls)}
        for name, declared in getattr(part, "__dataclass_fields__", {}).items():
            if name in cls.__annotations__ and name not in cls.__dict__:
                setattr(cls, name, field(units=declared.metadata.get("units")))
        super().__init_subclass__(**options)

    def __post_init__(self) -> None:
        """Make the part; what it refuses becomes an error of this key."""
        if hasattr(type(self), "makes"):
            self.build()

    def build(self) -> Any:
        """Return the part."""
        names = [f.name for f in dataclasses.fields(self)]
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
