"""What stands for a function of NumPy while something is recorded.

A *stand* leads to a version of the function that knows traced values in threads that record, and
to the original in all others. It equals the original, and has its class, name, text and hash.
Native code does this in a few nanoseconds (``Backend.thread_dispatch``), so that other threads are
not slowed; where there is none, Python does. See docs/decisions/004-numpy-creation.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, Protocol

from archimedes.symbolic.core.trace import is_internal, is_tracing, stands_for_numpy

__all__ = [
    "DERIVED",
    "Dispatch",
    "StandBase",
    "find_dispatch",
    "is_called_by_user",
    "is_stand",
    "original_of",
    "use_native",
]

stands_for_numpy(__name__)


class _Text:
    """The text of a stand is that of its function: ``numpy.ma`` reads it when it is imported."""

    def __get__(self, stand: Any, owner: type) -> str:
        own = "What stands for a NumPy function while a recording is under way."
        return own if stand is None else stand.original.__doc__


class StandBase:  # noqa: D101  see _Text
    __slots__ = ()
    original: Any

    __class__ = property(lambda self: type(self.original))
    __doc__ = _Text()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __eq__(self, other: object) -> bool:
        return self.original is (getattr(other, "original", None) if is_stand(other) else other)

    def __hash__(self) -> int:
        return hash(self.original)

    def __repr__(self) -> str:
        return repr(self.original)

    def __reduce__(self) -> Any:
        module = getattr(self.original, "__module__", None) or "numpy"
        return _function_named, (module, self.original.__name__)


def _function_named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def is_stand(value: Any) -> bool:
    """Return whether a value stands for a function of NumPy."""
    return issubclass(type(value), StandBase)


#: Other things that stand for something of NumPy's, by id: both.
DERIVED: dict[int, tuple[Any, Any]] = {}


def original_of(value: Any) -> Any:
    """Return what a value stands for, or the value itself.

    A module that has bound ``np.zeros`` reads the same, whether or not another thread records.
    """
    if is_stand(value):
        return value.original
    return DERIVED.get(id(value), (value, value))[1]


class Dispatch(Protocol):
    """Makes stands, and keeps track of the threads that are recording."""

    def make(self, original: Any, version: Any) -> Any:
        """Return a callable: ``version`` in threads that are recording, ``original`` in others."""

    def begin(self) -> None:
        """Mark this thread as recording."""

    def end(self) -> None:
        """Mark this thread as no longer recording."""


class _Stand(StandBase):
    __slots__ = ("original", "version")
    __doc__ = _Text()

    def __init__(self, original: Any, version: Any) -> None:
        self.original, self.version = original, version

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self.version if is_tracing() else self.original)(*args, **kwargs)


class _PythonDispatch:
    make = staticmethod(_Stand)

    def begin(self) -> None:
        pass

    end = begin


_python = _PythonDispatch()
_native: Callable[[type, bool], Dispatch | None] | None = None


def use_native(source: Callable[[type, bool], Dispatch | None]) -> None:
    """Have stands made by native code.

    ``source(base, needed)`` returns what makes them, of a class derived from ``base``, or None:
    where there is none, and unless it is ``needed`` also where it would have to be loaded.
    """
    global _native
    _native = source


def find_dispatch() -> Dispatch:
    """Return what makes stands now: native code is loaded if there are threads to be slowed."""
    native = None if _native is None else _native(StandBase, threading.active_count() > 1)
    return _python if native is None else native


def is_called_by_user(frame: FrameType | None) -> bool:
    """Return whether a function was called, from a frame, by neither NumPy nor our machinery."""
    if frame is not None and frame.f_code is _Stand.__call__.__code__:
        frame = frame.f_back
    return frame is not None and not is_internal(frame)
