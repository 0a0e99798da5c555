"""C99 as a dialect of the lowering: how nodes, memory, loops and functions are written in C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from archimedes.backends.c.memory import Frame, address, assignment, moving, read
from archimedes.backends.c.nodes import NodeWriter
from archimedes.backends.c.routines import Routine, write_call, write_routine
from archimedes.backends.c.spelling import CTYPES, literal
from archimedes.backends.c.step_tables import in_long_runs
from archimedes.backends.c.steps import nest_in_steps
from archimedes.backends.c.tables import Tables
from archimedes.backends.c.writer import Function, names_used
from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.schedule import Schedule
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.backends.lowering.statements import StatementDialect
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import F64
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Host, Nest, Region, Solve, Switch

__all__ = ["C99", "PART"]

#: Statements per function, more or less.
PART = 2000

Annotate = Callable[[Graph, int], str]


class C99(StatementDialect):
    """The functions of one file: their texts in order, and what they share.

    ``workspace`` puts the arrays of all functions in a struct that the caller gives.
    ``annotate`` says where a node comes from ("" where it is not known). ``steps`` makes tables
    of arithmetic (``steps.py``), for the shortest code.
    """

    shared: Mapping[type[Region], int] = {Call: 1, Switch: 24}
    reuses_scratch = True
    boxes = True
    apart = True
    written_out = 8
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
        self.prefix = prefix
        self.workspace = workspace
        self.annotate = annotate
        self.steps = steps
        if steps:
            self.written_out, self.run = 1, 4
        self.tables = Tables(prefix)
        self.pieces: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.traces: dict[str, list[tuple[int, str]]] = {}
        self._numbers: Counter[str] = Counter()

    # ---- nodes ---------------------------------------------------------------------------

    def order(
        self,
        g: Graph,
        stored: Sequence[int],
        wanted: Sequence[int],
        known: Mapping[int, Binding],
        whole: bool,
    ) -> Schedule:
        """Return the order of nodes: arithmetic together where it is put into tables."""
        plan = super().order(g, stored, wanted, known, whole)
        return in_long_runs(g, plan) if self.steps else plan

    def nodes(
        self, low: Lowering, scope: Scope, order: Sequence[int], last: Sequence[int]
    ) -> Callable[[int], str | None]:
        """Return what writes a node as a statement."""
        return NodeWriter(self, scope, order, last).write

    def spell(self, g: Graph, i: int, operands: Sequence[str]) -> str:
        """Write a node in a way of the dialect's own ("": as all do)."""
        return ""

    def note(self, f: Function, g: Graph, i: int) -> None:
        """Write a comment where the user's line changes."""
        note = self.annotate(g, i) if self.annotate is not None else ""
        if note:
            f.note(note)

    def literal(self, value: Any, dtype: int) -> str:
        """Write a constant."""
        return literal(value, dtype)

    def declaration(self, dtype: int, name: str, start: str, constant: bool) -> str:
        """Declare a constant or a variable."""
        kind = f"const {CTYPES[dtype]}" if constant else CTYPES[dtype]
        return f"{kind} {name}{f' = {start}' if start else ''};"

    # ---- memory --------------------------------------------------------------------------

    def array(self, f: Function, dtype: int, count: int) -> Location:
        """Declare an array."""
        return f.frame.array(dtype, count)

    def block(self, f: Function, dtype: int, count: int) -> Location:
        """Declare an array, or take one that is not in use any more."""
        return f.frame.block(dtype, count)

    def release(self, f: Function, place: Location, count: int) -> None:
        """Let others have an array."""
        f.frame.release(place)

    def constant_block(self, f: Function, table: np.ndarray, dtype: int) -> Location:
        """Return a constant array of the full type, which functions may get by a pointer."""
        return self.tables.place(table, dtype, whole=True)

    def scratch(self, f: Function, owner: str, dtype: int, count: int) -> Location:
        """Return the array of an owner."""
        return f.frame.buffer(owner, dtype, count)

    def table(self, f: Function, values: Sequence[Any] | np.ndarray, dtype: int) -> Location:
        """Return a constant array of the file."""
        return self.tables.place(values, dtype)

    def load(self, f: Function, place: Location) -> str:
        """Write an element as an operand."""
        return read(place)

    def store(self, f: Function, place: Location, operand: str) -> None:
        """Write an assignment to an element."""
        f.line(assignment(place, operand))

    def moving(self, f: Function, place: Location, counter: str, stride: int) -> Location:
        """Return a place that follows a counter."""
        return moving(place, counter, stride)

    def index(self, f: Function, operand: str, length: int) -> str:
        """Write a position in an array."""
        if not length:
            return f"(size_t){operand}"
        return f"arc_index({operand}, INT64_C({length - 1}))"

    def number(self, f: Function, counter: str) -> str:
        """Write a counter as a value."""
        return f"((int64_t){counter})"

    def takes_columns(self, places: Sequence[Location]) -> bool:
        """Refuse places of another type."""
        return not places[0].array.narrow

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
        """Write a test; of an index made of a condition it is the condition."""
        if count == 2 and index in f.conditions:
            return f"!{f.conditions[index]}"
        return super().test(f, index, k, count)

    # ---- functions -----------------------------------------------------------------------

    @contextmanager
    def part(self, f: Function, number: int) -> Iterator[Function]:
        """Write a static function of those parameters that it uses."""
        part = Function(f"{f.name}_part{number}", f.frame, f.gap)
        yield part
        names = names_used(part.lines)
        used = {x: head for x, head in f.parameters.items() if x in names}
        part.head = f"static void {part.name}({', '.join(used.values()) or 'void'})"
        f.parts.append(part)
        f.line(f"{part.name}({', '.join(used)});")

    def function(
        self, low: Lowering, f: Function, region: Region, body: Graph, given: Sequence[Binding]
    ) -> Routine:
        """Write a static function."""
        # Numbers are given before functions inside get theirs.
        self._numbers[region.kind] += 1
        name = f"{self.prefix}_{region.kind}{self._numbers[region.kind]}"
        return write_routine(self, low, name, body, given)

    def call(
        self,
        low: Lowering,
        f: Function,
        routine: Routine,
        given: Sequence[Binding],
        wanted: Sequence[int],
        to: Mapping[int, Location],
    ) -> list[Binding]:
        """Call a static function."""
        return write_call(self, f, routine, given, wanted, to)

    def frame(self, name: str, large: bool, pointer: str = "work", gap: str = "") -> Frame:
        """Return the frame of a function, ``large`` if it is cut into parts."""
        return Frame(name, self.workspace or large, pointer, gap)

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

    # ---- regions -------------------------------------------------------------------------

    def solve(self, f: Function, region: Solve, work: Location) -> None:
        """Call the helper."""
        suffix = "" if region.dtype == F64 else "f"
        f.line(f"arc_solve{suffix}({address(work)}, {region.size}, {region.columns});")

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
