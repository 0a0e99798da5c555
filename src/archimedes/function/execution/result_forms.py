"""How the native entry builds a result: the tree of a recording as structs, tuples and leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from archimedes.backends.entry_forms import Form, Known, Leaf, Struct, Tuple
from archimedes.function.execution.shortcuts import SIMPLE, is_plain_struct
from archimedes.function.recording import Recording
from archimedes.tree.specialise import field_names
from archimedes.tree.treedef import LEAF, TreeDef

__all__ = ["result_form"]


def result_form(recording: Recording) -> Form | None:
    """Return the form of a result, or None where it has parts that the entry cannot build."""
    if any(not out.spec.traced for out in recording.outs):
        return None
    return _form(recording.out_tree, iter(range(len(recording.outs))))


def _form(node: TreeDef, places: Iterator[int]) -> Form | None:
    if node is LEAF:
        return Leaf(next(places))
    cls = node.kind.cls
    if cls is type(None):
        return Known(None)
    parts = tuple(part for child in node.children if (part := _form(child, places)) is not None)
    if len(parts) < len(node.children):
        return None
    if cls is tuple:
        return Tuple(parts)
    if not is_plain_struct(node) or any(type(v) not in SIMPLE for v in node.aux or ()):
        return None
    data, static = field_names(cls)
    fields = tuple(sys.intern(name) for name in (*data, *static))
    return Struct(cls, fields, (*parts, *(Known(v) for v in node.aux or ())))
