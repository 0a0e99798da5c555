"""Functions that recorded ones call back at run time (``callback``).

They run as plain Python each time, so that what they read and change is no part of a recording.
Which ones they are is known once a function has been recorded.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

__all__ = ["collecting", "host_code", "note_hosts"]


class _Collected(threading.local):
    """The host functions met by each recording under way in this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[set[CodeType]] = []


_collected = _Collected()


@contextmanager
def collecting() -> Iterator[set[CodeType]]:
    """Collect the code of host functions that are met inside."""
    mine: set[CodeType] = set()
    _collected.stack.append(mine)
    try:
        yield mine
    finally:
        _collected.stack.pop()
        note_hosts(mine)


def note_hosts(codes: Iterable[CodeType]) -> None:
    """Take note of the code of host functions."""
    if _collected.stack:
        _collected.stack[-1].update(codes)


def host_code(function: Callable[..., Any]) -> list[CodeType]:
    """Return the code that runs when a function is called, where it is written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        called = next(
            (vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None
        )
        code = getattr(called, "__code__", None)
    return [] if code is None else [code]
