"""What findings say: which frames meet, and what would be right with the names in scope."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from archimedes.analysis.frames.arrays import key_of_node
from archimedes.analysis.frames.names import parse_name
from archimedes.analysis.frames.scopes import last_name
from archimedes.analysis.frames.values import FrameVariable, Map, Vector, frame_of, label_of

__all__ = [
    "source",
    "two_frames",
    "wrong_argument",
    "wrong_index",
    "wrong_kind",
    "wrong_map",
    "wrong_operand",
    "wrong_path",
    "wrong_product",
    "wrong_rate",
    "wrong_vector",
]


def source(node: ast.AST, most: int = 60) -> str:
    """Return the source of a node in one line."""
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "..."
    text = text.splitlines()[0] if text else ""
    return text if len(text) <= most else text[: most - 3] + "..."


def names_in_scope(flow: Any) -> dict[str, str]:
    """Return the sources of names and attributes in the function, with their last parts."""
    kept = flow.checker.names
    if flow.root not in kept:
        found = kept[flow.root] = {}
        for n in ast.walk(flow.root):
            if isinstance(n, ast.arg):
                found[n.arg] = n.arg
            elif isinstance(n, (ast.Name, ast.Attribute)):
                found[key_of_node(n) or last_name(n)] = last_name(n)
    return kept[flow.root]


def maps_in_scope(flow: Any) -> Iterator[tuple[str, Map]]:
    """Yield the rotations that can be used here, by their source."""
    known = names_in_scope(flow)
    for key, name in known.items():
        value = flow.scope.declared(name)
        if isinstance(value, Map) and value.style != "J":
            yield key, value
    for key, value in flow.env.items():
        if isinstance(value, Map) and value.style != "J" and key not in known:
            yield key, value


def name_of_map(to: str, frm: str) -> str:
    """Return what a rotation between two frames is called."""
    return f"R_{to}{frm}" if len(to) == len(frm) == 1 else f"R_{to}_{frm}"


def find_map(flow: Any, to: str, frm: str) -> tuple[str, bool]:
    """Return the source of a rotation, and whether it is in scope."""
    backwards = ""
    for key, value in maps_in_scope(flow):
        ends = frame_of(value.to), frame_of(value.frm)
        if ends == (to, frm):
            return key, True
        if ends == (frm, to):
            backwards = backwards or invert(key)
    return (backwards, True) if backwards else (name_of_map(to, frm), False)


def invert(text: str) -> str:
    """Return the source of the inverse of a rotation."""
    for end in (".T", ".inv()"):
        if text.endswith(end):
            return text[: -len(end)]
    p = parse_name(text.rsplit(".", 1)[-1])
    return text + (
        ".T" if p is not None and p.head in ("R", "C", "dcm", "DCM", "rot") else ".inv()"
    )


def rotated(flow: Any, text: str, to: str, frm: str) -> str:
    """Return the source of a vector in another frame."""
    text = text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"
    if " " in to + frm:
        return f"turn {text} from {frm} to {to}"
    by, _ = find_map(flow, to, frm)
    plain = by.removesuffix(".inv()")
    p = parse_name(plain.removesuffix(".T").rsplit(".", 1)[-1])
    if p is None or p.head in ("q", "att", "attitude", "quat", "quaternion"):
        return f"{plain}.rotate({text}{', inverse=True' if by != plain else ''})"
    if p.style == "X":
        return f"{by}.apply({text})"
    return f"{by} @ {text}"


def two_frames(flow: Any, left: ast.expr, right: ast.expr, a: Vector | Map, b: Vector | Map) -> str:
    """Explain a sum or product of vectors in two frames."""
    first, second = ends(a)[0], ends(b)[0]
    x, y = source(left), source(right)
    if isinstance(a, Map):
        by, _ = find_map(flow, first, second)
        remedy = f"{by} @ {y} @ {invert(by)}"
    else:
        for node, frame in ((left, second), (right, first)):  # a rotation too many
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                inside = flow.ev(node.right)
                if isinstance(inside, Vector) and frame_of(inside.frame) == frame:
                    return f"{x} is in {first}, {y} in {second}: meant {source(node.right)}?"
        wanted = flow.wanted or (first if find_map(flow, first, second)[1] else second)
        turn_left = rotated(flow, x, second, first)
        remedy = turn_left if wanted == second else rotated(flow, y, first, second)
    return f"{x} is in {first}, {y} in {second}: rotate one of them: {remedy}"


def ends(value: Vector | Map) -> tuple[str, str]:
    """Return the names of the frames of a value."""
    if isinstance(value, Vector):
        return label_of(value.frame), ""
    return label_of(value.to), label_of(value.frm)


def described(node: ast.AST, value: Map) -> str:
    """Say what a map does, with the line from which it is known."""
    to, frm = ends(value)
    if to == frm:
        return f"{source(node)} is in {to}"
    lines = [e.line for e in (value.to, value.frm) if isinstance(e, FrameVariable) and e.line]
    since = f" (by line {max(lines)})" if lines else ""
    return f"{source(node)} takes {frm} to {to}{since}"


def wrong_operand(
    flow: Any, map_node: ast.expr, vector: ast.expr, m: Map, v: Vector, reverse: bool, method: bool
) -> str:
    """Explain a rotation of a vector that is in another frame."""
    to, frm = ends(m)
    here, text = frame_of(v.frame) or "another frame", source(vector)
    if to == frm:
        remedy = f"rotate one of them: {rotated(flow, text, to, here)}"
        return f"{source(map_node)} is in {to}, {text} in {here}: {remedy}"
    told = described(map_node, m)
    if reverse:
        told = (
            f"a vector on the left of {told.replace(' takes', ', which takes', 1)}, must be in {to}"
        )
        return f"{told}; {text} is in {here}: meant {invert(source(map_node))}?"
    if here == to:
        simple = key_of_node(map_node) is not None
        other = "inverse=True" if method and simple and m.style != "X" else invert(source(map_node))
        other = other if other != source(map_node) else f"{other}.inv()"
        return f"{told}; {text} is in {here}: meant {other}?"
    other, there = find_map(flow, to, here)
    if not there:
        name = last_name(vector)
        p = parse_name(name)
        known = set(names_in_scope(flow).values())
        twin = name[: len(name) - len(here)] + frm if p is not None else ""
        other = twin if twin in known else other
    return f"{told}; {text} is in {here}: meant {other}?"


def wrong_product(flow: Any, left: ast.expr, right: ast.expr, a: Map, b: Map) -> str:
    """Explain a product of two rotations that do not follow each other."""
    (a_to, a_frm), (b_to, b_frm) = ends(a), ends(b)
    x, y = source(left), source(right)
    if a_to == a_frm or b_to == b_frm:
        inner, outer_ = (x, y) if a_to == a_frm else (y, x)
        told = f"{described(left, a)}; {described(right, b)}"
        if a_frm == b_frm:
            return f"{told}: meant {invert(y)}?"
        if a_to == b_to:
            return f"{told}: meant {invert(x)}?"
        return f"{told}: {inner} and {outer_} do not meet in one frame"
    if a_frm == b_frm:
        remedy = f"meant {invert(y)}?"
    elif a_to == b_to:
        remedy = f"meant {invert(x)}?"
    else:
        remedy = f"meant {find_map(flow, a_frm, b_frm)[0]} or {find_map(flow, a_to, b_to)[0]}?"
    return f"{described(left, a)}; {described(right, b)}: {remedy}"


def wrong_vector(
    flow: Any, name: str, verb: str, declared: Vector, value: Vector, node: ast.AST
) -> str:
    """Explain a vector that is given a name of another frame."""
    to, frm = ends(declared)[0], ends(value)[0]
    told = f"{name} {verb} a vector in {frm}"
    for part in ast.walk(node):
        func = part.func if isinstance(part, ast.Call) else None
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            by, turned = part.left, flow.scope.declared(last_name(part.left))
        elif isinstance(func, ast.Attribute) and func.attr == "rotate":
            by, turned = func.value, flow.ev(func.value)
        else:
            continue
        if isinstance(turned, Map) and {frm, to} == set(ends(turned)):
            forward = ends(turned) == (frm, to)
            remedy = "inverse=True" if forward else "no inverse=True"
            remedy = remedy if func is not None else invert(source(by))
            return f"{told}: {described(by, turned)}: meant {remedy}?"
    text = source(node)
    by_name = find_map(flow, to, frm)[0]
    remedy = rotated(flow, text, to, frm) if len(text) < 40 else f"{by_name} @ ..."
    return f"{told}: rotate it, {remedy}, or name it after {frm}"


def wrong_map(flow: Any, name: str, verb: str, declared: Map, value: Map, node: ast.AST) -> str:
    """Explain a rotation that is given a name of other frames."""
    (to, frm), (v_to, v_frm) = ends(declared), ends(value)
    if to == frm and v_to == v_frm:
        by, _ = find_map(flow, to, v_to)
        return f"{name} {verb} a tensor in {v_to}: meant {by} @ {source(node)} @ {invert(by)}?"
    text = f"{name} takes {frm} to {to} and {verb} what takes {v_frm} to {v_to}"
    if (v_to, v_frm) == (frm, to):
        whole = source(node)
        simple = whole if whole.replace("_", "").replace(".", "").isalnum() else f"({whole})"
        return f"{text}: meant {invert(simple)}?"
    return f"{text}: meant the name {name_of_map(v_to, v_frm)}?"


def wrong_argument(flow: Any, function: str, pair: Any, frame: str) -> str:
    """Explain an argument that is not in the frame of its parameter."""
    text = source(pair.node)
    if isinstance(pair.value, Map):
        to, frm = ends(pair.value)
        wanted = ends(pair.declared)
        remedy = invert(text) if wanted == (frm, to) else name_of_map(*wanted)
        return f"{function} takes {pair.name}; {text} takes {frm} to {to}: meant {remedy}?"
    here = ends(pair.value)[0]
    remedy = rotated(flow, text, frame, here)
    meaning = "" if frame == ends(pair.declared)[0] else f", here in {frame}"
    return f"{function} takes {pair.name}{meaning}; {text} is in {here}: meant {remedy}?"


def wrong_kind(function: str, pair: Any) -> str:
    """Explain a rotation in the place of a vector, or the other way round."""
    text, wanted = (
        source(pair.node),
        "a vector" if isinstance(pair.declared, Vector) else "a rotation",
    )
    what = "a rotation" if isinstance(pair.value, Map) else "a vector"
    return f"{function} takes {pair.name}, {wanted}; {text} is {what}: are the arguments swapped?"


def wrong_rate(flow: Any, attitude: ast.expr, rate: ast.expr, m: Map, v: Vector) -> str:
    """Explain a rate that is not in the frame of the attitude."""
    to, _ = ends(m)
    here = ends(v)[0]
    remedy = rotated(flow, source(rate), to, here)
    return (
        f"{described(attitude, m)}, so kinematics takes the rate in {to}; {source(rate)} is in "
        f"{here}: meant {remedy}?"
    )


def wrong_index(index: str, first: Any, second: Any, node: ast.AST) -> str:
    """Explain an index of einsum that would run over two frames."""
    a, b = frame_of(first), frame_of(second)
    return f"index {index} runs over {a} and, in {source(node)}, over {b}: meant another order?"


def wrong_path(name: str, ours: Counter[str], theirs: Counter[str]) -> str:
    """Explain a sum of positions that does not lead where its name says."""
    start = next(k for k, n in ours.items() if n < 0)
    end = next(k for k, n in ours.items() if n > 0)
    parts = [
        f"{'+' if n > 0 else '-'} {abs(n) if abs(n) > 1 else ''}{k}" for k, n in theirs.items() if n
    ]
    text = " ".join(parts).removeprefix("+ ") or "nothing"
    return (
        f"{name} leads from {start} to {end} ({end} - {start}), this sum gives {text}: check the "
        f"signs, and that each position starts where the one before ends"
    )
