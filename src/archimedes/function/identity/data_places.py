"""Places where data lie: containers, arrays, and what moves when it is read."""

# ruff: noqa: D102  (what the methods do is said once, in ``Place``)
from __future__ import annotations

import gc
import io
import itertools
import operator
import pickle
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from archimedes.function.identity.checks import CheckWriter
from archimedes.function.identity.places import MISSING, Change, Place
from archimedes.symbolic.recorded.nondeterminism import generator_state, set_generator_state
from archimedes.tree.content import is_read_only

__all__ = [
    "ArrayPlace",
    "ContentPlace",
    "DictPlace",
    "GeneratorPlace",
    "IteratorPlace",
    "ListPlace",
    "LivePlace",
    "MovingPlace",
    "ProxyPlace",
]

#: Lists of so many items are compared item by item in generated code.
FEW = 16


class ListPlace(Place):
    """Which objects a list holds."""

    __slots__ = ("items", "value")

    def __init__(self, path: str, value: list[Any]) -> None:
        self.path, self.value, self.items = path, value, list.__getitem__(value, slice(None))

    def same(self) -> bool:
        now = self.value
        return len(now) == len(self.items) and all(
            map(operator.is_, list.__iter__(now), self.items)
        )

    def check(self, writer: CheckWriter) -> None:
        if len(self.items) > FEW or type(self.value) is not list:
            super().check(writer)
            return
        value = writer.name(self.value)
        writer.term(f"len({value}) == {len(self.items)}")
        for k, item in enumerate(self.items):
            writer.same(f"{value}[{k}]", item)

    def changes(self) -> Iterator[Change]:
        if not self.same():
            yield Change(f"the list {self.path}", self.items, list(self.value))

    def restore(self) -> None:
        list.__setitem__(self.value, slice(None), self.items)


class DictPlace(Place):
    """All that a dict holds, in its order."""

    __slots__ = ("copy", "value")

    def __init__(self, path: str, value: Any) -> None:
        self.path, self.value, self.copy = path, value, dict(value)

    def values(self) -> Iterable[Any]:
        """Return the values, whatever a subclass makes of them."""
        return dict.values(self.value)

    def same(self) -> bool:
        now, old = self.value, self.copy
        return (
            len(now) == len(old)
            and all(map(operator.is_, now, old))
            and all(map(operator.is_, self.values(), old.values()))
        )

    def changes(self) -> Iterator[Change]:
        if self.same():
            return
        for key, old in self.copy.items():
            new = self.value.get(key, MISSING)
            if new is not old:
                yield Change(f"{self.path}[{key!r}]", old, new)
        for key, new in self.value.items():
            if key not in self.copy:
                yield Change(f"{self.path}[{key!r}]", MISSING, new)

    def restore(self) -> None:
        dict.clear(self.value)
        dict.update(self.value, self.copy)


class ProxyPlace(DictPlace):
    """All that a view of a mapping shows that cannot be written to."""

    __slots__ = ()

    def values(self) -> Iterable[Any]:
        return self.value.values()

    def restore(self) -> None:
        pass  # who changed the mapping has it from another place, which is put back


class ArrayPlace(Place):
    """The numbers of an array. One that nobody can write to is not compared again."""

    __slots__ = ("content", "fixed", "form", "value")

    def __init__(self, path: str, value: np.ndarray, content: bytes) -> None:
        self.path, self.value, self.content = path, value, content
        self.form, self.fixed = _form(value), is_read_only(value)

    def same(self) -> bool:
        if _form(self.value) != self.form:
            return False
        if self.fixed:
            return is_read_only(self.value)
        return self.value.tobytes() == self.content

    def check(self, writer: CheckWriter) -> None:
        if self.fixed or type(self.value) is not np.ndarray:
            super().check(writer)
            return
        value, (dtype, shape, strides) = writer.name(self.value), self.form
        writer.same(f"{value}.dtype", dtype)
        writer.term(f"{value}.shape == {shape!r} and {value}.strides == {strides!r}")
        writer.term(f"{value}.tobytes() == {writer.name(self.content)}")

    def changes(self) -> Iterator[Change]:
        if not self.same():
            yield Change(f"the array {self.path}", self.old(), self.value)

    def old(self) -> np.ndarray:
        """Return the array as it was."""
        dtype, shape, _ = self.form
        return np.frombuffer(self.content, dtype).reshape(shape) if not dtype.hasobject else MISSING

    def restore(self) -> None:
        old = self.old()
        if old is not MISSING and self.value.shape == old.shape and self.value.dtype == old.dtype:
            self.value[...] = old


def _form(value: np.ndarray) -> tuple[np.dtype, tuple[int, ...], tuple[int, ...]]:
    return value.dtype, value.shape, value.strides


