"""Native loops: functions of arrays and numbers that are described in Python and compiled once.

A description is called once with a writer ``w`` (see ``Backend.array_functions``), which notes the
loops and the arithmetic. The annotations of its parameters say what they are: arrays (``Floats``,
``Ints``), numbers (``Float``, ``Int``), or a NamedTuple of these. A native function takes the same
parameters with the tuples flattened: ``loops.factor(*flatten(factors, diagonal))``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, TypeAlias, get_type_hints

from archimedes.function.execution.tiers import array_functions

#: Arrays of float64 and int64, and numbers; in a description, the writer's names for them.
Floats: TypeAlias = Annotated[Any, "F"]
Ints: TypeAlias = Annotated[Any, "I"]
Float: TypeAlias = Annotated[Any, "f"]
Int: TypeAlias = Annotated[Any, "i"]
#: What writes a description down.
Writer: TypeAlias = Annotated[Any, "w"]

#: The kinds of the parameters of each function, and what describes it.
FUNCTIONS: dict[str, tuple[str, Callable[..., None]]] = {}


def native(describe: Callable[..., None]) -> Callable[..., None]:
    """Make a description one of the native functions."""
    parameters = list(get_type_hints(describe, include_extras=True).values())[1:-1]

    def write(w: Writer, *arguments: object) -> None:
        rest = iter(arguments)
        describe(w, *(_unflatten(hint, rest) for hint in parameters))

    FUNCTIONS[describe.__name__] = "".join(map(_kinds, parameters)), write
    return describe


def _fields(hint: Any) -> list[Any]:
    return list(get_type_hints(hint, include_extras=True).values())


def _kinds(hint: Any) -> str:
    """Return a letter for each array and number of a parameter."""
    return "".join(map(_kinds, _fields(hint))) if hasattr(hint, "_fields") else hint.__metadata__[0]


def _unflatten(hint: Any, rest: Iterator[object]) -> Any:
    """Take as many arguments as a parameter has arrays and numbers."""
    if hasattr(hint, "_fields"):
        return hint(*(_unflatten(field, rest) for field in _fields(hint)))
    return next(rest)


def flatten(*arguments: object) -> Iterator[Any]:
    """Return the arrays and numbers of arguments, tuples taken apart."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flatten(*argument)
        else:
            yield argument


@lru_cache(maxsize=1)
def native_loops() -> SimpleNamespace | None:
    """Return all native functions by name, or None where the backend has no native code."""
    for module in ("band_loops", "point_loops"):
        importlib.import_module(f"{__package__}.{module}")
    compiled = array_functions(FUNCTIONS, Path(__file__).parent)
    return None if compiled is None else SimpleNamespace(**compiled)
