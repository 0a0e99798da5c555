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

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.entry_forms import Argument, EntryRequest, Result
from archimedes.backends.interrupts import raise_kept
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.python_api.c_api import make_builtin, numpy_api
from archimedes.backends.llvm.python_api.entry_results import (
    Text,
    drops,
    is_array,
    make_results,
    pointer_to,
    release_buffers,
    return_results,
)
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.graph.dtypes import DTYPES, I64

NAME = "arc_python"
#: Offsets into struct Py_buffer, which is public, and its size.
BUFFER, OBJECT, NDIM, FORMAT, SHAPE, SIZE = 0, 8, 36, 40, 48, 80
#: PyBUF_ND | PyBUF_FORMAT (C-contiguous, with shape and format), PyBUF_WRITABLE.
FORMATTED, WRITABLE = 0x8 | 0x4, 0x1

#: Position in NumPy's C API table, fixed by its ABI.
_SCALAR_AS_CTYPE = 62


class Batch(NamedTuple):
    """How an entry runs a batch: at most ``limit`` instances, in the caller's thread.

    ``shared`` is the address of the kernel of what the instances share (0: none), whose results
    are arrays of ``sizes`` bytes, given to the batch kernel behind its inputs.
    """

    limit: int
    shared: int = 0
    sizes: tuple[int, ...] = ()


def _format_of(dtype: np.dtype[Any]) -> int:
    """Return the two bytes, as a number, by which a buffer names a dtype of one letter."""
    text = np.empty(0, dtype).data.format
    assert len(text) == 1, text
    return ord(text)


def _is_instance(t: Text, obj: str, cls: type) -> None:
    """Leave for the slow path unless an object is of this very class."""
    of_object = t.call("ptr", "PyObject_Type", f"ptr {obj}")
    # The class lives as long as the object.
    t.call("void", "Py_DecRef", f"ptr {of_object}")
    t.is_object(of_object, cls)


def _array_pointer(
    t: Text, obj: str, leaf: Argument | Result, batched: bool, writable: bool = False
) -> str:
    """Return the address of an array's numbers, and hold its buffer until the call is done."""
    code, shape = leaf.code, leaf.shape
    _is_instance(t, obj, np.ndarray)
    view = t.views.pop()
    flags = FORMATTED | (WRITABLE if writable else 0)
    status = t.call("i32", "PyObject_GetBuffer", f"ptr {obj}, ptr {view}, i32 {flags}")
    good = t.value(f"icmp eq i32 {status}, 0")
    t.count += 1
    t.line(f"br i1 {good}, label %view{t.count}, label %refused")
    t.lines.append(f"view{t.count}:")
    letter = t.value(f"load i16, ptr {t.at(view, FORMAT, 'ptr')}, align 1")
    t.need(t.value(f"icmp eq i16 {letter}, {_format_of(DTYPES[code])}"))
    t.need(t.value(f"icmp eq i32 {t.at(view, NDIM, 'i32')}, {len(shape) + batched}"))
    sizes = t.at(view, SHAPE, "ptr")
    if batched:
        length = t.at(sizes, 0, "i64")
        if t.instances:
            t.need(t.value(f"icmp eq i64 {length}, {t.instances}"))
        t.instances = t.instances or length
    for axis, size in enumerate(shape, start=int(batched)):
        t.need(t.value(f"icmp eq i64 {t.at(sizes, 8 * axis, 'i64')}, {size}"))
    pointer = t.at(view, BUFFER, "ptr")
    number = t.value(f"ptrtoint ptr {pointer} to i64")
    rest = t.value(f"and i64 {number}, {DTYPES[code].itemsize - 1}")
    t.need(t.value(f"icmp eq i64 {rest}, 0"))
    return pointer


def _number_pointer(t: Text, obj: str, argument: Argument) -> str:
    """Return the address of a copy of the value of a Python float or a NumPy scalar."""
    _is_instance(t, obj, float if argument.weak else DTYPES[argument.code].type)
    location = t.slot(8)
    if argument.weak:
        number = t.call("double", "PyFloat_AsDouble", f"ptr {obj}")
        t.line(f"store double {number}, ptr {location}, align 8")
    else:
        t.call("void", numpy_api(_SCALAR_AS_CTYPE), f"ptr {obj}, ptr {location}")
    return location


def _int_pointer(t: Text, obj: str) -> str:
    _is_instance(t, obj, int)
    location = t.slot(16)
    overflow = t.offset(location, 8)
    number = t.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {obj}, ptr {overflow}")
    t.need(t.value(f"icmp eq i32 {t.value(f'load i32, ptr {overflow}')}, 0"))
    t.line(f"store i64 {number}, ptr {location}, align 8")
    return location


def _object(t: Text, k: int) -> str:
    return t.at("%args", 8 * k, "ptr")


def _bytes(t: Text, leaf: Argument | Result, batched: bool) -> str:
    """Bytes of an array leaf, a constant or a value."""
    size = math.prod(leaf.shape) * DTYPES[leaf.code].itemsize
    return t.value(f"mul i64 {t.instances}, {size}") if batched else str(size)


def _take_arguments(t: Text, arguments: Sequence[Argument]) -> list[tuple[str, str]]:
    """Check all arguments and fill the table of input pointers; return where arrays lie."""
    ranges = []
    slot = 0
    for k, argument in enumerate(arguments):
        obj = _object(t, k)
        if not argument.traced:
            t.is_object(obj, argument.value)
            continue
        if argument.shape or argument.batched:
            pointer = _array_pointer(t, obj, argument, argument.batched)
            ranges.append((pointer, _bytes(t, argument, argument.batched)))
        elif argument.weak and argument.code == I64:
            pointer = _int_pointer(t, obj)
        else:
            pointer = _number_pointer(t, obj, argument)
        t.put("%in", slot, pointer)
        slot += 1
    return ranges


