"""The text of a native entry point: checks of the arguments, and the call.

Offsets are those of CPython's and NumPy's public C structures on 64-bit builds: object header 16
bytes; ``PyArrayObject``: data 16, nd 24, dimensions 32, descr 56, flags 64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from archimedes.backends.entry_forms import Argument, EntryRequest, Result
from archimedes.backends.llvm.python_entry.results import (
    drops,
    is_array,
    make_results,
    return_results,
)
from archimedes.backends.llvm.python_entry.text_lines import Text, address, literal
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.graph.dtypes import DTYPES, I64

__all__ = ["NAME", "Batch", "entry_text"]

NAME = "arc_python"

#: C_CONTIGUOUS | ALIGNED, and WRITEABLE
_PLAIN_MEMORY = 0x1 | 0x100
_WRITEABLE = 0x400


class Batch(NamedTuple):
    """How an entry runs a batch: at most ``limit`` instances, in the caller's thread.

    ``shared`` is the address of the kernel of what the instances share (0: none), whose results
    are arrays of ``sizes`` bytes, given to the batch kernel behind its inputs.
    """

    limit: int
    shared: int = 0
    sizes: tuple[int, ...] = ()


def _array_pointer(
    t: Text, obj: str, code: int, shape: tuple[int, ...], batched: bool, flags: int
) -> str:
    t.is_object(t.at(obj, 8, "ptr"), id(np.ndarray))
    t.is_object(t.at(obj, 56, "ptr"), id(DTYPES[code]))
    found = t.value(f"and i32 {t.at(obj, 64, 'i32')}, {flags}")
    t.need(t.value(f"icmp eq i32 {found}, {flags}"))
    t.need(t.value(f"icmp eq i32 {t.at(obj, 24, 'i32')}, {len(shape) + batched}"))
    sizes = t.at(obj, 32, "ptr")
    if batched:
        length = t.at(sizes, 0, "i64")
        if t.instances:
            t.need(t.value(f"icmp eq i64 {length}, {t.instances}"))
        t.instances = t.instances or length
    for axis, size in enumerate(shape, start=int(batched)):
        t.need(t.value(f"icmp eq i64 {t.at(sizes, 8 * axis, 'i64')}, {size}"))
    return t.at(obj, 16, "ptr")


def _number_pointer(t: Text, obj: str, argument: Argument) -> str:
    """Address of the value inside a Python float or a NumPy scalar."""
    cls = float if argument.weak else DTYPES[argument.code].type
    t.is_object(t.at(obj, 8, "ptr"), id(cls))
    return t.value(f"getelementptr i8, ptr {obj}, i64 16")


def _int_pointer(t: Text, obj: str) -> str:
    t.is_object(t.at(obj, 8, "ptr"), id(int))
    place = t.value("alloca { i64, i32 }, align 8")
    overflow = t.value(f"getelementptr i8, ptr {place}, i64 8")
    read = address("PyLong_AsLongLongAndOverflow")
    number = t.call("i64", read, f"ptr {obj}, ptr {overflow}")
    t.need(t.value(f"icmp eq i32 {t.value(f'load i32, ptr {overflow}')}, 0"))
    t.line(f"store i64 {number}, ptr {place}, align 8")
    return place


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
            t.is_object(obj, id(argument.value))
            continue
        if argument.shape or argument.batched:
            code, shape, batched = argument.code, argument.shape, argument.batched
            pointer = _array_pointer(t, obj, code, shape, batched, _PLAIN_MEMORY)
            ranges.append((pointer, _bytes(t, argument, batched)))
        elif argument.weak and argument.code == I64:
            pointer = _int_pointer(t, obj)
        else:
            pointer = _number_pointer(t, obj, argument)
        where = t.value(f"getelementptr i8, ptr %in, i64 {8 * slot}")
        t.line(f"store ptr {pointer}, ptr {where}, align 8")
        slot += 1
    return ranges


def _take_results(
    t: Text, results: Sequence[Result], first: int, taken: list[tuple[str, str]]
) -> None:
    """Fill the table of output pointers from the caller's arrays, which overlap no other array."""
    batched = bool(t.instances)
    for k, result in enumerate(results):
        obj = _object(t, first + k)
        flags = _PLAIN_MEMORY | _WRITEABLE
        pointer = _array_pointer(t, obj, result.code, result.shape, batched, flags)
        size = _bytes(t, result, batched)
        end = t.value(f"getelementptr i8, ptr {pointer}, i64 {size}")
        for start, length in taken:
            other = t.value(f"getelementptr i8, ptr {start}, i64 {length}")
            before = t.value(f"icmp ule ptr {end}, {start}")
            after = t.value(f"icmp ule ptr {other}, {pointer}")
            t.need(t.value(f"or i1 {before}, {after}"))
        taken = [*taken, (pointer, size)]
        where = t.value(f"getelementptr i8, ptr %out, i64 {8 * k}")
        t.line(f"store ptr {pointer}, ptr {where}, align 8")


