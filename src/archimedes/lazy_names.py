"""Packages whose names are imported when first used, so that importing them costs little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    ``homes`` lists, a line a module (its full name), the names that it gives to users, with
    spaces between them.

    >>> get = lazy_names("archimedes.function", {"archimedes.function.batching.vmap_calls": "vmap"})
    >>> get("vmap").__name__
    'vmap'
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        # Found without this function from now on.
        setattr(sys.modules[package], name, value)
        return value

    return get
