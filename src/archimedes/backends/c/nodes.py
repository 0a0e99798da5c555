"""Nodes as C statements: each op is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archimedes.backends.c.operations import SPELLINGS, spell_elementary, spell_pair
from archimedes.backends.c.steps import Steps
from archimedes.backends.lowering.scope import Scope
from archimedes.graph.dtypes import B8, F64
from archimedes.graph.ops import ARITY, CODES, LOOKUP, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

if TYPE_CHECKING:
    from archimedes.backends.c.c99 import C99

__all__ = ["NodeWriter"]

_INT, _SIN, _COS, _LT, _ABS = (CODES[name] for name in ("i64", "sin", "cos", "lt", "abs"))


def _are_sizes(g: Graph, *nodes: int) -> bool:
    """Tell whether doubles are known to have no sign."""
    return all(
        g.dtype[i] == F64 and (g.op[i] == _ABS or (i in g.value and g.value[i] > 0)) for i in nodes
    )


def _twins(g: Graph, order: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return, for each sine and cosine of one angle, the pair of them."""
    sines = {g.a[i]: i for i in order if g.op[i] == _SIN}
    pairs = [(sines[g.a[i]], i) for i in order if g.op[i] == _COS and g.a[i] in sines]
    return {i: pair for pair in pairs for i in pair}


class NodeWriter:
    """Writes nodes of a scope; ``last`` are those with readers besides the nodes in ``order``."""

    def __init__(self, c: C99, scope: Scope, order: Sequence[int], last: Sequence[int]) -> None:
        self.c, self.scope = c, scope
        g = scope.graph
        self.uses = Counter(last)
        for i in order:
            if g.op[i] != OUT:
                self.uses.update(g.operands(i))
        # The block that gets a number as it is computed is no reader of its name.
        self.uses.subtract(j for _, j in scope.awaited)
        regions = (g.regions[i] for i in order if g.op[i] == REGION)
        self.tests = Counter(int(r.inputs[0]) for r in regions if isinstance(r, Switch))
        self.twins = _twins(g, order)
        self.steps = Steps(c, scope, order, self.uses) if c.steps else None

    def write(self, i: int) -> str | None:
        """Write a node and return its operand, or None if it is in its place already."""
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
        expression, places = self._expression(i), waiting.get(i, [])
        # A value that is only stored gets no name.
        if len(places) == 1 and self.uses[i] == 1 and not places[0].array.narrow:
            self.c.store(f, places[0], expression)
            del waiting[i]
            return None
        return self.c.value(f, g.dtype[i], expression)

    def _pair(self, sine: int, cosine: int) -> None:
        """Write sine and cosine of one angle as one call."""
        scope, c = self.scope, self.c
        f, g = scope.f, scope.graph
        dtype = g.dtype[sine]
        held = scope.names[cosine] = c.variable(f, dtype)
        called = spell_pair(dtype, scope.operand(g.a[sine]), held)
        scope.names[sine] = c.value(f, dtype, called)

    def _expression(self, i: int) -> str:
        g = self.scope.graph
        code, operands = g.op[i], [self.scope.operand(j) for j in g.operands(i)]
        if code == LOOKUP:
            table = g.tables[g.b[i]]
            base = self.c.tables.place(table, g.dtype[i]).array.base
            return f"{base}[arc_index({operands[0]}, INT64_C({len(table) - 1}))]"
        own = self.c.spell(g, i, operands)
        if own:
            return own
        row = TABLE[code]
        if code == _LT and _are_sizes(g, *g.operands(i)):
            return f"arc_larger({operands[1]}, {operands[0]})"
        if row.elementary:
            return spell_elementary(row.name, g.dtype[i], operands)
        last = (g.a[i], g.b[i], g.c[i])[ARITY[code] - 1]
        return SPELLINGS[row.name][g.dtype[last]].format(*operands)
