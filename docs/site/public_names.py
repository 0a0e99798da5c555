"""The public names, read off the packages themselves: ``__all__``, home modules, values."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from archimedes import tree

__all__ = [
    "PACKAGES",
    "Name",
    "described_parameters",
    "names_of",
    "public_names",
    "undescribed_parameters",
]

#: Packages with names for users, in the order of the reference, and what they are for.
PACKAGES = {
    "archimedes": "Recording, derivatives, loops, batches, solvers: what models are written with",
    "archimedes.tree": "Structs, trees of arrays, configuration files",
    "archimedes.simulate": "Differential equations, events, sampled parts, campaigns",
    "archimedes.spatial": "Attitudes, transformations, frames, rigid bodies",
    "archimedes.environment": "Earth, gravity, air, wind, magnetic field, Sun",
    "archimedes.vehicles": "Aircraft, multirotor, satellite, rocket, car; trim and modes",
    "archimedes.vehicles.parts": "What vehicles are made of",
    "archimedes.vehicles.sensors": "Sensors with seeded errors",
    "archimedes.vehicles.dave_ml": "Models in files of ANSI/AIAA S-119",
    "archimedes.multibody": "Robots: files, dynamics, kinematics, contact",
    "archimedes.control": "Regulators, Riccati equations, discretisation, blocks",
    "archimedes.observers": "Kalman filters and smoothers",
    "archimedes.sysid": "Models from measured data",
    "archimedes.optimize": "Minima, quadratic programs, fits, roots, optimal control",
    "archimedes.optimize.collocation": "Nodes, weights and matrices of polynomials",
    "archimedes.requirements": "Requirements in temporal logic, falsification",
    "archimedes.analysis": "Units, frames, digits: models that check themselves",
    "archimedes.random": "Random numbers as functions of keys",
    "archimedes.special": "Special functions",
    "archimedes.embedded": "C projects, WebAssembly modules, emulated boards, reports",
    "archimedes.interchange": "Models and data that travel to other tools, and theirs to us",
    "archimedes.interchange.environments": "Environments for reinforcement learning",
    "archimedes.viz": "Plots and pictures",
    "archimedes.viewer": "Scenes in three dimensions: pages, pictures, live",
    "archimedes.function": "The functions of `arc` at home, and two for authors of libraries",
    "archimedes.errors": "Errors that users meet",
    "archimedes.error": "Errors, under the name of the original",
    "archimedes.theme": "Colours of plots, under the name of the original",
    "archimedes.typing": "Types for annotations",
}


@dataclass(frozen=True)
class Name:
    """A public name: where it is listed, its value, and where else the same value is documented."""

    package: str
    name: str
    value: Any
    same_as: str | None

    @property
    def full(self) -> str:
        """The name with its package."""
        return f"{self.package}.{self.name}"

    @property
    def kind(self) -> str:
        """Return "module", "exception", "class", "function" or "data"."""
        value = self.value
        if isinstance(value, ModuleType):
            return "module"
        if self.package == "archimedes.typing":
            return "data"  # aliases, whatever stands behind them
        if inspect.isclass(value):
            return "exception" if issubclass(value, BaseException) else "class"
        return "function" if inspect.isroutine(value) else "data"

    @property
    def text(self) -> str:
        """Its docstring; of data the comment in front of the assignment."""
        if self.kind == "data":
            return _comment(self.name, self.package) or f"A value of type {_type(self.value)}."
        home = getattr(self.value, "__module__", "")
        return inspect.getdoc(self.value) or f"``{self.name}`` of Python's module ``{home}``."


def present() -> list[str]:
    """Return the packages that there are, in order."""
    return [p for p in PACKAGES if importlib.util.find_spec(p)]


@cache
def public_names() -> tuple[Name, ...]:
    """Return all public names; a value listed by several packages has its page at the first."""
    first: dict[int, str] = {}
    found = []
    for package in present():
        module = importlib.import_module(package)
        for name in sorted(module.__all__, key=str.lower):
            value = getattr(module, name)
            full = f"{package}.{name}"
            own = None if isinstance(value, (ModuleType, int, float, str)) else id(value)
            same = first.setdefault(own, full) if own is not None else full
            found.append(Name(package, name, value, None if same == full else same))
    return tuple(found)


def names_of(package: str) -> list[Name]:
    """Return the names of one package."""
    return [n for n in public_names() if n.package == package]


def _type(value: Any) -> str:
    return type(value).__name__


def _comment(name: str, package: str) -> str:
    """Return the lines ``#: ...`` in front of an assignment, in a module below the package."""
    top = Path(importlib.import_module(package).__file__ or "").parent
    pattern = re.compile(rf"((?:^#: .*\n)+){re.escape(name)}\b[^\n=]*=", re.MULTILINE)
    for path in sorted(top.rglob("*.py")):
        if found := pattern.search(path.read_text("utf-8")):
            return "\n".join(line[3:] for line in found[1].splitlines())
    return ""


# ---- which parameters docstrings describe ------------------------------------------------------

SECTION = re.compile(r"^(Other )?Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.M)
ENTRY = re.compile(r"^([*\w]+(?:, [*\w]+)*)(?: :.*)?$", re.MULTILINE)


def described_parameters(docstring: str) -> set[str]:
    """Return the names in the section "Parameters" of a docstring in NumPy's format.

    >>> sorted(described_parameters('''Draw.
    ...
    ... Parameters
    ... ----------
    ... x, y : float
    ...     Position in m.
    ... *more
    ...     Further ones.
    ... '''))
    ['more', 'x', 'y']
    """
    names: set[str] = set()
    for section in SECTION.finditer(inspect.cleandoc(docstring) + "\n"):
        for entry in ENTRY.finditer(section[2]):
            names.update(part.strip().lstrip("*") for part in entry[1].split(","))
    return names


def undescribed_parameters(name: Name) -> Iterator[str]:
    """Yield ``function(parameter)`` for each parameter that a public name leaves undescribed."""
    if isinstance(name.value, type) and issubclass(name.value, enum.Enum):
        return  # made by nobody but the class itself
    if name.kind in ("function", "class"):
        yield from _undescribed(name.full, name.value, name.text)
    if name.kind == "class":
        for member, value in _methods(name.value):
            yield from _undescribed(f"{name.full}.{member}", value, inspect.getdoc(value) or "")


def _undescribed(label: str, value: Any, docstring: str) -> Iterator[str]:
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return  # builtins have no signature
    described = described_parameters(docstring)
    for name in parameters:
        if not name.startswith("_") and name not in ("self", "cls") and name not in described:
            yield f"{label}({name})"


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods, and the classes inside, that a class itself defines."""
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name, raw in vars(cls).items():
        if name.startswith("_") or name in fields or getattr(cls, name) is tree.replace:
            continue
        value = getattr(cls, name)
        if inspect.isclass(value):
            if value.__qualname__ == f"{cls.__qualname__}.{name}":
                yield name, value
        elif isinstance(raw, (classmethod, staticmethod)) or inspect.isfunction(value):
            yield name, value
