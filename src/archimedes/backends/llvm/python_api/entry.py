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

from archimedes.backends.interrupts import raise_kept
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.python_api import c_api
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.backends.protocol import (
    Argument,
    ArrayType,
    EntryRequest,
    Form,
    Known,
    Leaf,
    Struct,
    Tuple,
)
from archimedes.graph.dtypes import DTYPES, I64

NAME = "arc_python"
#: Offsets into struct Py_buffer, which is public, and its size.
BUFFER, OBJECT, NDIM, FORMAT, SHAPE, SIZE = 0, 8, 36, 40, 48, 80
#: PyBUF_ND | PyBUF_FORMAT (C-contiguous, with shape and format), PyBUF_WRITABLE.
FORMATTED, WRITABLE = 0x8 | 0x4, 0x1

#: Positions in NumPy's C API table, fixed by its ABI.
_NEW_FROM_DESCR, _SCALAR, _SCALAR_AS_CTYPE, _GET_POINTER = 94, 60, 62, 160


# ---- lines ---------------------------------------------------------------------------------------


def _literal(value: int) -> str:
    """Return an address as a literal."""
    return f"inttoptr (i64 {value} to ptr)"


def pointer_to(obj: object) -> str:
    """Return the pointer to an object as a literal; the entry must own the object."""
    return _literal(c_api.object_pointer(obj))


class Text:
    """Collects the lines of the function."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        #: Buffer views that are still free.
        self.views: list[str] = []
        #: The number of instances, once a batched argument has told it.
        self.instances = ""

    def value(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def line(self, text: str) -> None:
        """Append an instruction without result."""
        self.lines.append("  " + text)

    def slot(self, size: int) -> str:
        """Reserve so many bytes on the stack and return their address."""
        return self.value(f"alloca [{size} x i8], align 8")

    def offset(self, base: str, count: int | str) -> str:
        """Return the address that is so many bytes behind another."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {count}")

    def at(self, base: str, offset: int, kind: str) -> str:
        """Load a value that lies so many bytes behind an address."""
        align = 4 if kind == "i32" else 8
        return self.value(f"load {kind}, ptr {self.offset(base, offset)}, align {align}")

    def put(self, table: str, k: int, pointer: str) -> None:
        """Store a pointer as entry ``k`` of a table."""
        self.line(f"store ptr {pointer}, ptr {self.offset(table, 8 * k)}, align 8")

    def need(self, test: str) -> None:
        """Leave for the slow path unless ``test`` holds."""
        self.count += 1
        label = f"ok{self.count}"
        self.line(f"br i1 {test}, label %{label}, label %other")
        self.lines.append(f"{label}:")

    def unless(self, test: str, label: str) -> None:
        """Go to a label if ``test`` holds."""
        self.count += 1
        self.line(f"br i1 {test}, label %{label}, label %go{self.count}")
        self.lines.append(f"go{self.count}:")

    def make(self, kind: str, function: int | str, arguments: str, label: str = "failed") -> str:
        """Call a function that returns a new object; go to a label if there is none."""
        obj = self.call(kind, function, arguments)
        self.unless(self.value(f"icmp eq ptr {obj}, null"), label)
        return obj

    def is_object(self, where: str, obj: object) -> None:
        """Leave for the slow path unless a pointer is that of an object."""
        self.need(self.value(f"icmp eq ptr {where}, {pointer_to(obj)}"))

    def constant(self, kind: str, values: Sequence[int]) -> str:
        """Add a constant array to the module and return its name."""
        name = f"@c{len(self.head)}"
        items = ", ".join(f"{kind} {v}" for v in values)
        self.head.append(f"{name} = private constant [{len(values)} x {kind}] [{items}]")
        return name

    def zeros(self, count: int) -> str:
        """Return the address of so many zeros of 64 bits."""
        return self.constant("i64", [0] * max(count, 1))

    def call(self, kind: str, function: int | str, arguments: str) -> str:
        """Call a function, by address or by its name in CPython; return the name of its result."""
        if isinstance(function, str):
            function = c_api.address(function)
        text = f"call {kind} {_literal(function)}({arguments})"
        if kind == "void":
            self.line(text)
            return ""
        return self.value(text)


