"""The buffer protocol, as native code asks for the memory of an array.

``struct Py_buffer`` is public: buf 0, obj 8, len 16, itemsize 24, readonly 32, ndim 36, format 40,
shape 48, strides 56, suboffsets 64, internal 72; 80 bytes in all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_api.c_api import address, make_builtin
from archimedes.backends.llvm.runtime.machine import common_code, read_ir

__all__ = [
    "BUFFER",
    "FORMAT",
    "FORMATTED",
    "NDIM",
    "OBJECT",
    "SHAPE",
    "SIZE",
    "WRITABLE",
    "format_of",
    "make_pointer_reader",
    "reader_text",
]

#: Offsets into a Py_buffer, and its size.
BUFFER, OBJECT, NDIM, FORMAT, SHAPE, SIZE = 0, 8, 36, 40, 48, 80
#: PyBUF_ND | PyBUF_FORMAT (C-contiguous, with shape and format), PyBUF_WRITABLE, PyBUF_STRIDES.
FORMATTED, WRITABLE, _STRIDES = 0x8 | 0x4, 0x1, 0x10 | 0x8
_METH_O = 0x0008


def format_of(dtype: np.dtype[Any]) -> int:
    """Return the two bytes, as a number, by which a buffer names a dtype of one letter."""
    text = np.empty(0, dtype).data.format
    assert len(text) == 1, text
    return ord(text)


def reader_text() -> str:
    """Return the module of ``make_pointer_reader``."""
    return read_ir("data_pointer", size=SIZE, strides=_STRIDES)


def make_pointer_reader() -> Callable[[np.ndarray], int]:
    """Make a builtin ``f(array)``: the address of an array's first item."""
    names = ("PyObject_GetBuffer", "PyBuffer_Release", "PyLong_FromUnsignedLongLong")
    code = common_code(reader_text(), "arc_data_pointer", {x: address(x) for x in names})
    return make_builtin(code.address, _METH_O, (code,))
