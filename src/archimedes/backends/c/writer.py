"""A C function being written: lines, indentation, fresh names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from archimedes.backends.c.memory import Binding, Frame, Place
from archimedes.backends.c.spelling import CTYPES

__all__ = ["COMMENT", "Function", "names_in"]

COMMENT = "/* "


#: A name that is no member of a struct.
_NAME = re.compile(r"(?<![\w>.])[A-Za-z_]\w*")


def names_in(lines: Iterable[str]) -> set[str]:
    """Return the variables and functions that code uses; comments do not count.

    >>> sorted(names_in(["    x = work->s1[k];", "    /* y */"]))
    ['k', 'work', 'x']
    """
    code = (line for line in lines if not line.lstrip().startswith(COMMENT))
    return {name for line in code for name in _NAME.findall(line)}


class Function:
    """The body of a function.

    Names of its own are a letter and a number (``t`` values, ``v`` variables, ``i`` counters, ``s``
    arrays), with ``gap`` in between where arguments have such names.
    """

    def __init__(self, name: str, frame: Frame, gap: str = "") -> None:
        self.name = name
        self.head = ""
        #: Declarations of the parameters by name, for parts of the function.
        self.parameters: dict[str, str] = {}
        self.parts: list[Function] = []
        self.frame = frame
        self.gap = gap
        self.lines: list[str] = []
        self._trace: list[tuple[int, str]] = []
        self._indent = "    "
        self._counts: Counter[str] = Counter()
        self._note = ""

    def fresh(self, letter: str) -> str:
        """Return a new name."""
        self._counts[letter] += 1
        return f"{letter}{self.gap}{self._counts[letter]}"

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(self._indent + text)

    def note(self, text: str) -> None:
        """Say where the following lines come from, unless it was the last thing said."""
        if text != self._note:
            self._note = text
            self.line(f"{COMMENT}{text.replace('*/', '* /')} */")
            self._trace.append((len(self.lines), text))

    def value(self, dtype: int, expression: str) -> str:
        """Name the value of an expression."""
        name = self.fresh("t")
        self.line(f"const {CTYPES[dtype]} {name} = {expression};")
        return name

    def variable(self, dtype: int, start: str = "") -> str:
        """Declare a variable."""
        name = self.fresh("v")
        self.line(f"{CTYPES[dtype]} {name}{f' = {start}' if start else ''};")
        return name

    def store(self, place: Place, value: str) -> None:
        """Append an assignment to an element of an array."""
        self.line(place.write(value))

    def load(self, binding: Binding, dtype: int) -> Binding:
        """Take a value out of an array that will be overwritten."""
        if binding.place is None:
            return binding
        return Binding(operand=self.value(dtype, binding.place.read()))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block behind ``head``; an "else" joins the block in front of it."""
        lead = self.lines.pop().strip() + " " if head.startswith("else") else ""
        self.line(f"{lead}{head} {{" if head else "{")
        before = self._indent
        self._indent += "    "
        yield
        self._indent = before
        self.line("}")
        # What a comment said before the block does not hold behind it.
        self._note = ""

    @contextmanager
    def loop(self, count: int) -> Iterator[str]:
        """Write a loop with a counter from 0 to ``count - 1``."""
        counter = self.fresh("i")
        with self.block(f"for (size_t {counter} = 0; {counter} < {count}; ++{counter})"):
            yield counter

    def text(self, first: Sequence[str] = ()) -> str:
        """Write the whole function; ``first`` are lines in front of the others."""
        return "\n".join([self.head, "{", *(f"    {x}" for x in first), *self.lines, "}\n"])

    def places(self, first: int) -> list[tuple[int, str]]:
        """Return the lines of the text that notes are on, ``first`` lines in front of them."""
        return [(line + first + 2, text) for line, text in self._trace]
