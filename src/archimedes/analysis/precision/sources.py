"""What a node belongs to: a line of the user, or an argument. Errors are gathered by these."""

from __future__ import annotations

import ast
import linecache
import os
from pathlib import PurePath
from typing import Any

import archimedes.graph as package
from archimedes.graph.ops import CONST, INPUT
from archimedes.graph.program import Graph
from archimedes.records import record
from archimedes.symbolic.core.user_frames import SourceLine

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(package.__file__))) + os.sep


@record
class Source:
    """A line of source, or an argument (``argument`` is its name, and there is no line)."""

    file: str = ""
    number: int = 0
    function: str = ""
    argument: str = ""

    @property
    def text(self) -> str:
        """The line's source, "" if it cannot be read."""
        return linecache.getline(self.file, self.number).strip()

    @property
    def where(self) -> str:
        """The line as ``file.py:12``, or the argument."""
        if self.argument:
            return f"argument {self.argument}"
        return f"{PurePath(self.file).name}:{self.number}" if self.file else "an unknown line"

    @property
    def target(self) -> str:
        """The name that the line assigns to, "" if it assigns to none."""
        try:
            (statement,) = ast.parse(self.text).body
        except (SyntaxError, ValueError):
            return ""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return ast.unparse(statement.targets[0])
        if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            return ast.unparse(statement.target)
        return ""


def user_line(lines: tuple[SourceLine, ...] | None) -> SourceLine | None:
    """Return the innermost line outside this package; a line of it where there is no other."""
    if not lines:
        return None
    return next((line for line in lines if not line.file.startswith(_HERE)), lines[0])


class Sources:
    """The sources of a graph and its bodies: ``listed``, and the number of that of each node.

    Constants and the inputs of bodies belong to nothing (-1): what reads them does. A body that was
    recorded without its lines belongs to the line of its region. Source 0 is unknown.
    """

    def __init__(self, graph: Graph, inputs: list[str]) -> None:
        self.listed = [Source()]
        self._known: dict[Any, int] = {}
        self._by_graph: dict[int, tuple[Graph, list[int]]] = {}
        arguments = dict.fromkeys(inputs)
        for name in arguments:
            self._known[name] = len(self.listed)
            self.listed.append(Source(argument=name))
        self._visit(graph, 0)
        own = self._by_graph[id(graph)][1]
        for node, name in zip(graph.inputs, inputs):
            own[node] = self._known[name]

    def of(self, graph: Graph, node: int) -> int:
        """Return the number of a node's source."""
        return self._by_graph[id(graph)][1][node]

    def _visit(self, graph: Graph, outside: int) -> None:
        if id(graph) in self._by_graph:
            return
        own = [outside] * len(graph.op)
        for node, code in enumerate(graph.op):
            if code in (CONST, INPUT):
                own[node] = -1
            elif graph.lines is not None:
                line = user_line(graph.lines[node])
                own[node] = outside if line is None else self._number(line)
        self._by_graph[id(graph)] = graph, own
        for node, region in graph.regions.items():
            for body in region.bodies:
                self._visit(body, own[node])

    def _number(self, line: SourceLine) -> int:
        if not line.file:  # what is stored of an argument (``repeated_steps.py``)
            return self._known[line.function]
        key = line.file, line.number
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(Source(line.file, line.number, line.function))
        return self._known[key]


def inner_line(graph: Graph, node: int) -> SourceLine | None:
    """Return the line that made a node, if it is inside this package and was called by another."""
    lines = graph.lines[node] if graph.lines is not None else None
    return lines[0] if lines and lines[0] is not user_line(lines) else None
