"""How types and constants are written in C.

Floating constants are the shortest decimal numbers that read back as the same bits (Python's and
NumPy's ``repr``): C99, C11 and every C++ take them, a reader can check them against the model,
and compilers that follow C99 annex F round them correctly. Subnormal ones are hexadecimal, where
a compiler may warn of the decimal form.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F32, F64, I64

__all__ = ["BYTES", "CTYPES", "LETTERS", "literal", "table_item"]

CTYPES = {F64: "double", F32: "float", I64: "int64_t", B8: "bool"}
BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}
#: Short names of dtypes, in names of arrays.
LETTERS = {F64: "d", F32: "f", I64: "n", B8: "b"}

_SMALLEST = {F64: sys.float_info.min, F32: float(np.finfo(np.float32).tiny)}


def _number(value: float, dtype: int) -> str:
    suffix = "f" if dtype == F32 else ""
    if value != value:
        return f"ARC_NAN{suffix.upper()}"
    size = abs(value)
    if math.isinf(value):
        text = f"ARC_INF{suffix.upper()}"
    elif 0.0 < size < _SMALLEST[dtype]:
        text = float(size).hex() + suffix
    else:
        text = repr(size) if dtype == F64 else _single(size)
        text += suffix
    return f"-{text}" if math.copysign(1.0, value) < 0.0 else text


def _single(size: float) -> str:
    text = str(np.float32(size))
    return text if "e" in text or "." in text else text + ".0"


def table_item(value: Any, dtype: int) -> str:
    """Write a constant as an element of a table: no parentheses.

    >>> table_item(-0.1, F32), table_item(-(2**63), I64), table_item(True, B8)
    ('-0.1f', 'INT64_MIN', 'true')
    """
    if dtype == B8:
        return "true" if value else "false"
    if dtype == I64:
        if value == -(2**63):
            return "INT64_MIN"
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    return _number(float(value), dtype)


def literal(value: Any, dtype: int) -> str:
    """Write a constant as an operand.

    >>> literal(0.1, F64), literal(-0.0, F64), literal(float("inf"), F32)
    ('0.1', '(-0.0)', 'ARC_INFF')
    """
    text = table_item(value, dtype)
    return f"({text})" if text.startswith("-") else text
