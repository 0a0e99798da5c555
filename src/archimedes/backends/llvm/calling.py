"""A native entry point for Python: leaves in, leaves out, checked and without a detour.

For one kernel and one kind of arguments a small function is generated that CPython calls
directly (``METH_FASTCALL``). It checks that each argument is what the kernel was made for (type,
dtype, shape, contiguity), takes the address of its numbers where they lie, makes the result
arrays, releases the GIL, runs the kernel and returns the results. Arguments of any other form
make it return ``NotImplemented``: the caller then converts them and calls again, or records anew.

Offsets are those of CPython's and NumPy's public C structures on 64-bit builds: object header 16
bytes; ``PyArrayObject``: data 16, nd 24, dimensions 32, descr 56, flags 64.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.llvm.machine import NativeCode, host_target
from archimedes.graph.dtypes import DTYPES, I64

__all__ = ["Argument", "Result", "entry_text", "make_entry", "supported"]

NAME = "arc_python"

#: C_CONTIGUOUS | ALIGNED
_PLAIN_MEMORY = 0x1 | 0x100
_METH_FASTCALL = 0x0080
# Positions in NumPy's C API table, fixed by its ABI.
_NEW, _SCALAR = 93, 60
_TYPE_NUMBERS = {"float64": 12, "float32": 11, "int64": np.dtype(np.int64).num, "bool": 0}


class Argument(NamedTuple):
    """An argument leaf: dtype code (-1: must be this very object), shape, Python number or not."""

    code: int
    shape: tuple[int, ...] = ()
    weak: bool = False
    value: Any = None


class Result(NamedTuple):
    """A result leaf: dtype code and shape."""

    code: int
    shape: tuple[int, ...] = ()


def supported() -> bool:
    """Tell whether this interpreter lays out objects as assumed."""
    free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not free_threaded
        and not hasattr(sys, "gettotalrefcount")
    )


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


def _array_pointer(t: _Text, obj: str, argument: Argument) -> str:
    t.is_object(t.at(obj, 8, "ptr"), id(np.ndarray))
    t.is_object(t.at(obj, 56, "ptr"), id(DTYPES[argument.code]))
    flags = t.value(f"and i32 {t.at(obj, 64, 'i32')}, {_PLAIN_MEMORY}")
    t.need(t.value(f"icmp eq i32 {flags}, {_PLAIN_MEMORY}"))
    t.need(t.value(f"icmp eq i32 {t.at(obj, 24, 'i32')}, {len(argument.shape)}"))
    sizes = t.at(obj, 32, "ptr")
    for axis, size in enumerate(argument.shape):
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


def _take_arguments(t: _Text, arguments: Sequence[Argument]) -> None:
    """Check all arguments and fill the table of input pointers."""
    t.need(t.value(f"icmp eq i64 %nargs, {len(arguments)}"))
    slot = 0
    for k, argument in enumerate(arguments):
        obj = t.at("%args", 8 * k, "ptr")
        if argument.code < 0:
            t.is_object(obj, id(argument.value))
            continue
        if argument.shape:
            pointer = _array_pointer(t, obj, argument)
        elif argument.weak and argument.code == I64:
            pointer = _int_pointer(t, obj)
        else:
            pointer = _number_pointer(t, obj, argument)
        where = t.value(f"getelementptr i8, ptr %in, i64 {8 * slot}")
        t.line(f"store ptr {pointer}, ptr {where}, align 8")
        slot += 1


def _make_results(t: _Text, results: Sequence[Result]) -> list[str]:
    """Make the result arrays (scalars come later) and fill the table of output pointers."""
    made = []
    for k, result in enumerate(results):
        where = t.value(f"getelementptr i8, ptr %out, i64 {8 * k}")
        if not result.shape:
            place = t.value("alloca i64, align 8")
            t.line(f"store ptr {place}, ptr {where}, align 8")
            made.append(place)
            continue
        sizes = t.constant("i64", result.shape)
        number = _TYPE_NUMBERS[DTYPES[result.code].name]
        arguments = (
            f"ptr inttoptr (i64 {id(np.ndarray)} to ptr), i32 {len(result.shape)}, ptr {sizes}, "
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
            if results[k - 1].shape:
                t.call("void", _address("Py_DecRef"), f"ptr {made[k - 1]}")
            t.line(f"br label %drop{k - 1}")


def entry_text(kernel: int, arguments: Sequence[Argument], results: Sequence[Result]) -> str:
    """Write the module of an entry."""
    t = _Text()
    traced = sum(a.code >= 0 for a in arguments)
    t.line(f"%in = alloca [{max(traced, 1)} x ptr], align 8")
    t.line(f"%out = alloca [{max(len(results), 1)} x ptr], align 8")
    _take_arguments(t, arguments)
    made = _make_results(t, results)
    state = t.call("ptr", _address("PyEval_SaveThread"), "")
    status = t.value(f"call i32 inttoptr (i64 {kernel} to ptr)(ptr %in, ptr %out)")
    t.call("void", _address("PyEval_RestoreThread"), f"ptr {state}")
    good = t.value(f"icmp eq i32 {status}, 0")
    # A kernel that failed is run again on the slow path, which reports why.
    t.line(f"br i1 {good}, label %wrap, label %undo")
    t.lines.append("undo:")
    for result, obj in zip(results, made):
        if result.shape:
            t.call("void", _address("Py_DecRef"), f"ptr {obj}")
    t.line("br label %other")
    t.lines.append("wrap:")
    objects = [
        obj if result.shape else _scalar(t, result, obj) for result, obj in zip(results, made)
    ]
    pack = t.call("ptr", _address("PyTuple_New"), f"i64 {len(objects)}")
    for k, obj in enumerate(objects):
        where = t.value(f"getelementptr i8, ptr {pack}, i64 {24 + 8 * k}")
        t.line(f"store ptr {obj}, ptr {where}, align 8")
    t.line(f"ret ptr {pack}")
    _drops(t, results, made)
    t.lines.append("other:")
    missing = f"inttoptr (i64 {id(NotImplemented)} to ptr)"
    t.call("void", _address("Py_IncRef"), f"ptr {missing}")
    t.line(f"ret ptr {missing}")
    body = "\n".join(t.lines)
    return (
        f'target triple = "{host_target(None).triple}"\n'
        + "\n".join(t.head)
        + f"\ndefine ptr @{NAME}(ptr %self, ptr %args, i64 %nargs) {{\nentry:\n{body}\n}}\n"
    )


def _scalar(t: _Text, result: Result, place: str) -> str:
    """Make a NumPy scalar of the value in a slot."""
    arguments = f"ptr {place}, ptr inttoptr (i64 {id(DTYPES[result.code])} to ptr), ptr null"
    return t.value(
        f"call ptr (ptr, ptr, ptr) inttoptr (i64 {_numpy_api(_SCALAR)} to ptr)({arguments})"
    )


def make_entry(
    kernel: int, arguments: Sequence[Argument], results: Sequence[Result], keep: Any
) -> Callable[..., Any]:
    """Make the builtin ``f(*leaves) -> tuple of result leaves, or NotImplemented``.

    ``kernel`` is the address of a scalar kernel, ``keep`` what holds its code. The builtin owns
    all it needs (its ``__self__``): code, definition, and the objects it compares by address.
    CPython drops that only after its last look at the definition, in whatever order a garbage
    collection takes things apart.
    """
    code = NativeCode(host_target(None).compile(entry_text(kernel, arguments, results)), NAME, {})
    # struct PyMethodDef {name, function, flags, doc}, in an array: the garbage collector frees
    # the memory of a ctypes structure while others still point to it, an array's it does not.
    label = np.frombuffer(b"kernel\0", np.uint8)
    definition = np.array([label.ctypes.data, code.address, _METH_FASTCALL, 0], np.uint64)
    owned = (keep, code, label, definition, tuple(arguments))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(definition.ctypes.data, owned, None)
