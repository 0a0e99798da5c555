"""What is known of the value of an expression: its frame, the frames it connects, or nothing.

None is a value of which nothing is known; it fits everywhere. So does a frame that is None. The
frames of an attitude without a suffix (``x.att``) are variables: its first use binds them, and
every other use must agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from archimedes.analysis.frames.names import are_compatible
from archimedes.records import record

__all__ = [
    "ARRAY",
    "POISON",
    "SCALAR",
    "TRIG",
    "ZERO",
    "Frame",
    "FrameVariable",
    "Instance",
    "Map",
    "Sequence",
    "Value",
    "Vector",
    "frame_of",
    "join",
    "key_of",
    "label_of",
    "unify",
]


class FrameVariable:
    """A frame that is not known yet: ``frame`` once a use has bound it, at ``line``.

    ``others`` are frames that it cannot be: what a function takes from E to another frame is not
    in E any more. ``label`` says what is known of it in words.
    """

    def __init__(self, others: Iterable[str] = (), label: str = "") -> None:
        self.frame: Frame = None
        self.others = frozenset(others)
        self.label = label
        self.line = 0
        self.wild = False


Frame = str | FrameVariable | None


class Plain:
    """A value without frames, of which no more is known than its name."""

    def __init__(self, name: str) -> None:
        self.name = name


SCALAR = Plain("scalar")
ARRAY = Plain("array of numbers")
ZERO = Plain("zero")
#: A sine or cosine: what it multiplies is a component that is being turned by hand.
TRIG = Plain("sine or cosine")
#: The result of what has been reported already: nothing more is said about it.
POISON = Plain("reported")


@record
class Vector:
    """Coordinates in a frame; ``points`` counts ends (+1) and starts (-1) of positions.

    ``many`` are several of them. Of a ``partial`` one only the leading index is known: it is a
    vector, or a matrix whose columns are vectors in the frame. A ``loose`` one has an index that
    is not known: it is one of several vectors, or a component.
    """

    frame: Frame
    points: Counter[str] | None = None
    many: bool = False
    partial: bool = False
    loose: bool = False


@record
class Map:
    """What takes coordinates in ``frm`` to coordinates in ``to``: R_BE, X_WB, J_B."""

    to: Frame
    frm: Frame
    style: str = "R"

    def swap(self) -> Map:
        """Return the inverse."""
        return Map(self.frm, self.to, self.style)


@record
class Sequence:
    """A tuple whose elements are known one by one."""

    items: tuple[Value, ...]


@record
class Instance:
    """An object of a class of the checked sources."""

    cls: Any


Value = Vector | Map | Sequence | Instance | Plain | Any | None


def root(frame: Frame) -> Frame:
    """Follow the bindings of variables."""
    while isinstance(frame, FrameVariable) and frame.frame is not None:
        frame = frame.frame
    return frame


def label_of(frame: Frame) -> str:
    """Return what to call a frame, also one that is not known."""
    found = root(frame)
    if isinstance(found, FrameVariable):
        return found.label or "another frame"
    return found or "another frame"


def frame_of(frame: Frame) -> str | None:
    """Return the name of a frame, None while it is not known."""
    found = root(frame)
    return found if isinstance(found, str) else None


def unify(a: Frame, b: Frame, same: Any = are_compatible, line: int = 0) -> bool:
    """Return whether two frames may be one, and bind variables so that they are."""
    a, b = root(a), root(b)
    if a is None or b is None or a is b:
        return True
    if isinstance(a, str) and isinstance(b, str):
        return bool(same(a, b))
    if isinstance(a, str):
        a, b = b, a
    assert isinstance(a, FrameVariable)
    if isinstance(b, str):
        if b in a.others:
            return False
    elif b.others:
        a.others |= b.others
    if not a.wild:
        a.frame, a.line = b, line
    return True


def key_of(value: Value) -> Any:
    """Return what tells values apart, for results that are kept."""
    if isinstance(value, Vector):
        points = tuple(sorted(value.points.items())) if value.points else None
        return "v", root(value.frame), points, value.many, value.partial, value.loose
    if isinstance(value, Map):
        return "m", root(value.to), root(value.frm), value.style
    if isinstance(value, Sequence):
        return "s", *map(key_of, value.items)
    if isinstance(value, Instance):
        return "i", id(value.cls)
    return id(value) if value is not None else None


def join(a: Value, b: Value) -> Value:
    """Return what is known of a value that is one or the other."""
    if a is ZERO or b is ZERO:
        return b if a is ZERO else a
    if a is b or key_of(a) == key_of(b):
        return a
    if isinstance(a, Sequence) and isinstance(b, Sequence) and len(a.items) == len(b.items):
        return Sequence(tuple(map(join, a.items, b.items)))
    if isinstance(a, Vector) and isinstance(b, Vector):
        same = root(a.frame) == root(b.frame)
        return Vector(a.frame, None, a.many and b.many, a.partial or b.partial) if same else None
    if isinstance(a, Map) and isinstance(b, Map):
        same = root(a.to) == root(b.to) and root(a.frm) == root(b.frm)
        return Map(a.to, a.frm, "R") if same else None
    return None
