"""Identities: each shrinks the graph as promised, and none changes a value beyond the two that
are documented (a literal zero times x is zero; x plus a literal zero is x)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archimedes.graph import B8, CODES, F32, F64, I64, TABLE, Graph

from .building import SPECIAL_FLOATS, SPECIAL_INTS, graph_of, op, run, same, typed
from .spec import validate

# ---- what each identity does -------------------------------------------------------------------


def _x(*dtypes):
    g = Graph()
    return g, [g.input(d) for d in dtypes]


IDENTITIES = {
    # name: (dtypes, build, index of the input it reduces to)
    "x + 0": ([F64], lambda g, x: op(g, "add", x, g.const(0.0)), 0),
    "0 + x": ([F32], lambda g, x: op(g, "add", g.const(0.0, F32), x), 0),
    "x + -0": ([F64], lambda g, x: op(g, "add", x, g.const(-0.0)), 0),
    "x - 0": ([F64], lambda g, x: op(g, "sub", x, g.const(0.0)), 0),
    "x * 1": ([F64], lambda g, x: op(g, "mul", x, g.const(1.0)), 0),
    "1 * x": ([I64], lambda g, x: op(g, "mul", g.const(1, I64), x), 0),
    "x / 1": ([F32], lambda g, x: op(g, "div", x, g.const(1.0, F32)), 0),
    "x ** 1": ([F64], lambda g, x: op(g, "pow", x, g.const(1.0)), 0),
    "-(-x)": ([F64], lambda g, x: op(g, "neg", op(g, "neg", x)), 0),
    "~~x": ([B8], lambda g, x: op(g, "not", op(g, "not", x)), 0),
    "where(c, x, x)": ([B8, F64], lambda g, c, x: op(g, "select", c, x, x), 1),
    "where(True, x, y)": ([F64, F64], lambda g, x, y: op(g, "select", g.const(True, B8), x, y), 0),
    "where(False, x, y)": (
        [F64, F64],
        lambda g, x, y: op(g, "select", g.const(False, B8), x, y),
        1,
    ),
    "where(c, True, False)": (
        [B8],
        lambda g, c: op(g, "select", c, g.const(True, B8), g.const(False, B8)),
        0,
    ),
    "x & x": ([I64], lambda g, x: op(g, "and", x, x), 0),
    "x & -1": ([I64], lambda g, x: op(g, "and", x, g.const(-1, I64)), 0),
    "x & True": ([B8], lambda g, x: op(g, "and", x, g.const(True, B8)), 0),
    "x | x": ([B8], lambda g, x: op(g, "or", x, x), 0),
    "x | 0": ([I64], lambda g, x: op(g, "or", g.const(0, I64), x), 0),
    "x | False": ([B8], lambda g, x: op(g, "or", x, g.const(False, B8)), 0),
    "min(x, x)": ([F64], lambda g, x: op(g, "min", x, x), 0),
    "max(x, x)": ([F32], lambda g, x: op(g, "max", x, x), 0),
    "f64(x)": ([F64], lambda g, x: op(g, "f64", x), 0),
    "f32(x)": ([F32], lambda g, x: op(g, "f32", x), 0),
    "i64(x)": ([I64], lambda g, x: op(g, "i64", x), 0),
    "from_bits(bits(x))": ([F64], lambda g, x: op(g, "from_bits", op(g, "bits", x)), 0),
    "bits(from_bits(x))": ([I64], lambda g, x: op(g, "bits", op(g, "from_bits", x)), 0),
}
CONSTANTS = {
    "0 * x": (F64, lambda g, x: op(g, "mul", g.const(0.0), x), 0.0),
    "x * -0": (F64, lambda g, x: op(g, "mul", x, g.const(-0.0)), 0.0),
    "0 * x int": (I64, lambda g, x: op(g, "mul", x, g.const(0, I64)), 0),
    "x ** 0": (F64, lambda g, x: op(g, "pow", x, g.const(0.0)), 1.0),
    "x - x int": (I64, lambda g, x: op(g, "sub", x, x), 0),
    "x & 0": (I64, lambda g, x: op(g, "and", g.const(0, I64), x), 0),
    "x & False": (B8, lambda g, x: op(g, "and", x, g.const(False, B8)), False),
    "x | -1": (I64, lambda g, x: op(g, "or", x, g.const(-1, I64)), -1),
    "x | True": (B8, lambda g, x: op(g, "or", x, g.const(True, B8)), True),
    "x < x": (F64, lambda g, x: op(g, "lt", x, x), False),
    "x < x int": (I64, lambda g, x: op(g, "lt", x, x), False),
    "x <= x int": (I64, lambda g, x: op(g, "le", x, x), True),
    "x == x int": (I64, lambda g, x: op(g, "eq", x, x), True),
    "x != x bool": (B8, lambda g, x: op(g, "ne", x, x), False),
}
REWRITES = {
    "x + -y": (lambda g, x, y: (op(g, "add", x, op(g, "neg", y)), op(g, "sub", x, y))),
    "-x + y": (lambda g, x, y: (op(g, "add", op(g, "neg", x), y), op(g, "sub", y, x))),
    "x - -y": (lambda g, x, y: (op(g, "sub", x, op(g, "neg", y)), op(g, "add", x, y))),
    "-1 * x": (lambda g, x, y: (op(g, "mul", g.const(-1.0), x), op(g, "neg", x))),
    "x / -1": (lambda g, x, y: (op(g, "div", x, g.const(-1.0)), op(g, "neg", x))),
    "x / 4": (lambda g, x, y: (op(g, "div", x, g.const(4.0)), op(g, "mul", x, g.const(0.25)))),
    "-x * y": (
        lambda g, x, y: (op(g, "mul", op(g, "neg", x), y), op(g, "neg", op(g, "mul", x, y)))
    ),
    "x / -y": (
        lambda g, x, y: (op(g, "div", x, op(g, "neg", y)), op(g, "neg", op(g, "div", x, y)))
    ),
    "abs(-x)": (lambda g, x, y: (op(g, "abs", op(g, "neg", x)), op(g, "abs", x))),
    "abs(abs(x))": (lambda g, x, y: (op(g, "abs", op(g, "abs", x)), op(g, "abs", x))),
    "x ** 2": (lambda g, x, y: (op(g, "pow", x, g.const(2.0)), op(g, "mul", x, x))),
    "x ** -1": (lambda g, x, y: (op(g, "pow", x, g.const(-1.0)), op(g, "div", g.const(1.0), x))),
    "y + x": (lambda g, x, y: (op(g, "add", y, x), op(g, "add", x, y))),
    "y * x": (lambda g, x, y: (op(g, "mul", y, x), op(g, "mul", x, y))),
    "y == x": (lambda g, x, y: (op(g, "eq", y, x), op(g, "eq", x, y))),
    "where(not c)": (
        lambda g, x, y: (
            op(g, "select", op(g, "not", op(g, "lt", x, y)), x, y),
            op(g, "select", op(g, "lt", x, y), y, x),
        )
    ),
    "stop(stop(x))": (lambda g, x, y: (op(g, "stop", op(g, "stop", x)), op(g, "stop", x))),
}
#: Tempting, but wrong for some IEEE value: these must stay as written.
KEPT = {
    "x - x": lambda g, x, y: op(g, "sub", x, x),  # inf - inf
    "x / x": lambda g, x, y: op(g, "div", x, x),  # 0 / 0
    "x == x": lambda g, x, y: op(g, "eq", x, x),  # nan
    "x <= x": lambda g, x, y: op(g, "le", x, x),
    "x != x": lambda g, x, y: op(g, "ne", x, x),
    "-(x - y)": lambda g, x, y: op(g, "neg", op(g, "sub", x, y)),  # x = y
    "(x + y) - y": lambda g, x, y: op(g, "sub", op(g, "add", x, y), y),
    "x / 3": lambda g, x, y: op(g, "div", x, g.const(3.0)),
    "0 / x": lambda g, x, y: op(g, "div", g.const(0.0), x),  # 0 / 0
    "x / 0": lambda g, x, y: op(g, "div", x, g.const(0.0)),
    "not (x < y)": lambda g, x, y: op(g, "not", op(g, "lt", x, y)),  # nan
    "min(y, x)": lambda g, x, y: op(g, "min", y, x),  # signed zeros
    "sqrt(x) * sqrt(x)": lambda g, x, y: op(g, "mul", op(g, "sqrt", x), op(g, "sqrt", x)),
    "f64(f32(x))": lambda g, x, y: op(g, "f64", op(g, "f32", x)),
    "1 / (1 / x)": lambda g, x, y: op(g, "div", g.const(1.0), op(g, "div", g.const(1.0), x)),
    "x ** 0.5": lambda g, x, y: op(g, "pow", x, g.const(0.5)),  # -inf, -0
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_reduces_to_an_operand(name):
    dtypes, build, which = IDENTITIES[name]
    g, ids = _x(*dtypes)
    assert build(g, *ids) == ids[which]


@pytest.mark.parametrize("name", CONSTANTS)
def test_reduces_to_a_constant(name):
    dtype, build, value = CONSTANTS[name]
    g, (x,) = _x(dtype)
    out = build(g, x)
    assert repr(g.value[out]) == repr(value)  # 0.0, not -0.0


@pytest.mark.parametrize("name", REWRITES)
def test_rewrites_to_the_shorter_form(name):
    g, ids = _x(F64, F64)
    long, short = REWRITES[name](g, *ids)
    assert long == short


@pytest.mark.parametrize("name", KEPT)
def test_inexact_identities_are_not_applied(name):
    g, ids = _x(F64, F64)
    before = len(g)
    out = KEPT[name](g, *ids)
    assert out >= before and out not in g.value, "the operation is still there"
    assert g.op[out] not in (CODES["input"], CODES["const"])


@pytest.mark.parametrize("exponent", [-1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("x", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-200, -1e-110, 3.7, -1e200])
def test_small_powers(exponent, x):
    g = graph_of([F64], lambda g, a: op(g, "pow", a, g.const(exponent)))
    (got,) = run(g, np.float64(x))
    with np.errstate(all="ignore"):
        want = np.power(np.float64(x), exponent)
    assert np.signbit(got) == np.signbit(want) or np.isnan(want)
    np.testing.assert_allclose(got, want, rtol=4.5e-16)


# ---- random expressions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """What an expression means: a number, and whether it is a literal (known when recorded)."""

    number: Any
    literal: bool


UNARY = ("neg", "abs", "sqrt", "floor", "rint", "trunc")
BINARY = ("add", "sub", "mul", "div", "min", "max", "copysign")
NUMPY = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "rint": np.rint,
    "trunc": np.trunc,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "copysign": np.copysign,
}


def _zero(v: Value) -> bool:
    return v.literal and v.number == 0


def meaning(name: str, a: Value, b: Value | None = None) -> Value:
    """IEEE, but for the two departures."""
    if b is None:
        return Value(NUMPY[name](a.number), a.literal)
    if not (a.literal and b.literal):
        nothing = Value(type(a.number)(0.0), True)
        if name == "mul" and (_zero(a) or _zero(b)):
            return nothing
        if name in ("add", "sub") and _zero(b):
            return a
        if name == "add" and _zero(a):
            return b
        if name == "sub" and _zero(a):
            return Value(np.negative(b.number), b.literal)
    return Value(NUMPY[name](a.number, b.number), a.literal and b.literal)


leaves = st.one_of(
    st.integers(0, 2).map(lambda k: ("input", k)),
    st.sampled_from(SPECIAL_FLOATS).map(lambda v: ("const", v)),
)
expressions = st.recursive(
    leaves,
    lambda sub: st.one_of(
        st.tuples(st.sampled_from(UNARY), sub), st.tuples(st.sampled_from(BINARY), sub, sub)
    ),
    max_leaves=12,
)
inputs = st.tuples(*[st.sampled_from(SPECIAL_FLOATS)] * 3)


def emit(g: Graph, tree: Any, ids: list[int], code: int) -> int:
    if tree[0] == "input":
        return ids[tree[1]]
    if tree[0] == "const":
        return g.const(tree[1], code)
    return op(g, tree[0], *(emit(g, t, ids, code) for t in tree[1:]))


def evaluate(tree: Any, values: list[Any], code: int) -> Value:
    if tree[0] == "input":
        return Value(values[tree[1]], False)
    if tree[0] == "const":
        return Value(typed(tree[1], code), True)
    return meaning(tree[0], *(evaluate(t, values, code) for t in tree[1:]))


@pytest.mark.parametrize("code", [F64, F32])
@settings(max_examples=500, deadline=None)
@given(tree=expressions, point=inputs)
@example(tree=("mul", ("const", 0.0), ("input", 0)), point=(np.inf, 0.0, 0.0))
@example(tree=("add", ("const", 0.0), ("input", 0)), point=(-0.0, 0.0, 0.0))
@example(tree=("div", ("input", 0), ("const", 2.0**100)), point=(5e-324, 0.0, 0.0))
def test_float_expressions(code, tree, point):
    values = [typed(v, code) for v in point]
    g = graph_of([code] * 3, lambda g, *ids: emit(g, tree, list(ids), code))
    with np.errstate(all="ignore"):
        want = evaluate(tree, values, code).number
    (got,) = run(g, *values)
    assert same(got, want), f"{tree} at {values}: {got!r}, not {want!r}\n{g}"


INT_UNARY = {"neg": lambda a: -a, "abs": abs, "not": lambda a: ~a}
INT_BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}
int_expressions = st.recursive(
    st.one_of(
        st.integers(0, 2).map(lambda k: ("input", k)),
        st.sampled_from(SPECIAL_INTS).map(lambda v: ("const", v)),
    ),
    lambda sub: st.one_of(
        st.tuples(st.sampled_from(sorted(INT_UNARY)), sub),
        st.tuples(st.sampled_from(sorted(INT_BINARY)), sub, sub),
    ),
    max_leaves=12,
)


def int_meaning(tree: Any, values: list[int]) -> int:
    if tree[0] == "input":
        return values[tree[1]]
    if tree[0] == "const":
        return tree[1]
    function = INT_UNARY.get(tree[0]) or INT_BINARY[tree[0]]
    exact = function(*(int_meaning(t, values) for t in tree[1:]))
    return (exact + 2**63) % 2**64 - 2**63


@settings(max_examples=500, deadline=None)
@given(tree=int_expressions, point=st.tuples(*[st.sampled_from(SPECIAL_INTS)] * 3))
def test_int_expressions_wrap_like_machine_integers(tree, point):
    g = graph_of([I64] * 3, lambda g, *ids: emit(g, tree, list(ids), I64))
    (got,) = run(g, *(np.int64(v) for v in point))
    assert int(got) == int_meaning(tree, list(point)), f"{tree} at {point}\n{g}"


bool_expressions = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from(("lt", "le", "eq", "ne")), st.integers(0, 2), st.integers(0, 2)),
        st.booleans().map(lambda v: ("const", v)),
    ),
    lambda sub: st.one_of(
        st.tuples(st.just("not"), sub),
        st.tuples(st.sampled_from(("and", "or", "xor", "eq_", "ne_")), sub, sub),
        st.tuples(st.just("select"), sub, sub, sub),
    ),
    max_leaves=10,
)
COMPARE = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
LOGIC = {
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "eq_": lambda a, b: a == b,
    "ne_": lambda a, b: a != b,
    "select": lambda c, a, b: a if c else b,
}


@settings(max_examples=500, deadline=None)
@given(tree=bool_expressions, point=inputs)
def test_logic_of_comparisons(tree, point):
    def build(g, *ids):
        def walk(t):
            if t[0] == "const":
                return g.const(t[1], B8)
            if t[0] in COMPARE:
                return op(g, t[0], ids[t[1]], ids[t[2]])
            return op(g, t[0].rstrip("_"), *(walk(s) for s in t[1:]))

        return walk(tree)

    def truth(t):
        if t[0] == "const":
            return t[1]
        if t[0] in COMPARE:
            return COMPARE[t[0]](point[t[1]], point[t[2]])
        return LOGIC[t[0]](*(truth(s) for s in t[1:]))

    (got,) = run(graph_of([F64] * 3, build), *(np.float64(v) for v in point))
    assert bool(got) == truth(tree)


def test_rules_never_return_an_id_of_another_dtype():
    """Each identity on operands of the least common dtype keeps the dtype of the op's row."""
    for row in TABLE:
        if row.numpy is None:
            continue
        for code in row.takes:
            g = Graph()
            ids = [g.input(code) for _ in range(row.arity)]
            if row.name == "select":
                ids[0] = g.input(B8)
            literals = [g.const(v, code) for v in (0, 1, -1, 2)]
            wanted = code if row.result == "same" else row.result
            for k in range(row.arity):
                for literal in literals:
                    if row.name == "select" and k == 0:
                        continue
                    mixed = [literal if j == k else i for j, i in enumerate(ids)]
                    assert g.dtype[g.emit(row.code, *mixed)] == wanted, row.name
            g.outputs = []
            validate(g)
