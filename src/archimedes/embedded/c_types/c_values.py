"""Values as C: types, literals, and initialisers of nested structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.backends.c.spelling import table_item
from archimedes.embedded.c_types.comments import ascii_text
from archimedes.embedded.c_types.struct_layout import Field, LeafShape, Struct
from archimedes.errors import CodegenError
from archimedes.graph.dtypes import B8, F32, F64, I64

__all__ = ["Scalars", "initialiser", "scalars"]

#: What ``float_type`` and ``int_type`` may be, and what they are in C.
_FLOATS: dict[np.dtype, str] = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
_INTS: dict[np.dtype, str] = {np.dtype(np.int64): "int64_t", np.dtype(np.int32): "int32_t"}


@dataclass(frozen=True)
class Scalars:
    """The C types of the four scalar types: ``float_type`` and ``int_type`` as NumPy dtypes."""

    float_type: np.dtype
    int_type: np.dtype

    def dtype(self, code: int) -> np.dtype:
        """Return the NumPy dtype of what C stores for a dtype code."""
        stored = {
            F64: self.float_type,
            F32: np.dtype(np.float32),
            I64: self.int_type,
            B8: np.dtype(np.bool_),
        }
        return stored[code]

    def c_type(self, code: int) -> str:
        """Return the C type for a dtype code."""
        return {**_FLOATS, **_INTS, np.dtype(np.bool_): "bool"}[self.dtype(code)]

    def literal(self, value: Any, code: int) -> str:
        """Return a constant expression with exactly this value.

        >>> scalars(float, int).literal(0.1, F64), scalars(np.float32, int).literal(0.1, F64)
        ('0.1', '0.1f')
        """
        dtype = self.dtype(code)
        if code == B8:
            return "true" if value else "false"
        if code == I64:
            if not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
                raise CodegenError(
                    f"the value {int(value)} does not fit in {_INTS[dtype]}: leave int_type=int"
                )
            macro = "INT32_C" if dtype.itemsize == 4 else "INT64_C"
            if int(value) == np.iinfo(dtype).min:
                return f"(-{macro}({-(int(value) + 1)}) - 1)"
            return f"{int(value)}" if abs(int(value)) < 2**15 else f"{macro}({int(value)})"
        return table_item(float(dtype.type(value)), F32 if dtype.itemsize == 4 else F64)


def scalars(float_type: Any, int_type: Any) -> Scalars:
    """Check ``float_type`` and ``int_type`` and return the scalar types."""
    return Scalars(
        _checked(float_type, _FLOATS, "float_type", "float, np.float64 (double) or np.float32"),
        _checked(int_type, _INTS, "int_type", "int, np.int64 or np.int32"),
    )


def _checked(given: Any, known: dict[np.dtype, str], what: str, choices: str) -> np.dtype:
    try:
        dtype = np.dtype(given)
    except TypeError:
        dtype = None
    if dtype not in known:
        raise CodegenError(f"{what}={given!r} has no C type here: use {choices}")
    return dtype


def initialiser(struct: Struct, leaves: Iterator[Any], types: Scalars, indent: str = "") -> str:
    """Return the braces that initialise a struct with the leaves' values, one line per row."""
    inner = indent + "    "
    lines = []
    for k, field in enumerate(struct.fields):
        comma = "," if k + 1 < len(struct.fields) else ""
        if field.struct is not None:
            body = initialiser(field.struct, leaves, types, inner)
            lines.append(f"{inner}{body}{comma} /* {field.name} */")
        else:
            lines.append(_leaf_lines(field, next(leaves), types, inner, comma))
    return "{\n" + "\n".join(lines) + f"\n{indent}}}"


def _leaf_lines(field: Field, value: Any, types: Scalars, indent: str, comma: str) -> str:
    leaf: LeafShape = field.leaf  # type: ignore[assignment]
    note = field.name + (f" [{ascii_text(field.units)}]" if field.units else "")
    body = _braces(np.asarray(value).reshape(leaf.shape), leaf.code, types, indent)
    return f"{indent}{body}{comma} /* {note} */"


def _braces(array: np.ndarray, code: int, types: Scalars, indent: str) -> str:
    if array.ndim == 0:
        return types.literal(array[()], code)
    inner = indent + "    "
    if array.ndim > 1:
        rows = [f"{inner}{_braces(row, code, types, inner)}" for row in array]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    words = [types.literal(x, code) for x in array]
    # Rows depend on the shape alone: a changed value changes its own line only.
    if len(words) <= 4:
        return "{" + ", ".join(words) + "}"
    rows = [", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]
    return "{\n" + ",\n".join(f"{inner}{row}" for row in rows) + f"\n{indent}}}"
