"""What objects show of themselves: attributes, slots, content."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from contextvars import ContextVar
from types import MemberDescriptorType, SimpleNamespace
from typing import Any

from archimedes.function.identity.installed import is_installed, module_of

__all__ = [
    "HEAP",
    "Frozen",
    "attribute_dict",
    "buffer_bytes",
    "context_value",
    "has_hidden_part",
    "is_by_value",
    "ordered_items",
    "reads_all",
    "referent",
    "slots_of",
]

#: Py_TPFLAGS_HEAPTYPE: the class was made at run time, as those written in Python are.
HEAP = 1 << 9
_HARMLESS = {"Generic", "Protocol", "ABC", "object", "NamedTuple"}


@functools.lru_cache(maxsize=1024)
def reads_all(cls: Any) -> bool:
    """Tell whether code that is not looked into reads attributes of a class's objects."""
    if hasattr(cls, "__dataclass_fields__"):
        return True
    bases = [c for c in cls.__mro__ if is_installed(module_of(c)) and c.__name__ not in _HARMLESS]
    return any(c.__flags__ & HEAP for c in bases)


@functools.lru_cache(maxsize=1024)
def has_hidden_part(cls: Any) -> bool:
    """Tell whether objects hold more than attributes: a base is written in C.

    >>> import array
    >>> has_hidden_part(type("A", (), {})), has_hidden_part(type("B", (array.array,), {}))
    (False, True)
    """
    return any(_adds_hidden_part(c) for c in cls.__mro__ if c not in (object, SimpleNamespace))


def _adds_hidden_part(cls: Any) -> bool:
    """Tell whether objects have memory that no slot or dict of their class accounts for."""
    if not cls.__flags__ & HEAP:
        return True
    known = sum(
        isinstance(member, MemberDescriptorType) or name in ("__dict__", "__weakref__")
        for name, member in vars(cls).items()
    )
    return bool(cls.__basicsize__ > cls.__base__.__basicsize__ + 8 * known)


@functools.lru_cache(maxsize=1024)
def slots_of(cls: Any) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class written in Python."""
    found: dict[str, MemberDescriptorType] = {}
    for base in reversed(cls.__mro__):
        if base.__flags__ & HEAP:
            for name, member in vars(base).items():
                if isinstance(member, MemberDescriptorType):
                    found[name] = member
    return found


def attribute_dict(value: Any) -> dict[str, Any] | None:
    """Return the dict of an object's attributes, without asking its ``__getattr__``."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return held if isinstance(held, dict) else None


def is_by_value(value: Any) -> bool:
    """Tell whether an object is compared by value, and so cannot change."""
    if type(value).__hash__ in (None, object.__hash__):
        return False
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True


def buffer_bytes(value: Any) -> Hashable:
    """Return the memory of an object that shows it, such as an ``array.array``."""
    return bytes(memoryview(value))


def ordered_items(value: OrderedDict[Any, Any]) -> tuple[Any, ...]:
    """Return keys and values, in order."""
    return tuple(part for pair in OrderedDict.items(value) for part in pair)


def referent(value: weakref.ref[Any]) -> tuple[Any, ...]:
    """Return what a weak reference leads to."""
    return (value(),)


def context_value(value: ContextVar[Any]) -> tuple[Any, ...]:
    """Return what a context variable holds here."""
    return (value.get(None),)


class Frozen:
    """Stands for a frozen function among what others read: it is the same while it exists."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._compiled is other._compiled

    def __hash__(self) -> int:
        return id(self._compiled)

    def __content__(self) -> tuple[()]:
        return ()
