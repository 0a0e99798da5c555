"""Places a function reads from, each with what was found there.

A place knows when it is no longer the ``same``, how generated code sees that (``check``), what the
``changes`` are in words, and how to ``restore`` what was there.
"""

# ruff: noqa: D102  (what the methods do is said once, in ``Place``)
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, NamedTuple

from archimedes.function.identity.checks import CheckWriter

__all__ = [
    "MISSING",
    "BasesPlace",
    "CellPlace",
    "Change",
    "FunctionPlace",
    "NamesPlace",
    "ObjectPlace",
    "Place",
    "SlotsPlace",
]

#: Stands for a name that has no value.
MISSING: Any = object()


class Change(NamedTuple):
    """What differs: in words, and the objects before and after (MISSING: none)."""

    what: str
    old: Any
    new: Any


class Place:
    """Somewhere a function reads."""

    __slots__ = ("path",)
    path: str

    def same(self) -> bool:
        """Tell whether a walk would find what it found."""
        raise NotImplementedError

    def check(self, writer: CheckWriter) -> None:
        """Add the terms of a test that is true only while the place is the same."""
        writer.term(f"{writer.name(self.same)}()")

    def changes(self) -> Iterator[Change]:
        """Yield what is different now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Put back what was there."""
        raise NotImplementedError


class FunctionPlace(Place):
    """The code and the defaults of a function."""

    __slots__ = ("function", "parts")
    NAMES = ("__code__", "__defaults__", "__kwdefaults__")

    def __init__(self, path: str, function: FunctionType) -> None:
        self.path, self.function = path, function
        self.parts = function.__code__, function.__defaults__, function.__kwdefaults__

    def same(self) -> bool:
        f, (code, defaults, more) = self.function, self.parts
        return f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ is more

    def check(self, writer: CheckWriter) -> None:
        function = writer.name(self.function)
        for name, part in zip(self.NAMES, self.parts):
            writer.same(f"{function}.{name}", part)

    def changes(self) -> Iterator[Change]:
        for name, old in zip(self.NAMES, self.parts):
            new = getattr(self.function, name)
            if new is not old:
                yield Change(f"{name} of {self.path}", old, new)

    def restore(self) -> None:
        for name, old in zip(self.NAMES, self.parts):
            setattr(self.function, name, old)


class CellPlace(Place):
    """A variable of an enclosing function."""

    __slots__ = ("cell", "value")

    def __init__(self, path: str, cell: CellType) -> None:
        self.path, self.cell = path, cell
        self.value = self.now()

    def now(self) -> Any:
        """Return what the variable holds."""
        try:
            return self.cell.cell_contents
        except ValueError:  # it has no value (yet, or any more)
            return MISSING

    def same(self) -> bool:
        return self.now() is self.value

    def check(self, writer: CheckWriter) -> None:
        if self.value is MISSING:
            super().check(writer)
        else:
            writer.same(f"{writer.name(self.cell)}.cell_contents", self.value)

    def changes(self) -> Iterator[Change]:
        if not self.same():
            what = f"the variable {self.path} of an enclosing function"
            yield Change(what, self.value, self.now())

    def restore(self) -> None:
        if self.value is MISSING:
            del self.cell.cell_contents
        else:
            self.cell.cell_contents = self.value


