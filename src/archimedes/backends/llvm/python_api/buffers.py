"""The buffer protocol, as native code asks for the memory of an array.

``struct Py_buffer`` is public: buf 0, obj 8, len 16, itemsize 24, readonly 32, ndim 36, format 40,
shape 48, strides 56, suboffsets 64, internal 72; 80 bytes in all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_api.c_api import address, make_builtin
from archimedes.backends.llvm.runtime.machine import common_code

__all__ = [
    "BUFFER",
    "FORMAT",
    "FORMATTED",
    "NDIM",
    "OBJECT",
    "READER_TEXT",
    "SHAPE",
    "SIZE",
    "WRITABLE",
    "format_of",
    "make_pointer_reader",
]

#: Offsets into a Py_buffer, and its size.
BUFFER, OBJECT, NDIM, FORMAT, SHAPE, SIZE = 0, 8, 36, 40, 48, 80
#: PyBUF_ND | PyBUF_FORMAT (C-contiguous, with shape and format), PyBUF_WRITABLE, PyBUF_STRIDES.
FORMATTED, WRITABLE, _STRIDES = 0x8 | 0x4, 0x1, 0x10 | 0x8
_METH_O = 0x0008
_NAME = "arc_data_pointer"
READER_TEXT = f"""
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyLong_FromUnsignedLongLong(i64)
define ptr @{_NAME}(ptr %self, ptr %array) nounwind {{
entry:
  %view = alloca [{SIZE} x i8], align 8
  %status = call i32 @PyObject_GetBuffer(ptr %array, ptr %view, i32 {_STRIDES})
  %good = icmp eq i32 %status, 0
  br i1 %good, label %read, label %failed
read:
  %address = load i64, ptr %view, align 8
  call void @PyBuffer_Release(ptr %view)
  %number = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  ret ptr %number
failed:
  ret ptr null
}}
"""


def format_of(dtype: np.dtype[Any]) -> int:
    """Return the two bytes, as a number, by which a buffer names a dtype of one letter."""
    text = np.empty(0, dtype).data.format
    assert len(text) == 1, text
    return ord(text)


def make_pointer_reader() -> Callable[[np.ndarray], int]:
    """Make a builtin ``f(array)``: the address of an array's first item."""
    names = ("PyObject_GetBuffer", "PyBuffer_Release", "PyLong_FromUnsignedLongLong")
    code = common_code(READER_TEXT, _NAME, {name: address(name) for name in names})
    return make_builtin(code.address, _METH_O, (code,))
