"""fmod: exact for all arguments, by long division of the significands.

``x = mx 2^ex`` and ``y = my 2^ey`` with 53-bit integers: the remainder of ``mx 2^(ex - ey)`` by
``my`` is found ten bits at a time, since a 53-bit remainder shifted by ten still fits int64.

Legend: ``r`` remainder so far, ``n`` bits of the exponent difference left.
"""

from __future__ import annotations

from archimedes.graph.elementary.primitives import Primitives, Value

__all__ = ["fmod"]

INF = float("inf")
NAN = float("nan")
STEP = 10
LIMIT = 210
"""The exponents of float64 differ by at most 2098 bits."""


def _integer_parts(p: Primitives, size: Value) -> tuple[Value, Value]:
    """``(m, e)`` of a finite ``size >= 0``: ``size = m * 2^(e - 1075)``, subnormals included."""
    bits = p.bits(size)
    field = p.shift_right_logical(bits, 52)
    fraction = bits & ((1 << 52) - 1)
    normal = field > 0
    return p.where(normal, fraction | (1 << 52), fraction), p.where(normal, field, 1)


def fmod(p: Primitives, x: Value, y: Value) -> Value:
    """Remainder of x by y with the sign of x, as C's fmod: always exact."""
    size_x, size_y = p.abs(x), p.abs(y)
    proper = (size_x >= size_y) & (size_y > 0.0) & (size_x < INF)
    mx, ex = _integer_parts(p, p.where(proper, size_x, 1.0))
    my, ey = _integer_parts(p, p.where(proper, size_y, 1.0))

    def unfinished(r: Value, n: Value, my: Value) -> Value:
        return (n > 0) & (r > 0)

    def divide(r: Value, n: Value, my: Value) -> tuple[Value, ...]:
        step = p.where(n < STEP, n, STEP)
        return p.int_rem(r << step, my), n - step, my

    r, _, _ = p.loop(unfinished, divide, (p.int_rem(mx, my), ex - ey, my), LIMIT)
    rest = (p.to_float(r) * 2.0**-52) * p.from_bits(ey << 52)
    y_or_nan = p.where((size_x < INF) & (size_y > 0.0), x, NAN)
    return p.where(proper, p.copysign(rest, x), y_or_nan)
