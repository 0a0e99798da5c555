"""New arrays for results, made by native code that fills in NumPy's public structure itself.

`PyArray_NewFromDescr` looks up which memory to take, works out strides and flags of the shape, and
has the C library find memory: together as long as a short kernel. Here shape, strides and flags
are known when an entry is made, and memory is kept from results before (`result_memory.py`). An
array says who frees its numbers (NEP 49): ours name functions that keep them. In every other
respect they are arrays as `np.empty` makes them.

Words of `PyArrayObject`: reference count, class, data, axes, sizes (strides follow them in the same
memory, from `PyMem_RawMalloc` as `PyDimMem_NEW` has it), strides, base, dtype, flags, weak
references, exported buffers, memory handler. Who frees the sizes cannot be seen from outside, so
that only releases of NumPy count on which this was tested; on these one is tried before any is
made so. On all others results are made by `PyArray_NewFromDescr`.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_entry.common_code import common_code
from archimedes.backends.llvm.python_entry.result_memory import memory_text
from archimedes.backends.llvm.python_entry.text_lines import Text, address
from archimedes.graph.dtypes import DTYPES

__all__ = ["LARGEST", "new_array", "quick_arrays"]

#: Bytes of results that are made this way; NumPy has further means for more.
LARGEST = 1 << 20
#: Releases of NumPy whose arrays are known (major, minor): the first and the last.
RELEASES = ((2, 0), (2, 5))
_NAME = "arc_arrays"
_HANDLER = b"archimedes"
#: NumPy's name of what holds a memory handler.
_CAPSULE = b"mem_handler"
#: What numbers of arrays are among what `tracemalloc` accounts for.
_DOMAIN = np.lib.tracemalloc_domain
#: Bytes of a PyDataMem_Handler, behind which the maker of arrays is named; of an array.
_MAKER, _ARRAY = 168, 96
#: A form: bytes, axes, flags, dtype, handler; sizes and strides.
_TEXT = """
@ndarray = external global i8
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @_PyObject_New(ptr)
declare void @Py_IncRef(ptr)
declare i32 @PyTraceMalloc_Track(i32, i64, i64)
declare ptr @PyErr_NoMemory()
@arc_arrays = constant {{ [127 x i8], i8, ptr, ptr, ptr, ptr, ptr, ptr }} {{
  [127 x i8] c"{name}", i8 1, ptr null, ptr @allocate, ptr @clear, ptr @resize, ptr @free,
  ptr @make }}, align 8

