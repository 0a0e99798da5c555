"""The floating-point environment in which programs are recorded and run.

IEEE arithmetic has settings, one set per thread: the rounding mode, and on most CPUs a mode that
takes numbers below 2.2e-308 for zero. Any library may change them (``-ffast-math`` in one shared
object is enough), and threads inherit them from the thread that started them. Programs here mean
the default settings. Native kernels see to that themselves (``backends/llvm/lowering/guards.py``);
:class:`DefaultEnvironment` does it for what is computed in Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["DefaultEnvironment", "in_default_environment", "is_default"]

F = TypeVar("F", bound=Callable[..., Any])

#: Bytes of the largest ``fenv_t`` there is, with room to spare.
_ROOM = 256

# Names, not literals, in the tests below: Python computes with literals when it compiles.
_ONE, _HALF = 1.0, 0.5
_SMALL = 2.0**-60
_SMALLEST_NORMAL = sys.float_info.min
_SUBNORMAL = 5e-324


def is_default() -> bool:
    """Tell whether this thread rounds to nearest and knows numbers below 2.2e-308.

    >>> is_default()
    True
    """
    return (
        _ONE - _SMALL == _ONE == _ONE + _SMALL  # nearest: neither down or to zero, nor up
        and _SMALLEST_NORMAL * _HALF != 0.0
        and _SUBNORMAL != 0.0
    )


def _functions() -> tuple[Any, Any, Any] | None:
    """``fegetenv``, ``fesetenv`` and ``FE_DFL_ENV`` of the C library, where it has them."""
    if sys.platform == "win32":  # its C library has no FE_DFL_ENV that could be looked up
        return None
    library = ctypes.CDLL(None)
    try:
        read, write = library.fegetenv, library.fesetenv
        default: Any = ctypes.c_void_p(-1)
        if sys.platform == "darwin":
            default = ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    except (AttributeError, ValueError):
        return None
    return read, write, default


class DefaultEnvironment:
    """A context in which this thread computes with the default settings.

    Costs 0.1 us where they are set already. Afterwards the caller's settings are back.

    >>> with DefaultEnvironment():
    ...     is_default()
    True
    """

    __slots__ = ("_saved",)
    _library: Any = None

    def __enter__(self) -> None:
        self._saved: Any = None
        if is_default():
            return
        if DefaultEnvironment._library is None:
            DefaultEnvironment._library = _functions() or ()
        if DefaultEnvironment._library:
            read, write, default = DefaultEnvironment._library
            self._saved = ctypes.create_string_buffer(_ROOM)
            read(self._saved)
            write(default)

    def __exit__(self, *error: object) -> None:
        if self._saved is not None:
            DefaultEnvironment._library[1](self._saved)


def in_default_environment(function: F) -> F:
    """Decorate a function that is to compute with the default settings.

    >>> in_default_environment(is_default)()
    True
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with DefaultEnvironment():
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]
