"""Units through a graph: one rule for each operation.

A value has a unit expression (:class:`Expr`), a block one for all elements or one for each
(:class:`Block`), a bool none. Each use of a constant is an unknown of its own, unless its unit is
known. A rule that cannot be kept is reported once for each place in the source, and leaves the
unit of its result open, so that one mistake is one finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from archimedes.analysis.units.recording import RATES, Declared, Literal, Origin, UnitsGraph
from archimedes.analysis.units.unification import Expr, Unknowns, plain
from archimedes.graph.dtypes import B8, I64, item_type, length_of
from archimedes.graph.elementary.table import PROGRAMS, SPECIAL
from archimedes.graph.ops import (
    ARITY,
    BLOCK,
    CODES,
    CONST,
    ELEMENT,
    INPUT,
    LOOKUP,
    OUT,
    REGION,
    TABLE,
)
from archimedes.graph.program import Graph
from archimedes.physical_units import Unit, parse_unit
from archimedes.records import record


class Block:
    """Units of the elements of a block: the distinct ones, and which of them each element has.

    >>> Block.of([plain, plain]).index is None
    True
    """

    __slots__ = ("index", "units")

    def __init__(self, units: list[Expr], index: np.ndarray | None = None) -> None:
        self.units, self.index = units, index

    @classmethod
    def of(cls, elements: Sequence[Expr]) -> Block:
        """Return the units of a block from those of all its elements."""
        numbers: dict[Expr, int] = {}
        index = [numbers.setdefault(x, len(numbers)) for x in elements]
        return cls(list(numbers), np.array(index) if len(numbers) > 1 else None)

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Return which of the units the elements at some positions have."""
        if self.index is None:
            return np.zeros(np.shape(positions), dtype=np.int64)
        return self.index[positions]

    def elements(self, length: int) -> list[Expr]:
        """Return the unit of each element."""
        if self.index is None:
            return self.units * length
        return [self.units[k] for k in self.index.tolist()]


#: What is known of a value: the unit of a number, those of a block, None for bools.
Known = Any


@record
class Mismatch:
    """A rule that is not kept: which operation, the two units, and where it is.

    ``what`` is the name of the op, or of the rule; ``units`` are those of its operands in the order
    of the source, or of a value and what it must have.
    """

    what: str
    units: tuple[Expr, Expr]
    origin: Origin | None
    detail: Any = ""


@record
class ScaleFactor:
    """A constant in a product whose unit, when all is known, may turn out to be a mere scale."""

    value: float
    unit: Expr
    partner: Expr
    origin: Origin | None


SECOND = parse_unit("s")


def rate_of(x: Expr) -> Expr:
    """Return the unit of the rate of a quantity; that of a temperature in degC is K/s."""
    unit = Unit((*x.unit.dims[:-1], 0), x.unit.scale) if x.unit.dims[-1] else x.unit
    return Expr(unit / SECOND, x.unknowns)


@record
class DeclaredField:
    """A field of a struct that the function makes: its unit and that which it declares."""

    found: Expr
    unit: Unit
    declared: Declared
    origin: Origin | None
    source: Origin | None


#: Ops whose operands must have one unit, which is that of the result.
_ALIKE = {"add", "sub", "min", "max", "fmod", "hypot", "modulo"}
_SAME = {"neg", "abs", "floor", "ceil", "trunc", "rint", "stop", "f32", "i64", "truncate"}
_KELVIN, _CELSIUS = parse_unit("K"), parse_unit("degC")
#: Kelvin between absolute zero and that of Celsius.
_ZEROS = (273.15, 273.16)
_COMPARE = {"lt", "le", "eq", "ne"}
_NE, _MUL = CODES["ne"], CODES["mul"]
_ROOTS = {"sqrt": Fraction(1, 2), "cbrt": Fraction(1, 3)}
_OWN = {"arctan2", "pow", "hypot", "fmod", "cbrt"}
_PLAIN = {name for name in PROGRAMS if name not in _OWN}
#: Algorithms in which values of unlike units may meet: pivoting, norms of all unknowns together.
LENIENT = (
    *("symbolic/linalg/", "function/", "simulate/", "optimize/", "random/", "special/", "graph/"),
    *("backends/", "embedded/", "symbolic/numpy_functions/fourier", "system/"),
)
#: The same in plain NumPy, which is otherwise checked as a user's is: unknowns of unlike units are
#: solved for together.
SOLVERS = (
    *("optimize/", "multibody/contact/impulses", "multibody/contact/soft_forces"),
    "multibody/tasks/whole_body.py",
)


