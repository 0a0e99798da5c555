"""The text of a native entry point: checks of the arguments, results, and the call.

Offsets are those of CPython's and NumPy's public C structures on 64-bit builds: object header 16
bytes; ``PyArrayObject``: data 16, nd 24, dimensions 32, descr 56, flags 64.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.llvm.machine import host_target
from archimedes.graph.dtypes import DTYPES, I64

__all__ = ["NAME", "Argument", "Batch", "Result", "entry_text"]

NAME = "arc_python"

#: C_CONTIGUOUS | ALIGNED, and WRITEABLE
_PLAIN_MEMORY = 0x1 | 0x100
_WRITEABLE = 0x400
# Positions in NumPy's C API table, fixed by its ABI.
_NEW, _SCALAR = 93, 60
_TYPE_NUMBERS = {"float64": 12, "float32": 11, "int64": np.dtype(np.int64).num, "bool": 0}


class Argument(NamedTuple):
    """An argument leaf: dtype code (-1: must be this very object), shape, Python number or not.

    A batched one has an axis of instances in front of its shape.
    """

    code: int
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: Any = None
    batched: bool = False


class Result(NamedTuple):
    """A result leaf: dtype code and shape (of one instance)."""

    code: int
    shape: tuple[int, ...] = ()


class Batch(NamedTuple):
    """How an entry runs a batch: at most ``limit`` instances, in the caller's thread.

    ``shared`` is the address of the kernel of what the instances share (0: none), whose results
    are arrays of ``sizes`` bytes, given to the batch kernel behind its inputs.
    """

    limit: int
    shared: int = 0
    sizes: tuple[int, ...] = ()


def _numpy_api(index: int) -> int:
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return int(table[index])


def _address(name: str) -> int:
    return int(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0)


class _Text:
    """Collects the lines of the function."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        #: The number of instances, once a batched argument has told it.
        self.instances = ""

    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def at(self, base: str, offset: int, kind: str) -> str:
        where = self.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.value(f"load {kind}, ptr {where}, align {4 if kind == 'i32' else 8}")

    def need(self, test: str) -> None:
        """Leave for the slow path unless ``test`` holds."""
        self.count += 1
        label = f"ok{self.count}"
        self.line(f"br i1 {test}, label %{label}, label %other")
        self.lines.append(f"{label}:")

    def is_object(self, pointer: str, address: int) -> None:
        self.need(self.value(f"icmp eq ptr {pointer}, inttoptr (i64 {address} to ptr)"))

    def constant(self, kind: str, values: Sequence[int]) -> str:
        name = f"@c{len(self.head)}"
        items = ", ".join(f"{kind} {v}" for v in values)
        self.head.append(f"{name} = private constant [{len(values)} x {kind}] [{items}]")
        return name

    def call(self, kind: str, address: int, arguments: str) -> str:
        text = f"call {kind} inttoptr (i64 {address} to ptr)({arguments})"
        if kind == "void":
            self.line(text)
            return ""
        return self.value(text)


