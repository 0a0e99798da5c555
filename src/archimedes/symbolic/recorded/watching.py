"""Watching a thread while it records: clocks, and random numbers of the operating system.

Python reports C functions to a thread's own profiling function (``sys.setprofile``) just before
it calls them; nothing is replaced, and other threads notice nothing. Being told of every call more
than doubles the time of a recording, so that only those are watched whose functions can reach a
clock or random numbers, which the walk over what a function reads knows. See
docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from archimedes.symbolic.core.trace import is_tracing, trace_error
from archimedes.symbolic.recorded.clocks import (
    CLOCK_REMEDY,
    asks_numpy,
    clock_label,
    is_direct,
    reads_clock,
)
from archimedes.symbolic.recorded.randomness import REMEDY, drawing_frame, refusal

__all__ = ["refuse_outside_sources"]


def _check(frame: FrameType, event: str, argument: Any) -> None:
    if event == "c_call":
        if reads_clock(frame, argument):
            if is_direct(frame):
                raise trace_error(refusal(clock_label(argument)), CLOCK_REMEDY)
            return
        drawing = drawing_frame(frame, argument)
        if drawing is not None and is_tracing():
            _refuse_draw(drawing, argument)
    elif event == "call" and asks_numpy(frame) and is_direct(frame):
        raise trace_error(refusal("np.datetime64 of now or today"), CLOCK_REMEDY)


def _refuse_draw(frame: FrameType, function: Any) -> None:
    """Refuse what a user's frame calls that asks the operating system in the end."""
    import ast  # for errors only

    from archimedes.symbolic.core.plain_array_uses import expression_at

    expression = expression_at(frame, frame.f_lasti)
    label = f"os.{function.__name__}"
    if isinstance(expression, ast.Call):
        label = ast.unparse(expression.func)
        if label.endswith("RandomState") and expression.args:
            return  # it is given its seed after it has been made without
    raise trace_error(refusal(label), REMEDY)


def _watching(before: Callable[..., Any] | None) -> Callable[..., Any]:
    def watch(frame: FrameType, event: str, argument: Any) -> None:
        _check(frame, event, argument)
        if before is not None:
            before(frame, event, argument)

    watch.before = before  # type: ignore[attr-defined]
    return watch


@contextmanager
def refuse_outside_sources() -> Iterator[None]:
    """Refuse to have clocks and the system's random numbers read in this thread while it records.

    A profiling function written in Python goes on being told. Under one written in C, such as
    cProfile's, nothing is noticed: it could not be put back.
    """
    before: Any = sys.getprofile()
    if hasattr(before, "before") or (before is not None and not callable(before)):
        yield
        return
    sys.setprofile(_watching(before))
    try:
        yield
    finally:
        sys.setprofile(before)
