"""Whether native code may call CPython's C API in this process."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

__all__ = ["supported"]

#: The newest CPython on which native code was tested with its C API.
NEWEST = (3, 14)


@cache
def supported() -> bool:
    """Return whether native code calls the C API here: on a known 64-bit CPython with a GIL.

    The environment variable ``ARCHIMEDES_PYTHON_API=0`` says no, for tests of the plain path.
    """
    return (
        os.environ.get("ARCHIMEDES_PYTHON_API") != "0"
        and sys.implementation.name == "cpython"
        and sys.version_info[:2] <= NEWEST
        and "free-threading" not in sys.version
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little"
    )
