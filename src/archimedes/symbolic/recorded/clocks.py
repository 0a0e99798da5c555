"""The time read while recording would become a constant: reading a clock is refused.

Clocks are C functions, which ``watching.py`` notices. ``is_clock`` tells the walk over what a
function reads whether it can reach one. See docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import dis
import sys
import time
from collections.abc import Set
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.symbolic.core.trace import INSTALLED, is_tracing, is_user_code

__all__ = [
    "CLOCK_REMEDY",
    "asks_numpy",
    "clock_label",
    "is_clock",
    "is_direct",
    "names_clock",
    "reads_clock",
]

CLOCK_REMEDY = explained(
    "clock",
    "Pass the time as an argument, or read the clock in a function called by arc.callback.",
)
_READ = (
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns "
    "thread_time thread_time_ns clock_gettime clock_gettime_ns times"
)
#: Functions of the module ``time`` that read the clock whatever they are given.
_ALWAYS = {f for name in _READ.split() if (f := getattr(time, name, None)) is not None}
#: Those that read it unless a time is given, with the number of arguments without it.
_UNLESS_GIVEN = {
    time.gmtime: 0,
    time.localtime: 0,
    time.ctime: 0,
    time.asctime: 0,
    time.strftime: 1,
}
#: Class methods of ``datetime.date`` and ``datetime.datetime``, and of their subclasses.
_OF_DATES = {"now", "today", "utcnow"}
_MODULES = {"time", "datetime"}
#: What np.datetime64 takes for the time at which it is called.
_WORDS = {"now", "today"}


def is_clock(value: Any) -> bool:
    """Return whether a module, class or function is one that tells the time.

    >>> is_clock(time), is_clock(time.perf_counter), is_clock(np.sin)
    (True, True, False)
    """
    if isinstance(value, ModuleType):
        return value.__name__ in _MODULES
    if isinstance(value, type):
        return value is np.datetime64 or value.__module__ == "datetime"
    return isinstance(value, BuiltinFunctionType) and (
        value.__module__ in _MODULES or _is_of_dates(value)
    )


def names_clock(attributes: Set[str], modules: Set[str]) -> bool:
    """Return whether names in code lead to a clock: NumPy's, or that of a module to import."""
    return "datetime64" in attributes or not _MODULES.isdisjoint(modules)


def _is_of_dates(function: Any) -> bool:
    """Return whether a C function is a method such as ``datetime.now``."""
    if function.__name__ not in _OF_DATES or not isinstance(function.__self__, type):
        return False
    return any(base.__module__ == "datetime" for base in function.__self__.__mro__)


def _argument_count(frame: FrameType) -> int:
    """Return how many arguments a frame is calling a function with; many, if that is not known."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if dis.opname[code[at]] != "CALL" or (at >= 2 and code[at - 2] == dis.EXTENDED_ARG):
        return sys.maxsize
    return code[at + 1]


def reads_clock(frame: FrameType, function: Any) -> bool:
    """Return whether a C function that a frame calls reads the clock."""
    if function in _ALWAYS:
        return True
    without = _UNLESS_GIVEN.get(function)
    if without is not None:
        return _argument_count(frame) <= without
    return _is_of_dates(function)


def asks_numpy(frame: FrameType) -> bool:
    """Return whether a function that begins has ``np.datetime64("now")`` in it."""
    code = frame.f_code
    return "datetime64" in code.co_names and not _WORDS.isdisjoint(
        c for c in code.co_consts if isinstance(c, str)
    )


def is_direct(frame: FrameType) -> bool:
    """Return whether a frame is a user's: libraries read clocks for purposes of their own."""
    if not is_tracing() or not is_user_code(frame) or frame.f_code.co_name == "<module>":
        return False
    if frame.f_globals.get("__name__", "").partition(".")[0] == "archimedes":
        return False
    return not any(folder in frame.f_code.co_filename for folder in INSTALLED)


def clock_label(function: Any) -> str:
    """Return the name of a clock, as it is called."""
    owner = function.__self__
    inside = owner.__name__ if isinstance(owner, (type, ModuleType)) else "time"
    return f"{inside}.{function.__name__}"
