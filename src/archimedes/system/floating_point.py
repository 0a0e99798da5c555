"""The floating-point environment in which programs are recorded and run.

IEEE arithmetic has settings, one set per thread: the rounding mode, and on most CPUs a mode that
takes numbers below 2.2e-308 for zero. Any library may change them (``-ffast-math`` in one shared
object is enough), and threads inherit them from the thread that started them. Programs here mean
the default settings. Native kernels see to that themselves
(``backends/llvm/lowering/prologue.py``); :class:`DefaultEnvironment` does it for what is computed
in Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Bytes of the largest ``fenv_t`` of glibc, musl and macOS, with room to spare.
_ROOM = 256
#: What Microsoft's <float.h> calls _MCW_DN | _MCW_EM | _MCW_RC, and its default: subnormal numbers
#: are kept (_DN_SAVE), every trap is masked (_MCW_EM), rounding is to nearest (_RC_NEAR).
_CONTROL_MASK, _DEFAULT_CONTROL = 0x0308_031F, 0x0008_001F

# Names, not literals, in the tests below: Python computes with literals when it compiles.
_ONE, _HALF = 1.0, 0.5
_SMALL = 2.0**-60
_SMALLEST_NORMAL = sys.float_info.min
_SUBNORMAL = 5e-324


def is_default() -> bool:
    """Return whether this thread rounds to nearest and knows numbers below 2.2e-308.

    >>> is_default()
    True
    """
    return (
        _ONE - _SMALL == _ONE == _ONE + _SMALL  # nearest: neither down or to zero, nor up
        and _SMALLEST_NORMAL * _HALF != 0.0
        and _SUBNORMAL != 0.0
    )


def _set_default() -> Any:
    """Set the default settings; return those before, for :func:`_restore`."""
    if sys.platform == "win32":
        # ``_controlfp_s`` of the C library: rounding, subnormal numbers, masks of traps.
        control, before = ctypes.CDLL("ucrtbase")._controlfp_s, ctypes.c_uint()
        control(ctypes.byref(before), 0, 0)
        control(ctypes.byref(ctypes.c_uint()), _DEFAULT_CONTROL, _CONTROL_MASK)
        return before.value
    library, before = ctypes.CDLL(None), ctypes.create_string_buffer(_ROOM)
    library.fegetenv(before)
    if sys.platform == "darwin":
        default: Any = ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    else:
        default = ctypes.c_void_p(-1)
    library.fesetenv(default)
    return before


def _restore(before: Any) -> None:
    """Give this thread settings back."""
    if sys.platform == "win32":
        control = ctypes.CDLL("ucrtbase")._controlfp_s
        control(ctypes.byref(ctypes.c_uint()), before, _CONTROL_MASK)
    else:
        ctypes.CDLL(None).fesetenv(before)


class DefaultEnvironment:
    """A context in which this thread computes with the default settings.

    Costs 0.1 us where they are set already. Afterwards the caller's settings are back.

    >>> with DefaultEnvironment():
    ...     is_default()
    True
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = None if is_default() else _set_default()

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            _restore(self._before)


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