class LivePlace(Place):
    """Where an array lies whose numbers programs read there: only its form must stay."""

    __slots__ = ("form", "value")

    def __init__(self, path: str, value: np.ndarray) -> None:
        self.path, self.value, self.form = path, value, self.now(value)

    @staticmethod
    def now(value: np.ndarray) -> tuple[Any, ...]:
        """Return address, dtype, shape and strides."""
        return value.ctypes.data, *_form(value)

    def same(self) -> bool:
        return self.now(self.value) == self.form

    def check(self, writer: CheckWriter) -> None:
        # NumPy refuses to move memory that another array, our table, refers to.
        value, (_, dtype, shape, strides) = writer.name(self.value), self.form
        writer.same(f"{value}.dtype", dtype)
        writer.term(f"{value}.shape == {shape!r} and {value}.strides == {strides!r}")

    def changes(self) -> Iterator[Change]:
        if not self.same():
            yield Change(f"the form of the array {self.path}", self.form, self.value)

    def restore(self) -> None:
        pass  # what it was has another shape, or other memory

    def content(self) -> ArrayPlace:
        """Return the place with its numbers as they are now: no recording may change them."""
        return ArrayPlace(self.path, self.value, self.value.tobytes())


class MovingPlace(Place):
    """Something that moves on as it is used, and may move between recordings."""

    __slots__ = ("at", "value")

    def __init__(self, path: str, value: Any) -> None:
        self.path, self.value, self.at = path, value, self.read(value)

    @staticmethod
    def read(value: Any) -> Any:
        """Return where it is."""
        raise NotImplementedError

    def fresh(self) -> MovingPlace:
        """Return the place as it is now."""
        return type(self)(self.path, self.value)

    def same(self) -> bool:
        return bool(self.read(self.value) == self.at)

    def changes(self) -> Iterator[Change]:
        if not self.same():
            what = f"the position of the {type(self.value).__name__} {self.path}"
            yield Change(what, self.at, self.read(self.value))


class IteratorPlace(MovingPlace):
    """How far an iterator has come, as far as it can be told."""

    __slots__ = ()

    @staticmethod
    def read(value: Any) -> Hashable:
        return _position(value)

    def restore(self) -> None:
        pass  # iterators do not go back


class GeneratorPlace(MovingPlace):
    """The state of a generator of random numbers."""

    __slots__ = ()

    @staticmethod
    def read(value: Any) -> bytes:
        return pickle.dumps(generator_state(value))

    def restore(self) -> None:
        set_generator_state(self.value, pickle.loads(self.at))


def _file_position(file: io.IOBase) -> int | None:
    """Return where reading has come to in a file that is only read; None if that is not known."""
    try:
        return file.tell() if file.seekable() and not file.writable() else None
    except (OSError, ValueError):  # it is being iterated over, or closed
        return None


def _position(value: Any) -> Hashable:
    if isinstance(value, io.IOBase):  # asking one to reduce itself may close it
        return _file_position(value)
    frame = getattr(value, "gi_frame", MISSING)
    if frame is not MISSING:  # a generator
        return None if frame is None else frame.f_lasti
    if isinstance(value, (itertools.count, itertools.repeat)):
        return repr(value)
    try:
        with warnings.catch_warnings():  # iterators of itertools warn that they will not say
            warnings.simplefilter("ignore", DeprecationWarning)
            parts = value.__reduce__()
    except TypeError:  # those of itertools from Python 3.14 on
        parts = gc.get_referents(value)
    return tuple(_parts_position(part) for part in parts)


def _parts_position(part: Any) -> Hashable:
    if isinstance(part, tuple):
        return tuple(map(_parts_position, part))
    if hasattr(type(part), "__next__"):
        return _position(part)
    return part if isinstance(part, (int, float, str, range, type(None))) else id(part)


class ContentPlace(Place):
    """What an object of another kind holds, by a function that tells."""

    __slots__ = ("content", "read", "value")

    def __init__(self, path: str, value: Any, read: Callable[[Any], Hashable]) -> None:
        self.path, self.value, self.read = path, value, read
        self.content = read(value)

    def same(self) -> bool:
        old, new = self.content, self.read(self.value)
        if isinstance(old, tuple) and isinstance(new, tuple):  # of objects
            return len(old) == len(new) and all(map(operator.is_, old, new))
        return new == old

    def changes(self) -> Iterator[Change]:
        if not self.same():
            kind = type(self.value).__name__
            new = self.read(self.value)
            grown = type(self.value) is set and self.content <= new  # type: ignore[operator]
            yield Change(f"the {kind} {self.path}", MISSING if grown else self.content, new)

    def restore(self) -> None:
        value: Any = self.value
        if isinstance(value, (set, deque)):
            value.clear()
            (value.update if isinstance(value, set) else value.extend)(self.content)  # type: ignore
        elif isinstance(value, bytearray):
            value[:] = bytes(self.content)  # type: ignore[call-overload]
        elif isinstance(value, OrderedDict):
            held: Any = self.content
            value.clear()
            value.update(zip(held[::2], held[1::2]))
        elif isinstance(value, ContextVar):
            value.set(self.content[0])  # type: ignore[index]
