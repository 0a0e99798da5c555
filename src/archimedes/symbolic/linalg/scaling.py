"""Exact scaling of a matrix by a power of two, so that squares neither overflow nor vanish."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.graph.dtypes import F64, I64
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.dispatch import wrap
from archimedes.symbolic.core.trace import current_trace

__all__ = ["power_of_two"]

_AND = CODES["and"]
#: Ops that read and write the bits of a float, and the mask of its exponent.
_BITS = {
    True: (CODES["bits"], CODES["from_bits"], 0x7FF0000000000000),
    False: (CODES["bits32"], CODES["from_bits32"], 0x7F800000),
}


def _exponent_part(g: Graph, x: int, code: int) -> int:
    """Emit the power of two next below x > 0; zero for zero and subnormals."""
    read, write, mask = _BITS[code == F64]
    return g.emit(write, g.emit(_AND, g.emit(read, x), g.const(mask, I64)))


def power_of_two(a: Any) -> tuple[Any, Any]:
    """Return ``(a / s, s)`` with s the power of two next below the largest magnitude in ``a``.

    Dividing by s is exact but for results in the subnormal range. s is 1 for a matrix of zeros.
    """
    trace = current_trace()
    if a.size == 0:
        return a, wrap(trace.graph.const(1.0, a.code), a.code, trace)
    largest = np.max(np.abs(a))
    part = wrap(_exponent_part(trace.graph, int(trace.ids_of(largest)), a.code), a.code, trace)
    scale = np.where(part == 0, 1.0, part).astype(a.dtype)
    return a / scale, scale
