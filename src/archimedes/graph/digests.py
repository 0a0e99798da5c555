"""What makes constants, and whole programs, equal."""

from __future__ import annotations

import itertools
import os
import struct
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.graph.ops import CONST
from archimedes.hashing import blake2b

if TYPE_CHECKING:
    from archimedes.graph.program import Graph


#: Tables of so many entries are data: machine code is the same whatever they hold.
LONG_TABLE = 16


def constant_key(value: Any, dtype: int) -> tuple[Any, ...]:
    """Identify a constant by its bits, so that -0.0 differs from 0.0 and nan equals nan."""
    if dtype in (F64, F32):
        return (CONST, dtype, struct.pack("<d", value) if value == value else b"nan")
    return (CONST, dtype, value)


#: Digests of the tables that ``frozen`` made, by identity, as long as these are there.
_known: dict[int, tuple[weakref.ref[np.ndarray], str]] = {}


#: What names live tables: no other process has the first part.
_process, _numbers = os.urandom(16).hex(), itertools.count()
_LIVE = "live"


def live_table(array: np.ndarray) -> np.ndarray:
    """Return the memory of a contiguous array as a table that programs read when they run.

    Two such tables are never equal, nor is anything assumed about their content: whoever looks
    for the values of constants finds none here.

    >>> a = np.zeros(3)
    >>> table = live_table(a)
    >>> a[1] = 7.0
    >>> table, is_live(table), is_live(frozen(a, a.dtype))
    (array([0., 7., 0.]), True, False)
    """
    table = array.reshape(-1)  # contiguous: another view of the same memory
    table.flags.writeable = False
    return _keep_digest(table, f"{_LIVE} {_process} {next(_numbers)}")


def is_live(table: np.ndarray) -> bool:
    """Return whether a table is the memory of an array that may change."""
    return (_known_digest(table) or "").startswith(_LIVE)


def _known_digest(table: np.ndarray) -> str | None:
    entry = _known.get(id(table))
    return entry[1] if entry is not None and entry[0]() is table else None


def _keep_digest(table: np.ndarray, digest: str) -> np.ndarray:
    """Remember the digest of a table for as long as the table lives."""
    key = id(table)
    _known[key] = weakref.ref(table, lambda _: _known.pop(key, None)), digest
    return table


def frozen(table: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a read-only contiguous copy of a table, whose digest is known; or the table itself.

    >>> table = frozen(np.arange(3.0), np.dtype(float))
    >>> frozen(table, table.dtype) is table
    True
    """
    if table.dtype == dtype and _known_digest(table) is not None:
        return table
    copy = np.array(table, dtype=dtype, order="C")
    copy.flags.writeable = False
    return _keep_digest(copy, table_digest(copy))


def table_digest(table: np.ndarray) -> str:
    """Return a hash of a contiguous table's dtype and content.

    >>> table_digest(np.arange(3.0)) == table_digest(np.array([0.0, 1.0, 2.0]))
    True
    """
    known = _known_digest(table)
    if known is not None:
        return known
    h = blake2b(table.dtype.str.encode(), digest_size=16)
    h.update(table.view(np.uint8).data if table.size else b"")
    return h.hexdigest()


def program_digest(g: Graph, lasting: bool, data: bool = True) -> str:
    """Return a hash of a program's content.

    ``lasting``: of what it computes only, the same in every process; without ``data``: not of what
    is in longer tables.
    """
    h = blake2b(digest_size=16)
    for part in (g.op, g.a, g.b, g.c, g.dtype, g.inputs, g.outputs):
        h.update(np.asarray(part, dtype=np.int64).tobytes())
        h.update(b"|")
    constants = [(i, constant_key(value, g.dtype[i])) for i, value in g.value.items()]
    h.update(repr(constants).encode())
    for table in g.tables:
        inside = data or len(table) < LONG_TABLE
        content = table_digest(table) if inside else f"#{len(table)}"
        h.update(f"{table.dtype}{content}".encode())
    for i, region in g.regions.items():
        h.update(repr((i, region.key(lasting, data))).encode())
    return h.hexdigest()
