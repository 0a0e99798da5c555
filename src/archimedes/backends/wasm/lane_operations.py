"""The exact ops on two instances at a time: SIMD instructions, or the scalar ones lane by lane.

A value is a v128: two float64 or int64, a bool as an int64 of all ones or zeros, two float32 in the
lower half (what the upper half holds is never read).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from archimedes.backends.wasm.functions import Function
from archimedes.backends.wasm.operations import OPERATIONS, is_number
from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.ops import BY_NAME

#: Shapes of values.
SHAPES = {F64: "f64x2", F32: "f32x4", I64: "i64x2", B8: "i64x2"}
#: The first four bytes of each int64.
_LOWER = bytes([0, 1, 2, 3, 8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11])
#: Numbers below 2**51 are added to this to have their integer in the lower bits.
_MAGIC, _MAGIC_BITS = 1.5 * 2.0**52, 0x4338 << 48

Write = Callable[..., str]


def splat(f: Function, dtype: int, one: str) -> str:
    """Return a value with one scalar in both lanes."""
    if dtype == B8:
        one = f.op("i64.sub", f.constant("i64", 0), f.op("i64.extend_i32_u", one))
    return f.op(f"{SHAPES[dtype]}.splat", one)


def take(f: Function, dtype: int, value: str, lane: int) -> str:
    """Return the scalar in a lane."""
    one = f.op(f"{SHAPES[dtype]}.extract_lane", value, immediate=bytes([lane]))
    if dtype == B8:
        return f.op("i32.and", f.op("i32.wrap_i64", one), f.constant("i32", 1))
    return one


def pair(f: Function, dtype: int, first: str, second: str) -> str:
    """Return a value of two scalars."""
    if dtype == B8:
        zero = f.constant("i64", 0)
        first, second = (
            f.op("i64.sub", zero, f.op("i64.extend_i32_u", x)) for x in (first, second)
        )
    shape = SHAPES[dtype]
    whole = f.op(f"{shape}.splat", first)
    return f.op(f"{shape}.replace_lane", whole, second, immediate=b"\x01")


def choose(f: Function, dtype: int, mask: str, a: str, b: str) -> str:
    """Return ``a`` in the lanes of a mask, else ``b``."""
    return f.op("v128.bitselect", a, b, _narrow(f, mask) if dtype == F32 else mask)


def any_lane(f: Function, mask: str) -> str:
    """Return whether a bool holds in any lane."""
    return f.op("v128.any_true", mask)


def _narrow(f: Function, value: str) -> str:
    """Return the lower halves of both int64."""
    return f.op("i8x16.shuffle", value, value, immediate=_LOWER)


def by_lane(f: Function, name: str, dtype: int, operands: Sequence[str]) -> str:
    """Write an op for one lane after the other."""
    result = BY_NAME[name].result
    made = dtype if isinstance(result, str) else result
    lanes = ([take(f, dtype, x, lane) for x in operands] for lane in range(2))
    return pair(f, made, *(OPERATIONS[name](f, dtype, *scalars) for scalars in lanes))


def _compare(word: str) -> Write:
    def write(f: Function, dtype: int, a: str, b: str) -> str:
        sign = "_s" if dtype == I64 and word not in ("eq", "ne") else ""
        mask = f.op(f"{SHAPES[dtype]}.{word}{sign}", a, b)
        return f.op("i64x2.extend_low_i32x4_s", mask) if dtype == F32 else mask

    return write


def _on_bools(word: str, compare: Write, f: Function, dtype: int, a: str, b: str) -> str:
    if dtype != B8:
        return compare(f, dtype, a, b)
    if word == "lt":
        return f.op("v128.andnot", b, a)
    if word == "le":
        return f.op("v128.or", f.op("v128.not", a), b)
    different = f.op("v128.xor", a, b)
    return different if word == "ne" else f.op("v128.not", different)


def _plain(word: str) -> Write:
    return lambda f, dtype, *operands: f.op(f"{SHAPES[dtype]}.{word}", *operands)


def _bitwise(word: str) -> Write:
    return lambda f, dtype, *operands: f.op(f"v128.{word}", *operands)


def _extreme(word: str, relation: str, f: Function, dtype: int, a: str, b: str) -> str:
    """Write min or max; the instructions return their first operand on ties, and if it is nan."""
    constants = [(x, y) for x, y in ((a, b), (b, a)) if is_number(f.value_of(y))]
    if dtype != I64 and constants and f.value_of(constants[0][1]) != 0.0:
        return f.op(f"{SHAPES[dtype]}.{word}", *constants[0])
    first = _compare(relation)(f, dtype, a, b)
    if dtype != I64:
        first = f.op("v128.or", first, _compare("ne")(f, dtype, a, a))
    return choose(f, dtype, first, a, b)


def _copysign(f: Function, dtype: int, a: str, b: str) -> str:
    if dtype == F32:
        return by_lane(f, "copysign", dtype, [a, b])
    return f.op("v128.bitselect", a, b, f.module.lanes_constant(2**63 - 1, I64))


def _shift(word: str, name: str, f: Function, dtype: int, a: str, n: str) -> str:
    known = f.value_of(n)
    if known is None or not 0 <= known < 64:
        return by_lane(f, name, dtype, [a, n])
    return f.op(f"i64x2.{word}", a, f.constant("i32", known))


def _to_f64(f: Function, dtype: int, a: str) -> str:
    if dtype == F32:
        return f.op("f64x2.promote_low_f32x4", a)
    if dtype == B8:
        return f.op("v128.and", a, f.module.lanes_constant(1.0, F64))
    return a if dtype == F64 else f.call(f.module.helper("to_float", _write_to_float), [a])[0]


def _to_f32(f: Function, dtype: int, a: str) -> str:
    if dtype == F64:
        return f.op("f32x4.demote_f64x2_zero", a)
    if dtype == B8:
        return f.op("v128.and", _narrow(f, a), f.module.lanes_constant(1.0, F32))
    return a if dtype == F32 else by_lane(f, "f32", dtype, [a])


def _to_i64(f: Function, dtype: int, a: str) -> str:
    if dtype != B8:
        return a
    result = f.op("i64x2.neg", a)
    f.conditions[result] = a
    return result


def _truncate(f: Function, dtype: int, a: str) -> str:
    if dtype == F32:
        return by_lane(f, "truncate", dtype, [a])
    return f.call(f.module.helper("truncate", _write_truncate), [a])[0]


def _write_either(
    f: Function, fits: str, quick: Callable[[str], str], name: str, dtype: int, x: str
) -> None:
    """Write a function of x: quick where both lanes fit, else lane by lane."""
    result = f.variable("v128")
    f.assign([result], [quick(x)])
    with f.when(any_lane(f, f.op("v128.not", fits))):
        f.assign([result], [by_lane(f, name, dtype, [x])])
    f.give([result])


def _write_truncate(f: Function) -> None:
    """Write a conversion to int64; nan and what it cannot hold give its minimum."""
    x = f.parameter("v128")
    number, bits = f.module.lanes_constant(_MAGIC, F64), f.module.lanes_constant(_MAGIC_BITS, I64)
    limit = f.module.lanes_constant(2.0**51, F64)
    fits = f.op("f64x2.lt", f.op("f64x2.abs", x), limit)

    def quick(x: str) -> str:
        return f.op("i64x2.sub", f.op("f64x2.add", f.op("f64x2.trunc", x), number), bits)

    _write_either(f, fits, quick, "truncate", F64, x)


def _write_to_float(f: Function) -> None:
    """Write a conversion of int64 to float64."""
    x = f.parameter("v128")
    number, bits = f.module.lanes_constant(_MAGIC, F64), f.module.lanes_constant(_MAGIC_BITS, I64)
    moved = f.op("i64x2.add", x, f.module.lanes_constant(2**51, I64))
    above = f.op("i64x2.shr_u", moved, f.constant("i32", 52))
    fits = f.op("i64x2.eq", above, f.module.lanes_constant(0, I64))

    def quick(x: str) -> str:
        return f.op("f64x2.sub", f.op("i64x2.add", x, bits), number)

    _write_either(f, fits, quick, "f64", I64, x)


#: How every exact op is written for two lanes; others go lane by lane.
LANE_OPERATIONS: dict[str, Write] = {
    **{name: _plain(name) for name in ("add", "sub", "mul", "div", "neg", "abs", "sqrt")},
    **{name: _plain(name) for name in ("floor", "ceil", "trunc")},
    "rint": _plain("nearest"),
    "copysign": _copysign,
    "min": partial(_extreme, "pmin", "lt"),
    "max": partial(_extreme, "pmax", "gt"),
    **{x: partial(_on_bools, x, _compare(x)) for x in ("lt", "le", "eq", "ne")},
    **{name: _bitwise(name) for name in ("and", "or", "xor", "not")},
    "shl": partial(_shift, "shl", "shl"),
    "shr": partial(_shift, "shr_s", "shr"),
    "lshr": partial(_shift, "shr_u", "lshr"),
    "select": choose,
    "f64": _to_f64,
    "f32": _to_f32,
    "i64": _to_i64,
    "truncate": _truncate,
    "bits": lambda f, dtype, a: a,
    "from_bits": lambda f, dtype, a: a,
    "bits32": lambda f, dtype, a: f.op("i64x2.extend_low_i32x4_u", a),
    "from_bits32": lambda f, dtype, a: _narrow(f, a),
    "stop": lambda f, dtype, a: a,
}
