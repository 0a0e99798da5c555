"""When is a function the same as before? By its code and by what it reads.

Recorded kernels are kept between calls. A function reads globals and variables of enclosing
functions, whose values become part of a recording; so two functions are the same here if they
have the same code and if all they read has the same content. A lambda written anew in a loop
finds its kernel again, and a changed global is noticed.

Followed are functions called by name, bound methods, partials and the attributes of plain
objects. Not followed are modules, classes and installed packages: what a function reads as
``module.name`` is taken as fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from archimedes.errors import StructError
from archimedes.tree.content import content_key

__all__ = ["fingerprint"]

#: How many functions and objects are looked into before the rest is taken by identity.
LIMIT = 200
#: Py_TPFLAGS_HEAPTYPE: the class was written in Python.
_HEAP = 1 << 9
_INSTALLED = {"archimedes", "numpy", "scipy"}


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


class _Walk:
    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}

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
            return content_key(value)
        except (StructError, TypeError):
            return _Same(value)

    def again(self, value: Any) -> bool:
        """Whether the value was met before (or too many were); it is kept alive by the key."""
        if id(value) in self.seen or len(self.seen) > LIMIT:
            return True
        self.seen[id(value)] = value
        return False

    def attributes(self, value: Any) -> Hashable:
        if self.again(value):
            return _Same(value)
        return (type(value), tuple((name, self.key(part)) for name, part in vars(value).items()))

    def function(self, value: FunctionType) -> Hashable:
        if self.again(value):
            return _Same(value)
        installed = (value.__module__ or "").split(".")[0] in _INSTALLED
        read = {} if installed else value.__globals__
        cells = value.__closure__ or ()
        return (
            value.__code__,
            self.key(value.__defaults__),
            self.key(value.__kwdefaults__),
            tuple(self.cell(cell) for cell in cells),
            tuple(self.key(read[name]) for name in _names(value.__code__) if name in read),
        )

    def cell(self, cell: Any) -> Hashable:
        try:
            return self.key(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            return None

    def method(self, value: MethodType) -> Hashable:
        return (self.key(value.__func__), self.key(value.__self__))

    def partial(self, value: functools.partial[Any]) -> Hashable:
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


def fingerprint(func: Callable[..., Any]) -> Hashable:
    """Return a key that is equal for functions that record the same.

    >>> def make(k):
    ...     return lambda t, x: k * x
    >>> fingerprint(make(2.0)) == fingerprint(make(2.0))
    True
    >>> fingerprint(make(2.0)) == fingerprint(make(3.0))
    False
    """
    return _Walk().key(func)
