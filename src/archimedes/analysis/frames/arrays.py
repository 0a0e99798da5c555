"""Arrays: products, elements and attributes of values, without reports."""

from __future__ import annotations

import ast

from archimedes.analysis.frames.values import (
    ARRAY,
    SCALAR,
    TRIG,
    ZERO,
    Map,
    Sequence,
    Value,
    Vector,
    frame_of,
    join,
    root,
)

__all__ = ["attribute_of", "element", "elements", "fold", "key_of_node", "multiply"]


def multiply(a: Value, b: Value) -> Value:
    """Return an elementwise product: numbers scale, vectors in one frame keep it."""
    if a is ZERO or b is ZERO:
        return ZERO
    if a in (SCALAR, TRIG) and b in (SCALAR, TRIG):
        return TRIG if TRIG in (a, b) else SCALAR
    if TRIG in (a, b):
        return TRIG if a is None or b is None else None
    if isinstance(a, Vector) and isinstance(b, Vector):
        same = root(a.frame) == root(b.frame)
        return Vector(a.frame, None, a.many or b.many) if same else None
    if isinstance(a, Map) and isinstance(b, Map):
        return quaternion_product(a, b)
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Vector) and (other is None or other is SCALAR):
            return Vector(value.frame, None, value.many, value.partial, value.loose)
        if isinstance(value, Map) and (other is None or other is SCALAR) and value.style == "J":
            return value
    return None


def quaternion_product(a: Map, b: Map) -> Value:
    """Return a product of attitudes, in whichever order the adjacent frames are the same."""
    a_to, a_frm, b_to, b_frm = map(frame_of, (a.to, a.frm, b.to, b.frm))
    inner, outer = a_frm is not None and a_frm == b_to, a_to is not None and a_to == b_frm
    if inner and not outer:
        return Map(a.to, b.frm)
    if outer and not inner:
        return Map(b.to, a.frm)
    return None


def elements(value: Value) -> Value:
    """Return what is known of the elements of a value that is iterated over."""
    if isinstance(value, Sequence):
        found: Value = value.items[0] if value.items else None
        for item in value.items[1:]:
            found = join(found, item)
        return found
    if isinstance(value, Vector):
        return Vector(value.frame, None) if value.many else SCALAR
    return None


def fold(value: Value) -> Value:
    """Return the array that a list of values makes: vectors in one frame stay in it."""
    if not isinstance(value, Sequence):
        return value
    items = [fold(item) for item in value.items]
    if items and all(item is ZERO for item in items):
        return ZERO
    if all(item in (ZERO, SCALAR, ARRAY) for item in items):
        return ARRAY
    vectors = [item for item in items if isinstance(item, Vector)]
    same = len(vectors) == len(items) and len({root(v.frame) for v in vectors}) == 1
    return Vector(vectors[0].frame, None, True) if same else None


def attribute_of(value: Vector | Map, name: str) -> Value:
    """Return an attribute of an array, attitude or transformation."""
    if isinstance(value, Vector):
        if name in ("T", "mT"):  # columns become rows, or the other way round
            return Vector(value.frame, None, value.many or value.partial, not value.partial)
        return SCALAR if name in ("size", "ndim", "shape") else None
    if name in ("T", "mT"):
        return value.swap()
    if name in ("r", "R", "rotation", "rot"):
        return Map(value.to, value.frm) if value.style == "X" else None
    if name in ("t", "translation", "position", "p", "pos") and value.style == "X":
        return Vector(value.to)
    return value if name in ("array", "matrix", "real") else None


def element(base: Value, index: ast.expr) -> Value:
    """Return what is known of a part of an array."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if not parts:  # x[()]
        return base
    last = parts[-1]
    whole = [isinstance(p, ast.Slice) for p in parts]
    number = is_number(last)
    if isinstance(base, Sequence):
        if len(parts) == 1 and isinstance(last, ast.Constant) and isinstance(last.value, int):
            items = base.items
            return items[last.value] if -len(items) <= last.value < len(items) else None
        return None
    if isinstance(base, Vector):
        if any(isinstance(p, ast.Constant) and p.value is None for p in parts):
            return Vector(base.frame, None, base.many, True)
        if base.partial:
            return None
        if whole[-1]:
            return Vector(base.frame, None, base.many)
        if len(parts) == 1 and number:
            return Vector(base.frame) if base.many else SCALAR
        if len(parts) == 1 and not base.loose and isinstance(last, (ast.Name, ast.BinOp)):
            return Vector(base.frame, loose=True)
        dots = isinstance(parts[0], ast.Constant) and parts[0].value is ...
        return SCALAR if dots and number else None
    if isinstance(base, Map) and base.style not in "CT":
        if len(parts) == 1:
            return base if whole[0] and base.style == "J" else None
        if len(parts) == 2 and not any(whole):
            return TRIG  # an element of a rotation
        if whole[-1] and whole[-2]:
            return Map(base.to, base.frm, "R" if base.style == "X" else base.style)
        if whole[-2] and number:
            return Vector(base.to)
        if whole[-1] and is_number(parts[-2]):
            return Vector(base.frm) if base.style in "RQ" else None
    return None


def is_number(node: ast.expr) -> bool:
    """Return whether an index is one whole number that stands in the source."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def key_of_node(node: ast.AST) -> str | None:
    """Return ``x.att`` for a name or attribute, None for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
