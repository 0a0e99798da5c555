"""Which lines of the user's code each node of a graph comes from, recorded on request."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NamedTuple

from archimedes.graph.program import origins
from archimedes.symbolic.core.trace import is_user_code

__all__ = ["SourceLine", "recording_lines"]


class SourceLine(NamedTuple):
    """A line of Python: file, number (from 1), and the function it is in."""

    file: str
    number: int
    function: str


class recording_lines:
    """Have graphs that this thread makes inside the block keep the user's lines (``Graph.lines``).

    Each entry is a tuple of :class:`SourceLine`, innermost first, from the line that made the node
    out to the recorded function. Recordings made inside are not kept by compiled functions.

    >>> import numpy as np
    >>> import archimedes as arc
    >>> with recording_lines():
    ...     graph = arc.compile(lambda x: 2.0 * x).graph(1.0)
    >>> graph.lines[graph.outputs[0]][0].function
    '<lambda>'
    """

    def __enter__(self) -> None:
        self._outer: FrameType | None = sys._getframe(1)
        self._known: dict[tuple[SourceLine, ...], tuple[SourceLine, ...]] = {}
        self._before = origins.find
        origins.find = self._running_lines

    def __exit__(self, *error: Any) -> None:
        origins.find = self._before
        self._outer = None

    def _running_lines(self) -> tuple[SourceLine, ...]:
        lines: list[SourceLine] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._outer:
            if is_user_code(frame):
                code = frame.f_code
                lines.append(SourceLine(code.co_filename, frame.f_lineno, code.co_name))
            frame = frame.f_back
        found = tuple(lines)
        return self._known.setdefault(found, found)
