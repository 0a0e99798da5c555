"""Which static arguments of a call can change, so that they are looked at like what is read."""

from __future__ import annotations

import functools
from typing import Any

from archimedes.function.identity.object_parts import PARTS
from archimedes.function.identity.traversal import is_atom
from archimedes.graph.dtypes import STATIC

__all__ = ["changing_statics"]


def changing_statics(
    values: dict[str, Any], static: set[str], specs: Any, treedef: Any
) -> tuple[Any, ...]:
    """Return the static arguments that can change: arguments, leaves, fields of structs."""
    found = [values[name] for name in values if name in static] if static else []
    found += [spec.value for spec in specs if spec.code == STATIC]
    if treedef.num_leaves or treedef.children:
        found += _fields(treedef)
    for value in found:
        if type(value) in PARTS:  # made anew for each call, or known by its parts
            found = [p for v in found for p in (PARTS[type(v)](v) if type(v) in PARTS else (v,))]
            break
    return tuple(value for value in found if not is_atom(value))


@functools.lru_cache(maxsize=1024)
def _fields(treedef: Any) -> list[Any]:
    own = [] if is_atom(treedef.aux) else [treedef.aux]
    return [*own, *(value for child in treedef.children for value in _fields(child))]
