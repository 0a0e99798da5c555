"""Square roots: the processor's instruction where there is one, else the same bits in integers.

``__builtin_sqrt`` will not do: compilers that honour errno call the C library for negative
arguments, and always without optimisation. ``ARC_SOFT_SQRT`` selects the integer version.
"""

from __future__ import annotations

__all__ = ["SQUARE_ROOTS"]

#: (when, double's instruction and its register class, float's)
_INSTRUCTIONS = (
    ("defined(__AVX__)", ("vsqrtsd %1, %1, %0", "x"), ("vsqrtss %1, %1, %0", "x")),
    ("defined(__SSE2__)", ("sqrtsd %1, %0", "x"), ("sqrtss %1, %0", "x")),
    ("defined(__aarch64__)", ("fsqrt %d0, %d1", "w"), ("fsqrt %s0, %s1", "w")),
    ("defined(__ARM_FP) && (__ARM_FP & 8)", ("vsqrt.f64 %P0, %P1", "w"), None),
    ("defined(__ARM_FP) && (__ARM_FP & 4)", None, ("vsqrt.f32 %0, %1", "t")),
    ("defined(__riscv_flen) && __riscv_flen >= 64", ("fsqrt.d %0, %1", "f"), None),
    ("defined(__riscv_flen) && __riscv_flen >= 32", None, ("fsqrt.s %0, %1", "f")),
)


def _root(kind: str, suffix: str, soft: str, column: int) -> str:
    lines = ["#if defined(ARC_SOFT_SQRT) || !defined(__GNUC__)", f"    return {soft};"]
    for when, *choices in _INSTRUCTIONS:
        choice = choices[column]
        if choice is not None:
            text, register = choice
            lines += [
                f"#elif {when}",
                f"    {kind} root;",
                f'    __asm__("{text}" : "={register}"(root) : "{register}"(x));',
                "    return root;",
            ]
    body = "\n".join([*lines, "#else", f"    return {soft};", "#endif"])
    return f"static inline {kind} arc_sqrt{suffix}({kind} x)\n{{\n{body}\n}}\n"


#: One binary digit of the root a turn, as with pencil and paper (Knuth, TAOCP vol. 2, section
#: 4.3.1, answer 4): remainder and root fit 64 bits. The root of a float64 is never halfway
#: between two, since its square would need twice the bits, so the 54th digit rounds.
_SOFT = """\
/* Correctly rounded, in integers. */
ARC_UNUSED static inline double arc_soft_sqrt(double x)
{
    const uint64_t one = UINT64_C(1) << 52;
    const uint64_t bits = (uint64_t)arc_bits(x);
    int64_t exponent = (int64_t)((bits >> 52) & 0x7FF);
    uint64_t m = bits & (one - 1);
    uint64_t root = 0;
    uint64_t rest = 0;
    if (!(x > 0.0)) {
        return x < 0.0 ? ARC_NAN : x;
    }
    if (exponent == 0x7FF) {
        return x;
    }
    if (exponent == 0) {
        exponent = 1;
        while (m < one) {
            m <<= 1;
            --exponent;
        }
    } else {
        m |= one;
    }
    exponent -= 1075;
    if (exponent % 2 != 0) {
        m <<= 1;
        --exponent;
    }
    for (int turn = 26; turn > -28; --turn) {
        const uint64_t digits = turn < 0 ? 0 : (m >> (2 * turn)) & 3;
        const uint64_t trial = (root << 2) | 1;
        rest = (rest << 2) | digits;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    root = (root >> 1) + (root & 1);
    return arc_from_bits((int64_t)(((uint64_t)(exponent / 2 + 1048) << 52) + root));
}
"""


#: The helpers ``arc_sqrt`` and ``arc_sqrtf``. A float's root in double rounds to the right float.
SQUARE_ROOTS: dict[str, str] = {
    "arc_soft_sqrt": _SOFT,
    "arc_sqrt": _root("double", "", "arc_soft_sqrt(x)", 0),
    "arc_sqrtf": _root("float", "f", "arc_single(arc_soft_sqrt((double)x))", 1),
}
