"""A backend in 150 lines: graphs as Python source, through the shared lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from archimedes.backends.lowering.graph_lowering import Lowering
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.backends.lowering.statements import FunctionText, StatementDialect
from archimedes.graph import DTYPES, TABLE, Graph
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import LOOKUP
from archimedes.graph.regions import Host, Solve


def solve(work: list, n: int, m: int) -> None:
    """Eliminate with partial pivoting as ``Solve`` says; solutions are the last columns."""
    rows = [work[r * (n + m) : (r + 1) * (n + m)] for r in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda r: abs(rows[r][k]))  # the first of the greatest
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[k:] = [x - factor * y for x, y in zip(row[k:], rows[k][k:])]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            rows[k][n:] = [x - rows[k][j] * y for x, y in zip(rows[k][n:], rows[j][n:])]
        rows[k][n:] = [x / rows[k][k] for x in rows[k][n:]]
    work[:] = [x for row in rows for x in row]


class PythonText(FunctionText):
    """A function whose arrays are lists that its parts, functions inside it, see."""

    opening, closing, nothing = ":", "", "pass"

    def __init__(self, name: str, outer: PythonText | None = None) -> None:
        super().__init__(name)
        self.arrays: list[str] = outer.arrays if outer else []
        self._counts = outer._counts if outer else self._counts


class Toy(StatementDialect):
    not_sign, else_if, leave, end, always = "not ", "elif", "break", "", "if True"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, Any] = {"inf": np.inf, "nan": np.nan, "solve": solve, "clip": np.clip}
        self.known |= {f"op_{row.name}": row.numpy for row in TABLE}
        self.known |= {f"dtype{d}": dtype.type for d, dtype in enumerate(DTYPES)}

    def known_as(self, stem: str, value: Any) -> str:
        self.known[f"{stem}{len(self.known)}"] = value
        return list(self.known)[-1]

    def nodes(self, low: Lowering, scope: Scope, order: Any, last: Any) -> Callable[[int], str]:
        g = scope.graph

        def write(i: int) -> str:
            operands = ", ".join(scope.operand(j) for j in g.operands(i))
            if g.op[i] != LOOKUP:
                return self.value(scope.f, 0, f"op_{TABLE[g.op[i]].name}({operands})")
            table = self.known_as("table", g.tables[g.b[i]])
            return self.value(scope.f, 0, f"{table}[clip({operands}, 0, len({table}) - 1)]")

        return write

    def literal(self, value: Any, dtype: int) -> str:
        return f"dtype{dtype}({value!r})"

    def declaration(self, dtype: int, name: str, start: str, constant: bool) -> str:
        return f"{name} = {start or None}"

    def array(self, f: PythonText, dtype: int, count: int) -> Location:
        name = f.fresh("s")
        f.arrays.append(f"    {name} = [None] * {count}")
        return Location((name, ""), 0, dtype)

    block = array

    def release(self, f: PythonText, location: Location) -> None:
        """Leave an array to Python's garbage collection."""

    def table(self, f: PythonText, values: Sequence[Any], dtype: int) -> Location:
        return Location(
            (self.known_as("table", list(np.array(values, DTYPES[dtype]))), ""), 0, dtype
        )

    def load(self, f: PythonText, place: Location) -> str:
        return f"{place.array[0]}[{place.array[1]}{place.offset}]"

    def store(self, f: PythonText, place: Location, operand: str) -> None:
        f.line(f"{self.load(f, place)} = {operand}")

    def advance(self, f: PythonText, place: Location, counter: str, stride: int) -> Location:
        name, steps = place.array
        return place._replace(array=(name, f"{steps}{stride} * {counter} + "))

    def index(self, f: PythonText, operand: str, length: int) -> str:
        return f"clip({operand}, 0, {length - 1})" if length else operand

    def for_head(self, counter: str, count: int) -> str:
        return f"for {counter} in map(dtype2, range({count}))"

    def from_end(self, f: PythonText, counter: str, length: int) -> str:
        return f"({length - 1} - {counter})"

    @contextmanager
    def part(self, f: PythonText, number: int) -> Iterator[PythonText]:
        part = PythonText(f"{f.name}_part{number}", f)
        yield part
        for line in (f"def {part.name}():", *(part.lines or ["    pass"]), f"{part.name}()"):
            f.line(line)

    def function(self, low: Lowering, f: Any, region: Any, body: Graph, given: Any) -> tuple:
        f = PythonText(f"{region.kind}{len(self.lines)}" if region else "main")
        names = [f"a{k}" for k in range(len(body.inputs))]
        places = [Location((x, ""), 0, d & 3) for x, d in zip(names, body.input_dtypes)]
        blocks = [length_of(d) > 0 for d in body.input_dtypes]
        inputs = [Binding(None, p) if b else Binding(p.array[0]) for p, b in zip(places, blocks)]
        values = low.lower(f, body, inputs, range(len(body.outputs)))
        f.line(f"return [{self.arguments(f, values, body.output_dtypes)}]")
        self.lines += [f"def {f.name}({', '.join(names)}):", *f.arrays, *f.lines]
        return f.name, body.input_dtypes

    def arguments(self, f: Any, values: Any, kinds: Any) -> str:
        pairs = [(self.operand(f, b), length_of(d)) for b, d in zip(values, kinds)]
        return ", ".join(f"{x[:-1]}:][:{n}]" if n else x for x, n in pairs)

    def call(self, f: Any, routine: Any, given: Any, results: Any) -> list:
        wanted, to = results
        name, kinds = routine
        name = self.value(f, 0, f"{name}({self.arguments(f, given, kinds)})")
        for k, place in to.items():
            f.line(f"{place.array[0]}[:] = {name}[{k}]")
        return [Binding(location=to[k]) if k in to else Binding(f"{name}[{k}]") for k in wanted]

    def solve(self, f: PythonText, region: Solve, work: Location) -> None:
        f.line(f"solve({work.array[0]}, {region.size}, {region.columns})")

    def host(self, low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
        arguments = ", ".join(scope.operand(i) for i in region.inputs.tolist())
        name = self.value(scope.f, 0, f"{self.known_as('host', region.function)}([{arguments}])")
        for i, k in zip(outs, scope.numbers(outs)):
            scope.bind(i, Binding(operand=f"{name}[{k}]"))


def build(g: Graph, part: int = 1000) -> Callable[..., list[Any]]:
    """Return a graph as a function of NumPy scalars; ``function.source`` is its text."""
    toy = Toy()
    toy.function(Lowering(toy, [g], part), None, None, g, ())
    exec("\n".join(toy.lines), toy.known)
    main = toy.known["main"]
    main.source = "\n".join(toy.lines)
    return np.errstate(all="ignore")(main)
