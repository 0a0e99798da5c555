"""Making nodes: sharing, constants by their bits, tables, limits, liveness, digests."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import GraphError
from archimedes.graph import B8, F32, F64, I64, Graph, program
from archimedes.graph.regions import Call, Host

from .building import graph_of, op, run


def test_equal_nodes_are_one():
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    assert op(g, "sin", op(g, "mul", x, y)) == op(g, "sin", op(g, "mul", y, x))
    assert op(g, "sub", x, y) != op(g, "sub", y, x)
    assert op(g, "min", x, y) != op(g, "min", y, x)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0.0, F64), (-0.0, F64)),
        ((1.0, F64), (1.0, F32)),
        ((1, I64), (1.0, F64)),
        ((1, I64), (True, B8)),
        ((0.1, F64), (np.nextafter(0.1, 1.0), F64)),
        ((np.nan, F64), (np.nan, F32)),
    ],
)
def test_constants_differ_by_bits_and_dtype(a, b):
    g = Graph()
    assert g.const(*a) != g.const(*b)
    assert g.const(*a) == g.const(*a)


def test_nan_is_one_constant_whatever_its_payload():
    g = Graph()
    other = np.frombuffer(np.int64(0x7FF8000000000123).tobytes(), np.float64)[0]
    assert g.const(np.nan) == g.const(-np.nan) == g.const(other)


def test_constants_are_rounded_to_their_dtype():
    g = Graph()
    assert g.const(0.1, F32) == g.const(float(np.float32(0.1)), F32)
    assert g.value[g.const(0.1, F32)] == float(np.float32(0.1))
    assert g.value[g.const(1e300, F32)] == np.inf, "and a warning would fail this test"
    assert g.value[g.const(2**63, I64)] == -(2**63)
    assert g.value[g.const(np.float64(2.0), B8)] is True


def test_arrays_of_constants():
    g = Graph()
    for array, code in [
        (np.array([[1.0, -0.0], [np.nan, 1.0]]), F64),
        (np.float32([1, 2]), F32),
        (np.array([3, 3], dtype=np.int16), I64),
        (np.array([True, False]), B8),
    ]:
        ids = g.constants(array)
        assert ids.shape == array.shape
        assert {g.dtype[i] for i in ids.ravel()} == {code}
    first = g.constants(np.array([1.0, 2.0, 1.0]))
    assert first[0] == first[2]


def test_lookup_clamps_folds_and_shares_tables():
    table = np.array([10.0, 20.0, 30.0])
    g = Graph()
    i = g.input(I64)
    assert g.lookup(table, i) == g.lookup(table.copy(), i)
    assert len(g.tables) == 1
    g.lookup(table.astype(np.float32), i)
    g.lookup(np.array([1, 2]), i)
    assert [t.dtype.name for t in g.tables] == ["float64", "float32", "int64"]
    assert g.value[g.lookup(table, g.const(99, I64))] == 30.0
    assert g.value[g.lookup(table, g.const(-5, I64))] == 10.0
    g = graph_of([I64], lambda g, i: g.lookup(table, i))
    got = [run(g, np.int64(k))[0] for k in (-(2**63), -1, 0, 1, 2, 3, 2**62)]
    assert got == [10.0, 10.0, 10.0, 20.0, 30.0, 30.0, 30.0]
    np.testing.assert_array_equal(run(g, np.array([-1, 1, 9]))[0], [10.0, 20.0, 30.0])


def test_equal_regions_are_one_but_host_calls_stay_apart():
    body = graph_of([F64], lambda g, x: op(g, "sin", x))
    twin = graph_of([F64], lambda g, x: op(g, "sin", x))
    other = graph_of([F64], lambda g, x: op(g, "cos", x))
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    first = g.region(Call([x], body)).tolist()
    assert g.region(Call([x], twin)).tolist() == first
    assert g.region(Call([y], body)).tolist() != first
    assert g.region(Call([x], other)).tolist() != first

    def effect(values):
        return values

    assert (
        g.region(Host([x], effect, (F64,), "effect")).tolist()
        != g.region(Host([x], effect, (F64,), "effect")).tolist()
    )


def test_digest_is_of_content():
    build = lambda g, x: op(g, "add", op(g, "sin", x), g.const(2.0))
    assert graph_of([F64], build).digest() == graph_of([F64], build).digest()
    others = [
        graph_of([F32], lambda g, x: op(g, "add", op(g, "sin", x), g.const(2.0, F32))),
        graph_of([F64], lambda g, x: op(g, "add", op(g, "sin", x), g.const(-2.0))),
        graph_of([F64], lambda g, x: op(g, "add", op(g, "cos", x), g.const(2.0))),
        graph_of([F64], lambda g, x: op(g, "sin", x)),
        graph_of([I64], lambda g, i: g.lookup(np.array([1.0, 2.0]), i)),
        graph_of([I64], lambda g, i: g.lookup(np.array([1.0, 3.0]), i)),
    ]
    digests = {g.digest() for g in [graph_of([F64], build), *others]}
    assert len(digests) == 7


def test_live_nodes():
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    kept = op(g, "sin", x)
    op(g, "cos", y)
    g.outputs = [kept]
    assert g.live() == [x, kept]
    assert g.live([]) == []
    inner = graph_of([F64], lambda g, x: op(g, "exp", x))
    (out,) = g.region(Call([y], inner)).tolist()
    assert g.live([out]) == [y, g.a[out], out]


def test_a_trace_that_is_too_long_says_so(monkeypatch):
    monkeypatch.setattr(program, "MAX_NODES", 1000)
    g = Graph()
    x = g.input(F64)
    with pytest.raises(GraphError, match=r"passed 1,000 operations.*arc\.vmap.*arc\.scan"):
        for k in range(2000):
            op(g, "add", x, g.const(float(k + 1)))


def test_the_user_is_told_the_line_of_a_trace_that_is_too_long(monkeypatch):
    monkeypatch.setattr(program, "MAX_NODES", 1000)

    def long(x):
        return sum(np.sin(value) * 2.0 for value in x)  # the culprit

    with pytest.raises(arc.TraceError) as caught:
        arc.compile(long)(np.ones(5000))
    assert "arc.vmap" in str(caught.value)
    monkeypatch.undo()
    assert arc.compile(long)(np.zeros(3)) == 0.0
