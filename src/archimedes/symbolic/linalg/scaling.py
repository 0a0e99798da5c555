"""Exact scaling by powers of two, so that squares and products neither overflow nor vanish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.graph.dtypes import DTYPES, F64, I64
from archimedes.graph.formulas import Emit
from archimedes.graph.ops import CODES
from archimedes.graph.program import Graph
from archimedes.symbolic.core.dispatch import wrap
from archimedes.symbolic.core.trace import current_trace

__all__ = ["power_of_two", "scaled_product", "split_exponent"]

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


def split_exponent(x: Any) -> tuple[Any, Any]:
    """Return ``(m, e)`` with x = m 2**e for a traced float64 scalar, 2 <= abs(m) < 4, e an int.

    Zero and numbers that are not finite keep their value in m; subnormal ones give a smaller m.
    The derivative of m is that of x 2**-e.
    """
    trace = current_trace()
    e = Emit(trace.graph, I64)
    word = trace.graph.emit(CODES["bits"], int(trace.ids_of(x)))
    field = e("and", e("shr", word, e.c(52)), e.c(0x7FF))
    field = e("min", e("max", field, e.c(1)), e.c(0x7FE))
    factor = trace.graph.emit(CODES["from_bits"], e("shl", e.sub(e.c(0x7FF), field), e.c(52)))
    return x * wrap(factor, F64, trace), wrap(e.sub(field, e.c(1024)), I64, trace)


def scaled_product(factors: Sequence[Any]) -> Any:
    """Return the product of traced scalars; it overflows or vanishes only where its value does."""
    if len(factors) <= 2:
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        return product
    mantissa, exponent = split_exponent(factors[0].astype(float))
    for factor in factors[1:]:
        m, e = split_exponent(factor.astype(float))
        mantissa, exponent = mantissa * m, exponent + e
    return np.ldexp(mantissa, exponent).astype(DTYPES[factors[0].code])
