"""Dataclasses that are quick to define, for what the parts of the package hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

__all__ = ["record"]

T = TypeVar("T")


@dataclass_transform(field_specifiers=(field,), frozen_default=True, eq_default=False)
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass whose fields are not to be set, equal only to itself.

    Type checkers refuse assignments; nothing does while it runs. ``@dataclass(frozen=True)``
    compiles six methods for each class, which takes 0.4 ms instead of 0.08 (together a third of
    the import of this package), and its ``__init__`` is slower.

    >>> @record
    ... class Span:
    ...     start: float
    ...     stop: float = 1.0
    >>> Span(0.0).stop
    1.0
    """
    return dataclass(eq=False, repr=False)(cls)
