"""Large captured arrays that programs read where they lie: always current, nothing to compare.

While a function is recorded, such an array is replaced by a traced one of the same shape, whose
block is the array's own memory (``graph.digests.live_table``). Nothing of the user's is changed for
that: what is called is a copy of the function with the same code, in which the closure variables,
the globals and the fields of structs that lead to the array lead to the traced one. That can be
done if the array, and every function and struct on the way to it, is reached by such names only.
Any other array is compared by content. See docs/decisions/068-live-arrays.md.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.dependencies.introspection import is_installed, names_of, slots_of
from archimedes.function.dependencies.tracked_reads import DictNamespace, Namespace
from archimedes.graph.blocks.references import references
from archimedes.graph.digests import live_table
from archimedes.graph.dtypes import B8, code_of
from archimedes.symbolic import SymbolicArray, current_trace
from archimedes.tree.content import is_read_only
from archimedes.tree.structs import is_struct

if TYPE_CHECKING:
    from archimedes.function.dependencies.walk import Walk

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
    if not value.flags.c_contiguous or not value.flags.aligned or is_read_only(value):
        return False
    return bool(np.count_nonzero(value) >= (1.0 - SPARSE) * value.size)


# ---- who holds what ----------------------------------------------------------------------------


def cells_of(f: FunctionType) -> Iterator[tuple[int, Any]]:
    """Yield position and content of the closure variables that have a value."""
    for k, cell in enumerate(f.__closure__ or ()):
        try:
            yield k, cell.cell_contents
        except ValueError:  # not (yet) set
            continue


def globals_of(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function, or one written in it, reads."""
    for name in names_of(f.__code__).globals:
        if name in f.__globals__:
            yield name, f.__globals__[name]


def reachable_by_name(
    walk: Walk, arrays: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[Any]]:
    """Return those arrays to which only names lead, and the functions and structs that have them.

    The walk has counted how often it met each object. Functions that are called back at run time
    are called with the arrays themselves.
    """
    functions = [
        f
        for f in walk.objects
        if type(f) is FunctionType
        and f.__code__ not in walk.callbacks
        and not is_installed(f.__globals__.get("__name__"))
    ]
    ways = [*_names_in(functions), *_fields(walk.namespaces)]
    live: list[np.ndarray] = []
    holders: dict[int, Any] = {}
    for array in arrays:
        on_the_way = _holders(array, walk.objects[0], ways, walk.references or {})
        if on_the_way is not None:
            live.append(array)
            holders.update(on_the_way)
    return live, list(holders.values())


#: Who holds a value, the value, and what tells one way to it from another.
Way = tuple[Any, Any, tuple[int, Any]]


def _names_in(functions: Sequence[FunctionType]) -> Iterator[Way]:
    """Yield closure variables and globals, which functions share, with what they lead to."""
    for f in functions:
        yield from ((f, value, (id(f), k)) for k, value in cells_of(f))
        yield from ((f, value, (id(f.__globals__), name)) for name, value in globals_of(f))


def _fields(spaces: Sequence[Namespace]) -> Iterator[Way]:
    """Yield the fields of structs among objects with attributes, with what they lead to."""
    for space in spaces:
        owner = space.owner
        is_instance = is_struct(type(owner)) and not isinstance(owner, type)
        if isinstance(space, DictNamespace) and is_instance and not slots_of(owner.__class__):
            yield from ((owner, value, (id(owner), name)) for name, value in space.old.items())


def _holders(
    array: np.ndarray, root: Any, ways: Sequence[Way], counts: dict[int, int]
) -> dict[int, Any] | None:
    """Return the functions and structs on the way to an array; None if there are other ways."""
    held: dict[int, Any] = {}
    todo: list[Any] = [array]
    while todo:
        target = todo.pop()
        mine = [(holder, way) for holder, value, way in ways if value is target]
        is_root = target is root or (type(root) is MethodType and root.__self__ is target)
        if len({way for _, way in mine}) + is_root != counts.get(id(target), 0):
            return None
        new = {id(holder): holder for holder, _ in mine if id(holder) not in held}
        if any(map(_reads_any_name, new.values())):
            return None
        held.update(new)
        todo.extend(new.values())
    return held


def _reads_any_name(holder: Any) -> bool:
    """Return whether a function may read globals past the instructions that name them."""
    if type(holder) is not FunctionType:
        return False
    names = names_of(holder.__code__)
    return not _DYNAMIC.isdisjoint(names.globals | names.attributes)


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

    def __contains__(self, name: object) -> bool:
        return name in self.original

    def get(self, name: str, default: Any = None) -> Any:
        """Return what a name leads to, or the default."""
        return self[name] if name in self.original else default


class Copies:
    """Copies of functions and structs that lead to other objects, and to each other.

    ``others`` has what takes the place of an object, by its id.
    """

    def __init__(self, others: Mapping[int, Any], holders: Sequence[Any]) -> None:
        self.others = dict(others)
        self.leading = {*self.others, *map(id, holders)}
        self.spaces: list[_Globals] = []
        self.cells: list[tuple[CellType, Any]] = []
        for holder in holders:
            is_function = type(holder) is FunctionType
            self.others[id(holder)] = (self._function if is_function else copy.copy)(holder)
        for cell, value in self.cells:
            cell.cell_contents = self.others[id(value)]
        for space in self.spaces:
            space.other = self._redirect(space.original)
        for holder in holders:
            if type(holder) is not FunctionType:
                vars(self.others[id(holder)]).update(self._redirect(vars(holder)))

    def _redirect(self, names: dict[str, Any]) -> dict[str, Any]:
        """Return those names that lead elsewhere in the copies."""
        return {k: self.others[id(v)] for k, v in names.items() if id(v) in self.leading}

    def _function(self, f: FunctionType) -> FunctionType:
        space = f.__globals__
        if any(id(value) in self.leading for _, value in globals_of(f)):
            space = _Globals(space)
            self.spaces.append(space)
        closure = list(f.__closure__ or ())
        for k, value in cells_of(f):
            if id(value) in self.leading:
                closure[k] = CellType()
                self.cells.append((closure[k], value))
        other = FunctionType(f.__code__, space, f.__name__, f.__defaults__, tuple(closure))
        other.__kwdefaults__ = f.__kwdefaults__
        other.__dict__.update(f.__dict__)
        return other

    def of(self, root: Any) -> Callable[..., Any]:
        """Return what to call for a function, a method of a struct or a struct."""
        if type(root) is MethodType:
            return MethodType(root.__func__, self.others[id(root.__self__)])
        return self.others[id(root)]

    def are_intact(self) -> bool:
        """Return whether every name that leads to an array still does."""
        return all(len(space) == space.size for space in self.spaces) and all(
            cell.cell_contents is self.others[id(value)] for cell, value in self.cells
        )


def with_live_arrays(
    root: Any,
    arrays: Sequence[np.ndarray],
    holders: Sequence[Any],
    tables: dict[int, np.ndarray],
) -> Callable[..., Any]:
    """Return what calls a function with arrays that are read where they lie, in a recording.

    ``tables`` has the live tables of the arrays, by id, and gets those that are missing.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        copies = Copies({id(a): _trace_in_place(a, tables) for a in arrays}, holders)
        result = copies.of(root)(*args, **kwargs)
        if not copies.are_intact():
            raise TraceError("the function assigns to a name of an array while it is recorded")
        return result

    return call


def _trace_in_place(array: np.ndarray, tables: dict[int, np.ndarray]) -> Any:
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
