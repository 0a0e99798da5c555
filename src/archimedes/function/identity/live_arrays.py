"""Large captured arrays are read where they lie: always current, and nothing to compare.

While a function is recorded, such an array is a traced one of the same shape whose block is the
array's own memory (``graph.digests.live_table``). To put it there, nothing of the user's is
changed: the function is called as a copy of itself, with the same code, in which the variables of
enclosing functions and the globals that lead to the array lead to the traced one. That can be done
if the array, and every function on the way to it, is reached by such names only. Any other array
is compared by content. See docs/decisions/068-live-arrays.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.identity.code_names import names_of
from archimedes.function.identity.data_places import is_fixed
from archimedes.function.identity.installed import is_installed
from archimedes.graph.blocks.references import references
from archimedes.graph.digests import live_table
from archimedes.graph.dtypes import B8, code_of
from archimedes.symbolic import SymbolicArray, current_trace

__all__ = ["LARGE", "may_be_live", "reachable_by_name", "with_live_arrays"]

#: Arrays of so many elements may be read where they lie: 32 kB, which take a microsecond to
#: compare. Smaller ones are constants, which a program can be simplified by.
LARGE = 4096
#: Largest share of zeros: with more, what is known about them is worth more.
SPARSE = 0.1
#: Names in code that lead to globals past the instructions that read them.
_DYNAMIC = {"globals", "eval", "exec", "modules", "__globals__", "__closure__"}


def may_be_live(value: np.ndarray) -> bool:
    """Return whether an array is one that programs can read where it lies, and are to."""
    if type(value) is not np.ndarray or value.size < LARGE:
        return False
    code = code_of(value.dtype)
    if code is None or code == B8 or not value.dtype.isnative:
        return False
    if not value.flags.c_contiguous or not value.flags.aligned or is_fixed(value):
        return False
    return bool(np.count_nonzero(value) >= (1.0 - SPARSE) * value.size)


# ---- who holds what ----------------------------------------------------------------------------


def _cells(f: FunctionType) -> Iterator[tuple[int, Any]]:
    """Yield position and content of the variables of enclosing functions that have a value."""
    for k, cell in enumerate(f.__closure__ or ()):
        try:
            yield k, cell.cell_contents
        except ValueError:  # not (yet) set
            continue


def _globals(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function, or one written in it, reads."""
    for name in names_of(f.__code__).globals:
        if name in f.__globals__:
            yield name, f.__globals__[name]


def reachable_by_name(
    arrays: Sequence[np.ndarray],
    objects: Sequence[Any],
    counts: dict[int, int],
    hosts: frozenset[CodeType] = frozenset(),
) -> tuple[list[np.ndarray], list[FunctionType]]:
    """Return those arrays to which nothing leads but names in functions, and these functions.

    ``objects`` are all that a walk has met, the root first; ``counts`` says how often each.
    Functions of the code ``hosts`` are called at run time, with the arrays themselves.
    """
    root = objects[0] if objects else None
    if type(root) is not FunctionType:
        return [], []
    functions = [
        f
        for f in objects
        if type(f) is FunctionType
        and f.__code__ not in hosts
        and not is_installed(f.__globals__.get("__name__"))
    ]
    live: list[np.ndarray] = []
    holders: dict[int, FunctionType] = {}
    for array in arrays:
        found = _holders(array, root, functions, counts)
        if found is not None:
            live.append(array)
            holders.update(found)
    return live, list(holders.values())


def _holders(
    array: np.ndarray, root: Any, functions: Sequence[FunctionType], counts: dict[int, int]
) -> dict[int, FunctionType] | None:
    """Return the functions on the way to an array, by id; None if there are other ways."""
    held: dict[int, FunctionType] = {}
    todo: list[Any] = [array]
    while todo:
        target = todo.pop()
        ways = 1 if target is root else 0
        spaces: set[tuple[int, str]] = set()
        for f in functions:
            cells = sum(1 for _, value in _cells(f) if value is target)
            names = [name for name, value in _globals(f) if value is target]
            if not cells and not names:
                continue
            ways += cells
            spaces |= {(id(f.__globals__), name) for name in names}
            code = names_of(f.__code__)
            if not _DYNAMIC.isdisjoint(code.globals | code.attributes):
                return None
            if id(f) not in held:
                held[id(f)] = f
                todo.append(f)
        if ways + len(spaces) != counts.get(id(target), 0):
            return None
    return held


# ---- the copy that is recorded -----------------------------------------------------------------


class _Globals(dict[str, Any]):
    """Globals of a function, some of which lead elsewhere."""

    def __init__(self, original: dict[str, Any]) -> None:
        # What Python reads past __getitem__: it belongs to importing and to warnings.
        super().__init__({k: v for k, v in original.items() if k.startswith("__")})
        self.original, self.size = original, len(self)
        self.other: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.other[name] if name in self.other else self.original[name]


def with_live_arrays(
    root: Any,
    arrays: Sequence[np.ndarray],
    holders: Sequence[FunctionType],
    tables: dict[int, np.ndarray],
) -> Callable[..., Any]:
    """Return what calls a function with arrays that are read where they lie, in a recording.

    ``tables`` has the live tables of the arrays, by id, and gets those that are missing.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        others = {id(a): _traced(a, tables) for a in arrays}
        leading = {*others, *map(id, holders)}
        spaces: list[_Globals] = []
        cells: list[tuple[CellType, Any]] = []
        for f in holders:
            space = f.__globals__
            if any(id(value) in leading for _, value in _globals(f)):
                space = _Globals(space)
                spaces.append(space)
            closure = list(f.__closure__ or ())
            for k, value in _cells(f):
                if id(value) in leading:
                    closure[k] = CellType()
                    cells.append((closure[k], value))
            copy = FunctionType(f.__code__, space, f.__name__, f.__defaults__, tuple(closure))
            copy.__kwdefaults__ = f.__kwdefaults__
            copy.__dict__.update(f.__dict__)
            others[id(f)] = copy
        for cell, value in cells:
            cell.cell_contents = others[id(value)]
        for space in spaces:
            found = space.original.items()
            space.other = {name: others[id(v)] for name, v in found if id(v) in leading}
        result = others[id(root)](*args, **kwargs)
        if any(len(s) != s.size for s in spaces) or any(
            cell.cell_contents is not others[id(value)] for cell, value in cells
        ):
            raise TraceError("a name that leads to an array is bound anew while recording")
        return result

    return call


def _traced(array: np.ndarray, tables: dict[int, np.ndarray]) -> Any:
    """Return an array as a traced one, whose block is its memory; it cannot be written to."""
    trace = current_trace()
    table = tables.get(id(array))
    if table is None:
        table = tables[id(array)] = live_table(array)
    block = trace.graph.block(table)
    ids = references(trace.graph, block).reshape(array.shape)
    ids.flags.writeable = False
    code = code_of(array.dtype)
    assert code is not None
    return SymbolicArray(ids, code, trace)
