"""Dataclasses whose methods are written when they are first used.

``dataclasses`` writes and compiles the source of up to six methods for each class: half a
millisecond, for methods of which most are never called. Here ``__init__`` is compiled by the first
call, and the others are functions of the names of the fields. For classes of our own that are
imported by a first call or solve; public ones are dataclasses, whose signature is there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

__all__ = ["lazy_dataclass"]

T = TypeVar("T")


@overload
def lazy_dataclass(cls: type[T], /) -> type[T]: ...
@overload
def lazy_dataclass(*, frozen: bool = False, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(field_specifiers=(field,))
def lazy_dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """Make a class one of named fields, as ``dataclass`` does.

    Fields may have defaults, factories of these, and ``kw_only``; subclasses use this one too.

    >>> @lazy_dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(1.0, 0.0), hash(Point(1.0)) == hash(Point(1.0))
    (Point(x=1.0, y=0.0), True, True)
    """
    return _made(cls, frozen, eq) if cls else lambda given: _made(given, frozen, eq)


def _made(cls: type[Any], frozen: bool, eq: bool) -> type[Any]:
    # Collects the fields, and writes nothing.
    dataclass(cls, init=False, repr=False, eq=False)
    every = fields(cls)
    made: dict[str, Any] = {"__init__": _written_later(cls, frozen)}
    made["__repr__"] = _represented([f.name for f in every if f.repr])
    if frozen:
        made |= _frozen(cls, {f.name for f in every})
    if eq:
        content = _content([f.name for f in every if f.compare])
        made["__eq__"] = _compared(content)
        made["__hash__"] = (lambda self: hash(content(self))) if frozen else None
    for name, method in made.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    return cls


def _written_later(cls: type[Any], frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _written(cls, frozen)
        cls.__init__(self, *args, **kwargs)

    return __init__


def _written(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """Compile the ``__init__`` of a class."""
    known: dict[str, Any] = {"put": object.__setattr__, "MISSING": MISSING}
    plain, named, lines = ["self"], list[str](), list[str]()
    for f in fields(cls):
        value = f.name
        if f.default_factory is not MISSING:
            known[f"make_{f.name}"] = f.default_factory
            value = f"make_{f.name}() if {f.name} is MISSING else {f.name}"
            given = f"{f.name}=MISSING"
        elif f.default is not MISSING:
            known[f"default_{f.name}"] = f.default
            given = f"{f.name}=default_{f.name}"
        else:
            given = f.name
        (named if f.kw_only else plain).append(given)
        lines.append(f"put(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*plain, "*", *named] if named else plain)
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _represented(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({inside})"

    return __repr__


def _frozen(cls: type[Any], names: set[str]) -> dict[str, Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _content(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the fields of an object that tell it from others."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _compared(content: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        return content(self) == content(other) if type(other) is type(self) else NotImplemented

    return __eq__
