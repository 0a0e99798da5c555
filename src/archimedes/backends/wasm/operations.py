"""The exact ops in WebAssembly: a table keyed by the names of ``graph/ops.py``.

Arithmetic of WebAssembly is that of IEEE 754, and of integers that wrap around. Where an
instruction would trap (division by zero) or differs from the reference (shifts by 64, minimum of
zeros of unlike sign), the reference is spelled out. A bool is an i32, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from archimedes.backends.wasm.functions import Function
from archimedes.graph.dtypes import B8, F32, F64, I64

#: Types of values.
KINDS = {F64: "f64", F32: "f32", I64: "i64", B8: "i32"}
#: ``write(function, dtype of the last operand, operands)`` returns the result.
Write = Callable[..., str]


def _plain(on_float: str, on_int: str = "", on_bool: str = "") -> Write:
    """Write an op as one instruction, by dtype."""
    words = {F64: on_float, F32: on_float, I64: on_int, B8: on_bool}

    def write(f: Function, dtype: int, *operands: str) -> str:
        return f.op(f"{KINDS[dtype]}.{words[dtype]}", *operands)

    return write


def _neg(f: Function, dtype: int, a: str) -> str:
    if dtype == I64:
        return f.op("i64.sub", f.constant("i64", 0), a)
    return f.op(f"{KINDS[dtype]}.neg", a)


def _abs(f: Function, dtype: int, a: str) -> str:
    if dtype == I64:
        zero = f.constant("i64", 0)
        return f.select(f.op("i64.lt_s", a, zero), f.op("i64.sub", zero, a), a)
    return f.op(f"{KINDS[dtype]}.abs", a)


def is_number(value: float | None) -> bool:
    """Return whether a value is a constant, and not nan."""
    return value is not None and value == value


def _extreme(relation: str, inverse: str, f: Function, dtype: int, a: str, b: str) -> str:
    """Write min or max: the second operand on ties, nan if either is nan.

    The instructions for this prefer one zero, and make nans of another sign.
    """
    kind = KINDS[dtype]
    if dtype == I64:
        return f.select(f.op(f"i64.{relation}_s", a, b), a, b)
    if is_number(f.value_of(b)):
        return f.select(f.op(f"{kind}.{inverse}", a, b), b, a)
    first = f.op(f"{kind}.{relation}", a, b)
    if not is_number(f.value_of(a)):
        first = f.op("i32.or", first, f.op(f"{kind}.ne", a, a))
    return f.select(first, a, b)


def _division(word: str, f: Function, dtype: int, a: str, b: str) -> str:
    """Write quotient or modulo: zero for a zero divisor, wrapping for the least int64 and -1."""
    zero, one, minus = (f.constant("i64", k) for k in (0, 1, -1))
    known = f.value_of(b)
    if known is not None and known not in (0, -1):
        return f.op(f"i64.{word}", a, b)
    special = f.op("i64.le_u", f.op("i64.add", b, one), one)
    result = f.op(f"i64.{word}", a, f.select(special, one, b))
    if word == "rem_s":
        return result
    negated = f.select(f.op("i64.eq", b, minus), f.op("i64.sub", zero, a), result)
    return f.select(f.op("i64.eqz", b), zero, negated)


def _shift(word: str, f: Function, dtype: int, a: str, n: str) -> str:
    """Write a shift; counts outside 0..63 give zeros, or copies of the sign for ``shr_s``."""
    known = f.value_of(n)
    if known is not None and 0 <= known < 64:
        return f.op(f"i64.{word}", a, n)
    inside = f.op("i64.lt_u", n, f.constant("i64", 64))
    if word == "shr_s":
        return f.op("i64.shr_s", a, f.select(inside, n, f.constant("i64", 63)))
    return f.select(inside, f.op(f"i64.{word}", a, n), f.constant("i64", 0))


def _not(f: Function, dtype: int, a: str) -> str:
    if dtype == B8:
        return f.op("i32.eqz", a)
    return f.op("i64.xor", a, f.constant("i64", -1))


def _less(f: Function, dtype: int, a: str, b: str) -> str:
    if dtype == B8:
        return f.op("i32.lt_u", a, b)
    return f.op(f"{KINDS[dtype]}.{'lt_s' if dtype == I64 else 'lt'}", a, b)


def _less_equal(f: Function, dtype: int, a: str, b: str) -> str:
    if dtype == B8:
        return f.op("i32.le_u", a, b)
    return f.op(f"{KINDS[dtype]}.{'le_s' if dtype == I64 else 'le'}", a, b)


_CASTS = {
    (F64, F32): "f32.demote_f64",
    (F32, F64): "f64.promote_f32",
    (I64, F64): "f64.convert_i64_s",
    (I64, F32): "f32.convert_i64_s",
    (B8, F64): "f64.convert_i32_u",
    (B8, F32): "f32.convert_i32_u",
    (B8, I64): "i64.extend_i32_u",
}


def _cast(target: int, f: Function, dtype: int, a: str) -> str:
    if dtype == target:
        return a
    result = f.op(_CASTS[dtype, target], a)
    if dtype == B8:
        f.conditions[result] = a
    return result


def _truncate(f: Function, dtype: int, x: str) -> str:
    """Write a conversion; nan and what int64 cannot hold give its minimum."""
    kind = KINDS[dtype]
    whole = f.op(f"i64.trunc_sat_{kind}_s", x)
    # The instruction gives the minimum below, too; 0 for nan, and the maximum above.
    fits = f.op(f"{kind}.lt", x, f.constant(kind, 2.0**63))
    return f.select(fits, whole, f.constant("i64", -(2**63)))


def _bits32(f: Function, dtype: int, a: str) -> str:
    return f.op("i64.extend_i32_u", f.op("i32.reinterpret_f32", a))


def _from_bits32(f: Function, dtype: int, a: str) -> str:
    return f.op("f32.reinterpret_i32", f.op("i32.wrap_i64", a))


#: How every exact op is written, by name; ``fma`` is a program (``programs.py``).
OPERATIONS: dict[str, Write] = {
    "add": _plain("add", "add"),
    "sub": _plain("sub", "sub"),
    "mul": _plain("mul", "mul"),
    "div": _plain("div"),
    "neg": _neg,
    "abs": _abs,
    "sqrt": _plain("sqrt"),
    "floor": _plain("floor"),
    "ceil": _plain("ceil"),
    "trunc": _plain("trunc"),
    "rint": _plain("nearest"),
    "copysign": _plain("copysign"),
    "min": partial(_extreme, "lt", "ge"),
    "max": partial(_extreme, "gt", "le"),
    "quotient": partial(_division, "div_s"),
    "modulo": partial(_division, "rem_s"),
    "lt": _less,
    "le": _less_equal,
    "eq": _plain("eq", "eq", "eq"),
    "ne": _plain("ne", "ne", "ne"),
    "and": _plain("", "and", "and"),
    "or": _plain("", "or", "or"),
    "xor": _plain("", "xor", "xor"),
    "not": _not,
    "shl": partial(_shift, "shl"),
    "shr": partial(_shift, "shr_s"),
    "lshr": partial(_shift, "shr_u"),
    "select": lambda f, dtype, test, a, b: f.select(test, a, b),
    "f64": partial(_cast, F64),
    "f32": partial(_cast, F32),
    "i64": partial(_cast, I64),
    "truncate": _truncate,
    "bits": lambda f, dtype, a: f.op("i64.reinterpret_f64", a),
    "from_bits": lambda f, dtype, a: f.op("f64.reinterpret_i64", a),
    "bits32": _bits32,
    "from_bits32": _from_bits32,
    "stop": lambda f, dtype, a: a,
}
