"""From lines of generated C to the lines of Python they come from."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import PurePath

from archimedes.graph.program import Graph
from archimedes.symbolic.core.user_frames import SourceLine


@dataclass(frozen=True)
class TracedLines:
    """Lines ``first`` to ``last`` of the C file and the line of Python that they compute.

    ``python`` is the chain of lines, innermost first: a line of a library function is followed by
    the line that called it, out to the function that was recorded.
    """

    first: int
    last: int
    python: tuple[SourceLine, ...]

    @property
    def text(self) -> str:
        """The Python statement, or "" if the file cannot be read."""
        return linecache.getline(self.python[0].file, self.python[0].number).strip()

    @property
    def where(self) -> str:
        """The innermost line, and the outermost where it is another one, as the C comments say."""
        return _describe(self.python)

    def __str__(self) -> str:
        return f"{self.first}-{self.last}: {self.where}: {self.text}"


def _describe(lines: tuple[SourceLine, ...]) -> str:
    """Name the innermost line, and the outermost where it is another one.

    Folders are left out: the same model gives the same text on every machine.
    """
    inner, outer = lines[0], lines[-1]
    text = f"{PurePath(inner.file).name}:{inner.number} {inner.function}"
    if outer != inner:
        text += f", for {PurePath(outer.file).name}:{outer.number} {outer.function}"
    return text


class LineNotes:
    """Comments for the nodes of a graph that was recorded with its lines, and of its bodies.

    A body that was not (a solver's, shared by all who call it) is where its first region is. What
    the backend adds of itself (how values of a loop are combined) has no line of its own.
    """

    def __init__(self, graph: Graph) -> None:
        #: Lines by note, all that can occur.
        self.lines: dict[str, tuple[SourceLine, ...]] = {}
        self._shared: dict[int, str] = {}
        self._visit(graph, "")

    def _visit(self, graph: Graph, outside: str) -> None:
        self._shared.setdefault(id(graph), outside)
        for lines in graph.lines or ():
            if lines:
                self.lines[_describe(lines)] = lines
        for i, region in graph.regions.items():
            for body in region.bodies:
                self._visit(body, self(graph, i))

    def __call__(self, graph: Graph, node: int) -> str:
        """Return the comment for a node."""
        lines = graph.lines[node] if graph.lines is not None else None
        return _describe(lines) if lines else self._shared.get(id(graph), "")
