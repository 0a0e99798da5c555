"""Lowering of division.

A vector of quotients keeps the divider busy for longer than a dozen multiplications take. Where the
divisor is a constant, lanes multiply by its proven factors; only if a numerator in some lane is so
small that they do not hold, all lanes divide.
"""

from __future__ import annotations

import math

from archimedes.backends.exact_division import factors_of
from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.vectors import any_lane, intrinsic
from archimedes.graph.dtypes import F64, I64

__all__ = ["divide"]


def divide(f: Function, dtype: int, a: str, b: str) -> str:
    """Return a / b, correctly rounded."""
    kind = f.spelling.types[dtype]
    constant = f.spelling.value(b) if dtype == F64 else None
    plain = f.spelling.lanes == 1 or not f.module.target.fuses
    if constant is None or (plain and math.frexp(abs(constant))[0] != 0.5):
        return f.value(f"fdiv {kind} {a}, {b}")
    factors = factors_of(constant)
    if factors is None:
        return f.value(f"fdiv {kind} {a}, {b}")
    if factors.low == 0.0:  # a power of two
        return f.value(f"fmul {kind} {a}, {f.spelling.literal(factors.high, dtype)}")
    high, low = (f.spelling.literal(x, dtype) for x in (factors.high, factors.low))
    product = intrinsic(f, "fma", dtype, a, high, f.value(f"fmul {kind} {a}, {low}"))
    before, dividing, end = f.block, f.label(), f.label()
    f.fork(any_lane(f, _tiny(f, a, factors.least)), dividing, end, rare=True)
    f.start(dividing)
    quotient = f.value(f"fdiv {kind} {a}, {b}")
    f.jump(end)
    return f.phi(kind, (product, before), (quotient, dividing))


def _tiny(f: Function, a: str, exponent: int) -> str:
    """Return the bool 0 < abs(a) < 2**exponent, from the bits of a."""
    kind, literal = f.spelling.types[I64], f.spelling.literal
    bits = f.value(f"bitcast {f.spelling.types[F64]} {a} to {kind}")
    # Without the sign; a zero becomes the largest of all.
    size = f.value(f"add {kind} {bits}, {bits}")
    less = f.value(f"sub {kind} {size}, {literal(1, I64)}")
    limit = ((exponent + 1023) << 53) - 1
    return f.value(f"icmp ult {kind} {less}, {literal(limit, I64)}")
