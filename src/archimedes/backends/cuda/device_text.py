"""CUDA C that generated code stands on: the prelude of a file and what a GPU does by itself.

There is no C library and there are no headers: NVRTC has none. Helpers are those of C behind
``__device__``, except for the few that are one instruction of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from archimedes.backends.c.elementary import library

__all__ = ["HELPERS_OF_GPU", "OPTIONS", "PRELUDE", "all_helpers", "on_device"]

#: What keeps the interpreter's bits: nothing fused, correct rounding, subnormal numbers.
OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")

#: Infinities and nans are bit patterns: constant expressions without a header or a warning.
PRELUDE = """\
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
#define UINT32_C(x) x##U
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-INT64_MAX - 1)
#define ARC_UNUSED
#define ARC_INF __builtin_bit_cast(double, 0x7FF0000000000000ULL)
#define ARC_NAN __builtin_bit_cast(double, 0x7FF8000000000000ULL)
#define ARC_INFF __builtin_bit_cast(float, 0x7F800000U)
#define ARC_NANF __builtin_bit_cast(float, 0x7FC00000U)
"""

_STATIC = re.compile(r"^(?:ARC_UNUSED )?static ", re.MULTILINE)

#: Branches that elementary functions hardly ever take (angles beyond 1e5): as functions that stay
#: functions they take a quarter of the time to compile.
_RARE = re.compile(r"^__device__ static (\w+ arc_(?:\w+_switch\d+|huge_angle)\()", re.MULTILINE)


def on_device(text: str) -> str:
    """Put the functions and tables of C text on the device.

    >>> on_device("static const double t[1] = {1.0};")
    '__device__ static const double t[1] = {1.0};'
    """
    return _STATIC.sub("__device__ static ", text)


def _function(head: str, expression: str) -> str:
    return f"__device__ static inline {head}\n{{\n    return {expression};\n}}\n"


#: name: (result, parameters, expression)
_INSTRUCTIONS = {
    "arc_single": ("float", "double x", "__double2float_rn(x)"),
    "arc_single_of_int": ("float", "int64_t x", "__ll2float_rn(x)"),
    "arc_bits": ("int64_t", "double x", "__double_as_longlong(x)"),
    "arc_from_bits": ("double", "int64_t x", "__longlong_as_double(x)"),
    "arc_word": ("uint32_t", "float x", "__float_as_uint(x)"),
    "arc_from_word": ("float", "uint32_t x", "__uint_as_float(x)"),
    "arc_sinf": ("float", "float x", "arc_single(arc_sin((double)x))"),
    "arc_cosf": ("float", "float x", "arc_single(arc_cos((double)x))"),
    "arc_sqrt": ("double", "double x", "__dsqrt_rn(x)"),
    "arc_sqrtf": ("float", "float x", "__fsqrt_rn(x)"),
    "arc_fma": ("double", "double a, double b, double c", "__fma_rn(a, b, c)"),
    "arc_fmaf": ("float", "float a, float b, float c", "__fmaf_rn(a, b, c)"),
}
_OF_BOTH = {
    "fabs": ("T x", "fabs@(x)"),
    "copysign": ("T x, T sign", "copysign@(x, sign)"),
    "rint": ("T x", "rint@(x)"),
    "floor": ("T x", "floor@(x)"),
    "ceil": ("T x", "ceil@(x)"),
    "trunc": ("T x", "trunc@(x)"),
}


def _instructions() -> dict[str, str]:
    made = {
        name: _function(f"{result} {name}({parameters})", expression)
        for name, (result, parameters, expression) in _INSTRUCTIONS.items()
    }
    for kind, suffix in (("double", ""), ("float", "f")):
        for stem, (parameters, expression) in _OF_BOTH.items():
            name = f"arc_{stem}{suffix}"
            head = f"{kind} {name}({parameters.replace('T', kind)})"
            made[name] = _function(head, expression.replace("@", suffix))
    return made


#: A quotient by a constant c with 1 / c about high + low (``exact_division.py``); numerators other
#: than 0 whose bits without the sign, twice, are at most ``limit`` are divided.
_DIVIDED = """\
__device__ static inline double arc_divided(double x, double c, double high, double low, \
uint64_t limit)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(x);
    double quotient = __fma_rn(x, high, x * low);
    if (bits + bits - 1 < limit) {
        quotient = x / c;
    }
    return quotient;
}
"""

_SINCOSF = """\
__device__ static float arc_sincosf(float x, float *cosine)
{
    double c;
    const double s = arc_sincos((double)x, &c);
    *cosine = arc_single(c);
    return arc_single(s);
}
"""

#: Helpers that are a GPU's own, by name.
HELPERS_OF_GPU: Mapping[str, str] = {
    **_instructions(),
    "arc_divided": _DIVIDED,
    "arc_sincosf": _SINCOSF,
}


@cache
def all_helpers() -> dict[str, str]:
    """Return every helper by name, as functions of the device.

    >>> "__device__ static double arc_sin(double x)" in all_helpers()["arc_sin"]
    True
    """
    ours = {
        name: _RARE.sub(r"__device__ static __noinline__ \1", on_device(text))
        for name, text in library().items()
    }
    return {**ours, **HELPERS_OF_GPU}