# ---- arguments -----------------------------------------------------------------------------------


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
    return ord(np.empty(0, dtype).data.format)


def _is_instance(t: Text, obj: str, cls: type) -> None:
    """Leave for the slow path unless an object is of this very class."""
    of_object = t.call("ptr", "PyObject_Type", f"ptr {obj}")
    # The class lives as long as the object.
    t.call("void", "Py_DecRef", f"ptr {of_object}")
    t.is_object(of_object, cls)


def _array_pointer(
    t: Text, obj: str, leaf: Argument | ArrayType, batched: bool, writable: bool = False
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
        t.call("void", c_api.numpy_api(_SCALAR_AS_CTYPE), f"ptr {obj}, ptr {location}")
    return location


def _int_pointer(t: Text, obj: str) -> str:
    _is_instance(t, obj, int)
    location = t.slot(16)
    overflow = t.offset(location, 8)
    number = t.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {obj}, ptr {overflow}")
    t.need(t.value(f"icmp eq i32 {t.value(f'load i32, ptr {overflow}')}, 0"))
    t.line(f"store i64 {number}, ptr {location}, align 8")
    return location


def _bytes(t: Text, leaf: Argument | ArrayType, batched: bool) -> str:
    """Bytes of an array leaf, a constant or a value."""
    size = math.prod(leaf.shape) * DTYPES[leaf.code].itemsize
    return t.value(f"mul i64 {t.instances}, {size}") if batched else str(size)


def _take_arguments(t: Text, arguments: Sequence[Argument]) -> list[tuple[str, str]]:
    """Check all arguments and fill the table of input pointers; return where arrays lie."""
    ranges = []
    slot = 0
    for k, argument in enumerate(arguments):
        obj = t.at("%args", 8 * k, "ptr")
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
    t: Text, results: Sequence[ArrayType], first: int, taken: list[tuple[str, str]]
) -> None:
    """Fill the table of output pointers from the caller's arrays, which overlap no other array."""
    batched = bool(t.instances)
    for k, result in enumerate(results):
        obj = t.at("%args", 8 * (first + k), "ptr")
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


# ---- results -------------------------------------------------------------------------------------


#: What a class is called with.
_NO_ARGUMENTS: tuple[()] = ()


def is_array(t: Text, result: ArrayType) -> bool:
    """Return whether a leaf is an array, not a scalar."""
    return bool(result.shape or t.instances)


def _dimensions(t: Text, shape: tuple[int, ...]) -> str:
    """Address of the sizes of a result's axes."""
    if not t.instances:
        return t.constant("i64", shape)
    location = t.value(f"alloca [{len(shape) + 1} x i64], align 8")
    for axis, size in enumerate((t.instances, *shape)):
        where = t.value(f"getelementptr i64, ptr {location}, i64 {axis}")
        t.line(f"store i64 {size}, ptr {where}, align 8")
    return location


def _array(t: Text, result: ArrayType, label: str) -> str:
    """Make an array and return its name; go to a label if there is no memory."""
    sizes = _dimensions(t, result.shape)
    dtype = pointer_to(DTYPES[result.code])
    axes = len(result.shape) + bool(t.instances)
    arguments = (
        f"ptr {pointer_to(np.ndarray)}, ptr {dtype}, i32 {axes}, ptr {sizes}, "
        "ptr null, ptr null, i32 0, ptr null"
    )
    types = "ptr, ptr, i32, ptr, ptr, ptr, i32, ptr"
    # It takes over a reference to the dtype.
    t.call("void", "Py_IncRef", f"ptr {dtype}")
    return t.make(f"ptr ({types})", c_api.numpy_api(_NEW_FROM_DESCR), arguments, label)


