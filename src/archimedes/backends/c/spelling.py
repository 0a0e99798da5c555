"""How types, constants and operations are written in C.

Floating constants are the shortest decimal numbers that read back as the same bits (Python's and
NumPy's ``repr``): C99, C11 and every C++ take them, a reader can check them against the model,
and compilers that follow C99 annex F round them correctly. Subnormal ones are hexadecimal, where
a compiler may warn of the decimal form.

``SPELLINGS`` has the exact ops, by the names of ``graph/ops.py``: a row gives, by the dtype of the
last operand, an expression of the operands ``{0} {1} {2}``. Names that begin with ``arc_`` are
helpers (``helpers.py``). Operands are names, literals and elements of arrays, so that no row needs
parentheses around them. Each expression becomes a statement of its own: compilers that fuse a
multiplication and an addition of one expression find none to fuse.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F32, F64, I64

CTYPES = {F64: "double", F32: "float", I64: "int64_t", B8: "bool"}
BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}
#: Short names of dtypes, in names of arrays.
LETTERS = {F64: "d", F32: "f", I64: "n", B8: "b"}

_SMALLEST = {F64: sys.float_info.min, F32: float(np.finfo(np.float32).tiny)}


def _number(value: float, dtype: int) -> str:
    suffix = "f" if dtype == F32 else ""
    if value != value:
        return f"ARC_NAN{suffix.upper()}"
    size = abs(value)
    if math.isinf(value):
        text = f"ARC_INF{suffix.upper()}"
    elif 0.0 < size < _SMALLEST[dtype]:
        text = float(size).hex() + suffix
    else:
        text = repr(size) if dtype == F64 else str(np.float32(size))
        text += suffix if "e" in text or "." in text else ".0" + suffix
    return f"-{text}" if math.copysign(1.0, value) < 0.0 else text


def table_item(value: Any, dtype: int) -> str:
    """Write a constant as an element of a table: no parentheses.

    >>> table_item(-0.1, F32), table_item(-(2**63), I64), table_item(True, B8)
    ('-0.1f', 'INT64_MIN', 'true')
    """
    if dtype == B8:
        return "true" if value else "false"
    if dtype == I64:
        if value == -(2**63):
            return "INT64_MIN"
        return f"INT64_C({value})" if value >= 0 else f"-INT64_C({-value})"
    return _number(float(value), dtype)


def literal(value: Any, dtype: int) -> str:
    """Write a constant as an operand.

    >>> literal(0.1, F64), literal(-0.0, F64), literal(float("inf"), F32)
    ('0.1', '(-0.0)', 'ARC_INFF')
    """
    text = table_item(value, dtype)
    return f"({text})" if text.startswith("-") else text


def _floats(text: str) -> dict[int, str]:
    """Spell a row on both float types; ``@`` becomes the suffix of float's functions."""
    return {F64: text.replace("@", ""), F32: text.replace("@", "f")}


def _numbers(on_float: str, on_int: str) -> dict[int, str]:
    return {**_floats(on_float), I64: on_int}


def _compare(sign: str, on_bool: str) -> dict[int, str]:
    return {**_numbers(f"{{0}} {sign} {{1}}", f"{{0}} {sign} {{1}}"), B8: on_bool}


def _bits(sign: str, on_bool: str) -> dict[int, str]:
    return {I64: f"{{0}} {sign} {{1}}", B8: on_bool}


#: Expression of every exact op by name and dtype.
SPELLINGS: dict[str, dict[int, str]] = {
    "add": _numbers("{0} + {1}", "arc_add({0}, {1})"),
    "sub": _numbers("{0} - {1}", "arc_sub({0}, {1})"),
    "mul": _numbers("{0} * {1}", "arc_mul({0}, {1})"),
    "div": _floats("{0} / {1}"),
    "neg": _numbers("-{0}", "arc_neg({0})"),
    "abs": _numbers("arc_fabs@({0})", "arc_abs({0})"),
    "sqrt": _floats("arc_sqrt@({0})"),
    "floor": _floats("arc_floor@({0})"),
    "ceil": _floats("arc_ceil@({0})"),
    "trunc": _floats("arc_trunc@({0})"),
    "rint": _floats("arc_rint@({0})"),
    "copysign": _floats("arc_copysign@({0}, {1})"),
    "min": _numbers("arc_fmin@({0}, {1})", "{0} < {1} ? {0} : {1}"),
    "max": _numbers("arc_fmax@({0}, {1})", "{0} > {1} ? {0} : {1}"),
    "quotient": {I64: "arc_quotient({0}, {1})"},
    "modulo": {I64: "arc_modulo({0}, {1})"},
    "lt": _compare("<", "!{0} && {1}"),
    "le": _compare("<=", "!{0} || {1}"),
    "eq": _compare("==", "{0} == {1}"),
    "ne": _compare("!=", "{0} != {1}"),
    "and": _bits("&", "{0} && {1}"),
    "or": _bits("|", "{0} || {1}"),
    "xor": _bits("^", "{0} ? !{1} : {1}"),
    "not": {I64: "~{0}", B8: "!{0}"},
    "shl": {I64: "arc_shl({0}, {1})"},
    "shr": {I64: "arc_shr({0}, {1})"},
    "lshr": {I64: "arc_lshr({0}, {1})"},
    "select": dict.fromkeys((F64, F32, I64, B8), "{0} ? {1} : {2}"),
    "fma": _floats("arc_fma@({0}, {1}, {2})"),
    "f64": {**_numbers("(double){0}", "(double){0}"), B8: "{0} ? 1.0 : 0.0"},
    "f32": {
        F64: "arc_single({0})",
        F32: "{0}",
        I64: "arc_single_of_int({0})",
        B8: "{0} ? 1.0f : 0.0f",
    },
    "i64": {I64: "{0}", B8: "{0} ? INT64_C(1) : INT64_C(0)"},
    "truncate": _floats("arc_truncate@({0})"),
    "bits": {F64: "arc_bits({0})"},
    "from_bits": {I64: "arc_from_bits({0})"},
    "bits32": {F32: "arc_bitsf({0})"},
    "from_bits32": {I64: "arc_from_bitsf({0})"},
    "stop": dict.fromkeys((F64, F32, I64, B8), "{0}"),
}


def spell_elementary(name: str, dtype: int, operands: list[str]) -> str:
    """Call an elementary function; float's version is double's, rounded once.

    >>> spell_elementary("exp", F32, ["x"])
    'arc_single(arc_exp((double)x))'
    """
    if dtype == F64:
        return f"arc_{name}({', '.join(operands)})"
    if name in ("sin", "cos"):  # where doubles are slow, by integers
        return f"arc_{name}f({operands[0]})"
    return f"arc_single(arc_{name}({', '.join(f'(double){x}' for x in operands)}))"


def spell_pair(dtype: int, operand: str, cosine: str) -> str:
    """Call for sine and cosine at once: the expression is the sine.

    ``cosine`` is the name of a variable of that type.

    >>> spell_pair(F64, "x", "c")
    'arc_sincos(x, &c)'
    """
    return f"arc_sincos{'' if dtype == F64 else 'f'}({operand}, &{cosine})"