def _take_results(
    t: Text, results: Sequence[Result], first: int, taken: list[tuple[str, str]]
) -> None:
    """Fill the table of output pointers from the caller's arrays, which overlap no other array."""
    batched = bool(t.instances)
    for k, result in enumerate(results):
        obj = _object(t, first + k)
        pointer = _array_pointer(t, obj, result, batched, writable=True)
        size = _bytes(t, result, batched)
        end = t.offset(pointer, size)
        for start, length in taken:
            other = t.offset(start, length)
            before = t.value(f"icmp ule ptr {end}, {start}")
            after = t.value(f"icmp ule ptr {other}, {pointer}")
            t.need(t.value(f"or i1 {before}, {after}"))
        taken = [*taken, (pointer, size)]
        t.put("%out", k, pointer)


def _run(t: Text, kernel: int, inputs: int, batch: Batch | None, brief: bool) -> str:
    """Run the kernel (without the GIL unless it is brief) and return its status."""
    state = "" if brief else t.call("ptr", "PyEval_SaveThread", "")
    if batch is None:
        status = t.call("i32", kernel, "ptr %in, ptr %out")
    else:
        if batch.shared:
            # Its results follow the inputs in the table the batch kernel reads.
            for k, size in enumerate(batch.sizes):
                t.put("%in", inputs + k, t.value(f"alloca [{max(size, 1)} x i8], align 64"))
            first = t.call("i32", batch.shared, f"ptr %in, ptr {t.offset('%in', 8 * inputs)}")
            # If that fails, no instance is computed.
            failed = t.value(f"icmp ne i32 {first}, 0")
            begin = t.value(f"select i1 {failed}, i64 {t.instances}, i64 0")
        else:
            begin = "0"
        status = t.call("i32", kernel, f"ptr %in, ptr %out, i64 {begin}, i64 {t.instances}")
        if batch.shared:
            status = t.value(f"or i32 {first}, {status}")
    if state:
        t.call("void", "PyEval_RestoreThread", f"ptr {state}")
    return status


def _give_back(t: Text, obj: str, views: Sequence[str]) -> None:
    release_buffers(t, views)
    t.call("void", "Py_IncRef", f"ptr {obj}")
    t.line(f"ret ptr {obj}")


def _reserve_views(t: Text, count: int) -> list[str]:
    """Reserve views that hold nothing yet: releasing an empty view does nothing."""
    views = [t.slot(SIZE) for _ in range(count)]
    for view in views:
        t.line(f"store ptr null, ptr {t.offset(view, OBJECT)}, align 8")
    return views


def entry_text(
    request: EntryRequest, kernel: int, batch: Batch | None = None, brief: bool = False
) -> str:
    """Write the module of an entry."""
    t = Text()
    arguments, results, into = request.arguments, request.results, request.into
    traced = sum(a.traced for a in arguments)
    table = traced + (len(batch.sizes) if batch else 0)
    t.line(f"%in = alloca [{max(table, 1)} x ptr], align 8")
    t.line(f"%out = alloca [{max(len(results), 1)} x ptr], align 8")
    held = sum(a.traced and bool(a.shape or a.batched) for a in arguments) + into * len(results)
    views = _reserve_views(t, held)
    t.views = views[::-1]
    t.need(t.value(f"icmp eq i64 %nargs, {len(arguments) + into * len(results)}"))
    ranges = _take_arguments(t, arguments)
    if batch is not None:
        t.need(t.value(f"icmp sle i64 {t.instances}, {batch.limit}"))
    objects: list[str] = []
    if into:
        _take_results(t, results, len(arguments), ranges)
    else:
        objects = make_results(t, results)
    status = _run(t, kernel, traced, batch, brief)
    good = t.value(f"icmp eq i32 {status}, 0")
    t.line(f"br i1 {good}, label %wrap, label %undo")
    t.lines.append("undo:")
    for result, obj in zip(results, objects):
        if is_array(t, result):
            t.call("void", "Py_DecRef", f"ptr {obj}")
    # Without memory, it is tried again on the slow path, which reports why.
    raised = t.value(f"icmp eq i32 {status}, {RAISED}")
    t.line(f"br i1 {raised}, label %raise, label %other")
    t.lines.append("raise:")
    release_buffers(t, views)
    error = t.call("ptr", "PyObject_CallNoArgs", f"ptr {pointer_to(raise_kept)}")
    t.line(f"ret ptr {error}")
    t.lines.append("wrap:")
    if into:
        _give_back(t, pointer_to(None), views)
    else:
        release_buffers(t, views)
        return_results(t, request.form, results, objects)
        drops(t, results, objects, views)
    if views:
        # No buffer of that kind: the slow path takes the array, or says what is wrong with it.
        t.lines.append("refused:")
        t.call("void", "PyErr_Clear", "")
        t.line("br label %other")
    t.lines.append("other:")
    _give_back(t, pointer_to(NotImplemented), views)
    body = "\n".join(t.lines)
    return (
        "\n".join(t.head)
        + f"\ndefine ptr @{NAME}(ptr %self, ptr %args, i64 %nargs) nounwind {{\n"
        + f"entry:\n{body}\n}}\n"
    )


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
