"""What makes constants, and whole programs, equal."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.graph.ops import CONST

if TYPE_CHECKING:
    from archimedes.graph.program import Graph

__all__ = ["LONG_TABLE", "constant_key", "hashed"]

#: Tables of so many entries are data: machine code is the same whatever they hold.
LONG_TABLE = 16


def constant_key(value: Any, dtype: int) -> tuple[Any, ...]:
    """Identify a constant by its bits, so that -0.0 differs from 0.0 and nan equals nan."""
    if dtype in (F64, F32):
        return (CONST, dtype, struct.pack("<d", value) if value == value else b"nan")
    return (CONST, dtype, value)


def hashed(g: Graph, lasting: bool, data: bool = True) -> str:
    """Return a hash of a program's content.

    ``lasting``: of what it computes only, the same in every process; without ``data``: not of what
    is in longer tables.
    """
    import hashlib

    h = hashlib.blake2b(digest_size=16)
    for part in (g.op, g.a, g.b, g.c, g.dtype, g.inputs, g.outputs):
        h.update(np.asarray(part, dtype=np.int64).tobytes())
        h.update(b"|")
    for i, value in g.value.items():
        h.update(repr((i, constant_key(value, g.dtype[i]))).encode())
    for table in g.tables:
        inside = data or len(table) < LONG_TABLE
        h.update(str(table.dtype).encode() + (table.tobytes() if inside else b"#%d" % len(table)))
    for i, region in g.regions.items():
        h.update(repr((i, region.key(lasting, data))).encode())
    return h.hexdigest()