def _array_pointer(
    t: _Text, obj: str, code: int, shape: tuple[int, ...], batched: bool, flags: int
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


def _number_pointer(t: _Text, obj: str, argument: Argument) -> str:
    """Address of the value inside a Python float or a NumPy scalar."""
    cls = float if argument.weak else DTYPES[argument.code].type
    t.is_object(t.at(obj, 8, "ptr"), id(cls))
    return t.value(f"getelementptr i8, ptr {obj}, i64 16")


def _int_pointer(t: _Text, obj: str) -> str:
    t.is_object(t.at(obj, 8, "ptr"), id(int))
    place = t.value("alloca { i64, i32 }, align 8")
    overflow = t.value(f"getelementptr i8, ptr {place}, i64 8")
    read = _address("PyLong_AsLongLongAndOverflow")
    number = t.call("i64", read, f"ptr {obj}, ptr {overflow}")
    t.need(t.value(f"icmp eq i32 {t.value(f'load i32, ptr {overflow}')}, 0"))
    t.line(f"store i64 {number}, ptr {place}, align 8")
    return place


def _object(t: _Text, k: int) -> str:
    return t.at("%args", 8 * k, "ptr")


def _bytes(t: _Text, leaf: Argument | Result, batched: bool) -> str:
    """Bytes of an array leaf, a constant or a value."""
    size = math.prod(leaf.shape) * DTYPES[leaf.code].itemsize
    return t.value(f"mul i64 {t.instances}, {size}") if batched else str(size)


def _take_arguments(t: _Text, arguments: Sequence[Argument]) -> list[tuple[str, str]]:
    """Check all arguments and fill the table of input pointers; return where arrays lie."""
    ranges = []
    slot = 0
    for k, argument in enumerate(arguments):
        obj = _object(t, k)
        if argument.code < 0:
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
    t: _Text, results: Sequence[Result], first: int, taken: list[tuple[str, str]]
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


def _dimensions(t: _Text, shape: tuple[int, ...]) -> str:
    """Address of the sizes of a result's axes."""
    if not t.instances:
        return t.constant("i64", shape)
    place = t.value(f"alloca [{len(shape) + 1} x i64], align 8")
    for axis, size in enumerate((t.instances, *shape)):
        where = t.value(f"getelementptr i64, ptr {place}, i64 {axis}")
        t.line(f"store i64 {size}, ptr {where}, align 8")
    return place


def _is_array(t: _Text, result: Result) -> bool:
    return bool(result.shape or t.instances)


def _make_results(t: _Text, results: Sequence[Result]) -> list[str]:
    """Make the result arrays (scalars come later) and fill the table of output pointers."""
    made = []
    for k, result in enumerate(results):
        where = t.value(f"getelementptr i8, ptr %out, i64 {8 * k}")
        if not _is_array(t, result):
            place = t.value("alloca i64, align 8")
            t.line(f"store ptr {place}, ptr {where}, align 8")
            made.append(place)
            continue
        sizes = _dimensions(t, result.shape)
        number = _TYPE_NUMBERS[DTYPES[result.code].name]
        axes = len(result.shape) + bool(t.instances)
        arguments = (
            f"ptr inttoptr (i64 {id(np.ndarray)} to ptr), i32 {axes}, ptr {sizes}, "
            f"i32 {number}, ptr null, ptr null, i32 0, i32 0, ptr null"
        )
        types = "ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr"
        array = t.value(f"call ptr ({types}) inttoptr (i64 {_numpy_api(_NEW)} to ptr)({arguments})")
        failed = t.value(f"icmp eq ptr {array}, null")
        t.count += 1
        t.line(f"br i1 {failed}, label %drop{len(made)}, label %made{t.count}")
        t.lines.append(f"made{t.count}:")
        t.line(f"store ptr {t.at(array, 16, 'ptr')}, ptr {where}, align 8")
        made.append(array)
    return made


def _drops(t: _Text, results: Sequence[Result], made: list[str]) -> None:
    """Blocks that give back the arrays made so far, last first, and report the error."""
    for k in reversed(range(len(results))):
        t.lines.append(f"drop{k}:")
        if k == 0:
            t.line("ret ptr null")
        else:
            if _is_array(t, results[k - 1]):
                t.call("void", _address("Py_DecRef"), f"ptr {made[k - 1]}")
            t.line(f"br label %drop{k - 1}")


def _run(t: _Text, kernel: int, inputs: int, batch: Batch | None) -> str:
    """Run the kernel without the GIL and return its status."""
    state = t.call("ptr", _address("PyEval_SaveThread"), "")
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
    t.call("void", _address("PyEval_RestoreThread"), f"ptr {state}")
    return status


def _give_back(t: _Text, obj: str) -> None:
    t.call("void", _address("Py_IncRef"), f"ptr {obj}")
    t.line(f"ret ptr {obj}")


def entry_text(
    kernel: int,
    arguments: Sequence[Argument],
    results: Sequence[Result],
    batch: Batch | None = None,
    into: bool = False,
) -> str:
    """Write the module of an entry."""
    t = _Text()
    traced = sum(a.code >= 0 for a in arguments)
    table = traced + (len(batch.sizes) if batch else 0)
    t.line(f"%in = alloca [{max(table, 1)} x ptr], align 8")
    t.line(f"%out = alloca [{max(len(results), 1)} x ptr], align 8")
    t.need(t.value(f"icmp eq i64 %nargs, {len(arguments) + into * len(results)}"))
    ranges = _take_arguments(t, arguments)
    if batch is not None:
        t.need(t.value(f"icmp sle i64 {t.instances}, {batch.limit}"))
    made: list[str] = []
    if into:
        _take_results(t, results, len(arguments), ranges)
    else:
        made = _make_results(t, results)
    good = t.value(f"icmp eq i32 {_run(t, kernel, traced, batch)}, 0")
    # A kernel that failed is run again on the slow path, which reports why.
    t.line(f"br i1 {good}, label %wrap, label %undo")
    t.lines.append("undo:")
    for result, obj in zip(results, made):
        if _is_array(t, result):
            t.call("void", _address("Py_DecRef"), f"ptr {obj}")
    t.line("br label %other")
    t.lines.append("wrap:")
    if into:
        _give_back(t, f"inttoptr (i64 {id(None)} to ptr)")
    else:
        _pack(t, results, made)
        _drops(t, results, made)
    t.lines.append("other:")
    _give_back(t, f"inttoptr (i64 {id(NotImplemented)} to ptr)")
    body = "\n".join(t.lines)
    return (
        f'target triple = "{host_target(None).triple}"\n'
        + "\n".join(t.head)
        + f"\ndefine ptr @{NAME}(ptr %self, ptr %args, i64 %nargs) {{\nentry:\n{body}\n}}\n"
    )


def _pack(t: _Text, results: Sequence[Result], made: list[str]) -> None:
    """Return the results as a tuple."""
    objects = [
        obj if _is_array(t, result) else _scalar(t, result, obj)
        for result, obj in zip(results, made)
    ]
    pack = t.call("ptr", _address("PyTuple_New"), f"i64 {len(objects)}")
    for k, obj in enumerate(objects):
        where = t.value(f"getelementptr i8, ptr {pack}, i64 {24 + 8 * k}")
        t.line(f"store ptr {obj}, ptr {where}, align 8")
    t.line(f"ret ptr {pack}")


def _scalar(t: _Text, result: Result, place: str) -> str:
    """Make a NumPy scalar of the value in a slot."""
    arguments = f"ptr {place}, ptr inttoptr (i64 {id(DTYPES[result.code])} to ptr), ptr null"
    return t.value(
        f"call ptr (ptr, ptr, ptr) inttoptr (i64 {_numpy_api(_SCALAR)} to ptr)({arguments})"
    )
