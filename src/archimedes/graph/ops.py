"""The table of scalar operations.

One row per op: name, arity, the rule for its result's dtype, the dtypes it takes, and what it
means in NumPy. Derivatives (``derivatives/rules.py``) and renderers are tables keyed by the same
names, so that a new op is one row in each and is tested everywhere by being listed.

Operands of one node share one dtype unless the row says otherwise; the symbolic layer inserts
casts. ``a``, ``b``, ``c`` of a node are ids for the first ``arity`` of them, and immediate
integers (an input's position, a region's output number, a table's number) after that. A
``block`` node is a constant table as one value, an ``element`` node reads a block at an index.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8, F32, F64, I64
from archimedes.graph.elementary.table import PROGRAMS, evaluate
from archimedes.graph.fused_multiply_add import fused_multiply_add
from archimedes.records import record

FLOATS = (F64, F32)
NUMBERS = (F64, F32, I64)
ANY = (F64, F32, I64, B8)
INTS = (I64,)
BITS = (I64, B8)


@record
class Op:
    """A row of the table.

    ``result`` is a dtype code, or "same" (of the last operand), or "stored" (with the node).
    ``numpy`` evaluates the op on scalars or arrays; structural ops have none.
    ``elementary`` marks functions that backends expand into programs of the exact rows.
    """

    code: int
    name: str
    arity: int
    result: int | str
    takes: tuple[int, ...]
    numpy: Callable[..., Any] | None = None
    elementary: bool = False
    commutative: bool = False


def _shift_right_logical(a: Any, n: Any) -> Any:
    return (np.asarray(a).view(np.uint64) >> np.asarray(n).astype(np.uint64)).view(np.int64)[()]


def _cast(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)[()]


def _view(x: Any, source: Any, target: Any) -> Any:
    return np.asarray(x, dtype=source).view(target)[()]


def _int_division(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient toward zero and remainder; a zero divisor gives zero for both, as NumPy's does."""
    a, b = np.asarray(a), np.asarray(b)
    safe = np.where(b == 0, 1, b)
    remainder = np.fmod(a, safe)
    return np.where(b == 0, 0, (a - remainder) // safe)[()], np.where(b == 0, 0, remainder)[()]


def _select(c: Any, a: Any, b: Any) -> Any:
    if isinstance(c, np.bool_) and isinstance(a, np.generic) and isinstance(b, np.generic):
        return a if c else b  # as NumPy does, ten times as fast
    result: Any = np.where(c, a, b)
    return result[()]


def _minimum(a: Any, b: Any) -> Any:
    """NumPy's minimum; of a positive and a negative zero it takes b, which NumPy leaves open."""
    return _select((a < b) | (a != a), a, b)


def _maximum(a: Any, b: Any) -> Any:
    """NumPy's maximum; of a positive and a negative zero it takes b, which NumPy leaves open."""
    return _select((a > b) | (a != a), a, b)


def _truncate(x: Any) -> Any:
    """Float to int64 toward zero; nan and values outside int64 give its minimum, as on x86."""
    x = np.asarray(x)
    inside = (x >= -(2.0**63)) & (x < 2.0**63)
    return np.where(inside, np.where(inside, x, 0).astype(np.int64), np.iinfo(np.int64).min)[()]


_EXACT: tuple[tuple[Any, ...], ...] = (
    # name, arity, result, takes, numpy, commutative
    ("add", 2, "same", NUMBERS, np.add, True),
    ("sub", 2, "same", NUMBERS, np.subtract),
    ("mul", 2, "same", NUMBERS, np.multiply, True),
    ("div", 2, "same", FLOATS, np.divide),
    ("neg", 1, "same", NUMBERS, np.negative),
    ("abs", 1, "same", NUMBERS, np.absolute),
    ("sqrt", 1, "same", FLOATS, np.sqrt),
    ("floor", 1, "same", FLOATS, np.floor),
    ("ceil", 1, "same", FLOATS, np.ceil),
    ("trunc", 1, "same", FLOATS, np.trunc),
    ("rint", 1, "same", FLOATS, np.rint),
    ("copysign", 2, "same", FLOATS, np.copysign),
    ("min", 2, "same", NUMBERS, _minimum),
    ("max", 2, "same", NUMBERS, _maximum),
    ("quotient", 2, "same", INTS, lambda a, b: _int_division(a, b)[0]),
    ("modulo", 2, "same", INTS, lambda a, b: _int_division(a, b)[1]),
    ("lt", 2, B8, ANY, np.less),
    ("le", 2, B8, ANY, np.less_equal),
    ("eq", 2, B8, ANY, np.equal, True),
    ("ne", 2, B8, ANY, np.not_equal, True),
    ("and", 2, "same", BITS, np.bitwise_and, True),
    ("or", 2, "same", BITS, np.bitwise_or, True),
    ("xor", 2, "same", BITS, np.bitwise_xor, True),
    ("not", 1, "same", BITS, np.invert),
    ("shl", 2, "same", INTS, np.left_shift),
    ("shr", 2, "same", INTS, np.right_shift),
    ("lshr", 2, "same", INTS, _shift_right_logical),
    ("select", 3, "same", ANY, _select),
    ("fma", 3, "same", FLOATS, fused_multiply_add),
    ("f64", 1, F64, ANY, lambda x: _cast(x, np.float64)),
    ("f32", 1, F32, ANY, lambda x: _cast(x, np.float32)),
    ("i64", 1, I64, (I64, B8), lambda x: _cast(x, np.int64)),
    ("truncate", 1, I64, FLOATS, _truncate),
    ("bits", 1, I64, (F64,), lambda x: _view(x, np.float64, np.int64)),
    ("from_bits", 1, F64, (I64,), lambda x: _view(x, np.int64, np.float64)),
    ("bits32", 1, I64, (F32,), lambda x: _cast(_view(x, np.float32, np.uint32), np.int64)),
    ("from_bits32", 1, F32, (I64,), lambda x: _view(_cast(x, np.uint32), np.uint32, np.float32)),
    ("stop", 1, "same", ANY, lambda x: x),
)

#: Nodes that compute nothing, with their number of operands.
_STRUCTURAL = {"const": 0, "input": 0, "region": 0, "out": 1, "lookup": 1, "block": 0, "element": 2}


def _table() -> tuple[Op, ...]:
    rows = [
        Op(code, name, arity, "stored", INTS if name == "lookup" else ANY)
        for code, (name, arity) in enumerate(_STRUCTURAL.items())
    ]
    for name, arity, result, takes, function, *commutes in _EXACT:
        rows.append(Op(len(rows), name, arity, result, takes, function, commutative=bool(commutes)))
    for name, row in PROGRAMS.items():
        function = partial(evaluate, name)
        rows.append(Op(len(rows), name, row.arity, "same", FLOATS, function, elementary=True))
    return tuple(rows)


#: Every op, indexed by its code.
TABLE = _table()
BY_NAME = {op.name: op for op in TABLE}
CODES = {op.name: op.code for op in TABLE}
#: Structural nodes: everything else computes a value from the values of its operands.
CONST, INPUT, REGION, OUT, LOOKUP, BLOCK, ELEMENT = range(len(_STRUCTURAL))
#: How many of ``a``, ``b``, ``c`` are ids, by code.
ARITY = tuple(op.arity for op in TABLE)
#: The same, but 0 for structural nodes, which need treatment of their own.
OPERANDS = tuple(0 if op.code < len(_STRUCTURAL) else op.arity for op in TABLE)
