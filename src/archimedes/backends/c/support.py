"""C text that generated code stands on: the prelude of a file and small static functions.

Everything is C99, C11 and C++17 without undefined behaviour, and needs nothing of a C library.
Where C leaves a case undefined (overflow of signed integers, shifts by 64, division by zero,
conversion of values out of range) the function spells out what the interpreter gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from archimedes.backends.c.helpers.floats import FLOAT_HELPERS
from archimedes.backends.c.helpers.fused import FUSED
from archimedes.backends.c.helpers.integers import INTEGER_HELPERS
from archimedes.backends.c.helpers.square_root import SQUARE_ROOTS

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
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: it changes results"
#endif
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)
#error "floating-point arithmetic has excess precision: compile with -msse2 -mfpmath=sse"
#endif

/* Where doubles are calculated by software some functions go other ways, with the same bits. */
#if !defined(ARC_SOFT_DOUBLE)
#if (defined(__arm__) && !(defined(__ARM_FP) && (__ARM_FP & 8))) || defined(__AVR__) || \\
    defined(__XTENSA__) || (defined(__riscv) && !(defined(__riscv_flen) && __riscv_flen >= 64))
#define ARC_SOFT_DOUBLE
#endif
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


#: Text of every helper by name.
HELPERS: dict[str, str] = {
    **INTEGER_HELPERS,
    **FLOAT_HELPERS,
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
