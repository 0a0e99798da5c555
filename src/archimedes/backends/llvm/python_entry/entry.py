"""A native entry point for Python: leaves in, leaves out, checked and without a detour.

For one kernel and one kind of arguments a small function is generated that CPython calls
directly (``METH_FASTCALL``). It checks that each argument is what the kernel was made for (type,
dtype, shape, contiguity), takes the address of its numbers where they lie, makes the result
arrays (or takes the caller's), releases the GIL, runs the kernel and returns the results in the
structs and tuples they belong in.
Arguments of any other form make it return ``NotImplemented``: the caller then converts them and
calls again, or records anew. Of a batch, the number of instances is the length of the first
axis of the batched arguments, and a kernel for what instances share runs first.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_entry.entry_text import NAME, Argument, Batch, entry_text
from archimedes.backends.llvm.python_entry.results import Form, Known, Leaf, Result, Struct, Tuple
from archimedes.backends.llvm.python_entry.unchanged import Guard, checker
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = [
    "Argument",
    "Batch",
    "Form",
    "Known",
    "Leaf",
    "Result",
    "Struct",
    "Tuple",
    "make_entry",
    "supported",
]

_METH_FASTCALL = 0x0080


def supported() -> bool:
    """Tell whether this interpreter lays out objects as assumed."""
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not free_threaded
        and not hasattr(sys, "gettotalrefcount")
    )


def make_entry(
    kernel: int,
    arguments: Sequence[Argument],
    results: Sequence[Result],
    form: Form,
    keep: Any,
    batch: Batch | None = None,
    into: bool = False,
    brief: bool = False,
    guard: Guard | None = None,
) -> Callable[..., Any]:
    """Make the builtin ``f(*leaves) -> results in their form, or NotImplemented``.

    ``kernel`` is the address of a scalar kernel (of a batch kernel, where ``batch`` is given),
    ``keep`` what holds its code. With ``into`` the arrays for the results are further arguments,
    and None is returned. A ``brief`` kernel runs under the GIL. Where what ``guard`` describes has
    changed, the builtin returns NotImplemented.

    The builtin owns all it needs (its ``__self__``): code, definition, and the objects it compares
    with and builds from. CPython drops that only after its last look at the definition, in
    whatever order a garbage collection takes things apart.
    """
    checks = None if guard is None else (checker().address, guard.address)
    text = entry_text(kernel, arguments, results, form, batch, into, brief, checks)
    code = NativeCode(host_target(None).compile(text), NAME, {})
    # struct PyMethodDef {name, function, flags, doc}, in an array: the garbage collector frees
    # the memory of a ctypes structure while others still point to it, an array's it does not.
    label = np.frombuffer(b"kernel\0", np.uint8)
    definition = np.array([label.ctypes.data, code.address, _METH_FASTCALL, 0], np.uint64)
    owned = (keep, code, label, definition, tuple(arguments), form, guard)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(definition.ctypes.data, owned, None)
