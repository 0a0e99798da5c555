"""When is a function the same as before? By its code and by what it reads.

Recorded kernels are kept between calls. A function reads globals and variables of enclosing
functions, whose values become part of a recording; so two functions are the same here if they
have the same code and if all they read has the same content. A lambda written anew in a loop
finds its kernel again, and a changed global is noticed.

Followed are functions called by name, bound methods, partials and the attributes of plain
objects. Not followed are modules, classes and installed packages: what a function reads as
``module.name`` is taken as fixed.

Walking through all that takes longer than a short solve. So the functions walked last are
remembered with every place that was read: while each holds the very object it held then, and
the content of those that can change is the same, so is the fingerprint.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import threading
from collections.abc import Callable, Hashable, Iterable
from itertools import repeat
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from archimedes.errors import StructError
from archimedes.tree.content import content_key

__all__ = ["Fingerprint", "fingerprint"]

#: How many functions and objects are looked into before the rest is taken by identity.
LIMIT = 200
#: Py_TPFLAGS_HEAPTYPE: the class was written in Python.
_HEAP = 1 << 9
_INSTALLED = {"archimedes", "numpy", "scipy"}
#: Types whose objects never change, and those that change in place, compared by content.
_FIXED = {
    *(bool, int, float, complex, str, bytes, type(None), type),
    *(CodeType, BuiltinFunctionType, FunctionType, ModuleType),
}
_CONTAINERS = {np.ndarray, list, dict, set, bytearray}
#: Functions whose places are remembered; the oldest is forgotten.
REMEMBERED = 16
_MISSING = object()


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """Global names that a code object and the functions written in it may read."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(_names(constant))
    return tuple(sorted(found))


@functools.lru_cache(maxsize=1024)
def _is_plain(cls: Any) -> bool:
    """Whether all that objects of a class hold is in their ``__dict__``, compared by identity."""
    own = cls.__mro__[:-1]
    return (
        cls.__hash__ is object.__hash__
        and cls.__module__.split(".")[0] not in _INSTALLED
        and all(c.__flags__ & _HEAP and "__slots__" not in vars(c) for c in own)
        and not issubclass(cls, type)
    )


def _is_fixed(value: Any) -> bool:
    cls = type(value)
    if cls is tuple or cls is frozenset:
        return all(map(_is_fixed, value))
    return cls in _FIXED or isinstance(value, np.generic)


