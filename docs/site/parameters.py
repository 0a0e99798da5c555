"""Which parameters of public functions, classes and methods their docstrings describe."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

from archimedes import tree
from docs.site.public_names import Name

__all__ = ["described_parameters", "undescribed_parameters"]

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
