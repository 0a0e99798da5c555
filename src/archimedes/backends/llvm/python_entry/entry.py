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
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.backends.entry_forms import EntryRequest
from archimedes.backends.llvm.python_entry.entry_text import NAME, Batch, entry_text
from archimedes.backends.llvm.python_entry.unchanged import checker, unchanged
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["Batch", "make_entry"]

_METH_FASTCALL = 0x0080


def make_entry(
    request: EntryRequest, kernel: int, keep: Any, batch: Batch | None = None, brief: bool = False
) -> Callable[..., Any]:
    """Make the builtin ``f(*leaves) -> results in their form, or NotImplemented``.

    ``kernel`` is the address of a scalar kernel (of a batch kernel, where ``batch`` is given),
    ``keep`` what holds its code. A ``brief`` kernel runs under the GIL. Where what the request's
    guard describes has changed, the builtin returns NotImplemented.

    The builtin owns all it needs (its ``__self__``): code, definition, and the objects it compares
    with and builds from. CPython drops that only after its last look at the definition, in
    whatever order a garbage collection takes things apart.
    """
    guard = None if request.guard is None else request.guard()
    checks = None
    if guard is not None:
        guard.check = unchanged
        checks = (checker().address, guard.address)
    text = entry_text(request, kernel, batch, brief, checks)
    code = NativeCode(host_target(None).compile(text), NAME, {})
    # struct PyMethodDef {name, function, flags, doc}, in an array: the garbage collector frees
    # the memory of a ctypes structure while others still point to it, an array's it does not.
    label = np.frombuffer(b"kernel\0", np.uint8)
    definition = np.array([label.ctypes.data, code.address, _METH_FASTCALL, 0], np.uint64)
    owned = (keep, code, label, definition, request.arguments, request.form, guard)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(definition.ctypes.data, owned, None)
