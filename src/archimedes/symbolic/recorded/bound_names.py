"""Names that ``from numpy import zeros`` bound before a recording, replaced while it lasts.

Those who replace functions ``register`` them with what takes their place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["register", "replace", "restore"]

#: Functions by id: the function, and what takes its place while recording.
_functions: dict[int, tuple[Any, Any]] = {}
#: Modules that were looked at -> how many names they had then.
_seen: dict[str, int] = {}
#: Where such functions are bound: the globals, the name there, the function, its replacement.
_places: list[tuple[dict[str, Any], str, Any, Any]] = []
_replaced: list[tuple[dict[str, Any], str, Any, Any]] = []
#: How many modules there were when all were looked at, and those that are none of a user's.
_count = 0
_others: set[str] = set()
#: Tables that were registered, by id; they are never let go.
_registered: dict[int, dict[str, Any]] = {}


def register(originals: dict[str, Any], replacements: dict[str, Any]) -> None:
    """Let functions be replaced wherever modules of users have bound them, once and for all."""
    global _count
    if id(originals) in _registered:
        return
    _registered[id(originals)] = originals
    new = {id(f): (f, replacements[name]) for name, f in originals.items()}
    if not new.keys() <= _functions.keys():
        _functions.update(new)
        _seen.clear()  # every module may have one of them
        _places.clear()
        _count = 0


def _look(module: str, names: dict[str, Any]) -> None:
    if _seen.get(module) == len(names):
        return
    known = {place[1] for place in _places if place[0] is names}
    for name, value in list(names.items()):
        pair = _functions.get(id(value))
        if pair is not None and name not in known:
            _places.append((names, name, *pair))
    _seen[module] = len(names)


def _names_of(module: Any) -> dict[str, Any]:
    """Return the names of a module as they are: one that loads when it is looked at does not."""
    try:
        names = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}


def _find(internal: Callable[[str], bool]) -> None:
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
            _look(module, _names_of(sys.modules.get(module)))


def replace(internal: Callable[[str], bool]) -> None:
    """Replace functions where modules of users have bound them to names of their own."""
    _find(internal)
    for names, name, original, replacement in _places:
        if names.get(name) is original:
            names[name] = replacement
            _replaced.append((names, name, original, replacement))


def restore() -> None:
    """Undo ``replace``; a name that was bound anew meanwhile stays."""
    for names, name, original, replacement in _replaced:
        if names.get(name) is replacement:
            names[name] = original
    _replaced.clear()
