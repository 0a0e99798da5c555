"""Functions that a lower package calls by name and a package above it provides.

``f.precision(...)`` is a method of compiled functions, but what it does stands above them. The top
of this package says which module has it (``archimedes/__init__.py``); it is imported when it is
first called.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing it from ``typing`` would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

__all__ = ["provide", "provided"]

_modules: dict[str, str] = {}


def provide(**modules: str) -> None:
    """Say which module has the function of each name."""
    _modules.update(modules)


def provided(name: str) -> Any:
    """Return the function that is provided under a name.

    >>> provide(prod="math")
    >>> provided("prod")([2, 3])
    6
    """
    return getattr(import_module(_modules[name]), name)