class NamesPlace(Place):
    """What a dict of names holds: globals, a module, attributes of an object or a class.

    ``size`` is its length where all of it counts but names ``aside``, else None.
    ``write(name, value)`` puts back what was there (MISSING: nothing).
    """

    __slots__ = ("absent", "aside", "held", "label", "names", "size", "values", "write")

    def __init__(
        self,
        label: Callable[[str], str],
        held: Mapping[str, Any],
        found: dict[str, Any],
        size: int | None,
        write: Callable[[str, Any], None],
    ) -> None:
        self.path = ""
        self.aside: set[str] = set()
        self.label, self.held, self.size, self.write = label, held, size, write
        self.names = tuple(name for name, value in found.items() if value is not MISSING)
        self.values = tuple(value for value in found.values() if value is not MISSING)
        self.absent = frozenset(name for name, value in found.items() if value is MISSING)

    def same(self) -> bool:
        held = self.held
        return (
            all(map(operator.is_, map(held.get, self.names, repeat(MISSING)), self.values))
            and (self.size is None or len(held) == self.size)
            and held.keys().isdisjoint(self.absent)
        )

    def check(self, writer: CheckWriter) -> None:
        held = writer.name(self.held)
        for name, value in zip(self.names, self.values):
            writer.same(f"{held}[{name!r}]", value)
        for name in sorted(self.absent):
            writer.term(f"{name!r} not in {held}")
        if self.size is not None:
            writer.term(f"len({held}) == {self.size}")

    def changes(self) -> Iterator[Change]:
        for name, old in zip(self.names, self.values):
            new = self.held.get(name, MISSING)
            if new is not old:
                yield Change(self.label(name), old, new)
        known = self.aside.union(self.names)
        for name in self.held if self.size is not None else self.absent & self.held.keys():
            if name not in known:
                yield Change(self.label(name), MISSING, self.held[name])

    def restore(self) -> None:
        for name, old in zip(self.names, self.values):
            if self.held.get(name, MISSING) is not old:
                self.write(name, old)
        kept = self.aside.union(self.names)
        more = self.held.keys() & self.absent if self.size is None else self.held.keys() - kept
        for name in more:
            self.write(name, MISSING)


class SlotsPlace(Place):
    """Attributes of an object that lie in ``__slots__``."""

    __slots__ = ("found", "members", "value")

    def __init__(self, path: str, value: Any, members: dict[str, MemberDescriptorType]) -> None:
        self.path, self.value, self.members = path, value, members
        self.found = {name: self.now(name) for name in members}

    def now(self, name: str) -> Any:
        """Return what a slot holds."""
        try:
            return self.members[name].__get__(self.value)
        except AttributeError:
            return MISSING

    def same(self) -> bool:
        return all(self.now(name) is old for name, old in self.found.items())

    def check(self, writer: CheckWriter) -> None:
        if MISSING in self.found.values():
            super().check(writer)
            return
        value = writer.name(self.value)
        for name, old in self.found.items():
            writer.same(f"{writer.name(self.members[name].__get__)}({value})", old)

    def changes(self) -> Iterator[Change]:
        for name, old in self.found.items():
            if self.now(name) is not old:
                yield Change(f"the attribute {self.path}.{name}", old, self.now(name))

    def restore(self) -> None:
        for name, old in self.found.items():
            if self.now(name) is old:
                continue
            if old is MISSING:
                self.members[name].__delete__(self.value)
            else:
                self.members[name].__set__(self.value, old)


class ObjectPlace(Place):
    """The class of an object, and which dict its attributes are in."""

    __slots__ = ("cls", "held", "value")

    def __init__(self, path: str, value: Any, held: dict[str, Any] | None) -> None:
        self.path, self.value, self.held, self.cls = path, value, held, type(value)

    def same(self) -> bool:
        value = self.value
        if type(value) is not self.cls:
            return False
        return self.held is None or object.__getattribute__(value, "__dict__") is self.held

    def check(self, writer: CheckWriter) -> None:
        value = writer.name(self.value)
        writer.same(f"type({value})", self.cls)
        if self.held is not None:
            writer.same(f"{writer.name(object.__getattribute__)}({value}, '__dict__')", self.held)

    def changes(self) -> Iterator[Change]:
        if type(self.value) is not self.cls:
            yield Change(f"the class of {self.path}", self.cls, type(self.value))
        elif not self.same():
            yield Change(f"{self.path}.__dict__", self.held, self.value.__dict__)

    def restore(self) -> None:
        if type(self.value) is not self.cls:
            self.value.__class__ = self.cls
        if not self.same():
            self.value.__dict__ = self.held


class BasesPlace(Place):
    """Where a class looks for its attributes."""

    __slots__ = ("bases", "cls", "order")

    def __init__(self, path: str, cls: type) -> None:
        self.path, self.cls, self.bases, self.order = path, cls, cls.__bases__, cls.__mro__

    def same(self) -> bool:
        return self.cls.__mro__ is self.order

    def check(self, writer: CheckWriter) -> None:
        writer.same(f"{writer.name(self.cls)}.__mro__", self.order)

    def changes(self) -> Iterator[Change]:
        if not self.same():
            yield Change(f"the bases of {self.path}", self.order, self.cls.__mro__)

    def restore(self) -> None:
        self.cls.__bases__ = self.bases
