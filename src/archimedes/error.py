"""``archimedes.error``: the package's errors under the name that users of the original know."""

from __future__ import annotations

from archimedes.errors import (
    ArchimedesError,
    CodegenError,
    GraphError,
    IntegerRangeError,
    ShapeDtypeError,
    StructError,
    TraceError,
)

__all__ = [
    "ArchimedesError",
    "CodegenError",
    "GraphError",
    "IntegerRangeError",
    "ShapeDtypeError",
    "StructError",
    "TraceError",
]
