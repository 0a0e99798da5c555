"""Structs that a function reads from around it, with the units that their fields declare.

A function may close over a struct, read a global one, be its method, or be a partial with one. For
a check such structs are replaced by copies whose numbers are traced constants of known value and
unit; nothing of the user's is changed (``function/dependencies/live_arrays.py`` makes the copies of
functions). Structs that are reached in other ways keep plain numbers, whose units are unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.analysis.units.declarations import leaf_units
from archimedes.analysis.units.recording import pin
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies.introspection import is_installed
from archimedes.function.dependencies.live_arrays import Copies, cells_of, globals_of
from archimedes.physical_units import Unit
from archimedes.symbolic import current_trace, wrap

__all__ = ["with_units"]

#: Larger arrays keep plain numbers: they are tables, and stay ones.
_LARGE = 64
#: Takes note of the name and the unit of a value.
Note = Callable[[str, Unit], None]


def with_units(function: Callable[..., Any], note: Note) -> Callable[..., Any]:
    """Return what to call instead of a function while it is recorded for a check."""
    return _Pinning(note).callable(function, getattr(function, "__name__", "self"))


def _is_struct(value: Any) -> bool:
    return not isinstance(value, type) and tree.is_struct(type(value))


class _Pinning:
    """Finds structs that functions lead to, and copies both."""

    def __init__(self, note: Note) -> None:
        self.note = note

    def callable(self, function: Any, name: str) -> Any:
        """Return the copy of a function, a method, a partial, a compiled function or a struct."""
        if isinstance(function, functools.partial):
            inner = self.callable(function.func, name)
            args = [self.value(arg, f"args[{k}]") for k, arg in enumerate(function.args)]
            keywords = {k: self.value(arg, k) for k, arg in function.keywords.items()}
            return functools.partial(inner, *args, **keywords)
        if isinstance(function, MethodType):
            owner = self.value(function.__self__, "self")
            return MethodType(self.callable(function.__func__, name), owner)
        if isinstance(function, FunctionType):
            return self._function(function)
        return self.value(function, "self")

    def value(self, value: Any, name: str) -> Any:
        """Return the copy of a value that a name leads to, or the value itself."""
        if _is_struct(value):
            return self.struct(value, name)
        if isinstance(value, MethodType) and _is_struct(value.__self__):
            return self.callable(value, name)
        if isinstance(value, Compiled):
            inner = self.callable(value.function, name)
            return value if inner is value.function else inner
        return self._function(value) if isinstance(value, FunctionType) else value

    def struct(self, value: Any, name: str) -> Any:
        """Return a struct whose numbers have the units of its fields."""
        leaves, treedef = tree.flatten(value)
        graph, pinned = current_trace().graph, []
        for leaf, unit, path in zip(leaves, leaf_units(treedef, leaves), treedef.paths(name)):
            number = isinstance(leaf, (float, np.ndarray, np.floating)) and np.size(leaf) < _LARGE
            if unit is not None and number and np.asarray(leaf).dtype.kind == "f":
                if isinstance(unit, Unit):
                    self.note(path, unit)
                leaf = pin(leaf, unit, wrap, graph)
            pinned.append(leaf)
        return treedef.unflatten(pinned)

    # ---- functions ---------------------------------------------------------------------

    def _function(self, root: FunctionType) -> Any:
        """Return a copy of a function that leads to copies of structs, or the function itself."""
        functions: list[FunctionType] = []
        self._collect(root, functions)
        values = {id(v): (name, v) for f in functions for name, v in _names(f)}
        others: dict[int, Any] = {}
        for key, (name, value) in values.items():
            if not isinstance(value, FunctionType):
                other = self.value(value, name)
                if other is not value:
                    others[key] = other
        holders = _leading(functions, set(others))
        if not any(holder is root for holder in holders):
            return root
        return Copies(others, holders).others[id(root)]

    def _collect(self, f: FunctionType, functions: list[FunctionType]) -> None:
        """Collect a function and those that it reads by name."""
        if f in functions or is_installed(f.__globals__.get("__name__")):
            return
        functions.append(f)
        for _, value in _names(f):
            if isinstance(value, FunctionType) and value.__module__ != "builtins":
                self._collect(value, functions)


def _names(f: FunctionType) -> list[tuple[str, Any]]:
    """Return what a function reads by name, closure variables and globals."""
    free = f.__code__.co_freevars
    return [*((free[k], value) for k, value in cells_of(f)), *globals_of(f)]


def _leading(functions: list[FunctionType], others: set[int]) -> list[FunctionType]:
    """Return the functions that lead to one of some objects, also through each other."""
    leading: dict[int, FunctionType] = {}
    while True:
        more = [
            f
            for f in functions
            if id(f) not in leading
            and any(id(v) in others or id(v) in leading for _, v in _names(f))
        ]
        if not more:
            return list(leading.values())
        leading.update((id(f), f) for f in more)
