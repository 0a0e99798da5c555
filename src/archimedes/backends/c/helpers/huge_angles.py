"""The reduction of huge angles in C: the graph's program (``elementary/trigonometric.py``)
as a loop.

What is written from the graph has its 21 products of limbs one by one, in 64 bits, which takes
twice the flash; few programs ever reduce such an angle, all that have a sine carry it.
"""

from __future__ import annotations

from archimedes.graph.elementary.trigonometric import LIMBS

__all__ = ["HUGE_ANGLES"]

_NAME, _TABLE = "arc_huge_angle", "arc_two_over_pi"

_LINES = [", ".join(map(str, LIMBS[k : k + 9])) for k in range(0, len(LIMBS), 9)]

#: The helpers: the digits of 2/pi, and the function.
HUGE_ANGLES: dict[str, str] = {
    _TABLE: "\n".join(
        [
            "/* 2/pi in digits of 26 bits, behind four zeros. */",
            f"static const uint32_t {_TABLE}[{len(LIMBS)}] = {{",
            ",\n".join(f"    {line}" for line in _LINES),
            "};\n",
        ]
    ),
    _NAME: """\
/* An angle of 1e5 or more as a number of right angles and a rest, reduced[0] - reduced[1]: Payne
   and Hanek's method. */
static void arc_huge_angle(double x, double *reduced, int64_t *quadrant)
{
    const uint32_t mask = 67108863U;
    const int64_t bits = arc_bits(arc_fabs(x));
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t significand = ((uint64_t)bits & (one - 1)) | one;
    const uint32_t exponent = (uint32_t)(bits >> 52) - 997U;
    const uint32_t q = (exponent * 2521U) >> 16;
    const uint32_t s = exponent - 26U * q;
    const uint64_t low = (significand & mask) << s;
    const uint64_t high = ((significand >> 26) << s) + (low >> 26);
    const uint32_t limbs[3] = {(uint32_t)low & mask, (uint32_t)high & mask, (uint32_t)(high >> 26)};
    uint32_t digits[7];
    uint64_t sum = 0;
    for (uint32_t k = 7; k-- > 0;) {
        const uint32_t *const at = &arc_two_over_pi[q + k];
        for (uint32_t j = 0; j < 3; ++j) {
            sum += (uint64_t)limbs[j] * at[j];
        }
        digits[k] = (uint32_t)sum & mask;
        sum >>= 26;
    }
    const uint32_t up = digits[1] >> 25;
    const int64_t first = (int64_t)digits[1] - (int64_t)(up << 26);
    const double top = (double)(first * 67108864 + (int64_t)digits[2]) * 2.220446049250313e-16;
    const double middle =
        (double)(int64_t)(((uint64_t)digits[3] << 26) | digits[4]) * 4.930380657631324e-32;
    const double last = (double)digits[5] * 7.346839692639297e-40;
    double angle[2];
    arc_angle_of_turns(top, middle, last, angle);
    const double high_part = exponent < 1050U ? angle[0] : ARC_NAN;
    const int64_t turns = (int64_t)digits[0] + (int64_t)up;
    const bool negative = arc_bits(x) < 0 && bits <= INT64_C(9218868437227405312);
    reduced[0] = negative ? -high_part : high_part;
    reduced[1] = negative ? angle[1] : -angle[1];
    quadrant[0] = negative ? -turns : turns;
}
""",
}
