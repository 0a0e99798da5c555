"""A native entry point for Python: leaves in, leaves out, checked and without a detour.

For one kernel and one kind of arguments a small function is generated that CPython calls
directly (``METH_FASTCALL``). It checks that each argument is what the kernel was made for (type,
dtype, shape, contiguity), takes the address of its numbers where they lie (by the buffer protocol),
makes the result arrays (or takes the caller's), releases the GIL, runs the kernel and returns the
results in the structs and tuples they belong in.
Arguments of any other form make it return ``NotImplemented``: the caller then converts them and
calls again, or records anew. Of a batch, the number of instances is the length of the first
axis of the batched arguments, and a kernel for what instances share runs first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.backends.entry_forms import EntryRequest
from archimedes.backends.llvm.python_api.entry_text import NAME, Batch, entry_text
from archimedes.backends.llvm.python_api.functions import make_builtin
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["Batch", "make_entry"]

_METH_FASTCALL = 0x0080


def make_entry(
    request: EntryRequest, kernel: int, keep: Any, batch: Batch | None = None, brief: bool = False
) -> Callable[..., Any]:
    """Make the builtin ``f(*leaves) -> results in their form, or NotImplemented``.

    ``kernel`` is the address of a scalar kernel (of a batch kernel, where ``batch`` is given),
    ``keep`` what holds its code. A ``brief`` kernel runs under the GIL.
    """
    text = entry_text(request, kernel, batch, brief)
    code = NativeCode(host_target(None).compile(text), NAME, {})
    return make_builtin(code.address, _METH_FASTCALL, (keep, code, request.arguments, request.form))
