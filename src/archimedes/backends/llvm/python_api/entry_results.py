"""The text of a native entry point: its lines, and the results that it builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.backends.entry_forms import Form, Known, Leaf, Result, Struct, Tuple
from archimedes.backends.llvm.python_api.c_api import address, numpy_api, object_new, object_pointer
from archimedes.graph.dtypes import DTYPES


def _literal(value: int) -> str:
    """Return an address as a literal."""
    return f"inttoptr (i64 {value} to ptr)"


def pointer_to(obj: object) -> str:
    """Return the pointer to an object as a literal; the entry must own the object."""
    return _literal(object_pointer(obj))


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

    def unless_null(self, obj: str, label: str) -> None:
        """Go to a label if there is no object."""
        self.unless(self.value(f"icmp eq ptr {obj}, null"), label)

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
            function = address(function)
        text = f"call {kind} {_literal(function)}({arguments})"
        if kind == "void":
            self.line(text)
            return ""
        return self.value(text)


# Positions in NumPy's C API table, fixed by its ABI.
_NEW_FROM_DESCR, _SCALAR, _GET_POINTER = 94, 60, 160
#: What a class is called with.
_NO_ARGUMENTS: tuple[()] = ()


def is_array(t: Text, result: Result) -> bool:
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


def _array(t: Text, result: Result) -> str:
    """Make an array; return its name."""
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
    return t.call(f"ptr ({types})", numpy_api(_NEW_FROM_DESCR), arguments)


def make_results(t: Text, results: Sequence[Result]) -> list[str]:
    """Make the result arrays (scalars come later) and fill the table of output pointers."""
    objects = []
    for k, result in enumerate(results):
        where = t.offset("%out", 8 * k)
        if not is_array(t, result):
            location = t.value("alloca i64, align 8")
            t.line(f"store ptr {location}, ptr {where}, align 8")
            objects.append(location)
            continue
        array = _array(t, result)
        t.unless_null(array, f"drop{len(objects)}")
        axes = len(result.shape) + bool(t.instances)
        numbers = t.call("ptr", numpy_api(_GET_POINTER), f"ptr {array}, ptr {t.zeros(axes)}")
        t.line(f"store ptr {numbers}, ptr {where}, align 8")
        objects.append(array)
    return objects


def release_buffers(t: Text, views: Sequence[str]) -> None:
    """Release the buffers of the arrays whose memory was used."""
    for view in views:
        t.call("void", "PyBuffer_Release", f"ptr {view}")


def drops(t: Text, results: Sequence[Result], objects: list[str], views: Sequence[str]) -> None:
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


def return_results(t: Text, form: Form, results: Sequence[Result], objects: list[str]) -> None:
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


def _scalar(t: Text, result: Result, location: str) -> str:
    """Make a NumPy scalar of the value in a slot."""
    arguments = f"ptr {location}, ptr {pointer_to(DTYPES[result.code])}, ptr null"
    scalar = t.call("ptr (ptr, ptr, ptr)", numpy_api(_SCALAR), arguments)
    t.unless_null(scalar, "failed")
    return scalar


def _build(t: Text, form: Form, leaves: Sequence[str]) -> str:
    """Write what makes an object of a form and return its name."""
    return _BUILD[type(form)](t, form, leaves)


def _tuple(t: Text, form: Tuple, leaves: Sequence[str]) -> str:
    parts = [_build(t, part, leaves) for part in form.parts]
    pack = t.call("ptr", "PyTuple_New", f"i64 {len(parts)}")
    t.unless_null(pack, "failed")
    for k, (part, obj) in enumerate(zip(form.parts, parts)):
        if isinstance(part, Known):
            t.call("void", "Py_IncRef", f"ptr {obj}")
        # It takes over the reference; a new tuple takes every item.
        t.call("i32", "PyTuple_SetItem", f"ptr {pack}, i64 {k}, ptr {obj}")
    return pack


def _struct(t: Text, form: Struct, leaves: Sequence[str]) -> str:
    parts = [_build(t, part, leaves) for part in form.parts]
    arguments = f"ptr {pointer_to(form.cls)}, ptr {pointer_to(_NO_ARGUMENTS)}, ptr null"
    struct = t.call("ptr", object_new(), arguments)
    t.unless_null(struct, "failed")
    for name, part, obj in zip(form.fields, form.parts, parts):
        arguments = f"ptr {struct}, ptr {pointer_to(name)}, ptr {obj}"
        status = t.call("i32", "PyObject_GenericSetAttr", arguments)
        t.unless(t.value(f"icmp slt i32 {status}, 0"), "failed")
        if not isinstance(part, Known):
            t.call("void", "Py_DecRef", f"ptr {obj}")
    return struct


_BUILD: dict[type, Callable[[Text, Any, Sequence[str]], str]] = {
    Leaf: lambda t, form, leaves: leaves[form.place],
    Known: lambda t, form, leaves: pointer_to(form.value),
    Tuple: _tuple,
    Struct: _struct,
}
