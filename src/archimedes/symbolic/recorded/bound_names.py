"""Names that ``from numpy import zeros`` bound, replaced while a recording lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["replace", "restore"]

#: Modules of users that were looked at -> how many names they had then.
_seen: dict[str, int] = {}
#: Modules that are none of a user's.
_others: set[str] = set()
#: How many modules there were when all were looked at.
_count = 0
#: Where functions are bound: the globals, the name there, the function.
_places: list[tuple[dict[str, Any], str, Any]] = []


def _names_of(module: Any) -> dict[str, Any]:
    """Return the names of a module as they are: one that loads when it is looked at does not."""
    try:
        names = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}


def _look(module: str, names: dict[str, Any], stands: Mapping[int, Any]) -> None:
    if _seen.get(module) == len(names):
        return
    known = {place[1] for place in _places if place[0] is names}
    for name, value in list(names.items()):
        if id(value) in stands and name not in known:
            _places.append((names, name, value))
    _seen[module] = len(names)


def _find(internal: Callable[[str], bool], stands: Mapping[int, Any]) -> None:
    """Look through new modules; the main one (a notebook) grows, and is looked at again."""
    global _count
    grew = len(sys.modules) != _count
    _count = len(sys.modules)
    for module in list(sys.modules) if grew else ["__main__"]:
        if module in _others or (module in _seen and module != "__main__"):
            continue
        if internal(module) or module.partition(".")[0] in sys.stdlib_module_names:
            _others.add(module)
        else:
            _look(module, _names_of(sys.modules.get(module)), stands)


def replace(internal: Callable[[str], bool], stands: Mapping[int, Any]) -> None:
    """Replace functions where modules of users have bound them; ``stands`` are by their ids."""
    _find(internal, stands)
    for names, name, original in _places:
        if names.get(name) is original:
            names[name] = stands[id(original)]


def restore(originals: Mapping[int, Any]) -> None:
    """Undo ``replace``; ``originals`` are by the ids of what stands for them.

    A name that was bound anew meanwhile stays. Modules that were imported meanwhile, by any
    thread, get the originals too.
    """
    for names, name, original in _places:
        if originals.get(id(names.get(name))) is original:
            names[name] = original
    main = _names_of(sys.modules.get("__main__"))
    fresh = [main] if len(main) != _seen.get("__main__") else []
    if len(sys.modules) != _count:
        new = [name for name in list(sys.modules) if name not in _others and name not in _seen]
        fresh += [_names_of(sys.modules.get(name)) for name in new]
    for names in fresh:
        for name, value in list(names.items()):
            if id(value) in originals:
                names[name] = originals[id(value)]
