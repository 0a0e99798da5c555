"""Graph to C statements: nodes in order, in one function or cut into several.

A statement is an op. Bodies of regions are blocks in the function of their graph, except those
that are functions of their own: bodies of calls and branches that occur more than once, and bodies
that are large. A function that is still too long is cut into parts, since compilers take longer
than linear; values that cross a cut live in the frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from archimedes.backends.c.copies import arrays, copy_all
from archimedes.backends.c.memory import Binding, Frame, Place
from archimedes.backends.c.operations import SPELLINGS, spell_elementary, spell_pair
from archimedes.backends.c.ordering import statements
from archimedes.backends.c.planning import (
    Store,
    crossing_nodes,
    places_by_id,
    regions_in,
    twins_in,
)
from archimedes.backends.c.routines import Routine, write_call, write_routine
from archimedes.backends.c.scope import Scope
from archimedes.backends.c.tables import Tables
from archimedes.backends.c.writer import Function, names_in
from archimedes.graph.dtypes import B8, F64
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Region, Switch

__all__ = ["AS_INT", "PART", "Lowering"]

#: Statements a function, more or less.
PART = 2000
#: Bodies of at least this many statements that occur more than once become functions.
SHARED = {Call: 1, Switch: 24}


#: How an integer made of a condition begins.
AS_INT = "((int64_t)"
_ARITY = tuple(op.arity for op in TABLE)
_INT = CODES["i64"]

Annotate = Callable[[Graph, int], str]


class Lowering:
    """The functions of one file: their texts in order, and what they share.

    ``workspace`` puts the arrays of all functions in a struct that the caller gives.
    ``annotate`` says where a node comes from ("" where it is not known).
    """

    def __init__(
        self,
        prefix: str,
        graphs: Sequence[Graph],
        *,
        part: int = PART,
        workspace: bool = False,
        annotate: Annotate | None = None,
        tables: Tables | None = None,
        routines: dict[str, Routine] | None = None,
    ) -> None:
        self.prefix = prefix
        self.part = part
        self.workspace = workspace
        self.annotate = annotate
        self.tables = Tables(prefix) if tables is None else tables
        self.routines = {} if routines is None else routines
        self.pieces: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.traces: dict[str, list[tuple[int, str]]] = {}
        self._sizes: dict[str, int] = {}
        self._uses: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        for g in graphs:
            self._count_uses(g)

    def _count_uses(self, g: Graph) -> None:
        for i in g.live():
            region = g.regions.get(i)
            for body in region.bodies if region is not None else ():
                self._uses[body.digest()] += 1
                # What is in a body that occurs twice occurs twice as well.
                if self._uses[body.digest()] <= 2:
                    self._count_uses(body)

    def size(self, g: Graph) -> int:
        """Return the number of statements of a graph, blocks in it included."""
        found = self._sizes.get(g.digest())
        if found is None:
            found = sum(self._price(g, i) for i in g.live())
            self._sizes[g.digest()] = found
        return found

    def _price(self, g: Graph, i: int) -> int:
        if g.op[i] in (CONST, INPUT, OUT):
            return 0
        region = g.regions.get(i)
        if region is None:
            return 1
        blocks = (b for b in region.bodies if not self.is_routine(region, b))
        return 1 + sum(self.size(b) for b in blocks)

    def is_routine(self, region: Region, body: Graph) -> bool:
        """Tell whether a body of a region is a function of its own."""
        size, least = self.size(body), SHARED.get(type(region))
        shared = least is not None and size >= least and self._uses[body.digest()] > 1
        return shared or size > self.part

    # ---- nodes ---------------------------------------------------------------------------

    def block(
        self,
        f: Function,
        region: Region,
        body: Graph,
        given: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store] = (),
    ) -> list[Binding]:
        """Compute a body of a region: return outputs (by number) and put some into places."""
        if not self.is_routine(region, body):
            return self.inline(f, body, given, wanted, stores)
        numbers = [*wanted, *(k for k, _ in stores)]
        values = write_call(self, f, self._routine(region, body, given), given, numbers)
        copy_all(f, self.tables, [(to, b) for (_, to), b in zip(stores, values[len(wanted) :])])
        return values[: len(wanted)]

    def inline(
        self,
        f: Function,
        g: Graph,
        given: Sequence[Binding],
        wanted: Sequence[int],
        stores: Sequence[Store] = (),
    ) -> list[Binding]:
        """Write a graph where the function is: as ``block`` of a body that is no function."""
        ids = [g.outputs[k] for k in wanted]
        plan = statements(g, [g.outputs[k] for k, _ in stores], ids)
        scope = Scope(f, g, given, plan.outs, {}, places_by_id(g, stores))
        self._spine(scope, plan.order, {}, ids)
        self._finish(scope, stores)
        return scope.bindings(ids)

    def function(
        self, f: Function, g: Graph, given: Sequence[Binding], stores: Sequence[Store]
    ) -> None:
        """Write the statements of a whole function, cut into parts where there are too many."""
        plan = statements(g, [g.outputs[k] for k, _ in stores])
        scope = Scope(f, g, given, plan.outs, {}, places_by_id(g, stores))
        if self.size(g) > self.part:
            self._in_parts(scope, plan.order)
        else:
            self._spine(scope, plan.order, {})
        self._finish(scope, stores)

    def _finish(self, scope: Scope, stores: Sequence[Store]) -> None:
        """Fill the places that nothing has been written to so far."""
        outputs, waiting = scope.graph.outputs, scope.waiting
        left = [(to, outputs[k]) for k, to in stores if to in waiting.get(outputs[k], ())]
        copy_all(scope.f, self.tables, [(to, scope.binding(i)) for to, i in left])

    def _in_parts(self, scope: Scope, order: Sequence[int]) -> None:
        f, g = scope.f, scope.graph
        chunks = self._cut(g, order)
        crossing = crossing_nodes(g, chunks)
        keep = dict(zip(crossing, arrays(f, [g.dtype[i] for i in crossing])))
        for k, chunk in enumerate(chunks):
            part = Function(f"{f.name}_part{k + 1}", f.frame, f.gap)
            inner = Scope(part, g, scope.given, scope.outs, scope.bound, scope.waiting)
            self._spine(inner, chunk, keep)
            names = names_in(part.lines)
            used = {x: head for x, head in f.parameters.items() if x in names}
            part.head = f"static void {part.name}({', '.join(used.values()) or 'void'})"
            f.parts.append(part)
            f.line(f"{part.name}({', '.join(used)});")

    def _cut(self, g: Graph, order: Sequence[int]) -> list[list[int]]:
        """Cut a schedule into pieces of about equal size; outputs stay with their region."""
        chunks: list[list[int]] = []
        room = 0
        for i in order:
            price = self._price(g, i)
            if price > room and g.op[i] != OUT:
                chunks.append([])
                room = self.part
            chunks[-1].append(i)
            room -= price
        return chunks

    def _spine(
        self,
        scope: Scope,
        order: Sequence[int],
        keep: Mapping[int, Place],
        wanted: Sequence[int] = (),
    ) -> None:
        """Write nodes in order. Those in ``keep`` are put there for other functions."""
        from archimedes.backends.c.regions import REGIONS

        f, g, waiting = scope.f, scope.graph, scope.waiting
        uses = Counter([*wanted, *keep, *waiting])
        tests = Counter(int(r.inputs[0]) for r in regions_in(g, order) if isinstance(r, Switch))
        for i in order:
            if g.op[i] != OUT:
                uses.update(g.operands(i))
        twins = twins_in(g, order)
        for i in order:
            code = g.op[i]
            if code == REGION:
                region = g.regions[i]
                self._note(f, g, i)
                REGIONS[type(region)](self, scope, region, scope.outs.get(i, []))
                continue
            if code == _INT and g.dtype[g.a[i]] == B8 and uses[i] == tests[i]:
                # Only branches ask for it: it is written as the condition that it is made of.
                scope.names[i] = f"{AS_INT}{scope.operand(g.a[i])})"
            elif i in twins and i not in scope.names:
                self._note(f, g, i)
                self._pair(scope, *twins[i])
            elif code != OUT and i not in scope.names:
                self._note(f, g, i)
                expression, places = self._expression(scope, i), waiting.get(i, [])
                # A value that is only stored gets no name.
                if len(places) == 1 and uses[i] == 1 and not places[0].narrow:
                    f.store(places[0], expression)
                    del waiting[i]
                    continue
                scope.names[i] = f.value(g.dtype[i], expression)
            name = scope.names.get(i)
            if name is not None:
                for to in waiting.pop(i, ()):
                    f.store(to, name)
                if i in keep:
                    f.store(keep[i], name)
                    scope.bound[i] = Binding(place=keep[i])

    def _note(self, f: Function, g: Graph, i: int) -> None:
        note = self.annotate(g, i) if self.annotate is not None else ""
        if note:
            f.note(note)

    def _pair(self, scope: Scope, sine: int, cosine: int) -> None:
        """Write sine and cosine of one angle as one call."""
        f, g = scope.f, scope.graph
        held, dtype = f.variable(F64), g.dtype[sine]
        first, second = spell_pair(dtype, scope.operand(g.a[sine]), held)
        scope.names[sine] = f.value(dtype, first)
        scope.names[cosine] = held if second == held else f.value(dtype, second)

    def _expression(self, scope: Scope, i: int) -> str:
        g = scope.graph
        code, operands = g.op[i], [scope.operand(j) for j in g.operands(i)]
        if code == LOOKUP:
            table = g.tables[g.b[i]]
            base = self.tables.place(table, g.dtype[i]).base
            return f"{base}[arc_index({operands[0]}, INT64_C({len(table) - 1}))]"
        row = TABLE[code]
        if row.elementary:
            return spell_elementary(row.name, g.dtype[i], operands)
        last = (g.a[i], g.b[i], g.c[i])[_ARITY[code] - 1]
        return SPELLINGS[row.name][g.dtype[last]].format(*operands)

    # ---- functions -----------------------------------------------------------------------

    def _routine(self, region: Region, body: Graph, given: Sequence[Binding]) -> Routine:
        """Return the function of a body, written at first use."""
        found = self.routines.get(body.digest())
        if found is None:
            # Numbers are given before functions inside get theirs.
            self._numbers[region.kind] += 1
            name = f"{self.prefix}_{region.kind}{self._numbers[region.kind]}"
            found = write_routine(self, name, body, given)
            self.routines[body.digest()] = found
        return found

    def frame(self, name: str, g: Graph, pointer: str = "work", gap: str = "") -> Frame:
        """Return the frame of a function that computes a graph."""
        return Frame(name, self.workspace or self.size(g) > self.part, pointer, gap)

    def add(self, f: Function, first: Sequence[str] = ()) -> None:
        """Put a finished function, and its parts, among the others; declare its arrays."""
        frame = f.frame
        lines = list(first)
        if frame.in_struct and not frame.is_empty:
            if self.workspace:
                self.types[frame.type] = frame.typedef()
            else:
                self.pieces[frame.type] = frame.typedef()
                lines += [f"{frame.type} memory{f.gap};"]
                lines += [f"{frame.type} *const {frame.pointer} = &memory{f.gap};"]
        elif not frame.in_struct:
            lines += frame.declarations()
        for part in f.parts:
            self.pieces[part.name] = part.text()
            self.traces[part.name] = part.places(0)
        self.pieces[f.name] = f.text(lines)
        self.traces[f.name] = f.places(len(lines))
