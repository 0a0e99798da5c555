"""Elementary functions and the fused multiply-add as calls, which the lowering writes once each.

Sine and cosine of one angle are one call. WebAssembly has no fused multiply-add: it is a program of
exact ops like the elementary functions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from archimedes.graph.blocks.fusion import fuse_loops
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.dtypes import F32
from archimedes.graph.expand import GraphPrimitives, program, trace_program
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.passes import EmitNode, inline, rewrite
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call

_SIN, _COS, _FMA = (CODES[name] for name in ("sin", "cos", "fma"))
_OWN = tuple(op.elementary or op.code == _FMA for op in TABLE)


def with_calls(graph: Graph) -> Graph:
    """Return an equal graph in which elementary functions and fused multiply-adds are calls."""

    def emitter(src: Graph) -> EmitNode:
        angles = [{src.a[i] for i, op in enumerate(src.op) if op == code} for code in (_SIN, _COS)]
        both = set.intersection(*angles)

        def emit(dst: Graph, i: int, operands: tuple[int, ...]) -> int:
            code, dtype = src.op[i], src.dtype[i]
            number = 0
            if code == _FMA:
                body = fma_program(dtype)
            elif code in (_SIN, _COS) and src.a[i] in both:
                body, number = _sine_and_cosine(dtype), int(code == _COS)
            else:
                body = _program(TABLE[code].name, dtype)
            return int(dst.region(Call(np.array(operands), body))[number])

        return emit

    return rewrite(fuse_loops(graph), emitter, own=_OWN)


@cache
def _program(name: str, dtype: int) -> Graph:
    return remove_dead_code(program(name, dtype)).graph


@cache
def _sine_and_cosine(dtype: int) -> Graph:
    both = Graph()
    x = both.input(dtype)
    both.outputs = [inline(both, program(name, dtype), [x])[0] for name in ("sin", "cos")]
    return remove_dead_code(both).graph


# ---- a * b + c with one rounding -----------------------------------------------------------------


@cache
def fma_program(dtype: int) -> Graph:
    """Return the program of a fused multiply-add on float64 or float32."""
    p = GraphPrimitives()
    text = _fma32 if dtype == F32 else _fma64
    return remove_dead_code(trace_program(lambda *x: (text(p, *x),), [dtype] * 3)).graph


def _fma32(p: Any, a: Any, b: Any, c: Any) -> Any:
    """The product is exact in float64; the sum is rounded there to odd, and then to float32."""
    x, y = p.f64(a) * p.f64(b), p.f64(c)
    total = x + y
    t = total - x
    error = (x - (total - t)) + (y - t)
    bits = p.bits(total)
    # Neither an infinity nor a nan has a small error.
    even = (error != 0.0) & (p.abs(error) < np.inf) & ((bits & 1) == 0)
    step = p.where((error > 0.0) == (total > 0.0), 1, -1)
    return p.f32(p.from_bits(p.where(even, bits + step, bits)))


_MASK = 2**32 - 1


def _parts(p: Any, x: Any) -> tuple[Any, Any]:
    """Return the significand of 53 bits of a finite number that is not zero, and its exponent."""
    tiny = p.abs(x) < 2.0**-1000
    bits = p.bits(p.where(tiny, x * 2.0**60, x))
    exponent = (p.shift_right_logical(bits, 52) & 2047) - 1075
    return bits & (2**52 - 1) | 2**52, exponent - p.where(tiny, 60, 0)


def _below(p: Any, a: Any, b: Any) -> Any:
    """Return a < b of integers without sign."""
    return (a ^ -(2**63)) < (b ^ -(2**63))


def _shift_left(p: Any, high: Any, low: Any, n: int) -> tuple[Any, Any]:
    return high << n | p.shift_right_logical(low, 64 - n), low << n


def _shift_right(p: Any, high: Any, low: Any, n: Any) -> tuple[Any, Any]:
    """Shift right by n >= 0; lost bits set the last one. Shifts by 64 and more give zero."""
    right = p.shift_right_logical
    far = n >= 64
    lost = p.where(far, low | (high << (128 - n)), low << (64 - n))
    lost = p.where(n >= 128, high | low, lost)
    new_low = p.where(far, right(high, n - 64), right(low, n) | (high << (64 - n)))
    return p.where(far, 0, right(high, n)), new_low | p.where(lost != 0, 1, 0)


def _fma64(p: Any, a: Any, b: Any, c: Any) -> Any:
    """Add product and summand as integers of 126 bits, and round their sum once.

    The one with the smaller exponent is shifted right, its lost bits or-ed into the last: that
    matters only where the other is at least four times as large.
    """
    plain = (p.abs(a) < np.inf) & (p.abs(b) < np.inf) & (p.abs(c) < np.inf)
    plain = plain & (a != 0.0) & (b != 0.0)

    def special(a: Any, b: Any, c: Any) -> tuple[Any]:
        """Nothing is rounded before the sum where a factor is zero, infinite or nan."""
        factors = (p.abs(a) < np.inf) & (p.abs(b) < np.inf) & (a != 0.0) & (b != 0.0)
        return (p.where(factors, c, a * b + c),)

    def finite(a: Any, b: Any, c: Any) -> tuple[Any]:
        right = p.shift_right_logical
        (ma, ea), (mb, eb) = _parts(p, a), _parts(p, b)
        # The product, in two words of which the upper has 62 bits.
        product = (ma & _MASK) * (mb & _MASK)
        cross = right(ma, 32) * (mb & _MASK) + right(product, 32)
        up = (ma & _MASK) * right(mb, 32) + (cross & _MASK)
        low = product & _MASK | up << 32
        high = right(ma, 32) * right(mb, 32) + right(cross, 32) + right(up, 32)
        high, low = _shift_left(p, high, low, 20)
        e = ea + eb - 20
        mc, ec = _parts(p, c)
        is_zero = c == 0.0
        c_high, ec = p.where(is_zero, 0, mc << 9), p.where(is_zero, e, ec - 73)
        top = p.where(e < ec, ec, e)
        high, low = _shift_right(p, high, low, top - e)
        c_high, c_low = _shift_right(p, c_high, c_high & 0, top - ec)
        minus = (p.bits(a) ^ p.bits(b)) < 0
        opposite = minus ^ ((p.bits(c) < 0) & ~is_zero)
        # Sum, or difference of the larger and the smaller one.
        swap = opposite & ((high < c_high) | ((high == c_high) & _below(p, low, c_low)))
        x_high, x_low = p.where(swap, c_high, high), p.where(swap, c_low, low)
        y_high, y_low = p.where(swap, high, c_high), p.where(swap, low, c_low)
        sum_low = x_low + y_low
        carry = p.where(_below(p, sum_low, y_low), 1, 0)
        borrow = p.where(_below(p, x_low, y_low), 1, 0)
        high = p.where(opposite, x_high - y_high - borrow, x_high + y_high + carry)
        low = p.where(opposite, x_low - y_low, sum_low)
        nothing = (high | low) == 0
        # The first bit to number 126.
        e = top
        for n in (64, 32, 16, 8, 4, 2, 1):
            small = high < 2 ** (63 - n) if n < 64 else high == 0
            new = _shift_left(p, high, low, n) if n < 64 else (right(low, 2), low << 62)
            step = n if n < 64 else 62
            high, low = p.where(small, new[0], high), p.where(small, new[1], low)
            e = e - p.where(small, step, 0)
        last = p.where(e + 74 < -1074, -1074, e + 74)
        q, rest = _shift_right(p, high, low, last - e - 64)
        half = -(2**63)
        up = _below(p, half, rest) | ((rest == half) & ((q & 1) != 0))
        q = q + p.where(up, 1, 0)
        q = p.where(last > 971, 2047 << 52, q + ((last + 1074) << 52))
        negative = minus ^ swap
        return (p.where(nothing, 0.0, p.from_bits(q | p.where(negative, half, 0))),)

    (result,) = p.branch(plain, finite, special, a, b, c)
    return result
