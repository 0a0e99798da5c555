"""The four scalar types a graph computes with."""

from __future__ import annotations

import numpy as np

__all__ = ["B8", "DTYPES", "DTYPE_NAMES", "F32", "F64", "I64", "STATIC", "code_of", "is_float"]

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
    """Tell whether a dtype code is one of the floating-point types."""
    return code <= F32
