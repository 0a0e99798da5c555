"""Packages whose names are imported when first used, so that importing them costs little.

The names of such a package stand once, in its ``__init__.pyi``, one line per name::

    from archimedes.function.batching.vmap import vmap as vmap

Editors and type checkers read that file, and so does :func:`lazy_names`. What it returns are the
boundaries at which errors lose the frames of this package (``tracebacks.py``).
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # importing it from ``typing`` would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_names(
    package: str, unlisted: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that has a stub.

    Modules in ``unlisted``, with spaces between them, are imported on first use too, but are none
    of the names that the package offers.

    >>> import archimedes.random
    >>> get, names, public = lazy_names("archimedes.random")
    >>> get("uniform").__name__, "uniform" in names(), "uniform" in public
    ('uniform', True, True)
    """
    home = _homes(package)
    public = sorted(home)
    unpublished = {name: module for name, module in home.items() if module != package}
    home.update(dict.fromkeys(unlisted.split(), package))

    def get(name: str) -> Any:
        try:
            return find(name)
        except BaseException as error:
            if not name.startswith("__"):  # those are asked for by Python itself
                from archimedes.tracebacks import hide_frames

                hide_frames(error)
            raise

    def find(name: str) -> Any:
        if name not in home:
            text = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[package])
        if home[name] == package:  # a package or module inside it
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home[name]), name)
        from archimedes.tracebacks import publish

        # Classes too that came along, such as those of results.
        for other, module in list(unpublished.items()):
            part = vars(sys.modules[module]).get(other) if module in sys.modules else None
            if isinstance(part, type):
                publish(part, package)
                unpublished.pop(other, None)
        value = publish(value, package)
        # Found without this function from now on.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return get, names, public


def _homes(package: str) -> dict[str, str]:
    """Read the stub of a package: which module each name is from."""
    spec: Any = sys.modules[package].__spec__
    # The loader also reads packages that are imported from an archive.
    text = spec.loader.get_data(f"{spec.submodule_search_locations[0]}/__init__.pyi").decode()
    home: dict[str, str] = {}
    for line in text.replace("(\n", "").replace(",\n)", "").splitlines():  # long lines wrap
        words = line.split()
        if words and words[0] == "from":
            home.update(dict.fromkeys(words[5::3], words[1]))
    return home
