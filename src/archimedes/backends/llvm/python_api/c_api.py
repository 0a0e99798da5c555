"""Functions of CPython's and NumPy's C API by address, and whether native code may call them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

#: The newest CPython on which native code was tested with its C API.
NEWEST = (3, 14)


@cache
def is_supported() -> bool:
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


#: Py_tp_new of CPython's stable ABI.
_TP_NEW = 65


def address(name: str) -> int:
    """Return the address of a function of CPython's C API."""
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


def numpy_api(index: int) -> int:
    """Return the address of a function of NumPy's C API, by its position in the table."""
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return int(table[index])


def object_pointer(obj: object) -> int:
    """Return an object as the C API takes it (``PyObject *``), which CPython's ``id`` is.

    Native code hands it to functions of the C API, or compares it; it never reads what is there.
    Whoever asks holds the object for as long as that code exists.
    """
    return id(obj)


def object_new() -> int:
    """Return the address of the function that ``object.__new__`` calls."""
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return int(get(object, _TP_NEW))


def make_builtin(code: int, convention: int, owned: tuple[Any, ...]) -> Callable[..., Any]:
    """Make a builtin function of the machine code at an address (``PyCFunction_NewEx``).

    It owns all it needs (its ``__self__``): code, definition, and the objects it compares with
    and builds from. CPython drops that only after its last look at the definition, in whatever
    order a garbage collection takes things apart.
    """
    # struct PyMethodDef {name, function, flags, doc}, in an array: the garbage collector frees
    # the memory of a ctypes structure while others still point to it, an array's it does not.
    label = np.frombuffer(b"kernel\0", np.uint8)
    definition = np.array([label.ctypes.data, code, convention, 0], np.uint64)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(definition.ctypes.data, (*owned, label, definition), None)


def new_lock() -> int:
    """Return a lock of CPython (``PyThread_allocate_lock``) that is taken; it is never freed."""
    make, take = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    make.restype, take.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)
    lock = make()
    if not lock:
        raise MemoryError("no lock for the threads of loops")
    take(lock, 1)
    return int(lock)
