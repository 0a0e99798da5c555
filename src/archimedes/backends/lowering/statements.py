"""Languages with variables, blocks and loops: what their dialects have in common.

A function's own names are a letter and a number: ``t`` values, ``v`` variables, ``i`` counters,
``s`` arrays. Loops carry variables; branches assign to them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from archimedes.backends.lowering.analysis import Safepoint
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import Branching, Carried, Dialect, Join, Loop, Request
from archimedes.backends.lowering.schedule import Schedule, register_pressure_schedule
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.program import Graph

#: A name that is no member of a struct.
_NAME = re.compile(r"(?<![\w>.])[A-Za-z_]\w*")


def names_in(lines: Iterable[str]) -> set[str]:
    """Return the variables and functions that code uses.

    >>> sorted(names_in(["x = work->s1[k];"]))
    ['k', 'work', 'x']
    """
    return {name for line in lines for name in _NAME.findall(line)}


class FunctionText:
    """A function being written: lines, indentation, fresh names.

    ``gap`` stands between letter and number of fresh names, where arguments have such names.
    """

    #: What a block begins and ends with, and what stands in an empty one.
    opening, closing, nothing = " {", "}", ""

    def __init__(self, name: str, gap: str = "") -> None:
        self.name = name
        self.gap = gap
        self.lines: list[str] = []
        self._indent = "    "
        self._counts: Counter[str] = Counter()

    def fresh(self, letter: str) -> str:
        """Return a new name."""
        self._counts[letter] += 1
        return f"{letter}{self.gap}{self._counts[letter]}"

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block behind ``head``; an "else" joins the block in front of it."""
        lead = ""
        if self.closing and head.startswith("else"):
            lead = self.lines.pop().strip() + " "
        self.line(f"{lead}{head}{self.opening}".lstrip())
        before, count = self._indent, len(self.lines)
        self._indent += "    "
        yield
        if self.nothing and len(self.lines) == count:
            self.line(self.nothing)
        self._indent = before
        if self.closing:
            self.line(self.closing)


class StatementDialect(Dialect):
    """A dialect of variables and blocks; ``f`` is a :class:`FunctionText`."""

    #: How things are spelled: not, else if, leave a loop, the end of a statement, and the head of
    #: a block that always runs.
    not_sign, else_if, leave, end, always = "!", "else if", "break;", ";", ""

    # ---- to be spelled -------------------------------------------------------------------

    def declaration(self, dtype: int, name: str, start: str, constant: bool) -> str:
        """Write a line that declares a value, or a variable (``start`` may be empty there)."""
        raise NotImplementedError

    def for_head(self, counter: str, count: int) -> str:
        """Write the head of a loop with a counter from 0 to ``count - 1``."""
        raise NotImplementedError

    # ---- the same everywhere -------------------------------------------------------------

    def order(self, g: Graph, request: Request) -> Schedule:
        """Return the order that keeps few values alive at a time."""
        return register_pressure_schedule(g, request.stored, request.wanted)

    def value(self, f: Any, dtype: int, expression: str) -> str:
        """Name the value of an expression."""
        name: str = f.fresh("t")
        f.line(self.declaration(dtype, name, expression, True))
        return name

    def variable(self, f: Any, dtype: int, start: str = "") -> str:
        """Declare a variable."""
        name: str = f.fresh("v")
        f.line(self.declaration(dtype, name, start, False))
        return name

    def preserve(self, f: Any, binding: Binding, dtype: int) -> Binding:
        """Name a value in memory that will be overwritten."""
        if binding.location is None:
            return binding
        return Binding(operand=self.value(f, dtype, self.load(f, binding.location)))

    def element(self, f: Any, location: Location, length: int, index: str) -> str:
        """Name an element of a block."""
        return self.value(f, location.dtype, super().element(f, location, length, index))

    def modulo(self, f: Any, terms: Sequence[tuple[str, int]], divisor: int) -> str:
        """Write a remainder."""
        words = [counter if stride == 1 else f"{stride} * {counter}" for counter, stride in terms]
        total = words[0] if len(words) == 1 else f"({' + '.join(words)})"
        return f"{total} % {divisor}"

    def copy_run(self, f: Any, to: Location, start: Location, count: int) -> None:
        """Write a loop of assignments."""
        with self.for_loop(f, count) as loop:
            target, source = (self.advance(f, x, loop.counter, 1) for x in (to, start))
            self.store(f, target, self.load(f, source))

    def fill_run(self, f: Any, to: Location, operand: str, count: int) -> None:
        """Write a loop of equal assignments."""
        with self.for_loop(f, count) as loop:
            self.store(f, self.advance(f, to, loop.counter, 1), operand)

    def number(self, f: Any, counter: str) -> str:
        """Return a counter as an int64, which it is where nothing else is said."""
        return counter

    @contextmanager
    def for_loop(
        self, f: Any, length: int, carried: Carried = (), safepoint: Safepoint | None = None
    ) -> Iterator[Loop]:
        """Write a loop over variables; there is no Python to let run."""
        names = [self.variable(f, d, start) for d, start in carried]
        loop = Loop(f.fresh("i"), names)
        with f.block(self.for_head(loop.counter, length)):
            yield loop
            self._assign(f, [d for d, _ in carried], names, loop.next)

    def while_loop(
        self, f: Any, limit: int, carried: Carried, hosted: bool, safepoint: Safepoint | None
    ) -> AbstractContextManager[Loop]:
        """Write a loop that is left on a condition."""
        return self.for_loop(f, limit, carried)

    def exit_unless(self, f: Any, loop: Loop, test: str) -> None:
        """Leave the loop unless a test holds."""
        with f.block(f"if ({self.not_sign}{test})"):
            f.line(self.leave)

    def _assign(
        self, f: Any, dtypes: Sequence[int], names: Sequence[str], values: Sequence[str]
    ) -> None:
        """Give variables new values, all at once."""
        texts = list(values)
        for k, text in enumerate(texts):
            if text != names[k] and not names_in([text]).isdisjoint(names):
                texts[k] = self.value(f, dtypes[k], text)
        for name, text in zip(names, texts):
            if name != text:
                f.line(f"{name} = {text}{self.end}")

    def join(self, f: Any, branching: Branching) -> Join:
        """Begin an if."""
        return _If(self, f, branching)

    def test(self, f: Any, index: str, k: int, count: int) -> str:
        """Write that branch ``k`` of ``count`` is taken, for an index clamped to them."""
        return f"{index} {'<=' if k == 0 else '=='} {k}"


class _If(Join):
    """Branches as an if; their values are assigned to variables, or copied to locations."""

    def __init__(self, dialect: StatementDialect, f: Any, branching: Branching) -> None:
        self.dialect, self.f = dialect, f
        self.index, costs, dtypes, self.locations = branching
        self.order = range(len(costs))
        self.names = [] if self.locations else [dialect.variable(f, d) for d in dtypes]

    def branch(self, k: int) -> AbstractContextManager[None]:
        """Write a branch as a block."""
        last = len(self.order) - 1
        if k == last:
            return self.f.block("else" if k else self.dialect.always)
        test = self.dialect.test(self.f, self.index, k, last + 1)
        return self.f.block(f"{self.dialect.else_if if k else 'if'} ({test})")

    def give(self, values: Sequence[Binding]) -> None:
        """Assign the values."""
        d, f = self.dialect, self.f
        copy_all(d, f, list(zip(self.locations, values)))
        for name, value in zip(self.names, values):
            f.line(f"{name} = {d.operand(f, value)}{d.end}")

    def results(self) -> list[str]:
        """Return the variables."""
        return self.names
