"""The types of values: four scalar ones, and blocks of any length of each.

A type is an int. The codes 0 to 3 are scalars; a *block*, which is one value of many elements in a
row, is the code of its elements and its length in one number.
"""

from __future__ import annotations

import numpy as np

F64, F32, I64, B8 = range(4)

#: Stands for a dtype code where a leaf is static: known by its content, and no part of the graph.
STATIC = -1
#: NumPy dtype of each code.
DTYPES = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_))
DTYPE_NAMES = ("f64", "f32", "i64", "bool")


def code_of(dtype: np.dtype) -> int | None:
    """Return the graph's code for a NumPy dtype, or None where the graph has no such type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return F64 if dtype.itemsize == 8 else F32 if dtype.itemsize == 4 else None
    if dtype.kind == "b":
        return B8
    # Narrower integers wrap around earlier, so computing them in int64 would differ from NumPy.
    return I64 if dtype.kind == "i" and dtype.itemsize == 8 else None


def is_float(code: int) -> bool:
    """Return whether a type is a floating-point type, or a block of one."""
    return code & 3 <= F32


def block_type(code: int, length: int) -> int:
    """Return the type of blocks of so many elements.

    >>> length_of(block_type(F64, 100)), item_type(block_type(I64, 100)) == I64
    (100, True)
    """
    return code | length << 2


def item_type(kind: int) -> int:
    """Return the type of a block's elements; a scalar's own."""
    return kind & 3


def length_of(kind: int) -> int:
    """Return the length of a block, 0 for a scalar."""
    return kind >> 2


def type_name(kind: int) -> str:
    """Return the name of a type in texts.

    >>> type_name(F64), type_name(block_type(B8, 5))
    ('f64', 'bool[5]')
    """
    name = DTYPE_NAMES[kind & 3]
    return f"{name}[{kind >> 2}]" if kind >> 2 else name
