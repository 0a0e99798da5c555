"""Names that ``from numpy import zeros`` bound before a recording, replaced while it lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["replace", "restore"]

#: Modules that were looked at -> how many names they had then.
_seen: dict[str, int] = {}
#: Where functions of NumPy are bound: the globals, the name there, NumPy's name.
_places: list[tuple[dict[str, Any], str, str]] = []
_replaced: list[tuple[dict[str, Any], str, Any, Any]] = []
#: How many modules there were when all were looked at.
_count = 0


def _look(module: str, names: dict[str, Any], by_id: dict[int, str]) -> None:
    if _seen.get(module) == len(names):
        return
    known = {name for where, name, _ in _places if where is names}
    for name, value in list(names.items()):
        function = by_id.get(id(value))
        if function is not None and name not in known:
            _places.append((names, name, function))
    _seen[module] = len(names)


def _find(originals: dict[str, Any], internal: Callable[[str], bool]) -> None:
    """Look through new modules; the main one (a notebook) grows, and is looked at again."""
    global _count
    by_id = {id(value): name for name, value in originals.items()}
    grew = len(sys.modules) != _count
    _count = len(sys.modules)
    for module in list(sys.modules) if grew else ["__main__"]:
        if not internal(module) and (module not in _seen or module == "__main__"):
            names = getattr(sys.modules.get(module), "__dict__", None)
            if isinstance(names, dict):
                _look(module, names, by_id)


def replace(
    originals: dict[str, Any], replacements: dict[str, Any], internal: Callable[[str], bool]
) -> None:
    """Replace NumPy's functions where modules of users have bound them to names of their own."""
    _find(originals, internal)
    for names, name, function in _places:
        if names.get(name) is originals[function]:
            names[name] = replacements[function]
            _replaced.append((names, name, originals[function], replacements[function]))


def restore() -> None:
    """Undo ``replace``; a name that was bound anew meanwhile stays."""
    for names, name, original, replacement in _replaced:
        if names.get(name) is replacement:
            names[name] = original
    _replaced.clear()