def _run(t: Text, kernel: int, inputs: int, batch: Batch | None, brief: bool) -> str:
    """Run the kernel (without the GIL unless it is brief) and return its status."""
    state = "" if brief else t.call("ptr", address("PyEval_SaveThread"), "")
    if batch is None:
        status = t.call("i32", kernel, "ptr %in, ptr %out")
    else:
        if batch.shared:
            # Its results follow the inputs in the table the batch kernel reads.
            for k, size in enumerate(batch.sizes):
                place = t.value(f"alloca [{max(size, 1)} x i8], align 64")
                where = t.value(f"getelementptr i8, ptr %in, i64 {8 * (inputs + k)}")
                t.line(f"store ptr {place}, ptr {where}, align 8")
            further = t.value(f"getelementptr i8, ptr %in, i64 {8 * inputs}")
            first = t.call("i32", batch.shared, f"ptr %in, ptr {further}")
        status = t.call("i32", kernel, f"ptr %in, ptr %out, i64 0, i64 {t.instances}")
        if batch.shared:
            status = t.value(f"or i32 {first}, {status}")
    if state:
        t.call("void", address("PyEval_RestoreThread"), f"ptr {state}")
    return status


def _give_back(t: Text, obj: str) -> None:
    t.call("void", address("Py_IncRef"), f"ptr {obj}")
    t.line(f"ret ptr {obj}")


def entry_text(
    request: EntryRequest,
    kernel: int,
    batch: Batch | None = None,
    brief: bool = False,
    guard: tuple[int, int] | None = None,
) -> str:
    """Write the module of an entry; ``guard`` are the addresses of a check and of its data."""
    t = Text()
    arguments, results, into = request.arguments, request.results, request.into
    traced = sum(a.traced for a in arguments)
    table = traced + (len(batch.sizes) if batch else 0)
    t.line(f"%in = alloca [{max(table, 1)} x ptr], align 8")
    t.line(f"%out = alloca [{max(len(results), 1)} x ptr], align 8")
    t.need(t.value(f"icmp eq i64 %nargs, {len(arguments) + into * len(results)}"))
    ranges = _take_arguments(t, arguments)
    if guard is not None:
        check, data = guard
        unchanged = t.call("i32", check, f"ptr {literal(data)}")
        t.need(t.value(f"icmp ne i32 {unchanged}, 0"))
    if batch is not None:
        t.need(t.value(f"icmp sle i64 {t.instances}, {batch.limit}"))
    made: list[str] = []
    if into:
        _take_results(t, results, len(arguments), ranges)
    else:
        made = make_results(t, results)
    good = t.value(f"icmp eq i32 {_run(t, kernel, traced, batch, brief)}, 0")
    # A kernel that failed is run again on the slow path, which reports why.
    t.line(f"br i1 {good}, label %wrap, label %undo")
    t.lines.append("undo:")
    for result, obj in zip(results, made):
        if is_array(t, result):
            t.call("void", address("Py_DecRef"), f"ptr {obj}")
    t.line("br label %other")
    t.lines.append("wrap:")
    if into:
        _give_back(t, literal(id(None)))
    else:
        return_results(t, request.form, results, made)
        drops(t, results, made)
    t.lines.append("other:")
    _give_back(t, literal(id(NotImplemented)))
    body = "\n".join(t.lines)
    return (
        f'target triple = "{host_target(None).triple}"\n'
        + "\n".join(t.head)
        + f"\ndefine ptr @{NAME}(ptr %self, ptr %args, i64 %nargs) {{\nentry:\n{body}\n}}\n"
    )