#: Rules of regions that the user's own calls of our functions make.
_STRICT = dict.fromkeys(("carry", "branches"), "function/control_flow/")
_STRICT["solve"] = "symbolic/linalg/"
_STRICT |= dict.fromkeys(SPECIAL, "special/")
_DEGREE = parse_unit("deg")


class Propagation:
    """Propagates units through a graph and the bodies in it, and collects what does not fit.

    ``region_units`` gives the units of the outputs of a region (``region_rules.py``).
    """

    def __init__(self, region_units: Callable[..., list[Known]]) -> None:
        self.region_units = region_units
        #: Whether structs that may as well hold values as rates hold rates.
        self.prefers_rates = False
        self.unknowns = Unknowns()
        self.mismatches: list[Mismatch] = []
        self.factors: list[ScaleFactor] = []
        self._reported: set[Any] = set()
        #: Fields of structs that may hold rates, by the number of the struct.
        self.fields: dict[int, list[DeclaredField]] = {}
        self._tables: dict[Any, Expr] = {}
        #: Kept while the propagation lives, so that their ids stay theirs.
        self._graphs: list[Graph] = []
        #: Where the region is whose body is looked at, for bodies that know no lines.
        self.outer: Origin | None = None

    # ---- what rules use ----------------------------------------------------------------

    def new(self) -> Expr:
        """Return an unknown unit."""
        return self.unknowns.new()

    def fresh(self, dtype: int) -> Known:
        """Return an unknown for a value of a type."""
        if item_type(dtype) == B8:
            return None
        return Block([self.new()]) if length_of(dtype) else self.new()

    def equate(self, what: str, a: Expr, b: Expr, origin: Origin | None, detail: str = "") -> Expr:
        """Require that two units are equal; return that unit, or an unknown one if they are not."""
        if self.unknowns.equate(a, b):
            return self.unknowns.resolve(a)
        self.report(what, a, b, origin, detail)
        return self.new()

    def report(self, what: str, a: Expr, b: Expr, origin: Origin | None, detail: Any = "") -> None:
        """Take note of a rule that is not kept, once for each place in the source."""
        inside = "" if origin is None else origin.inside
        if inside.startswith(LENIENT) and not inside.startswith(_STRICT.get(what, "-")):
            return
        if origin is not None and origin.file.startswith(SOLVERS):
            return
        key = (origin and origin.places, detail)
        if key not in self._reported:
            self._reported.add(key)
            swapped = origin is not None and origin.swapped and what not in ("field", "rate")
            units = (b, a) if swapped else (a, b)
            self.mismatches.append(Mismatch(what, units, origin, detail))

    def join(self, what: str, values: Sequence[Known], origin: Origin | None) -> Known:
        """Require that several values have the same unit, element by element for blocks."""
        first, *others = values
        for other in others:
            if first is None or other is None:
                return None
            if not isinstance(first, Block):
                first = self.equate(what, first, other, origin)
            elif first.index is None and other.index is None:
                first = Block([self.equate(what, first.units[0], other.units[0], origin)])
            else:
                first = self._join_elements(what, first, other, origin)
        return first

    def _join_elements(self, what: str, a: Block, b: Block, origin: Origin | None) -> Block:
        length = len(a.index if a.index is not None else b.index)  # type: ignore[arg-type]
        where = np.arange(length)
        pairs, index = np.unique(
            np.stack([a.at(where), b.at(where)], axis=1), axis=0, return_inverse=True
        )
        units = [self.equate(what, a.units[i], b.units[j], origin) for i, j in pairs.tolist()]
        return Block(units, index.ravel())

    def one_unit(self, block: Block, what: str, origin: Origin | None) -> Expr:
        """Require that all elements of a block have one unit."""
        unit = block.units[0]
        for other in block.units[1:]:
            unit = self.equate(what, unit, other, origin)
        return unit

    def declare(
        self,
        found: Expr,
        unit: Unit,
        declared: Declared,
        origin: Origin | None,
        source: Origin | None,
    ) -> Expr:
        """Require that a field of a new struct has its unit, or that all have those of rates.

        ``source`` is where the value of the field was computed.
        """
        field = DeclaredField(found, unit, declared, origin, source)
        if declared.may_be_rate:
            self.fields.setdefault(declared.number, []).append(field)
            return found
        self._require(field, unit)
        return Expr(unit)

    def _require(self, field: DeclaredField, unit: Unit) -> None:
        if not self.unknowns.equate(field.found, Expr(unit)):
            pair = (field.declared, field.source)
            self.report("field", field.found, Expr(unit), field.origin, pair)

    def require_fields(self) -> None:
        """Decide for structs that may hold rates whether they do, and require their units."""
        for fields in self.fields.values():
            known = [(self.unknowns.resolve(f.found), f.unit) for f in fields]
            values = sum(not x.unknowns and x.unit == unit for x, unit in known)
            rates = sum(not x.unknowns and x == rate_of(Expr(unit)) for x, unit in known)
            for field in fields if values or rates else ():
                is_rate = rates > values or (self.prefers_rates and rates == values)
                self._require(field, rate_of(Expr(field.unit)).unit if is_rate else field.unit)
        self.fields.clear()

    def origin(self, g: Graph, i: int) -> Origin | None:
        """Return where a node comes from; for bodies that know no lines, where the region is."""
        line = g.lines[i] if g.lines is not None else None
        return line if isinstance(line, Origin) and line.places else self.outer

    def table_unit(self, g: Graph, number: int, origin: Origin | None) -> Expr:
        """Return the unit of a constant table, one for each table and line that reads it."""
        key = (id(g.tables[number]), origin and origin.places)
        if key not in self._tables:
            self._tables[key] = self.new()
        return self._tables[key]

    # ---- a graph -----------------------------------------------------------------------

    def run(self, g: Graph, inputs: Sequence[Known]) -> list[Known]:
        """Propagate the units of the inputs through a graph; return those of its outputs."""
        self._graphs.append(g)
        return _Run(self, g, inputs).outputs()

    def inside(self, origin: Origin | None, g: Graph, inputs: Sequence[Known]) -> list[Known]:
        """Propagate through a body of a region that comes from ``origin``."""
        before, self.outer = self.outer, origin
        try:
            return self.run(g, inputs)
        finally:
            self.outer = before


