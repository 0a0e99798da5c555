"""IPOPT's C interface (IpStdCInterface.h), from whichever package brings the library.

See docs/decisions/022-ipopt.md for why it is called this way.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int, c_void_p
from functools import cache
from pathlib import Path

from archimedes.installation import install_command
from archimedes.system.c_library import find_library

__all__ = ["Callbacks", "library", "solving"]

#: IPOPT with MUMPS must not run twice at a time; a function being minimised may minimise.
solving = threading.RLock()

MISSING = (
    f"method='ipopt' needs IPOPT, which is not installed: {install_command('optimize')}. Without "
    "it, use method='ipm', the interior-point method of this package."
)


_NUMBERS, _INDICES = POINTER(c_double), POINTER(c_int)


class Callbacks:
    """Types of the functions that IPOPT calls; ``Index`` is int."""

    f = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, _NUMBERS, c_void_p)
    grad_f = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, _NUMBERS, c_void_p)
    g = CFUNCTYPE(c_int, c_int, _NUMBERS, c_bool, c_int, _NUMBERS, c_void_p)
    jac_g = CFUNCTYPE(
        *(c_int, c_int, _NUMBERS, c_bool, c_int, c_int, _INDICES, _INDICES, _NUMBERS, c_void_p)
    )
    h = CFUNCTYPE(
        *(c_int, c_int, _NUMBERS, c_bool, c_double, c_int, _NUMBERS, c_bool, c_int),
        *(_INDICES, _INDICES, _NUMBERS, c_void_p),
    )
    intermediate = CFUNCTYPE(*(c_int, c_int, c_int), *(c_double,) * 8, *(c_int, c_void_p))


def _candidates() -> Iterator[str]:
    """Where IPOPT may be: what the user says, wheels that bundle it, the system."""
    said = os.environ.get("ARCHIMEDES_IPOPT")
    if said:
        yield said
    for package, patterns in (
        ("casadi", ("libipopt.so.3", "libipopt.3.dylib", "libipopt-3.dll", "libipopt.so*")),
        ("ipyopt", ("../ipyopt.libs/libipopt*", ".dylibs/libipopt*")),
    ):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if found and package == "ipyopt":
                importlib.import_module("ipyopt")  # brings what the library stands on
            yield from map(str, found[:1])
    found_in_system = find_library("ipopt")
    if found_in_system:
        yield found_in_system


@cache
def library() -> ctypes.CDLL:
    """Return the loaded library, its functions typed; ImportError says what to install."""
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(lib, "CreateIpoptProblem"):
            return _typed(lib)
    raise ImportError(MISSING)


def _typed(lib: ctypes.CDLL) -> ctypes.CDLL:
    numbers, handle = c_void_p, c_void_p
    lib.CreateIpoptProblem.restype = handle
    lib.CreateIpoptProblem.argtypes = [
        *(c_int, numbers, numbers, c_int, numbers, numbers, c_int, c_int, c_int),
        *(Callbacks.f, Callbacks.g, Callbacks.grad_f, Callbacks.jac_g, Callbacks.h),
    ]
    lib.FreeIpoptProblem.restype = None
    lib.FreeIpoptProblem.argtypes = [handle]
    for name, kind in (("Str", c_char_p), ("Num", c_double), ("Int", c_int)):
        add = getattr(lib, f"AddIpopt{name}Option")
        add.restype, add.argtypes = c_bool, [handle, c_char_p, kind]
    lib.SetIntermediateCallback.restype = c_bool
    lib.SetIntermediateCallback.argtypes = [handle, Callbacks.intermediate]
    lib.IpoptSolve.restype = c_int
    lib.IpoptSolve.argtypes = [handle, *(numbers,) * 6, c_void_p]
    return lib