define internal ptr @make(ptr %form) {{
entry:
  %bytes = load i64, ptr %form, align 8
  %f1 = getelementptr i64, ptr %form, i64 1
  %axes = load i64, ptr %f1, align 8
  %f2 = getelementptr i64, ptr %form, i64 2
  %flags = load i64, ptr %f2, align 8
  %f3 = getelementptr i64, ptr %form, i64 3
  %dtype = load ptr, ptr %f3, align 8
  %f4 = getelementptr i64, ptr %form, i64 4
  %handler = load ptr, ptr %f4, align 8
  %f5 = getelementptr i64, ptr %form, i64 5
  %words = shl i64 %axes, 1
  %long = shl i64 %axes, 4
  %data = call ptr @allocate(ptr null, i64 %bytes)
  %no.data = icmp eq ptr %data, null
  br i1 %no.data, label %without, label %with.data
with.data:
  %sizes = call ptr @PyMem_RawMalloc(i64 %long)
  %no.sizes = icmp eq ptr %sizes, null
  br i1 %no.sizes, label %without.sizes, label %copy
copy:
  %k = phi i64 [ 0, %with.data ], [ %k1, %copy ]
  %from = getelementptr i64, ptr %f5, i64 %k
  %word = load i64, ptr %from, align 8
  %to = getelementptr i64, ptr %sizes, i64 %k
  store i64 %word, ptr %to, align 8
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %words
  br i1 %more, label %copy, label %with.sizes
with.sizes:
  %array = call ptr @_PyObject_New(ptr @ndarray)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %without.array, label %fill
fill:
  %strides = getelementptr i64, ptr %sizes, i64 %axes
  %a2 = getelementptr i64, ptr %array, i64 2
  store ptr %data, ptr %a2, align 8
  %a3 = getelementptr i64, ptr %array, i64 3
  store i64 %axes, ptr %a3, align 8
  %a4 = getelementptr i64, ptr %array, i64 4
  store ptr %sizes, ptr %a4, align 8
  %a5 = getelementptr i64, ptr %array, i64 5
  store ptr %strides, ptr %a5, align 8
  %a6 = getelementptr i64, ptr %array, i64 6
  store ptr null, ptr %a6, align 8
  %a7 = getelementptr i64, ptr %array, i64 7
  store ptr %dtype, ptr %a7, align 8
  %a8 = getelementptr i64, ptr %array, i64 8
  store i64 %flags, ptr %a8, align 8
  %a9 = getelementptr i64, ptr %array, i64 9
  store ptr null, ptr %a9, align 8
  %a10 = getelementptr i64, ptr %array, i64 10
  store ptr null, ptr %a10, align 8
  %a11 = getelementptr i64, ptr %array, i64 11
  store ptr %handler, ptr %a11, align 8
  call void @Py_IncRef(ptr %dtype)
  call void @Py_IncRef(ptr %handler)
  %place = ptrtoint ptr %data to i64
  %traced = call i32 @PyTraceMalloc_Track(i32 {domain}, i64 %place, i64 %bytes)
  ret ptr %array
without.array:
  call void @PyMem_RawFree(ptr %sizes)
  call void @free(ptr null, ptr %data, i64 %bytes)
  ret ptr null
without.sizes:
  call void @free(ptr null, ptr %data, i64 %bytes)
  br label %without
without:
  %error = call ptr @PyErr_NoMemory()
  ret ptr null
}}
"""

_lock = threading.Lock()


def new_array(t: Text, shape: tuple[int, ...], code: int) -> str:
    """Write what makes an array of this shape and dtype; return its name (null: no memory)."""
    return t.call("ptr", _code()[0], f"ptr {t.constant('i64', _form(shape, DTYPES[code]))}")


def _form(shape: tuple[int, ...], dtype: Any) -> tuple[int, ...]:
    """Return an array as the maker wants it described: as one that NumPy makes."""
    model = np.empty(shape, dtype)
    size = max(math.prod(shape), 1) * dtype.itemsize
    fixed = (size, model.ndim, model.flags.num, id(dtype), _code()[1])
    return (*fixed, *model.shape, *model.strides)


def quick_arrays() -> bool:
    """Tell whether NumPy and CPython are those that arrays can be made for this way."""
    with _lock:
        return _tried()


@functools.cache
def _code() -> tuple[int, int]:
    """Address of what makes arrays, and of the handler of their memory. Both stay for good:
    arrays outlive all else, up to the end of the interpreter."""
    functions = (
        "PyMem_RawMalloc",
        "PyMem_RawFree",
        "_PyObject_New",
        "Py_IncRef",
        "PyTraceMalloc_Track",
        "PyErr_NoMemory",
    )
    memory, imports = memory_text()
    padded = _HANDLER.decode() + r"\00" * (127 - len(_HANDLER))
    imports |= {name: address(name) for name in functions} | {"ndarray": id(np.ndarray)}
    code = common_code(memory + _TEXT.format(name=padded, domain=_DOMAIN), _NAME, imports)
    label = ctypes.create_string_buffer(_CAPSULE)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    handler = make(code.address, ctypes.addressof(label), None)
    for lasting in (code, label, handler):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
    return int(ctypes.c_uint64.from_address(code.address + _MAKER).value), id(handler)


def _words(array: np.ndarray) -> list[int]:
    """Return the words of an array, without its reference count and the places of its memory."""
    words = list((ctypes.c_uint64 * (_ARRAY // 8)).from_address(id(array)))
    sizes = list((ctypes.c_int64 * (2 * array.ndim)).from_address(words[4]))
    half = (1 << 32) - 1
    fixed = [words[1], words[3] & half, *words[6:8], words[8] & half, *words[9:11]]
    return [*fixed, words[5] - words[4], words[2] - array.ctypes.data, *sizes]


@functools.cache
def _tried() -> bool:
    """Make one, and see that it is what NumPy makes, and that NumPy frees it as it should."""
    major, minor = np.__version__.split(".")[:2]
    if not RELEASES[0] <= (int(major), int(minor)) <= RELEASES[1]:
        return False
    if np.ndarray.__basicsize__ != _ARRAY or np.ndarray.__flags__ & (1 << 14):
        return False
    model = np.empty((2, 3))
    handler = ctypes.c_uint64.from_address(id(model) + _ARRAY - 8).value
    known = ctypes.c_uint64.from_address(handler + 8).value if handler else 0
    capsule = type(np._core._multiarray_umath._ARRAY_API)  # type: ignore[attr-defined]
    expected = [id(np.ndarray), 2, 0, id(model.dtype), model.flags.num, 0, 0, 16, 0, 2, 3, 24, 8]
    if known != id(capsule) or _words(model) != expected:
        return False
    form = np.array(_form((2, 3), model.dtype), np.int64)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(_code()[0])
    made = make(form.ctypes.data)
    name = np._core.multiarray.get_handler_name(made)  # type: ignore[attr-defined]
    return name == _HANDLER.decode() and _words(made) == expected
