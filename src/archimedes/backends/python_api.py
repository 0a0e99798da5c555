"""Whether native code may call CPython's C API in this process.

What native code needs of Python goes through the public C API of CPython and NumPy: functions by
address, the buffer protocol, builtins made of machine code. All of it is in
``backends/llvm/python_entry``. Where ``supported`` says no, the same calls go through plain Python,
with the same results.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

__all__ = ["supported"]


@cache
def supported() -> bool:
    """Return whether native code calls the C API here: on 64-bit CPython with a GIL.

    The environment variable ``ARCHIMEDES_PYTHON_API=0`` says no, for tests of the plain path.
    """
    return (
        os.environ.get("ARCHIMEDES_PYTHON_API") != "0"
        and sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and getattr(sys, "_is_gil_enabled", lambda: True)()
    )
