"""Counts the primitives of an elementary program by running it on symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.graph.elementary.table import PROGRAMS

__all__ = ["count_primitives"]

FREE = ("operand", "bits", "from_bits")
"""Not counted: inputs and moves between registers."""


class Symbol:
    """A value known only by the operation that makes it; equal operations are one symbol."""

    def __init__(self, known: dict[tuple[Any, ...], Symbol]) -> None:
        self.known = known

    def __hash__(self) -> int:
        return id(self)


def _make(known: dict[tuple[Any, ...], Symbol], name: str, *operands: Any) -> Symbol:
    # Symbols by identity: their == makes another symbol.
    key = (name, *(id(x) if isinstance(x, Symbol) else repr(x) for x in operands))
    return known.setdefault(key, Symbol(known))


def _operator(name: str) -> Callable[..., Symbol]:
    return lambda self, *others: _make(self.known, name, self, *others)


_OPERATORS = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg"),
    *("and", "rand", "or", "ror", "xor", "invert", "lshift", "rshift"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)
for _name in _OPERATORS:
    setattr(Symbol, f"__{_name}__", _operator(_name))


class CountingPrimitives:
    """A provider whose every method makes a symbol; a branch takes its second, ordinary side."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Symbol] = {}

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        return lambda *operands: _make(self.known, name, *operands)

    def branch(self, cond: Symbol, f_true: Any, f_false: Any, *args: Any) -> tuple[Any, ...]:
        return f_false(*args)

    def loop(self, cond: Any, body: Any, state: tuple[Any, ...], limit: int) -> tuple[Any, ...]:
        cond(*state)
        return body(*state)


def count_primitives(*names: str) -> int:
    """Number of different primitives on the ordinary path of the functions of one operand set.

    Example: ``count_primitives("sin", "cos")`` counts what they share once.
    """
    p = CountingPrimitives()
    for name in names:
        row = PROGRAMS[name]
        row.program(p, *(_make(p.known, "operand", i) for i in range(row.arity)))
    return sum(key[0] not in FREE for key in p.known)
