"""Sine and cosine of float in C: double's, rounded once; by integers where doubles are software.

A microcontroller that calculates floats by hardware and doubles by software would spend 2,000
instructions and 3 kB of flash on the sine of a float. The integer version has the same bits: its
result is within 2^-58 and rounded to 53 bits before it is rounded to 24, as double's is. That was
tried for every float (``python -m tests.c.every_angle``).

Legend: ``Q`` numbers are 2^-64 of an unsigned integer of 64 bits.
"""

from __future__ import annotations

import math

from archimedes.graph.elementary.trigonometric import TWO_OVER_PI_BITS

__all__ = ["SINGLE_ANGLES"]

#: 2/pi in 256 bits behind 64 zeros.
_WORDS = [0, 0, *((TWO_OVER_PI_BITS >> (1248 - 32 * k)) & 0xFFFFFFFF for k in range(1, 9))]
#: 1/n! for n from 2 to 19.
_TERMS = [(2**65 // math.factorial(n) + 1) // 2 for n in range(2, 20)]


def _rows(items: list[str], count: int) -> str:
    return ",\n".join(f"    {', '.join(items[k : k + count])}" for k in range(0, len(items), count))


_SOFT = f"""\
#if defined(ARC_SOFT_DOUBLE)
static const uint32_t arc_digits[10] = {{
{_rows([f"0x{x:08x}U" for x in _WORDS], 5)}
}};

/* 2^64 / n! for n from 2 on. */
static const uint64_t arc_factors[18] = {{
{_rows([f"UINT64_C(0x{x:x})" for x in _TERMS], 3)}
}};

/* The upper half of a product. */
static uint64_t arc_upper(uint64_t a, uint64_t b)
{{
    const uint32_t a0 = (uint32_t)a, a1 = (uint32_t)(a >> 32);
    const uint32_t b0 = (uint32_t)b, b1 = (uint32_t)(b >> 32);
    const uint64_t first = (uint64_t)a1 * b0 + (((uint64_t)a0 * b0) >> 32);
    const uint64_t second = (uint64_t)a0 * b1 + (uint32_t)first;
    return (uint64_t)a1 * b1 + (first >> 32) + (second >> 32);
}}

/* z/n! - z^2/(n+2)! + ... with n = 2 + first. */
static uint64_t arc_series(uint64_t z, uint32_t first)
{{
    uint64_t sum = 0;
    for (uint32_t k = 9; k-- > 0;) {{
        sum = arc_factors[2 * k + first] - arc_upper(z, sum);
    }}
    return arc_upper(z, sum);
}}

/* x / 2^n, halves to even. */
static uint64_t arc_rounded(uint64_t x, uint32_t n)
{{
    return (x + (UINT64_C(1) << (n - 1)) - 1 + ((x >> n) & 1)) >> n;
}}

/* x * 2^(exponent - 189), rounded to double and then to float; the lowest bit of sign is its. */
static float arc_packed(uint64_t x, uint32_t exponent, uint32_t sign)
{{
    while (x >> 63 == 0) {{
        x <<= 1;
        --exponent;
    }}
    x = arc_rounded(arc_rounded((x >> 1) | (x & 1), 10), 29);
    return arc_from_word((exponent << 23) + (uint32_t)x + (sign << 31));
}}
/* Sine and cosine of a float by integers: the bits of those of double, rounded. */
static float arc_angle(float x, float *cosine)
{{
    const uint32_t sign = arc_word(x) >> 31;
    const uint32_t size = arc_word(x) & 0x7FFFFFFFU;
    /* Below 2^-12 the first terms are all that a float holds. */
    if (size < 0x39800000U || size >= 0x7F800000U) {{
        *cosine = size < 0x7F800000U ? 1.0f : x - x;
        return size < 0x7F800000U ? x : x - x;
    }}
    /* x is m 2^(at - 62): its product with 2/pi, in quarters of 2^128. */
    const uint32_t m = (size & 0x7FFFFFU) | 0x800000U;
    const uint32_t at = (size >> 23) - 88;
    const uint32_t *const digits = &arc_digits[at >> 5];
    uint64_t sum = 0, high = 0, low = 0;
    for (uint32_t k = 4; k-- > 0;) {{
        const uint64_t pair = ((uint64_t)digits[k] << 32) | digits[k + 1];
        sum = (sum >> 32) + (uint64_t)m * (uint32_t)((pair << (at & 31)) >> 32);
        low = (low >> 32) | (high << 32);
        high = (high >> 32) | (sum << 32);
    }}
    const uint32_t quadrant = (uint32_t)((high + (UINT64_C(1) << 61)) >> 62);
    high -= (uint64_t)quadrant << 62;
    const uint32_t below = (uint32_t)(high >> 63);
    if (below != 0) {{
        high = ~high;
        low = ~low;
    }}
    uint32_t shift = 0;
    while (high >> 63 == 0) {{
        high = (high << 1) | (low >> 63);
        low <<= 1;
        ++shift;
    }}
    /* The rest is r 2^(3 - shift) in Q, its square z. */
    const uint64_t r = arc_upper(high, UINT64_C(0xc90fdaa22168c235));
    const uint64_t z = arc_upper(r, r) >> (2 * shift - 6);
    const float s = arc_packed(r - arc_upper(r, arc_series(z, 1)), 128 - shift, below);
    const float c = arc_packed(~arc_series(z, 0), 125, 0);
    const float first = (quadrant & 1) != 0 ? c : s;
    const float second = (quadrant & 1) != 0 ? -s : c;
    *cosine = (quadrant & 2) != 0 ? -second : second;
    return ((quadrant >> 1) ^ sign) & 1 ? -first : first;
}}
#endif
"""

_BOTH = """\
/* Sine and cosine of a float: those of double, rounded. */
static float arc_sincosf(float x, float *cosine)
{
#if defined(ARC_SOFT_DOUBLE)
    return arc_angle(x, cosine);
#else
    double c;
    const double s = arc_sincos((double)x, &c);
    *cosine = arc_single(c);
    return arc_single(s);
#endif
}
"""


def _one(name: str, value: str) -> str:
    return f"""\
static inline float arc_{name}f(float x)
{{
#if defined(ARC_SOFT_DOUBLE)
    float cosine;
    const float sine = arc_angle(x, &cosine);
    (void){"cosine" if value == "sine" else "sine"};
    return {value};
#else
    return arc_single(arc_{name}((double)x));
#endif
}}
"""


#: The helpers ``arc_sincosf``, ``arc_sinf`` and ``arc_cosf``, and what they stand on.
SINGLE_ANGLES: dict[str, str] = {
    "arc_angle": _SOFT,
    "arc_sincosf": _BOTH,
    "arc_sinf": _one("sin", "sine"),
    "arc_cosf": _one("cos", "cosine"),
}
