"""A C function being written: its lines, its arrays, the comments that say where they are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from archimedes.backends.c.memory import Frame
from archimedes.backends.lowering.statements import FunctionText, names_in

__all__ = ["COMMENT", "Function", "names_used"]

COMMENT = "/* "


def names_used(lines: Iterable[str]) -> set[str]:
    """Return the variables and functions that code uses; comments do not count.

    >>> sorted(names_used(["    x = work->s1[k];", "    /* y */"]))
    ['k', 'work', 'x']
    """
    return names_in(line for line in lines if not line.lstrip().startswith(COMMENT))


class Function(FunctionText):
    """The body of a function."""

    def __init__(self, name: str, frame: Frame, gap: str = "") -> None:
        super().__init__(name, gap)
        self.head = ""
        #: Declarations of the parameters by name, for parts of the function.
        self.parameters: dict[str, str] = {}
        self.parts: list[Function] = []
        self.frame = frame
        #: Integers that are made of a condition, and the condition.
        self.conditions: dict[str, str] = {}
        self._trace: list[tuple[int, str]] = []
        self._note = ""

    def note(self, text: str) -> None:
        """Say where the following lines come from, unless it was the last thing said."""
        if text != self._note:
            self._note = text
            self.line(f"{COMMENT}{text.replace('*/', '* /')} */")
            self._trace.append((len(self.lines), text))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block; what a comment said before it does not hold behind it."""
        with super().block(head):
            yield
        self._note = ""

    def text(self, first: Sequence[str] = ()) -> str:
        """Write the whole function; ``first`` are lines in front of the others."""
        return "\n".join([self.head, "{", *(f"    {x}" for x in first), *self.lines, "}\n"])

    def places(self, first: int) -> list[tuple[int, str]]:
        """Return the lines of the text that notes are on, ``first`` lines in front of them."""
        return [(line + first + 2, text) for line, text in self._trace]
