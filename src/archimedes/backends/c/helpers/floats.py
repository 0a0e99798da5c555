"""C functions of double and float: bit moves, rounding, extremes, linear solves."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["FLOAT_HELPERS"]


def _moves(name: str, source: str, target: str) -> str:
    """Write a function that reinterprets bits: a union in C, a copy in C++."""
    return f"""\
ARC_UNUSED static inline {target} {name}({source} x)
{{
#ifdef __cplusplus
    {target} y;
    ARC_MEMCPY(&y, &x, sizeof y);
    return y;
#else
    union {{ {source} from; {target} to; }} both;
    both.from = x;
    return both.to;
#endif
}}
"""


#: GCC 12 takes (double)(float)x for x where it vectorises a pair of them, so the rounded value is
#: passed through an empty asm statement, behind which GCC does not look.
_ROUNDED = """\
/* Rounds to float; GCC 12 may leave the rounding out of vectors unless it is hidden. */
ARC_UNUSED static inline float {name}({kind} x)
{{
    float y = (float)x;
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__SSE2__)
    __asm__("" : "+x"(y));
#elif defined(__aarch64__)
    __asm__("" : "+w"(y));
#else
    __asm__("" : "+m"(y));
#endif
#endif
    return y;
}}
"""

_BITS = {
    "arc_larger": """\
/* a > b of numbers without sign; their bits are in the same order. */
static inline bool arc_larger(double a, double b)
{
#if defined(ARC_SOFT_DOUBLE)
    return arc_bits(a) > arc_bits(b) && arc_bits(a) <= INT64_C(9218868437227405312);
#else
    return a > b;
#endif
}
""",
    "arc_largerf": """\
static inline bool arc_largerf(float a, float b)
{
    return a > b;
}
""",
    "arc_single": _ROUNDED.format(name="arc_single", kind="double"),
    "arc_single_of_int": _ROUNDED.format(name="arc_single_of_int", kind="int64_t"),
    "arc_bits": _moves("arc_bits", "double", "int64_t"),
    "arc_from_bits": _moves("arc_from_bits", "int64_t", "double"),
    "arc_word": _moves("arc_word", "float", "uint32_t"),
    "arc_from_word": _moves("arc_from_word", "uint32_t", "float"),
    "arc_bitsf": """\
static inline int64_t arc_bitsf(float x)
{
    return (int64_t)arc_word(x);
}
""",
    "arc_from_bitsf": """\
static inline float arc_from_bitsf(int64_t i)
{
    return arc_from_word((uint32_t)((uint64_t)i & UINT64_C(0xFFFFFFFF)));
}
""",
}

#: Functions of both float types: ``T`` is the type, ``@`` the suffix, ``$`` that of literals.
_TEMPLATES = {
    "arc_rint@": """\
/* To the nearest integer, halves to even: above BIG all numbers are whole. */
static inline T arc_rint@(T x)
{
    const T big = BIG;
    const T size = arc_fabs@(x);
    const T moved = size + big;
    return size < big ? arc_copysign@(moved - big, x) : x;
}
""",
    "arc_floor@": """\
static inline T arc_floor@(T x)
{
    const T nearest = arc_rint@(x);
    return arc_copysign@(nearest > x ? nearest - 1.0$ : nearest, x);
}
""",
    "arc_ceil@": """\
static inline T arc_ceil@(T x)
{
    const T nearest = arc_rint@(x);
    return arc_copysign@(nearest < x ? nearest + 1.0$ : nearest, x);
}
""",
    "arc_trunc@": """\
static inline T arc_trunc@(T x)
{
    return arc_copysign@(arc_floor@(arc_fabs@(x)), x);
}
""",
    "arc_fmin@": """\
/* The smaller one; nan if either is nan. */
static inline T arc_fmin@(T a, T b)
{
    return a < b || a != a ? a : b;
}
""",
    "arc_fmax@": """\
/* The larger one; nan if either is nan. */
static inline T arc_fmax@(T a, T b)
{
    return a > b || a != a ? a : b;
}
""",
    "arc_truncate@": """\
/* Toward zero; nan and what int64_t cannot hold give INT64_MIN. */
static inline int64_t arc_truncate@(T x)
{
    return x >= -9223372036854775808.0$ && x < 9223372036854775808.0$ ? (int64_t)x : INT64_MIN;
}
""",
    "arc_solve@": """\
/* Solve a system by elimination with partial pivoting. Each of the n rows of w holds n
   coefficients and m right-hand sides, which the solutions replace. */
static void arc_solve@(T *w, size_t n, size_t m)
{
    const size_t width = n + m;
    for (size_t k = 0; k < n; ++k) {
        T *const first = w + k * width;
        T *pivot = first;
        T best = arc_fabs@(first[k]);
        for (size_t row = k + 1; row < n; ++row) {
            const T size = arc_fabs@(w[row * width + k]);
            if (arc_larger@(size, best)) {
                best = size;
                pivot = w + row * width;
            }
        }
        if (pivot != first) {
            for (size_t c = 0; c < width; ++c) {
                const T held = first[c];
                first[c] = pivot[c];
                pivot[c] = held;
            }
        }
        for (size_t row = k + 1; row < n; ++row) {
            T *const other = w + row * width;
            const T factor = other[k] / first[k];
            for (size_t c = k + 1; c < width; ++c) {
                const T product = factor * first[c];
                other[c] -= product;
            }
        }
    }
    for (size_t k = n; k-- > 0;) {
        T *const row = w + k * width;
        for (size_t j = k + 1; j < n; ++j) {
            const T *const known = w + j * width;
            const T factor = row[j];
            for (size_t c = n; c < width; ++c) {
                const T product = factor * known[c];
                row[c] -= product;
            }
        }
        const T diagonal = row[k];
        for (size_t c = n; c < width; ++c) {
            row[c] /= diagonal;
        }
    }
}
""",
    "arc_fabs@": """\
static inline T arc_fabs@(T x)
{
#if defined(__GNUC__)
    return __builtin_fabs@(x);
#else
    return READ(WRITE(x) & REST);
#endif
}
""",
    "arc_copysign@": """\
static inline T arc_copysign@(T x, T sign)
{
#if defined(__GNUC__)
    return __builtin_copysign@(x, sign);
#else
    return READ((WRITE(x) & REST) | (WRITE(sign) & ~REST));
#endif
}
""",
}

#: What stands for the placeholders in functions of double and of float.
_KINDS: tuple[Mapping[str, str], ...] = (
    {
        "BIG": "4503599627370496.0",
        "READ": "arc_from_bits",
        "WRITE": "arc_bits",
        "REST": "INT64_MAX",
        r"\bT\b": "double",
        "@": "",
        r"\$": "",
    },
    {
        "BIG": "8388608.0f",
        "READ": "arc_from_word",
        "WRITE": "arc_word",
        "REST": "UINT32_C(0x7FFFFFFF)",
        r"\bT\b": "float",
        "@": "f",
        r"\$": "f",
    },
)


def _of_kind(text: str, kind: Mapping[str, str]) -> str:
    for pattern, replacement in kind.items():
        text = re.sub(pattern, replacement, text)
    return text


#: Text by name.
FLOAT_HELPERS: dict[str, str] = {
    **_BITS,
    **{_of_kind(n, kind): _of_kind(t, kind) for kind in _KINDS for n, t in _TEMPLATES.items()},
}
