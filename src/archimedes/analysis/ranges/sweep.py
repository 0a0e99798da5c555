"""Run a graph on intervals and affine forms, for many boxes of inputs at once.

A box in which a comparison is undecided is split in two while the sweep runs, one for each answer:
in each of them the ranges of the symbols, and of what was compared, are narrowed. So tables, limits
and branches are followed piece by piece, as long as there is room for more boxes; beyond, results
are what contains both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.analysis.ranges import forms, rounding
from archimedes.analysis.ranges.operations import OPERATIONS, UNITS, as_bool, compare
from archimedes.analysis.ranges.rounding import INF, Ends
from archimedes.analysis.ranges.values import (
    Value,
    constant,
    element,
    flag,
    take,
    whole_range,
)
from archimedes.graph.dtypes import DTYPES, F32, F64, I64, length_of
from archimedes.graph.ops import (
    BLOCK,
    CODES,
    CONST,
    ELEMENT,
    INPUT,
    LOOKUP,
    OPERANDS,
    OUT,
    REGION,
    TABLE,
)
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region
from archimedes.symbolic.core.user_frames import SourceLine

Array = np.ndarray
Lines = tuple[SourceLine, ...]
#: (sweep, region, values) -> outputs
RunRegion = Callable[["Sweep", Region, list[Value]], list[Value]]

#: What is known of two numbers in a box that was split.
_OPEN, _BELOW, _EQUAL, _ABOVE = range(4)
_COMPARISONS = {CODES[name]: name for name in ("lt", "le", "eq", "ne")}
_SELECT, _MIN, _MAX, _SUB = (CODES[name] for name in ("select", "min", "max", "sub"))
#: Symbols besides those of the inputs that a form may have.
_MOST_SYMBOLS = 96
#: A radius that is a larger share of a form becomes a symbol of its own, if it is used again.
_WORTH_A_SYMBOL = 0.02
#: Coefficients of a form; larger ones are given up.
_MOST_COEFFICIENTS = 1 << 24


class Problem(NamedTuple):
    """What a sweep could not exclude: where in the source, and in which boxes."""

    kind: str
    text: str
    lines: Lines
    graph: Graph
    node: int
    low: float
    high: float
    boxes: Array
    version: int


class _Narrowing(NamedTuple):
    """How boxes follow from those before: their parents, and how symbols were narrowed."""

    parents: Array
    middle: Array
    half: Array


class _Plan:
    """What is known of a graph before it is run."""

    def __init__(self, g: Graph) -> None:
        self.live = g.live()
        self.uses = Counter(j for i in self.live for j in g.operands(i))
        self.uses.update(g.outputs)
        self.last: dict[int, list[int]] = {}
        seen: set[int] = set(g.outputs)
        for i in reversed(self.live):
            mine = {*g.operands(i)} - seen
            if mine:
                self.last[i] = list(mine)
                seen |= mine
        self.searched = _searched_tables(g, self.live)


def _searched_tables(g: Graph, live: Sequence[int]) -> dict[int, list[tuple[float, float, int]]]:
    """Return the ends of the tables that values are looked up in, by node.

    A table is searched by comparing a value with entries of an increasing grid; the value may have
    been clamped to the ends of the grid before.
    """
    found: dict[int, list[tuple[float, float, int]]] = {}
    compared = [i for i in live if g.op[i] in (CODES["lt"], CODES["le"])]
    for i in live:
        if g.op[i] not in (CODES["lt"], CODES["le"], _SUB):
            continue
        for entry, value in ((g.a[i], g.b[i]), (g.b[i], g.a[i])):
            if g.op[entry] != LOOKUP or g.op[value] == LOOKUP:
                continue
            table = g.tables[g.b[entry]]
            if table.dtype.kind != "f" or len(table) < 2 or not (np.diff(table) > 0.0).all():
                continue
            first, last = float(table[0]), float(table[-1])
            if g.op[i] == _SUB:
                # The distance from an entry that was found by comparing the same value.
                tests = [j for j in compared if value in (g.a[j], g.b[j])]
                if not g.dependents(tests)[g.a[entry]]:
                    continue
                # The table is of where cells begin. A search that has ends compares with them.
                below = [g.value.get(g.b[j]) for j in tests if g.a[j] == value]
                beyond = [g.value[g.a[j]] for j in tests if g.a[j] in g.value]
                first = first if first in below else -INF
                last = min([c for c in beyond if c > last], default=INF)
                if first == -INF and last == INF:
                    continue
            argument = _before_clamping(g, value, (first, last))
            found.setdefault(argument, []).append((first, last, i))
    return found


def _before_clamping(g: Graph, i: int, ends: tuple[float, float]) -> int:
    for _ in range(2):
        if g.op[i] in (_MIN, _MAX):
            for limit, inner in ((g.a[i], g.b[i]), (g.b[i], g.a[i])):
                if g.value.get(limit) in ends:
                    i = inner
                    break
    return i


class Sweep:
    """One pass over a program and the bodies in it, for ``count`` boxes.

    ``limit`` is how many boxes there may be when the sweep ends, ``unroll`` how many operations
    loops may take before they are summarized. ``run_region`` computes the outputs of a region
    (``regions.py``). ``division_error``: how many roundoffs more a division may be off, where it is
    a product with a reciprocal.
    """

    def __init__(
        self,
        count: int,
        limit: int,
        unroll: int,
        run_region: RunRegion,
        division_error: float = 0.0,
    ) -> None:
        self.count, self.limit, self.unroll = count, max(limit, count), unroll
        self.run_region, self.division_error = run_region, division_error
        self.symbols = self.first_noise = 0
        self.history: list[_Narrowing] = []
        #: Boxes that turned out to be empty.
        self.dead = np.zeros(count, dtype=bool)
        #: Where comparisons may split boxes (None: anywhere); not inside loops over index spaces.
        self.active: tuple[Array, int] | None = None
        self.trail = 0
        self.problems: list[tuple[int, Problem]] = []
        self.muted = False
        #: Operations so far, each on up to 64 boxes.
        self.evaluated = 0
        self.graph, self.node = Graph(), 0
        self.lines: Lines = ()
        self.kind = self.operand_kind = F64
        self.unit = UNITS[F64]
        self._plans: dict[int, tuple[Graph, _Plan]] = {}
        self._extremes: dict[int, tuple[Array, list[Ends]]] = {}
        self._differences: dict[tuple[int, ...], Array] = {}

    # ---- boxes -------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How often boxes have been split."""
        return len(self.history)

    def input(self, ends: Ends, symbol: bool = True) -> Value:
        """Return an input with these ends (2, count) and, if it is a float, a symbol of its own."""
        form = None
        if symbol and np.isfinite(ends).all() and (ends[0] < ends[1]).any():
            plain = forms.constant_form(ends)
            if np.isfinite(plain.mag).all():
                zero = np.zeros_like(plain.r)
                form = forms.Form((self.symbols,), plain.r[None], plain.c, zero, plain.mag)
                self.symbols += 1
                self.first_noise = self.symbols
        # Zero is in a range with its sign or without.
        low = np.where(ends[0] == 0.0, -0.0, ends[0])
        high = np.where(ends[1] == 0.0, 0.0, ends[1])
        return Value(np.stack([low, high]), form=form, version=self.version)

    def to_current(self, value: Value) -> Value:
        """Return a value for the boxes of now."""
        while value.version < self.version:
            parents, middle, half = self.history[value.version]
            after = value.version + 1
            if value.ends.shape[1] == 1 and value.form is None:
                value = Value(value.ends, value.nan, None, after)
                continue
            index = parents if value.ends.shape[1] > 1 else np.zeros_like(parents)
            form, ends = value.form, value.ends[:, index]
            if form is not None:
                form = forms.take_boxes(form, index)
                if form.symbols:
                    form = forms.rescale(form, middle, half)
                    ends = rounding.intersect(ends, form.ends())
            nan = value.nan
            if nan is not None and nan.shape[0] > 1:
                nan = nan[index]
            value = Value(ends, nan, form, after)
        return value

    def mask_now(self, mask: Array, version: int) -> Array:
        """Return a mask over the boxes of a version for those of now."""
        for k in range(version, self.version):
            mask = mask[self.history[k].parents] if mask.shape[0] > 1 else mask
        return np.broadcast_to(mask, (self.count,))

    def _compare(self, v: list[Any], i: int, name: str, x_id: int, y_id: int) -> Value:
        """Return a comparison, and split boxes in which it is undecided."""
        x, y, before = v[x_id], v[y_id], self.version
        true, false = (np.broadcast_to(m, (self.count,)) for m in compare(name, x, y))
        boxes = np.flatnonzero(~(true | false) & ~self.dead)
        if self.active is not None:
            boxes = boxes[self.mask_now(*self.active)[boxes]]
        # Of an order there are two cases, of an equality three: x below y, above it, equal.
        cases = (_BELOW, _ABOVE) if name in ("lt", "le") else (_EQUAL, _BELOW, _ABOVE)
        boxes = boxes[: (self.limit - self.count) // (len(cases) - 1)]
        if not len(boxes):
            return as_bool(true, false)
        case = np.full(self.count, _OPEN)
        case[boxes] = cases[0]
        case = np.concatenate([case, *(np.full(len(boxes), c) for c in cases[1:])])
        self._split(np.concatenate([np.arange(self.count), *[boxes] * (len(cases) - 1)]))
        x, y = self.to_current(x), self.to_current(y)
        if self.symbols:
            self._narrow_symbols(x, y, case)
            x, y = self.to_current(x), self.to_current(y)
        step = 1.0 if is_integer(self.operand_kind) else None
        v[x_id], v[y_id] = _order(x, y, case, name, step)
        true, false = self.mask_now(true, before), self.mask_now(false, before)
        holds = case == (_BELOW if len(cases) == 2 else _EQUAL)
        fails = (case != _OPEN) & ~holds
        if name == "ne":
            holds, fails = fails, holds
        return as_bool(true | holds, false | fails)

    def _split(self, parents: Array) -> None:
        self.history.append(
            _Narrowing(
                parents,
                np.zeros((self.symbols, len(parents))),
                np.ones((self.symbols, len(parents))),
            )
        )
        self.dead = self.dead[parents]
        self.count = len(parents)

    def _narrow_symbols(self, x: Value, y: Value, case: Array) -> None:
        """Narrow the symbols in boxes where x is below, or above, y."""
        middle, half = np.zeros((2, self.symbols, self.count))
        half += 1.0
        if x.form is not None or y.form is not None:
            d = forms.combine(x.as_form(), 1.0, y.as_form(), -1.0, 0.0, 0.0)
            size = np.abs(d.a)
            sign = np.where(case == _BELOW, 1.0, np.where(case == _ABOVE, -1.0, 0.0))
            # sign * d <= 0 bounds each symbol by what the others leave.
            room = d.radius - sign * d.c + forms.SLOP * d.mag
            limit = (room - size) * (1.0 + forms.SLOP) + forms.SLOP * d.mag
            bound = np.where((size > 0.0) & (sign != 0.0), limit / size, 1.0)
            bound = np.where(np.isfinite(bound), bound, 1.0)
            self.dead = self.dead | (bound < -1.0 - 1e-9).any(axis=0)
            bound = np.clip(bound, -1.0, 1.0)
            rows = list(d.symbols)
            half[rows] = np.minimum(0.5 * (1.0 + bound) + 2.0**-50, 1.0)
            middle[rows] = -0.5 * (1.0 - bound) * np.sign(d.a) * sign
            middle = np.where(half == 1.0, 0.0, middle)
        self.history.append(_Narrowing(np.arange(self.count), middle, half))

    # ---- what could not be excluded ----------------------------------------------------

    def note(self, problem: str, where: Array, text: str, ends: Ends | None = None) -> None:
        """Note what could not be excluded, and in which boxes."""
        if self.muted or not where.any():
            return
        low = high = np.nan
        if ends is not None:
            at, lower, upper = np.broadcast_arrays(where, *ends)
            low, high = float(lower[at].min()), float(upper[at].max())
        boxes = where.reshape(where.shape[0], -1).any(axis=1)
        boxes = np.broadcast_to(boxes, (self.count,))
        found = Problem(
            problem, text, self.lines, self.graph, self.node, low, high, boxes, self.version
        )
        self.problems.append((self.node, found))

    # ---- running -----------------------------------------------------------------------

    def plan(self, g: Graph) -> _Plan:
        """Return what is known of a graph."""
        if id(g) not in self._plans:
            self._plans[id(g)] = g, _Plan(g)
        return self._plans[id(g)][1]

    def run(self, g: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a graph, for the boxes of now."""
        plan = self.plan(g)
        outside = self.graph, self.node, self.lines, self.problems
        self.graph, self.problems = g, []
        v: list[Any] = [None] * len(g.op)
        selected: dict[int, tuple[Array, Array, int]] = {}
        for i in plan.live:
            self.node = i
            if g.lines is not None and g.lines[i]:
                self.lines = g.lines[i]
            v[i] = self._node(g, i, v, inputs, plan)
            if g.op[i] == _SELECT:
                condition = v[g.a[i]]
                selected[i] = condition.low == 1.0, condition.high == 0.0, self.version
            for first, last, reader in plan.searched.get(i, ()):
                x = self.to_current(v[i])
                beyond = (x.low < first) | (x.high > last)
                text = f"a table from {first:g} to {last:g} may be left: it is read from "
                self.node = reader  # which may stand on a side that is not taken
                self.note("table", beyond, text + "{} to {}", x.ends)
            for j in plan.last.get(i, ()):
                if g.op[j] not in (CONST, REGION):
                    v[j] = None
        outs = [self.to_current(v[i]) for i in g.outputs]
        problems = self._used_problems(g, plan, selected)
        self.graph, self.node, self.lines, self.problems = outside
        self.problems += [(self.node, problem) for problem in problems]
        return outs

    def _node(self, g: Graph, i: int, v: list[Any], inputs: Sequence[Value], plan: _Plan) -> Value:
        code = g.op[i]
        count = OPERANDS[code]
        if count == 0:
            return self._structural(g, i, code, v, inputs)
        self.evaluated += 1 + self.count // 64  # which take as long
        ids = (g.a[i], g.b[i], g.c[i])[:count]
        operands = []
        for j in ids:
            if v[j].version < self.version:
                v[j] = self.to_current(v[j])
            operands.append(v[j])
        self.kind, self.operand_kind = g.dtype[i], g.dtype[g.a[i]]
        self.unit = UNITS.get(self.kind, 0.0)
        folded = None if self.division_error else _fold(code, self.operand_kind, operands)
        if folded is not None:
            folded.version = self.version
            return folded
        name = _COMPARISONS.get(code)
        if name is not None and not self.trail and not self.muted:
            value = self._compare(v, i, name, *ids)
        else:
            value = OPERATIONS[TABLE[code].name](self, *operands)
            if code == _SUB and g.op[ids[0]] == g.op[ids[1]] == LOOKUP:
                self._subtract_entries(g, ids, value, v)
        value.version = self.version
        if self.kind <= F32:
            self._finish(value, operands, plan.uses[i] > 1)
        return value

    def _finish(self, value: Value, operands: Sequence[Value], again: bool) -> None:
        """Complete a float: intersect what is known of it, and note overflows."""
        form = value.form
        if form is not None:
            if form.a.size > _MOST_COEFFICIENTS:
                form = value.form = None
            else:
                if again and form.symbols and not self.trail:
                    form = self._with_symbol(form)
                value.ends = rounding.intersect(value.ends, form.ends())
                value.form = form
        if self.kind == F32:
            value.ends = rounding.to_float32(value.ends)
        infinite = np.isinf(value.ends).any(axis=0)
        if infinite.any():
            before = np.zeros(1, dtype=bool)
            for x in operands:
                before = before | np.isinf(x.ends).any(axis=0)
            largest = float(np.finfo(np.float32 if self.kind == F32 else np.float64).max)
            text = f"the result may be larger than {largest:.3g}"
            self.note("overflow", infinite & ~before, text)

    def _with_symbol(self, form: forms.Form) -> forms.Form:
        """Return a form whose radius, if it is large, is a symbol that later values share."""
        worth = form.r > _WORTH_A_SYMBOL * (form.mag - np.abs(form.c))
        if not worth.any() or not np.isfinite(form.mag).all():
            return form
        form = forms.condense(forms.release(form, self.symbols), self.first_noise, _MOST_SYMBOLS)
        self.symbols += 1
        return form

    def _structural(
        self, g: Graph, i: int, code: int, v: list[Any], inputs: Sequence[Value]
    ) -> Any:
        if code == CONST:
            value = constant(np.asarray(g.value[i]), self.trail)
        elif code == INPUT:
            return inputs[g.a[i]]
        elif code == OUT:
            return v[g.a[i]][g.b[i]]
        elif code == BLOCK:
            value = constant(g.tables[g.b[i]])
        elif code == LOOKUP:
            v[g.a[i]] = index = self.to_current(v[g.a[i]])
            return self.look_up(g.tables[g.b[i]], index)
        elif code == ELEMENT:
            v[g.a[i]], v[g.b[i]] = self.to_current(v[g.a[i]]), self.to_current(v[g.b[i]])
            return self.read_element(v[g.a[i]], v[g.b[i]])
        else:
            region = g.regions[i]
            values = []
            for j in region.inputs.tolist():
                v[j] = self.to_current(v[j])
                values.append(v[j])
            return self.run_region(self, region, values)
        value.version = self.version
        return value

    # ---- tables ------------------------------------------------------------------------

    def _index_range(self, index: Value, length: int) -> tuple[Array, Array]:
        """Return the first and the last position that an index may have, clamped."""
        outside = (index.low < 0.0) | (index.high > length - 1.0)
        text = f"an index may leave a table of {length} entries: "
        self.note("table", outside, text + "{} to {}", index.ends)
        first, last = (np.clip(x, 0, length - 1).astype(np.int64) for x in index.ends)
        return first, last

    def look_up(self, table: Array, index: Value) -> Value:
        """Return the entries of a constant table at a range of positions."""
        first, last = self._index_range(index, len(table))
        if id(table) not in self._extremes:
            self._extremes[id(table)] = table, _running_extremes(constant(table).ends[:, 0])
        levels = self._extremes[id(table)][1]
        level = np.floor(np.log2(last - first + 1.0)).astype(np.int64)
        ends = np.empty((2, *first.shape))
        for k in np.unique(level).tolist():
            low, high = levels[k]
            mine, most = level == k, len(low) - 1
            # Two runs of 2**k entries cover the range.
            left, right = np.clip(first, 0, most), np.clip(last - (1 << k) + 1, 0, most)
            lower = np.minimum(low[left], low[right])
            ends[0][mine] = (rounding.with_negative_zero(lower) if k else lower)[mine]
            ends[1][mine] = np.maximum(high[left], high[right])[mine]
        nan = None
        if table.dtype.kind == "f" and np.isnan(table).any():
            nan = flag(np.asarray((np.isnan(ends) | np.isinf(ends)).any(axis=0)))
        return Value(ends, nan, None, self.version)

    def _subtract_entries(self, g: Graph, ids: Sequence[int], value: Value, v: list[Any]) -> None:
        """Narrow the difference of two entries of tables whose positions are so many apart.

        The two ends of a cell of a grid are never the same, whichever cell it is.
        """
        (base, first), (other, second) = (_offset(g, g.a[i]) for i in ids)
        if base != other or v[base] is None:
            return
        v[base] = index = self.to_current(v[base])
        one, two = (g.tables[g.b[i]] for i in ids)
        length = max(len(one) - first, len(two) - second)
        if min(first, second) < 0 or not ((index.low >= 0.0) & (index.high < length)).all():
            return
        key = id(g), *ids
        if key not in self._differences:
            at = np.arange(length)
            ends = (t[np.clip(at + k, 0, len(t) - 1)] for t, k in ((one, first), (two, second)))
            self._differences[key] = np.subtract(*ends)
        entries = self.look_up(self._differences[key], index)
        value.ends = rounding.intersect(value.ends, rounding.widen(entries.ends, self.unit))

    def read_element(self, block: Value, index: Value) -> Value:
        """Return the element of a block at a range of positions."""
        length = block.ends.shape[-1]
        first, last = self._index_range(index, length)
        known = np.array_equal(first, last)
        if not self.trail and first.min() == last.max():
            return element(block, int(first.min()))
        if self.trail and first.shape[0] == 1 and known:
            return take(block, first.reshape(-1))
        if not self.trail and known:
            rows = np.arange(len(first))
            return block.change(lambda array: array[rows if len(array) > 1 else 0 * rows, first])
        if self.trail:  # of all points
            first, last = first.min(axis=1), last.max(axis=1)
        at = np.arange(length)
        within = (at >= first[:, None]) & (at <= last[:, None])
        low = rounding.with_negative_zero(np.where(within, block.low, INF).min(axis=-1))
        high = np.where(within, block.high, -INF).max(axis=-1)
        nan = None if block.nan is None else (within & block.nan).any(axis=-1)
        if self.trail:
            low, high = low[:, None], high[:, None]
            nan = None if nan is None else nan[:, None]
        return Value(np.stack([low, high]), nan, None, self.version)

    # ---- which problems matter ---------------------------------------------------------

    def _used_problems(
        self, g: Graph, plan: _Plan, selected: dict[int, tuple[Array, Array, int]]
    ) -> list[Problem]:
        """Return the problems of values that results depend on, box by box.

        What stands on the side of a ``where`` that is not taken does not matter.
        """
        if not self.problems:
            return []
        used: dict[int, Array] = {}
        for i in (*g.outputs, *g.effects()):
            used[i] = np.ones(self.count, dtype=bool)
        wanted = {i for i, _ in self.problems}
        stop = min(wanted)
        for i in reversed(plan.live):
            mine = used.get(i)
            if mine is None or i <= stop:
                continue
            if g.op[i] == _SELECT and i in selected:
                true, false, version = selected[i]
                taken = [mine, mine & ~self._all_now(false, version)]
                taken.append(mine & ~self._all_now(true, version))
                pairs = list(zip(g.operands(i), taken))
            else:
                pairs = [(j, mine) for j in g.operands(i)]
            for j, more in pairs:
                used[j] = used[j] | more if j in used else more
        found = []
        for i, problem in self.problems:
            if i not in used:
                continue
            boxes = used[i] & self.mask_now(problem.boxes, problem.version) & ~self.dead
            if boxes.any():
                found.append(problem._replace(boxes=boxes, version=self.version))
        return found

    def _all_now(self, mask: Array, version: int) -> Array:
        return self.mask_now(np.asarray(mask.reshape(mask.shape[0], -1).all(axis=1)), version)

    def nothing_known(self, kinds: Sequence[int]) -> list[Value]:
        """Return values of these types that may be anything."""
        values = []
        for kind in kinds:
            block = (length_of(kind),) if length_of(kind) else ()
            value = whole_range(kind, (self.count, *block, *(1,) * self.trail))
            value.version = self.version
            values.append(value)
        return values


def _fold(code: int, kind: int, operands: Sequence[Value]) -> Value | None:
    """Return what is computed of known numbers: one number, with its rounding error.

    None where it is not finite, so that the reason is noted, or where an operand is not known.
    """
    if code == _SELECT or not all(v.nan is None and v.is_point for v in operands):
        return None
    if any((np.signbit(v.low) != np.signbit(v.high)).any() for v in operands):
        return None  # zeros of either sign
    function: Any = TABLE[code].numpy
    result = np.asarray(function(*(v.low.astype(DTYPES[kind]) for v in operands)))
    y = result.astype(np.float64)
    if not np.isfinite(y).all() or (result.dtype.kind == "i" and (np.abs(y) > 2.0**53).any()):
        return None
    return Value(np.stack([y, y]))


def _offset(g: Graph, i: int) -> tuple[int, int]:
    """Return an integer as another one and a constant that is added to it."""
    for base, number in ((g.a[i], g.b[i]), (g.b[i], g.a[i])):
        if g.op[i] == CODES["add"] and number in g.value:
            return base, g.value[number]
    return i, 0


def _order(x: Value, y: Value, case: Array, name: str, step: float | None) -> tuple[Value, Value]:
    """Narrow two values of which it is now known which one is less; whole numbers by ``step``."""
    below, above, equal = case == _BELOW, case == _ABOVE, case == _EQUAL

    def move(a: Array, sign: float, strict: bool) -> Array:
        if not strict:
            return a
        return np.nextafter(a, sign * INF) if step is None else a + sign * step

    under, over = name != "le", name != "lt"  # whether they differ for sure
    x_high = np.where(below, np.minimum(x.high, move(y.high, -1.0, under)), x.high)
    y_low = np.where(below, np.maximum(y.low, move(x.low, 1.0, under)), y.low)
    x_low = np.where(above, np.maximum(x.low, move(y.low, 1.0, over)), x.low)
    y_high = np.where(above, np.minimum(y.high, move(x.high, -1.0, over)), y.high)
    x_low = np.where(equal, np.maximum(x.low, y.low), x_low)
    x_high = np.where(equal, np.minimum(x.high, y.high), x_high)
    # A nan is neither below nor equal.
    numbers = equal if name in ("eq", "ne") else below
    values = []
    for value, low, high in ((x, x_low, x_high), (y, y_low, y_high)):
        low, high = np.broadcast_arrays(low, high)
        empty = low > high
        # Comparisons do not see the sign of zero.
        low = np.where(low == value.low, value.low, rounding.with_negative_zero(low))
        ends = np.stack([np.where(empty, value.low, low), np.where(empty, value.high, high)])
        nan = None if value.nan is None else flag(value.nan & ~numbers)
        values.append(Value(ends, nan, value.form, value.version))
    return values[0], values[1]


def _running_extremes(ends: Ends) -> list[Ends]:
    """Return the least and the largest of 1, 2, 4, ... neighbours, from each entry on."""
    levels = [ends]
    width = 1
    while 2 * width <= ends.shape[1]:
        low, high = levels[-1]
        levels.append(
            np.stack(
                [np.minimum(low[:-width], low[width:]), np.maximum(high[:-width], high[width:])]
            )
        )
        width *= 2
    return levels


def is_integer(kind: int) -> bool:
    """Return whether a type is int64 or bool, or a block of one."""
    return kind & 3 >= I64
