"""Which frames of running code are the user's, and which lines nodes of a graph come from."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from archimedes.graph.program import origins

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SITE = os.path.dirname(os.path.dirname(os.path.abspath(np.__file__)))
_LIBRARIES = tuple(os.path.join(_SITE, name) + os.sep for name in ("numpy", "scipy"))
#: Machinery; the packages that hold physics are a user's code as far as errors go.
_MACHINERY = tuple(
    os.path.join(_HERE, *name.split("/"))
    for name in (
        *("tree/", "graph/", "symbolic/", "function/", "backends/", "tracebacks.py"),
        *("random/", "special/", "analysis/", "embedded/", "simulate/", "system/"),
    )
)


#: Python's own library, and the folders of others, which may lie below it.
_STDLIB = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
INSTALLED = ("site-packages", "dist-packages")


def _frames(where: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """Yield frames and line numbers, innermost first, of a traceback or of the running code."""
    import traceback  # for errors only

    if where is not None:
        yield from reversed(list(traceback.walk_tb(where)))
    else:
        yield from traceback.walk_stack(sys._getframe(2))


def is_user_code(frame: FrameType) -> bool:
    """Return whether a frame runs the user's code.

    That is any code but this package's machinery, NumPy, SciPy, Python's library and extensions.
    """
    name = frame.f_code.co_filename
    if name.startswith(_STDLIB) and not any(folder in name for folder in INSTALLED):
        return False
    return not name.startswith((*_MACHINERY, *_LIBRARIES, "<frozen")) and not name.endswith(".pyx")


#: Packages that make arrays for their own use, not for the function being recorded.
_INTERNAL = (
    "numpy",
    "scipy",
    *(f"archimedes.{p}" for p in ("graph", "symbolic", "backends", "function", "tree", "system")),
)


@functools.cache
def is_internal_module(module: str) -> bool:
    """Return whether a module belongs to NumPy, SciPy or the machinery of this package."""
    return any(module == name or module.startswith(f"{name}.") for name in _INTERNAL)


def is_internal(frame: FrameType) -> bool:
    """Return whether a frame runs code of such a module; quicker than ``is_user_code``."""
    return is_internal_module(frame.f_globals.get("__name__", ""))


#: NumPy, and the modules whose functions stand for its own while recording.
_numpy: tuple[str, ...] = ("numpy",)


def treat_as_numpy(module: str) -> None:
    """Let errors skip the frames of a module, as they skip NumPy's."""
    global _numpy
    _numpy = (*_numpy, module)


def outside_numpy(frame: FrameType) -> FrameType:
    """Return the innermost frame, from this one outwards, that does not run NumPy's own code."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_numpy):
        frame = frame.f_back
    return frame


def user_line(where: TracebackType | None = None) -> str:
    """Describe the innermost line that belongs to the user, of a traceback or the running code."""
    for frame, number in _frames(where):
        if is_user_code(frame):
            return frame_line(frame, number)
    return "an unknown line"


def frame_line(frame: FrameType, number: int | None = None) -> str:
    """Describe a line of a frame's code: the one it is at, unless another is given."""
    number = frame.f_lineno if number is None else number
    name = frame.f_code.co_filename
    text = linecache.getline(name, number).strip()
    location = f"{name}:{number}, in {frame.f_code.co_name}"
    return f"{location}\n    {text}" if text else location


# ---- lines of nodes -----------------------------------------------------------------------------


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
        key = tuple(lines)
        return self._known.setdefault(key, key)
