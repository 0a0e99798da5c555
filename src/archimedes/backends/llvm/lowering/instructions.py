"""LLVM lowering of the exact ops: a table keyed by the names of ``graph/ops.py``.

Nothing here carries a fast-math flag, so that LLVM keeps every rounding and never forms a fused
multiply-add by itself. The ``fma`` op is one; where the CPU has none, the C library's is called.
Where LLVM leaves a case undefined (shifts by 64, division by zero, conversion of values out of
range) the lowering spells out what the reference gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from archimedes.backends.exact_division import factors_of
from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.graph.dtypes import B8, F32, F64, I64, is_float


def _signs(f: Function, dtype: int) -> tuple[str, str, int]:
    """Return the type of a float, that of an integer as long, and the mask of its sign."""
    bits = 64 if dtype == F64 else 32
    return f.spelling.types[dtype], f"i{bits}", 1 << bits - 1


def _magnitude(f: Function, dtype: int, a: str) -> str:
    kind, whole, sign = _signs(f, dtype)
    word = f.value(f"bitcast {kind} {a} to {whole}")
    return f.value(f"bitcast {whole} {f.value(f'and {whole} {word}, {sign - 1}')} to {kind}")


def _with_sign(f: Function, dtype: int, a: str, b: str) -> str:
    kind, whole, sign = _signs(f, dtype)
    words = [f.value(f"bitcast {kind} {x} to {whole}") for x in (a, b)]
    parts = [f.value(f"and {whole} {x}, {m}") for x, m in zip(words, (sign - 1, -sign))]
    return f.value(f"bitcast {whole} {f.value(f'or {whole} {parts[0]}, {parts[1]}')} to {kind}")


def _greater(compare: str, f: Function, dtype: int, a: str, b: str) -> str:
    return choose(f, dtype, f.value(f"icmp {compare} i64 {a}, {b}"), a, b)


#: Intrinsics as instructions, for the unoptimized tier: LLVM's fast instruction selection does not
#: know them, and one takes as long to compile as fifty instructions.
_PLAIN: dict[str, Callable[..., str]] = {
    "fabs": _magnitude,
    "copysign": _with_sign,
    "smax": partial(_greater, "sgt"),
    "smin": partial(_greater, "slt"),
}


def intrinsic(f: Function, name: str, dtype: int, *operands: str, extra: str = "") -> str:
    """Call an LLVM intrinsic whose operands and result share one type."""
    if name in _PLAIN and not f.module.target.effort and f.spelling.lanes == 1:
        return _PLAIN[name](f, dtype, *operands)
    kind = f.spelling.types[dtype]
    full = f"@llvm.{name}.{f.spelling.suffix[dtype]}"
    parameters = ", ".join([kind] * len(operands)) + (", i1" if extra else "")
    f.module.declare(full, kind, parameters)
    arguments = ", ".join(f"{kind} {x}" for x in operands) + (f", {extra}" if extra else "")
    return f.value(f"call {kind} {full}({arguments})")


def choose(f: Function, dtype: int, condition: str, a: str, b: str) -> str:
    """Append a select between two values of a dtype."""
    kind, mask = f.spelling.types[dtype], f.spelling.types[B8]
    return f.value(f"select {mask} {condition}, {kind} {a}, {kind} {b}")


def any_lane(f: Function, mask: str) -> str:
    """Return an i1 that tells whether a bool holds in any lane."""
    lanes = f.spelling.lanes
    if lanes == 1:
        return mask
    bits = f.value(f"bitcast {f.spelling.types[B8]} {mask} to i{lanes}")
    return f.value(f"icmp ne i{lanes} {bits}, 0")


def blend(
    f: Function, mask: str, dtypes: Sequence[int], new: Sequence[str], old: Sequence[str]
) -> list[str]:
    """Take new values in the lanes of the mask. In scalar code the mask is known to hold."""
    if f.spelling.lanes == 1:
        return list(new)
    return [choose(f, d, mask, x, y) for d, x, y in zip(dtypes, new, old)]


def wide_operand(f: Function, dtype: int, operand: str) -> str:
    """Return an operand of float arithmetic, loaded if it is a constant and that is faster.

    With AVX a constant in memory is part of the instruction that uses it if it is there for every
    lane; LLVM keeps it once and spends an instruction on copying it. (It would undo this for what
    it knows to be constant, so the memory is not called so.)
    """
    if not operand.startswith("splat") or f.module.target.constants_in_lanes != f.spelling.lanes:
        return operand
    if not f.spelling.value(operand):
        return operand  # zeros come from nowhere
    known = f.module.globals
    kind, size = f.spelling.types[dtype], f.spelling.sizes[dtype]
    key = (f.spelling.lanes << 8 | dtype, operand.encode())
    if key not in known:
        known[key] = f.module.fresh("wide")
        f.module.global_lines.append(
            f"{known[key]} = private global {kind} {operand}, align {size}"
        )
    return f.value(f"load {kind}, ptr {known[key]}, align {size}")


def divide(f: Function, dtype: int, a: str, b: str) -> str:
    """Return a / b, correctly rounded."""
    kind = f.spelling.types[dtype]
    constant = f.spelling.value(b) if dtype == F64 else None
    plain = f.spelling.lanes == 1 or not f.module.target.fuses
    if constant is None or (plain and math.frexp(abs(constant))[0] != 0.5):
        return f.value(f"fdiv {kind} {a}, {b}")
    factors = factors_of(constant)
    if factors is None:
        return f.value(f"fdiv {kind} {a}, {b}")
    if factors.low == 0.0:  # a power of two
        return f.value(f"fmul {kind} {a}, {f.spelling.literal(factors.high, dtype)}")
    high, low = (f.spelling.literal(x, dtype) for x in (factors.high, factors.low))
    product = intrinsic(f, "fma", dtype, a, high, f.value(f"fmul {kind} {a}, {low}"))
    before, dividing, end = f.block, f.label(), f.label()
    f.fork(any_lane(f, _tiny(f, a, factors.least)), dividing, end, rare=True)
    f.start(dividing)
    quotient = f.value(f"fdiv {kind} {a}, {b}")
    f.jump(end)
    return f.phi(kind, (product, before), (quotient, dividing))


def _tiny(f: Function, a: str, exponent: int) -> str:
    """Return the bool 0 < abs(a) < 2**exponent, from the bits of a."""
    kind, literal = f.spelling.types[I64], f.spelling.literal
    bits = f.value(f"bitcast {f.spelling.types[F64]} {a} to {kind}")
    # Without the sign; a zero becomes the largest of all.
    size = f.value(f"add {kind} {bits}, {bits}")
    less = f.value(f"sub {kind} {size}, {literal(1, I64)}")
    limit = ((exponent + 1023) << 53) - 1
    return f.value(f"icmp ult {kind} {less}, {literal(limit, I64)}")


#: ``lower(function, dtype of the last operand, operands)`` returns the result's name.
Lower = Callable[..., str]

INT64_MIN = -(2**63)


def _instruction(on_float: str, on_int: str, on_bool: str = "", loads: bool = False) -> Lower:
    """Lower an op to one instruction, by dtype; with ``loads``, constants may be in memory."""
    names = {F64: on_float, F32: on_float, I64: on_int, B8: on_bool or on_int}

    def lower(f: Function, dtype: int, a: str, b: str) -> str:
        if loads and dtype == F64 and f.spelling.lanes > 1:
            a, b = wide_operand(f, dtype, a), wide_operand(f, dtype, b)
        return f.value(f"{names[dtype]} {f.spelling.types[dtype]} {a}, {b}")

    return lower


def _compare(on_float: str, on_int: str, on_bool: str) -> Lower:
    return _instruction(f"fcmp {on_float}", f"icmp {on_int}", f"icmp {on_bool}")


def _intrinsic(name: str) -> Lower:
    return lambda f, dtype, *operands: intrinsic(f, name, dtype, *operands)


def _rounding(
    name: str, fallback: Callable[[Function, int, str], str], f: Function, dtype: int, a: str
) -> str:
    """Lower to an intrinsic, or to arithmetic where the CPU would call a library for it.

    Arithmetic too in the unoptimized tier, where intrinsics take long (``_PLAIN``).
    """
    target = f.module.target
    if target.rounds_natively and (target.effort or f.spelling.lanes > 1):
        return intrinsic(f, name, dtype, a)
    return fallback(f, dtype, a)


def _rint(f: Function, dtype: int, x: str) -> str:
    """Round by adding and subtracting the power of two above which all floats are whole."""
    kind = f.spelling.types[dtype]
    big = f.spelling.literal(2.0**52 if dtype == F64 else 2.0**23, dtype)
    size = intrinsic(f, "fabs", dtype, x)
    moved = f.value(f"fadd {kind} {size}, {big}")
    back = f.value(f"fsub {kind} {moved}, {big}")
    signed = intrinsic(f, "copysign", dtype, back, x)
    small = f.value(f"fcmp olt {kind} {size}, {big}")
    return choose(f, dtype, small, signed, x)


def _toward(compare: str, correction: str, f: Function, dtype: int, x: str) -> str:
    """Round to nearest, then step back where that went past x."""
    kind = f.spelling.types[dtype]
    nearest = _rint(f, dtype, x)
    past = f.value(f"fcmp {compare} {kind} {nearest}, {x}")
    one = f.spelling.literal(1.0, dtype)
    stepped = f.value(f"{correction} {kind} {nearest}, {one}")
    return intrinsic(f, "copysign", dtype, choose(f, dtype, past, stepped, nearest), x)


_floor, _ceil = partial(_toward, "ogt", "fsub"), partial(_toward, "olt", "fadd")


def _trunc(f: Function, dtype: int, x: str) -> str:
    size = intrinsic(f, "fabs", dtype, x)
    return intrinsic(f, "copysign", dtype, _floor(f, dtype, size), x)


def _neg(f: Function, dtype: int, a: str) -> str:
    kind = f.spelling.types[dtype]
    if is_float(dtype):
        return f.value(f"fneg {kind} {a}")
    return f.value(f"sub {kind} {f.spelling.literal(0, I64)}, {a}")


def _abs(f: Function, dtype: int, a: str) -> str:
    if is_float(dtype):
        return intrinsic(f, "fabs", dtype, a)
    return intrinsic(f, "abs", dtype, a, extra="i1 false")


def _extreme(compare: str, on_int: str, f: Function, dtype: int, a: str, b: str) -> str:
    """Lower min or max: the second operand on ties, nan if either is nan."""
    if not is_float(dtype):
        return intrinsic(f, on_int, dtype, a, b)
    kind = f.spelling.types[dtype]
    first = f.value(f"fcmp {compare} {kind} {a}, {b}")
    chosen = choose(f, dtype, first, a, b)
    missing = f.value(f"fcmp uno {kind} {a}, {a}")
    return choose(f, dtype, missing, a, chosen)


def _division(name: str, f: Function, dtype: int, a: str, b: str) -> str:
    """Lower quotient or modulo: zero for a zero divisor, wrapping for INT64_MIN / -1."""
    kind, literal = f.spelling.types[I64], f.spelling.literal
    mask = f.spelling.types[B8]
    zero, one, minus = literal(0, I64), literal(1, I64), literal(-1, I64)
    none = f.value(f"icmp eq {kind} {b}, {zero}")
    negate = f.value(f"icmp eq {kind} {b}, {minus}")
    special = f.value(f"or {mask} {none}, {negate}")
    divisor = choose(f, I64, special, one, b)
    result = f.value(f"{name} {kind} {a}, {divisor}")
    if name == "srem":
        return result
    negated = f.value(f"sub {kind} {zero}, {a}")
    return choose(f, I64, none, zero, choose(f, I64, negate, negated, result))


def _shift(name: str, f: Function, dtype: int, a: str, n: str) -> str:
    """Lower a shift; counts outside 0..63 give zeros, or copies of the sign for ``ashr``."""
    kind, literal = f.spelling.types[I64], f.spelling.literal
    if any(n == literal(k, I64) for k in range(64)):
        return f.value(f"{name} {kind} {a}, {n}")
    inside = f.value(f"icmp ult {kind} {n}, {literal(64, I64)}")
    if name == "ashr":
        count = choose(f, I64, inside, n, literal(63, I64))
        return f.value(f"ashr {kind} {a}, {count}")
    count = choose(f, I64, inside, n, literal(0, I64))
    shifted = f.value(f"{name} {kind} {a}, {count}")
    return choose(f, I64, inside, shifted, literal(0, I64))


def _not(f: Function, dtype: int, a: str) -> str:
    ones = f.spelling.literal(-1 if dtype == I64 else True, dtype)
    return f.value(f"xor {f.spelling.types[dtype]} {a}, {ones}")


_CASTS = {
    (F64, F32): "fptrunc",
    (F32, F64): "fpext",
    (I64, F64): "sitofp",
    (I64, F32): "sitofp",
    (B8, F64): "uitofp",
    (B8, F32): "uitofp",
    (B8, I64): "zext",
}


def _cast(target: int, f: Function, dtype: int, a: str) -> str:
    if dtype == target:
        return a
    types = f.spelling.types
    return f.value(f"{_CASTS[dtype, target]} {types[dtype]} {a} to {types[target]}")


def _truncate(f: Function, dtype: int, x: str) -> str:
    kind, literal, mask = f.spelling.types[dtype], f.spelling.literal, f.spelling.types[B8]
    above = f.value(f"fcmp oge {kind} {x}, {literal(-(2.0**63), dtype)}")
    below = f.value(f"fcmp olt {kind} {x}, {literal(2.0**63, dtype)}")
    inside = f.value(f"and {mask} {above}, {below}")
    safe = choose(f, dtype, inside, x, literal(0.0, dtype))
    whole = f.value(f"fptosi {kind} {safe} to {f.spelling.types[I64]}")
    return choose(f, I64, inside, whole, literal(INT64_MIN, I64))


def _convert(*steps: tuple[str, int | str]) -> Lower:
    """Lower to conversions one after the other: an instruction and a dtype, or i32, for each."""

    def lower(f: Function, dtype: int, a: str) -> str:
        kind = f.spelling.types[dtype]
        for word, target in steps:
            following = f.spelling.int32 if isinstance(target, str) else f.spelling.types[target]
            a, kind = f.value(f"{word} {kind} {a} to {following}"), following
        return a

    return lower


#: Lowering of every exact op by name.
LOWERING: dict[str, Lower] = {
    "add": _instruction("fadd", "add", loads=True),
    "sub": _instruction("fsub", "sub", loads=True),
    "mul": _instruction("fmul", "mul", loads=True),
    "div": divide,
    "neg": _neg,
    "abs": _abs,
    "sqrt": _intrinsic("sqrt"),
    "floor": partial(_rounding, "floor", _floor),
    "ceil": partial(_rounding, "ceil", _ceil),
    "trunc": partial(_rounding, "trunc", _trunc),
    "rint": partial(_rounding, "rint", _rint),
    "copysign": _intrinsic("copysign"),
    "min": partial(_extreme, "olt", "smin"),
    "max": partial(_extreme, "ogt", "smax"),
    "quotient": partial(_division, "sdiv"),
    "modulo": partial(_division, "srem"),
    "lt": _compare("olt", "slt", "ult"),
    "le": _compare("ole", "sle", "ule"),
    "eq": _compare("oeq", "eq", "eq"),
    "ne": _compare("une", "ne", "ne"),
    "and": _instruction("and", "and"),
    "or": _instruction("or", "or"),
    "xor": _instruction("xor", "xor"),
    "not": _not,
    "shl": partial(_shift, "shl"),
    "shr": partial(_shift, "ashr"),
    "lshr": partial(_shift, "lshr"),
    "select": choose,
    "fma": _intrinsic("fma"),
    "f64": partial(_cast, F64),
    "f32": partial(_cast, F32),
    "i64": partial(_cast, I64),
    "truncate": _truncate,
    "bits": _convert(("bitcast", I64)),
    "from_bits": _convert(("bitcast", F64)),
    "bits32": _convert(("bitcast", "i32"), ("zext", I64)),
    "from_bits32": _convert(("trunc", "i32"), ("bitcast", F32)),
    "stop": lambda f, dtype, a: a,
}
