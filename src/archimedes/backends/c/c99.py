"""C99 as a dialect of the lowering: how nodes, memory, loops and functions are written in C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archimedes.backends.c import spelling
from archimedes.backends.c.bytecode import Steps, in_long_runs, nest_in_steps
from archimedes.backends.c.c_functions import Function, FunctionDialect
from archimedes.backends.lowering.dialect import Request
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Location, Scope
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F64
from archimedes.graph.ops import ARITY, CODES, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Nest, Region, Solve, Switch

#: Statements per function, more or less.
PART = 2000

Annotate = Callable[[Graph, int], str]

_INT, _SIN, _COS, _LT, _ABS = (CODES[name] for name in ("i64", "sin", "cos", "lt", "abs"))


class C99(FunctionDialect):
    """The functions of one file: their texts in order, and what they share.

    ``workspace`` puts the arrays of all functions in a struct that the caller gives.
    ``annotate`` says where a node comes from ("" where it is not known). ``steps`` makes tables
    of arithmetic (``bytecode.py``), for the shortest code.
    """

    shared: Mapping[type[Region], int] = {Call: 1, Switch: 24}
    reuses_scratch = True
    boxes = True
    apart = True
    unrolled_terms = 8
    #: Counters are unsigned.
    walks_back = False

    def __init__(
        self,
        prefix: str,
        *,
        workspace: bool = False,
        annotate: Annotate | None = None,
        steps: bool = False,
    ) -> None:
        super().__init__(prefix, workspace)
        self.annotate = annotate
        self.steps = steps
        if steps:
            self.unrolled_terms, self.run = 1, 4
        self.tables = spelling.Tables(prefix)

    # ---- nodes ---------------------------------------------------------------------------

    def order(self, g: Graph, request: Request) -> Schedule:
        """Return the order of nodes: arithmetic together where it is put into tables."""
        plan = super().order(g, request)
        return in_long_runs(g, plan) if self.steps else plan

    def nodes(
        self, low: Lowering, scope: Scope, order: Sequence[int], last: Sequence[int]
    ) -> Callable[[int], str | None]:
        """Return what writes a node as a statement."""
        return _NodeWriter(self, scope, order, last).write

    def spell(self, g: Graph, i: int, operands: Sequence[str]) -> str:
        """Write a node as only this dialect does, or return "" to write it as usual."""
        return ""

    def note(self, f: Function, g: Graph, i: int) -> None:
        """Write a comment where the user's line changes."""
        note = self.annotate(g, i) if self.annotate is not None else ""
        if note:
            f.note(note)

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant."""
        return spelling.literal(value, dtype)

    def declaration(self, dtype: int, name: str, start: str, constant: bool) -> str:
        """Declare a constant or a variable."""
        kind = f"const {spelling.CTYPES[dtype]}" if constant else spelling.CTYPES[dtype]
        return f"{kind} {name}{f' = {start}' if start else ''};"

    # ---- memory --------------------------------------------------------------------------

    def constant_block(self, f: Function, table: np.ndarray, dtype: int) -> Location:
        """Return a constant array of the full type, which functions may get by a pointer."""
        return self.tables.location(table, dtype, whole=True)

    def scratch(self, f: Function, owner: str, dtype: int, count: int) -> Location:
        """Return the scratch array of an owner, one per dtype."""
        return f.frame.buffer(owner, dtype, count)

    def table(self, f: Function, values: Sequence[Any] | np.ndarray, dtype: int) -> Location:
        """Return a constant array of the file."""
        return self.tables.location(values, dtype)

    def load(self, f: Function, element: Location) -> str:
        """Write an element as an operand."""
        return spelling.read(element)

    def store(self, f: Function, element: Location, operand: str) -> None:
        """Write an assignment to an element."""
        f.line(spelling.assignment(element, operand))

    def advance(self, f: Function, element: Location, counter: str, stride: int) -> Location:
        """Return an element that follows a counter."""
        return spelling.moving(element, counter, stride)

    def index(self, f: Function, operand: str, length: int) -> str:
        """Write a position in an array."""
        if not length:
            return f"(size_t){operand}"
        return f"arc_index({operand}, INT64_C({length - 1}))"

    def number(self, f: Function, counter: str) -> str:
        """Write a counter as a value."""
        return f"((int64_t){counter})"

    def takes_columns(self, locations: Sequence[Location]) -> bool:
        """Return whether the arrays have the type of their values, so that rows can be copied."""
        return not locations[0].array.narrow

    # ---- control flow --------------------------------------------------------------------

    def for_head(self, counter: str, count: int) -> str:
        """Write the head of a loop."""
        return f"for (size_t {counter} = 0; {counter} < {count}; ++{counter})"

    def from_end(self, f: Function, counter: str, length: int) -> str:
        """Declare a counter that runs backwards."""
        at = f.fresh("i")
        f.line(f"const size_t {at} = {length - 1} - {counter};")
        return at

    def test(self, f: Function, index: str, k: int, count: int) -> str:
        """Write a test of an index; if the index was made from a condition, test the condition."""
        if count == 2 and index in f.conditions:
            return f"!{f.conditions[index]}"
        return super().test(f, index, k, count)

    # ---- regions -------------------------------------------------------------------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Call the helper that solves a linear system."""
        suffix = "" if region.dtype == F64 else "f"
        f.line(f"arc_solve{suffix}({spelling.address(work)}, {region.size}, {region.columns});")

    def nest(self, low: Lowering, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
        """Write a loop of arithmetic as a table of steps, where that is wanted."""
        return self.steps and nest_in_steps(self, scope, region, outs)

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        """Refuse: a microcontroller has no Python."""
        where = f" ({region.line})" if region.line else ""
        raise CodegenError(
            f"the function calls back into Python: {region.label}{where}. A microcontroller has "
            "no Python, so C cannot be generated for it: write the callback in NumPy, or pass its "
            "result as an argument."
        )


def _are_sizes(g: Graph, *nodes: int) -> bool:
    """Return whether doubles are known not to be negative."""
    return all(
        g.dtype[i] == F64 and (g.op[i] == _ABS or (i in g.value and g.value[i] > 0)) for i in nodes
    )


def _twins(g: Graph, order: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the pairs of sine and cosine of the same angle, by each of the two."""
    sines = {g.a[i]: i for i in order if g.op[i] == _SIN}
    pairs = [(sines[g.a[i]], i) for i in order if g.op[i] == _COS and g.a[i] in sines]
    return {i: pair for pair in pairs for i in pair}


class _NodeWriter:
    """Writes the nodes of a scope; ``last`` are nodes that something outside of ``order`` reads."""

    def __init__(self, c: C99, scope: Scope, order: Sequence[int], last: Sequence[int]) -> None:
        self.c, self.scope = c, scope
        g = scope.graph
        self.uses = Counter(last)
        for i in order:
            if g.op[i] != OUT:
                self.uses.update(g.operands(i))
        # The block that gets a number as it is computed is no reader of its name.
        self.uses.subtract(j for _, j in scope.elided)
        regions = (g.regions[i] for i in order if g.op[i] == REGION)
        self.tests = Counter(int(r.inputs[0]) for r in regions if isinstance(r, Switch))
        self.twins = _twins(g, order)
        self.steps = Steps(c, scope, order, self.uses) if c.steps else None

    def write(self, i: int) -> str | None:
        """Write a node and return its operand, or None if it was stored in memory."""
        scope = self.scope
        f, g, names, waiting = scope.f, scope.graph, scope.names, scope.waiting
        if i in names:
            return names[i]
        if g.op[i] == _INT and g.dtype[g.a[i]] == B8 and self.uses[i] == self.tests[i]:
            # Only branches ask for it: it is written as the condition that it is made of.
            condition = scope.operand(g.a[i])
            f.conditions[f"((int64_t){condition})"] = condition
            return f"((int64_t){condition})"
        self.c.note(f, g, i)
        if self.steps is not None and (self.steps.begin(i) or i in self.steps.inside):
            return names.get(i)
        if i in self.twins:
            self._pair(*self.twins[i])
            return names[i]
        expression, locations = self._expression(i), waiting.get(i, [])
        # A value that is only stored gets no name.
        if len(locations) == 1 and self.uses[i] == 1 and not locations[0].array.narrow:
            self.c.store(f, locations[0], expression)
            del waiting[i]
            return None
        return self.c.value(f, g.dtype[i], expression)

    def _pair(self, sine: int, cosine: int) -> None:
        """Write sine and cosine of one angle as one call."""
        scope, c = self.scope, self.c
        f, g = scope.f, scope.graph
        dtype = g.dtype[sine]
        variable = scope.names[cosine] = c.variable(f, dtype)
        call = spelling.spell_pair(dtype, scope.operand(g.a[sine]), variable)
        scope.names[sine] = c.value(f, dtype, call)

    def _expression(self, i: int) -> str:
        g = self.scope.graph
        code, operands = g.op[i], [self.scope.operand(j) for j in g.operands(i)]
        if code == LOOKUP:
            table = g.tables[g.b[i]]
            base = self.c.tables.location(table, g.dtype[i]).array.base
            return f"{base}[arc_index({operands[0]}, INT64_C({len(table) - 1}))]"
        own = self.c.spell(g, i, operands)
        if own:
            return own
        row = TABLE[code]
        if code == _LT and _are_sizes(g, *g.operands(i)):
            return f"arc_larger({operands[1]}, {operands[0]})"
        if row.elementary:
            return spelling.spell_elementary(row.name, g.dtype[i], operands)
        last = (g.a[i], g.b[i], g.c[i])[ARITY[code] - 1]
        return spelling.SPELLINGS[row.name][g.dtype[last]].format(*operands)
