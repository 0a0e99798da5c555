"""Addresses of NumPy arrays, checked against what a kernel expects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from archimedes.backends.leaves import types_of_arrays
from archimedes.backends.llvm.calling_convention import Leaf
from archimedes.backends.llvm.python_api.c_api import address, is_supported, make_builtin
from archimedes.backends.llvm.runtime.machine import common_code, read_ir
from archimedes.errors import GraphError
from archimedes.graph.dtypes import type_name

_METH_O = 0x0008
#: Bytes of struct Py_buffer, and PyBUF_STRIDES, by which the address of any array can be asked.
_BUFFER_SIZE, _STRIDES = 80, 0x10 | 0x8


def check_leaves(name: str, leaves: Sequence[Leaf], dtypes: Sequence[int]) -> None:
    """Raise where the arrays described do not hold inputs or outputs of these types."""
    listed = types_of_arrays(dtypes, leaves)
    if len(listed) != len(dtypes):
        raise GraphError(
            f"{name} describe {len(listed)} values, but the graph has {len(dtypes)}; list every "
            "array with its number of items"
        )
    for k, (mine, other) in enumerate(zip(listed, dtypes)):
        if mine != other:
            raise GraphError(
                f"{name}: value {k} is listed as {type_name(mine)}, but the graph has "
                f"{type_name(other)} there"
            )


def reader_text() -> str:
    """Return the module of ``pointer_reader``."""
    return read_ir("data_pointer", size=_BUFFER_SIZE, strides=_STRIDES)


@cache
def pointer_reader() -> Callable[[np.ndarray], int]:
    """Return a function that reads the address of an array's data."""
    if not is_supported():
        return lambda array: array.ctypes.data
    names = ("PyObject_GetBuffer", "PyBuffer_Release", "PyLong_FromUnsignedLongLong")
    code = common_code(reader_text(), "arc_data_pointer", {name: address(name) for name in names})
    return make_builtin(code.address, _METH_O, (code,))


def data_pointer(array: np.ndarray) -> int:
    """Return the address of an array's first item."""
    return pointer_reader()(array)


def check_pointers(
    kind: str, arrays: Sequence[np.ndarray], dtypes: Sequence[np.dtype], sizes: Sequence[int]
) -> list[int]:
    """Return the addresses of a call's arrays, or say which of them does not fit.

    ``dtypes`` and ``sizes`` are what each array must have.
    """
    if len(arrays) != len(dtypes):
        raise ValueError(f"the kernel has {len(dtypes)} {kind} arrays, {len(arrays)} given")
    read = pointer_reader()
    pointers: list[int] = []
    for array, dtype, size in zip(arrays, dtypes, sizes):
        # Identity first: nearly all arrays share the dtype objects, and == takes longer.
        other = array.dtype is not dtype and array.dtype != dtype
        if other or not array.flags.c_contiguous:
            raise ValueError(
                f"{kind} array {len(pointers)} must be C-contiguous {dtype}, not {array.dtype} "
                f"with strides {array.strides}; use np.ascontiguousarray"
            )
        if array.size != size:
            raise ValueError(
                f"{kind} array {len(pointers)} must have {size} items, not {array.size}"
            )
        pointers.append(read(array))
    return pointers


def pointer_table(pointers: Sequence[int]) -> bytes:
    """Return a C array of pointers."""
    return struct.pack(f"={len(pointers)}Q", *pointers)
