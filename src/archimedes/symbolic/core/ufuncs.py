"""What each NumPy ufunc becomes: an opcode, or a short formula in ops (``ufunc_formulas.py``).

Adding a ufunc means adding a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, is_float
from archimedes.graph.ops import CODES
from archimedes.symbolic.core.ufunc_formulas import (
    Loop,
    float_divmod,
    gcd,
    heaviside,
    ignoring_nan,
    int_divmod,
    int_power,
    is_nan,
    lcm,
    ldexp,
    logaddexp,
    modf,
    sign_of,
    unchanged,
)

__all__ = ["UFUNCS"]

#: What one ufunc does to an element, by the dtype code of NumPy's loop.
Row = tuple[Any, Any, Any, Any]


def _always(what: Any) -> Row:
    """The row of a ufunc that is the same op (by name) or formula for every dtype."""
    return _by_kind(what, what, what)


def _by_kind(floats: Any, ints: Any, bools: Any = None) -> Row:
    """The row of a ufunc whose op or formula depends on the dtype of the loop."""
    f, i, b = (CODES[what] if isinstance(what, str) else what for what in (floats, ints, bools))
    return f, f, i, b


def _swapped(name: str) -> Row:
    return _always(lambda e, a, b: e(name, b, a))


def _truth(e: Loop, x: int) -> int:
    return x if e.dtype == B8 else e("ne", x, e.c(0))


def _logical(name: str) -> Row:
    return _always(lambda e, *ids: e(name, *(_truth(e, i) for i in ids)))


def _shift(name: str) -> Row:
    def build(e: Loop, a: int, n: int) -> int:
        # NumPy: a shift by 64 or more (or by a negative count) gives 0, or the sign for >>.
        out = e("lt", n, e.c(0)), e("lt", e.c(63), n)
        outside = e("or", *out)
        full = e.c(0) if name == "shl" else e("shr", a, e.c(63))
        return e.where(outside, full, e(name, a, e("and", n, e.c(63))))

    return _always(build)


def _scaled(factor: float) -> Row:
    return _always(lambda e, x: e("mul", x, e.c(factor)))


#: The logarithm of e to the base 2.
_LOG2_E = 1.4426950408889634

_FLOAT_OPS = (
    "sqrt sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh "
    "exp exp2 expm1 log log2 log10 log1p cbrt hypot copysign"
)

#: ufunc -> its row: opcodes, or formulas.
UFUNCS: dict[np.ufunc, Row] = {
    **{getattr(np, name): _always(name) for name in _FLOAT_OPS.split()},
    np.add: _by_kind("add", "add", "or"),
    np.subtract: _always("sub"),
    np.multiply: _by_kind("mul", "mul", "and"),
    np.true_divide: _always("div"),
    np.negative: _always("neg"),
    np.positive: _always(unchanged),
    np.conjugate: _always(unchanged),
    np.absolute: _by_kind("abs", "abs", unchanged),
    np.fabs: _always("abs"),
    np.square: _always(lambda e, x: e("mul", x, x)),
    np.reciprocal: _by_kind(
        lambda e, x: e("div", e.c(1.0), x), lambda e, x: e("quotient", e.c(1), x)
    ),
    np.floor: _by_kind("floor", unchanged, unchanged),
    np.ceil: _by_kind("ceil", unchanged, unchanged),
    np.trunc: _by_kind("trunc", unchanged, unchanged),
    np.rint: _always("rint"),
    np.sign: _always(sign_of),
    np.signbit: _always(
        lambda e, x: (
            e("lt", e("copysign", e.c(1.0), x), e.c(0.0))
            if is_float(e.dtype)
            else e("lt", x, e.c(0))
        )
    ),
    np.maximum: _by_kind("max", "max", "or"),
    np.minimum: _by_kind("min", "min", "and"),
    np.fmax: _by_kind(ignoring_nan("max"), "max", "or"),
    np.fmin: _by_kind(ignoring_nan("min"), "min", "and"),
    np.floor_divide: _by_kind(
        lambda e, a, b: float_divmod(e, a, b)[0], lambda e, a, b: int_divmod(e, a, b)[0]
    ),
    np.remainder: _by_kind(
        lambda e, a, b: float_divmod(e, a, b)[1], lambda e, a, b: int_divmod(e, a, b)[1]
    ),
    np.divmod: _by_kind(float_divmod, int_divmod),
    np.fmod: _by_kind("fmod", "modulo"),
    np.power: _by_kind("pow", int_power),
    np.float_power: _always("pow"),
    np.ldexp: _always(ldexp),
    np.deg2rad: _scaled(math.pi / 180),
    np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi),
    np.degrees: _scaled(180 / math.pi),
    np.logaddexp: _always(logaddexp("exp", lambda e, x: e("log1p", x))),
    np.logaddexp2: _always(logaddexp("exp2", lambda e, x: e("mul", e("log1p", x), e.c(_LOG2_E)))),
    np.heaviside: _always(heaviside),
    np.modf: _always(modf),
    np.isnan: _by_kind(is_nan, lambda e, x: e.g.const(False, B8), lambda e, x: e.c(False)),
    np.isinf: _by_kind(
        lambda e, x: e("eq", e("abs", x), e.c(math.inf)),
        lambda e, x: e.g.const(False, B8),
        lambda e, x: e.c(False),
    ),
    np.isfinite: _by_kind(
        lambda e, x: e("lt", e("abs", x), e.c(math.inf)),
        lambda e, x: e.g.const(True, B8),
        lambda e, x: e.c(True),
    ),
    np.less: _always("lt"),
    np.less_equal: _always("le"),
    np.greater: _swapped("lt"),
    np.greater_equal: _swapped("le"),
    np.equal: _always("eq"),
    np.not_equal: _always("ne"),
    np.logical_and: _logical("and"),
    np.logical_or: _logical("or"),
    np.logical_xor: _logical("xor"),
    np.logical_not: _logical("not"),
    np.bitwise_and: _always("and"),
    np.bitwise_or: _always("or"),
    np.bitwise_xor: _always("xor"),
    np.invert: _always("not"),
    np.gcd: _always(gcd),
    np.lcm: _always(lcm),
    np.left_shift: _shift("shl"),
    np.right_shift: _shift("shr"),
}