class _Run:
    """One propagation through one graph."""

    def __init__(self, all: Propagation, g: Graph, inputs: Sequence[Known]) -> None:
        self.all, self.g, self.inputs = all, g, inputs
        self.units: list[Known] = [None] * len(g.op)
        for i in g.live():
            self.units[i] = self._node(i)

    def outputs(self) -> list[Known]:
        return [self.use(i, product=False) for i in self.g.outputs]

    def use(self, i: int, product: bool) -> Known:
        """Return the unit of a value where it is used; that of a constant is new for each use.

        Numbers of our own formulas are plain in products. In sums and comparisons they are zeros,
        thresholds and the like, which fit anything.
        """
        g = self.g
        if g.op[i] == BLOCK:
            return Block([self.all.new()])
        if g.op[i] != CONST or g.dtype[i] == B8:
            # What is computed and known to be zero fits anything, as zero does.
            is_zero = g.value.get(i) == 0 and g.dtype[i] != B8
            return self.all.new() if is_zero else self.units[i]
        value = g.value[i]
        unit: Unit | None = getattr(value, "unit", None)
        if unit is not None:
            return Expr(unit)
        ours = isinstance(g, UnitsGraph) and getattr(value, "plain", True) and g.dtype[i] != I64
        if product and ours and value != 0 and math.isfinite(value):
            return plain
        return self.all.new()

    def _node(self, i: int) -> Known:
        g = self.g
        code = g.op[i]
        if code == INPUT:
            return self.inputs[g.a[i]]
        if code in (CONST, BLOCK):
            return None
        if code == OUT:
            return self.units[g.a[i]][g.b[i]]
        origin = self.all.origin(g, i)
        if code == REGION:
            region = g.regions[i]
            # The ones of an identity are plain where its columns are solved for.
            is_system = region.kind == "solve"
            values = [self.use(j, product=is_system) for j in region.inputs.tolist()]
            return self.all.region_units(self.all, region, values, origin)
        if code == LOOKUP:
            return self.all.table_unit(g, g.b[i], origin) if g.dtype[i] != B8 else None
        if code == ELEMENT:
            return self._element(i, origin)
        return self._operation(i, TABLE[code].name, origin)

    def _element(self, i: int, origin: Origin | None) -> Known:
        g = self.g
        block = g.a[i]
        if g.dtype[i] == B8:
            return None
        if g.op[block] == BLOCK:
            return self.all.table_unit(g, g.b[block], origin)
        units = self.units[block]
        at = g.value.get(g.b[i])
        if at is not None:
            return units.units[int(units.at(np.array(int(at))))]
        return self.all.one_unit(units, "element", origin)

    def _operation(self, i: int, name: str, origin: Origin | None) -> Known:
        g, every = self.g, self.all
        ids = (g.a[i], g.b[i], g.c[i])[: ARITY[g.op[i]]]
        if name in ("mul", "div", "quotient", "fma"):
            return self._product(name, ids, origin)
        if name == "select":
            return self._select(ids, g.dtype[i], origin)
        units = [self.use(j, product=False) for j in ids]
        if name in _COMPARE:
            # Inside our own algorithms values are compared to choose a pivot, a branch, an order.
            if None not in units and origin is not None and not origin.inside:
                every.equate(name, units[0], units[1], origin)
            return None
        if g.dtype[i] == B8:
            return None
        if name == "f64":
            return plain if g.dtype[ids[0]] == B8 else units[0]
        if name in _SAME:
            return units[0] if units[0] is not None else plain
        if name in _ROOTS:
            return units[0] ** _ROOTS[name]
        if name == "add":
            for j, other, mine in ((*ids, units[1]), (*reversed(ids), units[0])):
                declared = getattr(g.value.get(j), "declared", None)
                if declared is not None:
                    source = every.origin(g, other) if g.op[other] != INPUT else None
                    return every.declare(mine, g.value[j].unit, declared, origin, source)
            if origin is not None and origin.inside == RATES:
                return self._rate(ids, units, origin)
        if name in ("add", "sub") and (shifted := self._temperature(name, ids, units)):
            return shifted
        if name in _ALIKE:
            return every.equate(name, units[0], units[1], origin)
        if name == "copysign":
            return units[0]
        if name == "arctan2":
            every.equate(name, units[0], units[1], origin)
            return plain
        if name == "pow":
            return self._power(ids, units, origin)
        if name in _PLAIN:
            for unit in units:
                if not every.unknowns.equate(unit, plain):
                    every.report(name, unit, plain, origin)
            return plain
        return every.new()  # bits of numbers

    def _temperature(self, name: str, ids: Sequence[int], units: Sequence[Expr]) -> Expr | None:
        """Return the unit of a sum with a temperature in degC, None where there is none.

        Differences of two are in K, and K may be added; with 273.15 it becomes kelvin, and back.
        """
        left, right = map(self.all.unknowns.resolve, units)
        shifts = [abs(self.g.value.get(j, 0.0)) in _ZEROS for j in ids]
        if any(shifts):
            known = right if shifts[0] else left
            if known.unknowns or known.unit.si != _KELVIN:
                return None
            return Expr(known.unit.si) if known.unit.dims[-1] else Expr(_CELSIUS)
        if left.unknowns or right.unknowns or left.unit.si != _KELVIN or right.unit.si != _KELVIN:
            return None
        zeros = left.unit.dims[-1], right.unit.dims[-1]
        if name == "sub" and zeros == (1, 1) and left.unit == right.unit:
            return Expr(Unit((*left.unit.dims[:-1], 0), left.unit.scale))
        if zeros == (1, 0) or (name == "add" and zeros == (0, 1)):
            warm, rise = (left, right) if zeros[0] else (right, left)
            return Expr(warm.unit) if warm.unit.scale == rise.unit.scale else None
        return None

    def _rate(self, ids: Sequence[int], units: Sequence[Expr], origin: Origin) -> Expr:
        """Require that a rate, which is the factor of a second, has its state's unit per second."""
        every, g = self.all, self.g
        order = (0, 1) if g.op[ids[1]] == _MUL else (1, 0)
        state, change = (every.unknowns.resolve(units[k]) for k in order)
        rate_unit = change / Expr(SECOND)
        if state.unknowns:  # a model without units may as well count in other times
            return state
        if not every.unknowns.equate(rate_unit, rate_of(state)):
            product = ids[order[1]]
            rate = g.a[product] if g.b[product] in g.value else g.b[product]
            source = every.origin(g, rate) if g.op[rate] > ELEMENT else None
            every.report("rate", rate_unit, rate_of(state), origin, source)
        return state

    def _product(self, name: str, ids: tuple[int, ...], origin: Origin | None) -> Expr:
        g, every = self.g, self.all
        a, b = (self.use(j, product=True) for j in ids[:2])
        inverse = name in ("div", "quotient")
        b = b**-1 if inverse else b
        for j, other, turned in ((ids[0], b, False), (ids[1], a, inverse)):
            value: Any = g.value.get(j)
            if g.op[j] != CONST or type(value) is not Literal or value.unit or value.plain:
                continue
            # With a number that may have any unit a product may have any: that is one unknown,
            # not one more in all that is computed of it.
            product = every.new()
            if value > 0:
                factor = 1.0 / value if turned else float(value)
                every.factors.append(ScaleFactor(factor, product / other, other, origin))
            if name == "fma":
                return every.equate("add", product, self.use(ids[2], product=False), origin)
            return product
        if name == "mul" and (turned := self._angle(ids, (a, b), origin)):
            return turned
        if name == "fma":
            c = self.use(ids[2], product=False)
            return every.equate("add", a * b, c, origin)
        return a * b

    def _angle(self, ids: tuple[int, ...], units: Sequence[Expr], origin: Origin | None) -> Any:
        """Return the unit of np.deg2rad or np.rad2deg if it converts what needs no conversion."""
        for j, x in ((ids[0], units[1]), (ids[1], units[0])):
            value: Any = self.g.value.get(j)
            if type(value) is not Literal or value.unit is None or not value.unit.is_ratio:
                continue
            known = self.all.unknowns.resolve(x)
            if known.unknowns:
                continue
            if value == np.pi / 180 and value.unit == _DEGREE**-1 and not known.unit.log_scale:
                self.all.report("deg2rad", known, known, origin)
                return known
            if (
                value == 180 / np.pi
                and value.unit == _DEGREE
                and known.unit.si * _DEGREE == known.unit
            ):
                self.all.report("rad2deg", known, known, origin)
                return known
        return None

    def _select(self, ids: tuple[int, ...], dtype: int, origin: Origin | None) -> Known:
        if dtype == B8:
            return None
        g = self.g
        test, ids = ids[0], ids[1:]
        if g.op[test] == _NE and g.a[test] == g.b[test] and g.a[test] in ids:
            # np.where(np.isnan(x), x, y): nan fits anything.
            return self.use(ids[1 - ids.index(g.a[test])], product=False)
        for j in ids:
            value = g.value.get(j)
            # A number of ours, such as the 1 of np.sign, is a plain one.
            ours = isinstance(g, UnitsGraph) and g.op[j] == CONST and type(value) is float
            if ours and value and math.isfinite(value):
                return plain
        a, b = (self.use(j, product=False) for j in ids)
        return self.all.join("select", [a, b], origin)

    def _power(self, ids: tuple[int, ...], units: Sequence[Expr], origin: Origin | None) -> Expr:
        every = self.all
        if not every.unknowns.equate(units[1], plain):
            every.report("exponent", units[1], plain, origin)
        value = self.g.value.get(ids[1])
        if value is not None and math.isfinite(value):
            return units[0] ** Fraction(float(value)).limit_denominator(1000)
        if not every.unknowns.equate(units[0], plain):
            every.report("pow", units[0], plain, origin)
        return plain