class _Places:
    """Where a walk has read, and what it found there."""

    def __init__(self) -> None:
        self.functions: list[tuple[FunctionType, Any, Any, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.names: list[tuple[dict[str, Any], tuple[str, ...], tuple[Any, ...]]] = []
        self.objects: list[tuple[Any, type, dict[str, Any], int]] = []
        self.contents: list[tuple[Any, Hashable]] = []
        self.complete = True

    def read(self, holder: dict[str, Any], names: Iterable[str]) -> None:
        """Remember what a dict holds under these names, or that it has none of them."""
        names = tuple(names)
        self.names.append((holder, names, tuple(map(holder.get, names, repeat(_MISSING)))))

    def attributes(self, value: Any, names: Iterable[str]) -> None:
        """Remember the attributes of an object that has these and no others."""
        self.read(value.__dict__, names)
        self.objects.append((value, type(value), value.__dict__, len(value.__dict__)))

    def content(self, value: Any, key: Hashable) -> None:
        """Remember a value that ``content_key`` was asked about."""
        cls = type(value)
        if _is_fixed(value):
            return
        if cls in _CONTAINERS or cls is tuple:
            self.contents.append((value, key))
        elif dataclasses.is_dataclass(cls) and cls.__eq__ is not object.__eq__:
            names = [f.name for f in dataclasses.fields(value)]
            held = getattr(value, "__dict__", {})
            if any(name not in held for name in names):
                self.contents.append((value, key))
                return
            self.attributes(value, names)
            for name in names:
                self.content(held[name], content_key(held[name]))
        elif cls.__hash__ is not object.__hash__:  # its own equality: who knows on what it rests
            self.complete = False

    def unchanged(self) -> bool:
        """Whether a walk would find the same again."""
        for function, code, defaults, more in self.functions:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not more
            ):
                return False
        for cell, value in self.cells:
            try:
                if cell.cell_contents is not value:
                    return False
            except ValueError:  # a variable that has no value any more
                return False
        for value, cls, held, size in self.objects:
            if type(value) is not cls or value.__dict__ is not held or len(held) != size:
                return False
        for held, names, values in self.names:
            if not all(map(operator.is_, map(held.get, names, repeat(_MISSING)), values)):
                return False
        return all(content_key(value) == key for value, key in self.contents)


class _Walk:
    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}
        self.places = _Places()

    def key(self, value: Any) -> Hashable:
        walk = _WALKS.get(type(value))
        if walk is not None:
            return walk(self, value)
        if isinstance(value, functools.partial):
            return self.partial(value)
        # An object without equality of its own is compared by what it holds.
        if _is_plain(cast(Hashable, type(value))):
            return self.attributes(value)
        try:
            key = content_key(value)
            self.places.content(value, key)
        except (StructError, TypeError):
            self.places.complete = False
            return _Same(value)
        return key

    def again(self, value: Any) -> bool:
        """Whether the value was met before (or too many were); it is kept alive by the key."""
        if id(value) in self.seen or len(self.seen) > LIMIT:
            return True
        self.seen[id(value)] = value
        return False

    def attributes(self, value: Any) -> Hashable:
        if self.again(value):
            return _Same(value)
        self.places.attributes(value, vars(value))
        return (type(value), tuple((name, self.key(part)) for name, part in vars(value).items()))

    def function(self, value: FunctionType) -> Hashable:
        if self.again(value):
            return _Same(value)
        installed = (value.__module__ or "").split(".")[0] in _INSTALLED
        read = {} if installed else value.__globals__
        cells = value.__closure__ or ()
        code, defaults, more = value.__code__, value.__defaults__, value.__kwdefaults__
        names = _names(code)
        self.places.functions.append((value, code, defaults, more))
        self.places.read(read, names)
        return (
            code,
            self.key(defaults),
            self.key(more),
            tuple(self.cell(cell) for cell in cells),
            tuple(self.key(read[name]) for name in names if name in read),
        )

    def cell(self, cell: Any) -> Hashable:
        try:
            value = cell.cell_contents
        except ValueError:  # a variable that has no value yet
            self.places.complete = False
            return None
        self.places.cells.append((cell, value))
        return self.key(value)

    def method(self, value: MethodType) -> Hashable:
        return (self.key(value.__func__), self.key(value.__self__))

    def partial(self, value: functools.partial[Any]) -> Hashable:
        self.places.complete = False  # its keywords can be changed in place
        return (self.key(value.func), self.key(value.args), self.key(value.keywords))

    def same(self, value: Any) -> Hashable:
        return _Same(value)


class _Same:
    """A key that is equal for the same object only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_WALKS: dict[type, Callable[[_Walk, Any], Hashable]] = {
    FunctionType: _Walk.function,
    MethodType: _Walk.method,
    functools.partial: _Walk.partial,
    ModuleType: _Walk.same,
    BuiltinFunctionType: _Walk.same,
    type: _Walk.same,
}


class Fingerprint:
    """A key that knows its hash."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Fingerprint) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


_remembered: dict[Any, tuple[_Places, Fingerprint]] = {}
_lock = threading.Lock()


def fingerprint(func: Callable[..., Any]) -> Fingerprint:
    """Return a key that is equal for functions that record the same.

    >>> def make(k):
    ...     return lambda t, x: k * x
    >>> fingerprint(make(2.0)) == fingerprint(make(2.0))
    True
    >>> fingerprint(make(2.0)) == fingerprint(make(3.0))
    False
    """
    # Functions and bound methods are found by identity, as other callables need not be.
    by_identity = type(func) is FunctionType or type(func) is MethodType
    if by_identity:
        found = _remembered.get(func)
        if found is not None and found[0].unchanged():
            return found[1]
    walk = _Walk()
    made = Fingerprint(walk.key(func))
    if by_identity:
        with _lock:
            _remembered.pop(func, None)
            if walk.places.complete:
                _remembered[func] = (walk.places, made)
            while len(_remembered) > REMEMBERED:
                _remembered.pop(next(iter(_remembered)))
    return made
