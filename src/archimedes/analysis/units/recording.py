"""Recording for a check: constants keep their units, nodes the place in the source they come from.

While a check is recorded, graphs are :class:`UnitsGraph`. They tell numbers that the function
writes (a :class:`Literal`, whose unit is what its use needs) from those of our own formulas, which
are plain; they keep products with one; and they keep what is computed of numbers whose unit is
known, though its value is known as well.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from archimedes.analysis.units.source import HERE, Place, stands_in_product
from archimedes.graph.digests import constant_key
from archimedes.graph.dtypes import B8, F32, F64
from archimedes.graph.ops import ARITY, CODES, CONST, TABLE
from archimedes.graph.program import FIRST_REFERENCE, Graph, origins
from archimedes.physical_units import Unit, parse_unit
from archimedes.symbolic.core.user_frames import is_user_code

_MUL, _DIV, _SELECT = CODES["mul"], CODES["div"], CODES["select"]
_COMMUTES = tuple(op.commutative for op in TABLE)


# ---- where nodes come from ---------------------------------------------------------------------


class Origin(NamedTuple):
    """Where a node was made: places in the user's code and in physics of ours, innermost first.

    ``inside`` is the file of our machinery that the innermost place called, "" if an operator or a
    ufunc there made the node. ``swapped``: its operands are not in the order they are written in.
    """

    places: tuple[Place, ...]
    inside: str = ""
    swapped: bool = False

    @property
    def file(self) -> str:
        """The file of the innermost place, relative to the package, "" outside of it."""
        return _file_of_package(self.places[0].code.co_filename) if self.places else ""


#: Stands for the file of our machinery where a solver requires the units of rates.
RATES = "rates"
#: Files of generated code: methods of dataclasses and structs.
_GENERATED = ("<string>", "<build of", "<flatten of")
#: Folders of the machinery that hand operators and ufuncs on, and decide nothing by themselves.
_PLUMBING = (
    *("symbolic/core/", "symbolic/recorded/", "tree/", "tracebacks.py", "analysis/"),
    *("graph/program.py", "graph/formulas.py", "graph/simplify.py"),
)


@functools.lru_cache(maxsize=4096)
def _machinery(filename: str) -> str:
    """Return the file of our machinery, relative to the package, that is no plumbing, or ""."""
    name = _file_of_package(filename)
    return "" if name.startswith(_PLUMBING) else name


@functools.lru_cache(maxsize=4096)
def _file_of_package(filename: str) -> str:
    """Return a file of the package relative to it, "" for others."""
    return filename[len(HERE) :].replace(os.sep, "/") if filename.startswith(HERE) else ""


class recording_units:
    """Have graphs that this thread makes inside the block be :class:`UnitsGraph`."""

    def __enter__(self) -> recording_units:
        self._outer: FrameType | None = sys._getframe(1)
        self._known: dict[Origin, Origin] = {}
        self._users: dict[str, bool] = {}
        self._before = origins.find, origins.kind
        origins.find, origins.kind = self._find, UnitsGraph
        return self

    def __exit__(self, *error: Any) -> None:
        origins.find, origins.kind = self._before
        self._outer = None

    def _find(self) -> Origin:
        places: list[Place] = []
        inside, is_rate = "", False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._outer:
            code = frame.f_code
            name = code.co_filename
            is_user = self._users.get(name)
            if is_user is None:
                is_user = self._users[name] = is_user_code(frame)
            if is_user and not name.startswith(_GENERATED):
                places.append(Place(code, frame.f_lasti))
            elif not places and not is_user:
                # The outermost one that stands between the user's line and the node.
                inside = _machinery(name) or inside
                is_rate = is_rate or code.co_name == "require_rates"
                if inside.endswith("linalg/solving.py") and "norm" in code.co_name:
                    inside = "symbolic/numpy_functions/norm"
            frame = frame.f_back
        origin = Origin(tuple(places), RATES if is_rate else inside)
        return self._known.setdefault(origin, origin)


def is_checking() -> bool:
    """Return whether this thread records for a check of units."""
    return origins.kind is UnitsGraph


# ---- numbers with units ------------------------------------------------------------------------


class Declared(NamedTuple):
    """A field of a struct that says its unit: names, the number of the struct, what it may hold.

    ``may_be_rate``: all fields of the struct may be rates, with their units per second.
    """

    struct: str
    field: str
    number: int
    may_be_rate: bool
    fields: tuple[str, ...]


class Literal(float):
    """A number that the recorded function writes; ``unit`` is None where its use decides.

    ``plain``: in products it is a plain number. ``declared``: what is added to it is a field of a
    struct, and must have the unit.
    """

    __slots__ = ("declared", "plain", "unit")
    unit: Unit | None
    plain: bool
    declared: Declared | None

    def __new__(
        cls,
        value: float,
        unit: Unit | None = None,
        plain: bool = False,
        declared: Declared | None = None,
    ) -> Literal:
        """Make a number with a unit."""
        self = super().__new__(cls, value)
        self.unit, self.plain, self.declared = unit, plain, declared
        return self


#: Units of numbers and arrays that ``quantity`` has made, by id. Numbers are kept, so that no other
#: object gets the id; arrays are forgotten when they go.
_numbers: dict[int, tuple[float, Unit]] = {}
_arrays: dict[int, tuple[weakref.ref[np.ndarray], Unit]] = {}
#: Above so many, numbers that nobody else holds are forgotten.
_MANY = 4096


def remember(value: Any, unit: Unit) -> None:
    """Note the unit of a number or an array, by its identity."""
    if isinstance(value, np.ndarray):
        key = id(value)
        _arrays[key] = (weakref.ref(value, lambda _: _arrays.pop(key, None)), unit)
        return
    if len(_numbers) >= _MANY:
        for key, (number, _) in list(_numbers.items()):
            if sys.getrefcount(number) <= 3:  # the table, the name here and the argument
                del _numbers[key]
    _numbers[id(value)] = (value, unit)


def known_unit(value: Any) -> Unit | None:
    """Return the unit of a number or an array that ``quantity`` has made, else None."""
    if type(value) is float:
        known = _numbers.get(id(value))
        return known[1] if known is not None and known[0] is value else None
    if type(value) is np.ndarray:
        entry = _arrays.get(id(value))
        return entry[1] if entry is not None and entry[0]() is value else None
    return None


# ---- the graph ---------------------------------------------------------------------------------

_DEGREES = {np.pi / 180: parse_unit("1/deg"), 180 / np.pi: parse_unit("deg")}


def _selects(array: np.ndarray) -> bool:
    """Return whether an array consists of unit vectors: axes, identities, permutations."""
    if not array.ndim or not 0 < array.size <= _LARGE:
        return False
    rows = array.reshape(-1, array.shape[-1])
    return bool(np.all((rows == 0) | (np.abs(rows) == 1)) and np.all(np.sum(rows != 0, axis=1) < 2))


#: Larger arrays are data.
_LARGE = 256


class UnitsGraph(Graph):
    """A graph that keeps what a check of units needs."""

    def __init__(self) -> None:
        super().__init__()
        #: Operations by the place that made them: equal ones of two lines are two nodes.
        self._by_place: dict[Any, Any] = {}
        self._origin: Origin | None = None

    def const(self, value: Any, dtype: int = F64) -> int:
        """Return the node of a constant; literals are kept apart from those of formulas."""
        if dtype not in (F64, F32):
            return super().const(value, dtype)
        if type(value) is not Literal:
            if value not in _DEGREES:
                return super().const(value, dtype)
            value = Literal(value, _DEGREES[value])  # np.deg2rad, np.rad2deg
        if value.unit is None and value == 0:
            return super().const(float(value), dtype)
        if dtype == F32:
            with np.errstate(over="ignore"):
                single = float(np.float32(value))
                value = Literal(single, value.unit, value.plain, value.declared)
        unit = None if value.unit is None else (value.unit.dims, value.unit.log_scale)
        key = (*constant_key(float(value), dtype), "literal", unit, value.plain, value.declared)
        i = self._index.get(key)
        if i is None:
            i = self._index[key] = self._append(CONST, -1, -1, -1, dtype)
            self.value[i] = value
        return i

    def literal(self, value: Any, dtype: int = F64) -> int:
        """Return the node of a number that the function writes, or of one in our own code."""
        if dtype not in (F64, F32) or type(value) is Literal:
            return self.const(value, dtype)
        unit, plain = known_unit(value), False
        if unit is None and origins.find is not None:
            origin = origins.find()
            plain = bool(origin.inside)
            if not plain and origin.places:
                plain = stands_in_product(origin.places[0], value)
        return self.const(Literal(value, unit, plain), dtype)

    def constants(self, array: np.ndarray) -> np.ndarray:
        """Return ids of the numbers in an array: data, whose units are what their uses need."""
        array = np.asarray(array)
        if array.dtype.kind != "f":
            return super().constants(array)
        unit, dtype = known_unit(array), F32 if array.dtype.itemsize == 4 else F64
        plain = _selects(array)
        flat = [self.const(Literal(value, unit, plain), dtype) for value in array.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(array.shape)

    def has_unit(self, i: int) -> bool:
        """Return whether a node whose value is known says something about units."""
        value = self.value.get(i)
        if value is None or self.dtype[i] == B8:
            return False
        return self.op[i] != CONST or getattr(value, "unit", None) is not None

    def emit(self, op: int, a: int, b: int = -1, c: int = -1) -> int:
        """Return the node for an operation; what units need is not simplified away."""
        operands = (a, b, c)[: ARITY[op]]
        if max(operands) >= FIRST_REFERENCE:
            operands = tuple(map(self.node_of, operands))
        before, origin = self._origin, origins.find() if origins.find else None
        self._operations = self._by_place.setdefault(origin, type(self._operations)(dict))
        swapped = _COMMUTES[op] and operands[0] > operands[1]
        self._origin = origin._replace(swapped=True) if swapped and origin else origin
        try:
            return self._emit(op, operands)
        finally:
            self._origin = before

    def _emit(self, op: int, operands: tuple[int, ...]) -> int:
        values = [self.value.get(i) for i in operands]
        named = any(map(self.has_unit, operands))
        if all(value is not None for value in values):
            known = self.fold(op, *operands)
            if known is None or not named or self.dtype[known] == B8:
                i = super().emit(op, *operands)
                if known is None or type(self.value.get(i)) is not float:
                    return i
                if any(type(value) is Literal for value in values):
                    plain = all(type(v) is not Literal or v.plain for v in values)
                    return self.const(Literal(self.value[i], None, plain), self.dtype[i])
                return i
            i = self.emit_simplified(op, *operands)
            self.value[i] = Literal(self.value[known])
            return i
        # A division by a power of two would become a product with a number of ours.
        divisor = values[1] if op == _DIV else None
        one = (type(divisor) is Literal and not divisor.plain) or (
            op in (_MUL, _DIV)
            and any(
                type(value) is Literal and abs(value) == 1 and not value.plain for value in values
            )
        )
        # A choice between equals is none, but its condition may compare unlike units.
        same = op == _SELECT and operands[1] == operands[2] and values[0] is None
        keep = self.emit_simplified if named or one or same else super().emit
        return keep(op, *operands)

    def _append(self, op: int, a: int, b: int, c: int, dtype: int) -> int:
        i = super()._append(op, a, b, c, dtype)
        if self._origin is not None and self.lines is not None:
            self.lines[i] = self._origin
        return i


def pin(
    value: Any,
    unit: Unit | tuple[Unit | None, ...],
    wrap: Callable[..., Any],
    graph: Graph,
    declared: Declared | None = None,
) -> Any:
    """Return a number or an array as a traced one whose value and unit are known.

    ``unit`` is one for all elements, or a tuple of one for each.
    """
    array = np.asarray(value, dtype=float)
    units = unit if isinstance(unit, tuple) else (unit,) * array.size
    numbers = zip(array.ravel().tolist(), units)
    flat = [graph.const(Literal(number, u, declared=declared)) for number, u in numbers]
    ids = np.array(flat, dtype=np.int64).reshape(array.shape)
    return wrap(ids, F64, weak=not array.ndim)
