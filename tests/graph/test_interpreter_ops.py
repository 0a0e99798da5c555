"""Every op and dtype, on scalars and on batches, against NumPy or Python's own integers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest

from archimedes.graph import B8, DTYPES, F32, F64, I64, TABLE, elementary

from .building import SPECIALS, graph_of, op, run, same, typed


def _wrapped(value: int) -> np.int64:
    return np.int64((value + 2**63) % 2**64 - 2**63)


def _ints(function):
    return lambda *values: _wrapped(function(*(int(v) for v in values)))


def _toward_zero(a: int, b: int) -> int:
    if b == 0:
        return 0
    return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def _truncated(x) -> np.int64:
    if not np.isfinite(x) or not -(2**63) <= int(Fraction(float(x))) < 2**63:
        return np.int64(-(2**63))
    return np.int64(math.trunc(float(x)))


def _bits(x, kind) -> np.int64:
    return _wrapped(int.from_bytes(x.tobytes(), "little") & (2 ** (8 * kind) - 1))


def _fma(a, b, c):
    """MPFR's, which rounds once and knows subnormals."""
    with gmpy2.context(gmpy2.ieee(8 * a.itemsize)):
        return type(a)(gmpy2.fma(*(gmpy2.mpfr(float(x)) for x in (a, b, c))))


#: What each exact op means, written without the table under test.
MEANING = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": np.divide,
    "neg": lambda a: -a,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "copysign": np.copysign,
    "min": np.minimum,
    "max": np.maximum,
    "lt": lambda a, b: np.bool_(a < b),
    "le": lambda a, b: np.bool_(a <= b),
    "eq": lambda a, b: np.bool_(a == b),
    "ne": lambda a, b: np.bool_(a != b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "select": lambda c, a, b: a if c else b,
    "fma": _fma,
    "f64": np.float64,
    "f32": np.float32,
    "i64": np.int64,
    "truncate": _truncated,
    "stop": lambda a: a,
    "bits": lambda x: _bits(x, 8),
    "bits32": lambda x: _bits(x, 4),
    "from_bits": lambda i: np.frombuffer(np.int64(i).tobytes(), np.float64)[0],
    "from_bits32": lambda i: np.frombuffer(np.int64(i).tobytes()[:4], np.float32)[0],
    "quotient": _ints(_toward_zero),
    "modulo": _ints(lambda a, b: a - _toward_zero(a, b) * b if b else 0),
    "shl": _ints(lambda a, n: a << n),
    "shr": _ints(lambda a, n: a >> n),
    "lshr": _ints(lambda a, n: (a % 2**64) >> n),
}
#: On int64 arithmetic wraps, which Python's unbounded integers say without NumPy.
MEANING_INT = {
    "add": _ints(lambda a, b: a + b),
    "sub": _ints(lambda a, b: a - b),
    "mul": _ints(lambda a, b: a * b),
    "neg": _ints(lambda a: -a),
    "abs": _ints(abs),
}
EXACT = [row for row in TABLE if row.numpy is not None and not row.elementary]
CASES = [pytest.param(row, code, id=f"{row.name}-{code}") for row in EXACT for code in row.takes]


def _operands(row, code):
    """All combinations of special values that the op defines."""
    values = SPECIALS[code]
    columns = [values] * row.arity
    if row.name in ("shl", "shr", "lshr"):
        columns[1] = (0, 1, 5, 62, 63)
    if row.name == "select":
        columns[0] = (False, True)
    codes = [B8 if row.name == "select" and k == 0 else code for k in range(row.arity)]
    rows = list(itertools.product(*columns))
    if len(rows) > 10_000:
        # Of three operands: 7 is coprime to their number, so that all values occur.
        rows = rows[::7]
    return codes, [[typed(v, c) for v, c in zip(r, codes)] for r in rows]


def test_every_exact_op_has_a_meaning_here():
    assert {row.name for row in EXACT} == set(MEANING)


@pytest.mark.parametrize(("row", "code"), CASES)
def test_scalar_and_batch(row, code):
    codes, rows = _operands(row, code)
    g = graph_of(codes, lambda g, *ids: op(g, row.name, *ids))
    meaning = MEANING_INT.get(row.name, MEANING[row.name]) if code == I64 else MEANING[row.name]
    with np.errstate(all="ignore"):
        want = [meaning(*values) for values in rows]
    got = [run(g, *values)[0] for values in rows]
    for values, w, have in zip(rows, want, got):
        assert same(have, w), f"{row.name}{values} gave {have!r}, not {w!r}"
    columns = [np.array(c, dtype=DTYPES[k]) for c, k in zip(zip(*rows), codes)]
    (batch,) = run(g, *columns)
    assert same(batch, np.array(want))


@pytest.mark.parametrize(("row", "code"), CASES)
def test_folding_agrees_with_running(row, code):
    """Constants give what inputs give: nothing is rounded differently while recording."""
    codes, rows = _operands(row, code)
    g = graph_of(codes, lambda g, *ids: op(g, row.name, *ids))
    for values in rows:
        folded = graph_of((), lambda g, v=values: _on_constants(g, row.name, v, codes))
        assert not folded.inputs and folded.outputs[0] in folded.value
        assert same(run(folded)[0], run(g, *values)[0]), f"{row.name}{values}"


def _on_constants(g, name, values, codes):
    return op(g, name, *(g.const(v, c) for v, c in zip(values, codes)))


ELEMENTARY = [row for row in TABLE if row.name in elementary.ELEMENTARY]


@pytest.mark.parametrize("code", [F64, F32])
@pytest.mark.parametrize("row", ELEMENTARY, ids=lambda row: row.name)
def test_elementary_is_near_numpy(row, code):
    """Coarse here (the ulp tables are tests/elementary): right function, dtype and batching."""
    rng = np.random.default_rng(7)
    values = [rng.uniform(1.1, 3.0, 40).astype(DTYPES[code]) for _ in range(row.arity)]
    if row.name in ("arcsin", "arccos", "arctanh"):
        values = [v / DTYPES[code].type(4) for v in values]
    g = graph_of([code] * row.arity, lambda g, *ids: op(g, row.name, *ids))
    name = {"pow": "power"}.get(row.name, row.name)
    want = getattr(np, name)(*values)
    (got,) = run(g, *values)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(DTYPES[code]).eps)
    each = [run(g, *(v[k] for v in values))[0] for k in range(40)]
    assert same(np.array(each), got), "one at a time and as a batch give the same bits"


def test_batch_broadcasts_against_shared_values():
    g = graph_of([F64, F64], lambda g, x, y: op(g, "mul", x, op(g, "add", y, g.const(1.0))))
    (got,) = run(g, np.arange(4.0), np.float64(2.0))
    np.testing.assert_array_equal(got, 3.0 * np.arange(4.0))
