"""What a direct entry is made for: its arguments, and the form of what it returns.

A *direct entry* is a builtin that Python calls with the leaves of one kind of arguments and that
returns the finished result, without a detour through arrays and trees. Not every backend makes
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from archimedes.graph.dtypes import STATIC


class Argument(NamedTuple):
    """An argument leaf: dtype code, shape, Python number or not.

    The code is ``STATIC`` for one that must be this very object (``value``). A batched one has an
    axis of instances in front of its shape.
    """

    code: int
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: Any = None
    batched: bool = False

    @property
    def traced(self) -> bool:
        """Whether its numbers are inputs of the graph."""
        return self.code != STATIC


class Result(NamedTuple):
    """A result leaf: dtype code and shape (of one instance)."""

    code: int
    shape: tuple[int, ...] = ()


class Leaf(NamedTuple):
    """The form of a result that is a leaf: its place among the leaves."""

    place: int


class Known(NamedTuple):
    """The form of a part that is always this object."""

    value: Any


class Tuple(NamedTuple):
    """The form of a tuple: those of its items."""

    parts: tuple[Form, ...]


class Struct(NamedTuple):
    """The form of an object with attributes, made without calling its ``__init__``."""

    cls: type
    fields: tuple[str, ...]
    parts: tuple[Form, ...]


Form = Leaf | Known | Tuple | Struct


@dataclass(frozen=True)
class EntryRequest:
    """A kind of call that a direct entry is wanted for.

    ``batch``: the arguments marked so have an axis of instances, computed in ``threads`` threads
    (None: as the backend finds best). ``into``: arrays for the results are further arguments, and
    None is returned.
    """

    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    form: Form
    batch: bool = False
    threads: int | None = None
    into: bool = False
