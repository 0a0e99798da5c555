"""C text that generated code stands on: the prelude of a file and small static functions.

Everything is C99, C11 and C++17 without undefined behaviour, and needs nothing of a C library.
Where C leaves a case undefined (overflow of signed integers, shifts by 64, division by zero,
conversion of values out of range) the function spells out what the interpreter gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from archimedes.backends.c.fused import FUSED
from archimedes.backends.c.square_root import SQUARE_ROOTS

__all__ = ["FLAGS", "HELPERS", "PRELUDE", "with_dependencies"]

#: What every compiler must be told: no fused multiply-add, no excess precision.
FLAGS = ("-ffp-contract=off",)

PRELUDE = """\
#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compile with -ffp-contract=off: results are the same bits on every machine only if no
   multiplication and addition are fused. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: it changes results"
#endif
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)
#error "floating-point arithmetic has excess precision: compile with -msse2 -mfpmath=sse"
#endif

#ifndef ARC_INF
#if defined(__GNUC__)
#define ARC_INF __builtin_inf()
#define ARC_INFF __builtin_inff()
#define ARC_NAN __builtin_nan("")
#define ARC_NANF __builtin_nanf("")
#define ARC_MEMCPY __builtin_memcpy
#define ARC_UNUSED __attribute__((unused))
#else
#ifdef __cplusplus
#include <string.h>
#define ARC_MEMCPY memcpy
#endif
#define ARC_UNUSED
#define ARC_INF (1e300 * 1e300)
#define ARC_INFF ((float)ARC_INF)
#define ARC_NAN (ARC_INF * 0.0)
#define ARC_NANF ((float)ARC_NAN)
#endif
#endif
"""


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


def _unsigned(name: str, expression: str, parameters: str = "int64_t a, int64_t b") -> str:
    """Write integer arithmetic that wraps around."""
    return f"""\
static inline int64_t {name}({parameters})
{{
    return (int64_t)({expression});
}}
"""


_INTEGER = {
    "arc_add": _unsigned("arc_add", "(uint64_t)a + (uint64_t)b"),
    "arc_sub": _unsigned("arc_sub", "(uint64_t)a - (uint64_t)b"),
    "arc_mul": _unsigned("arc_mul", "(uint64_t)a * (uint64_t)b"),
    "arc_neg": _unsigned("arc_neg", "UINT64_C(0) - (uint64_t)a", "int64_t a"),
    "arc_abs": """\
static inline int64_t arc_abs(int64_t a)
{
    return a < 0 ? arc_neg(a) : a;
}
""",
    "arc_quotient": """\
/* Toward zero; zero for a zero divisor. */
static inline int64_t arc_quotient(int64_t a, int64_t b)
{
    if (b == 0) {
        return 0;
    }
    return b == -1 ? arc_neg(a) : a / b;
}
""",
    "arc_modulo": """\
/* Remainder with the sign of a; zero for a zero divisor. */
static inline int64_t arc_modulo(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}
""",
    "arc_shl": """\
static inline int64_t arc_shl(int64_t a, int64_t n)
{
    return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a << n);
}
""",
    "arc_shr": """\
/* Fills with the sign. */
static inline int64_t arc_shr(int64_t a, int64_t n)
{
    const int64_t count = n < 0 || n > 63 ? 63 : n;
    return a < 0 ? ~(~a >> count) : a >> count;
}
""",
    "arc_lshr": """\
/* Fills with zeros. */
static inline int64_t arc_lshr(int64_t a, int64_t n)
{
    return n < 0 || n > 63 ? 0 : (int64_t)((uint64_t)a >> n);
}
""",
    "arc_index": """\
/* An index clamped to a table whose last element has the number last. */
static inline size_t arc_index(int64_t i, int64_t last)
{
    return (size_t)(i < 0 ? 0 : i > last ? last : i);
}
""",
}

#: GCC 12 takes (double)(float)x for x where it vectorises a pair of them, so the rounded value is
#: passed through an empty asm statement, behind which GCC does not look.
_ROUNDED = """\
/* Rounds to float; GCC 12 may leave the rounding out of vectors unless it is hidden. */
static inline float {name}({kind} x)
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
_FLOAT = {
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
        size_t pivot = k;
        T best = arc_fabs@(w[k * width + k]);
        for (size_t row = k + 1; row < n; ++row) {
            const T size = arc_fabs@(w[row * width + k]);
            if (size > best) {
                best = size;
                pivot = row;
            }
        }
        if (pivot != k) {
            for (size_t c = 0; c < width; ++c) {
                const T held = w[k * width + c];
                w[k * width + c] = w[pivot * width + c];
                w[pivot * width + c] = held;
            }
        }
        for (size_t row = k + 1; row < n; ++row) {
            const T factor = w[row * width + k] / w[k * width + k];
            for (size_t c = k + 1; c < width; ++c) {
                const T product = factor * w[k * width + c];
                w[row * width + c] -= product;
            }
        }
    }
    for (size_t k = n; k-- > 0;) {
        for (size_t j = k + 1; j < n; ++j) {
            for (size_t c = n; c < width; ++c) {
                const T product = w[k * width + j] * w[j * width + c];
                w[k * width + c] -= product;
            }
        }
        for (size_t c = n; c < width; ++c) {
            w[k * width + c] /= w[k * width + k];
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


#: Text of every helper by name.
HELPERS: dict[str, str] = {
    **_BITS,
    **_INTEGER,
    **{_of_kind(n, kind): _of_kind(t, kind) for kind in _KINDS for n, t in _FLOAT.items()},
    **SQUARE_ROOTS,
    **FUSED,
}

_NAME = re.compile(r"\barc_\w+")


def with_dependencies(text: str, helpers: Mapping[str, str] = HELPERS) -> dict[str, str]:
    """Return, callee before caller, the helpers that a text calls, and those that they call.

    >>> list(with_dependencies("y = arc_abs(x);"))
    ['arc_neg', 'arc_abs']
    """
    found: dict[str, str] = {}

    def visit(names: Iterable[str]) -> None:
        for name in names:
            if name in helpers and name not in found:
                visit(n for n in _NAME.findall(helpers[name]) if n != name)
                found[name] = helpers[name]

    visit(_NAME.findall(text))
    return found