def make_results(t: Text, results: Sequence[ArrayType]) -> list[str]:
    """Make the result arrays (scalars come later) and fill the table of output pointers."""
    objects = []
    for k, result in enumerate(results):
        where = t.offset("%out", 8 * k)
        if not is_array(t, result):
            location = t.value("alloca i64, align 8")
            t.line(f"store ptr {location}, ptr {where}, align 8")
            objects.append(location)
            continue
        array = _array(t, result, f"drop{len(objects)}")
        axes = len(result.shape) + bool(t.instances)
        numbers = t.call("ptr", c_api.numpy_api(_GET_POINTER), f"ptr {array}, ptr {t.zeros(axes)}")
        t.line(f"store ptr {numbers}, ptr {where}, align 8")
        objects.append(array)
    return objects


def release_buffers(t: Text, views: Sequence[str]) -> None:
    """Release the buffers of the arrays whose memory was used."""
    for view in views:
        t.call("void", "PyBuffer_Release", f"ptr {view}")


def drops(t: Text, results: Sequence[ArrayType], objects: list[str], views: Sequence[str]) -> None:
    """Write the blocks that release the arrays made so far, last first, and report the error."""
    for k in reversed(range(len(results))):
        t.lines.append(f"drop{k}:")
        if k == 0:
            release_buffers(t, views)
            t.line("br label %failed")
        else:
            if is_array(t, results[k - 1]):
                t.call("void", "Py_DecRef", f"ptr {objects[k - 1]}")
            t.line(f"br label %drop{k - 1}")
    t.lines.append("failed:")
    t.line("ret ptr null")


def return_results(t: Text, form: Form, results: Sequence[ArrayType], objects: list[str]) -> None:
    """Return the results in their form, a new reference.

    Where there is no memory for that, what was made before is lost with the rest.
    """
    leaves = [
        obj if is_array(t, result) else _scalar(t, result, obj)
        for result, obj in zip(results, objects)
    ]
    obj = _build(t, form, leaves)
    if isinstance(form, Known):
        t.call("void", "Py_IncRef", f"ptr {obj}")
    t.line(f"ret ptr {obj}")


def _scalar(t: Text, result: ArrayType, location: str) -> str:
    """Make a NumPy scalar of the value in a slot."""
    arguments = f"ptr {location}, ptr {pointer_to(DTYPES[result.code])}, ptr null"
    return t.make("ptr (ptr, ptr, ptr)", c_api.numpy_api(_SCALAR), arguments)


def _build(t: Text, form: Form, leaves: Sequence[str]) -> str:
    """Write what makes an object of a form and return its name."""
    if isinstance(form, Leaf):
        return leaves[form.place]
    if isinstance(form, Known):
        return pointer_to(form.value)
    parts = [_build(t, part, leaves) for part in form.parts]
    return _tuple(t, form, parts) if isinstance(form, Tuple) else _struct(t, form, parts)


def _tuple(t: Text, form: Tuple, parts: Sequence[str]) -> str:
    pack = t.make("ptr", "PyTuple_New", f"i64 {len(parts)}")
    for k, (part, obj) in enumerate(zip(form.parts, parts)):
        if isinstance(part, Known):
            t.call("void", "Py_IncRef", f"ptr {obj}")
        # It takes over the reference; a new tuple takes every item.
        t.call("i32", "PyTuple_SetItem", f"ptr {pack}, i64 {k}, ptr {obj}")
    return pack


def _struct(t: Text, form: Struct, parts: Sequence[str]) -> str:
    arguments = f"ptr {pointer_to(form.cls)}, ptr {pointer_to(_NO_ARGUMENTS)}, ptr null"
    struct = t.make("ptr", c_api.object_new(), arguments)
    for name, part, obj in zip(form.fields, form.parts, parts):
        arguments = f"ptr {struct}, ptr {pointer_to(name)}, ptr {obj}"
        status = t.call("i32", "PyObject_GenericSetAttr", arguments)
        t.unless(t.value(f"icmp slt i32 {status}, 0"), "failed")
        if not isinstance(part, Known):
            t.call("void", "Py_DecRef", f"ptr {obj}")
    return struct


# ---- the whole -----------------------------------------------------------------------------------


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
    return c_api.make_builtin(
        code.address, _METH_FASTCALL, (keep, code, request.arguments, request.form)
    )
