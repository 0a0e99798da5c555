"""A region is described by one class: one that nobody knows goes through every pass."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from archimedes.backends.c.render import count_operations as operations
from archimedes.backends.interpreter import run
from archimedes.backends.lowering.regions import REGIONS
from archimedes.errors import GraphError
from archimedes.graph import B8, CODES, F32, F64, Call, Graph, inline, prune, statistics
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.derivatives.jacobian_graphs import (
    forward_graph,
    jacobian_graph,
    reverse_graph,
)
from archimedes.graph.derivatives.sparsity import dependence
from archimedes.graph.expand import expand
from archimedes.graph.fast import fast
from archimedes.graph.regions import OneBody, Region
from archimedes.graph.retype import retype
from archimedes.records import record

from ..backends.toy import build
from ..c import checking as c_code
from ..llvm import checking as native
from ..programs.program import Program
from ..programs.values import assert_bits
from .spec import region_faults, validate


@record
class Twice(OneBody):
    """Run a body on its own results: body(body(x))."""

    @property
    def out_dtypes(self):
        return self.body.output_dtypes

    def evaluate(self, values, run):
        return run(self.body, run(self.body, values))

    def count(self, operations, weight):
        return operations(self.body) + operations(self.body)

    def dependence(self, sets, through):
        return through(self.body, through(self.body, sets))

    def _once(self, inputs):
        return Call(inputs, self.body)

    def push_forward(self, dst, tangents):
        middle, between = self._once(self.inputs).push_forward(dst, tangents)
        return self._once(middle).push_forward(dst, between)

    def record(self, dst):
        middle = dst.region(self._once(self.inputs))
        return dst.region(self._once(middle)), middle

    def pull_back(self, dst, adjoints, saved, wanted):
        every = [True] * len(self.inputs)
        between = self._once(saved).pull_back(dst, adjoints, None, every)
        return self._once(self.inputs).pull_back(dst, between, saved, wanted)


@region_faults.register
def _(region: Twice, g: Graph):
    if region.body.input_dtypes != region.body.output_dtypes:
        yield "has a body that changes dtypes"


def body():
    """(x, y) -> (sin(x) y, y y)."""
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    g.outputs = [g.emit(CODES["mul"], g.emit(CODES["sin"], x), y), g.emit(CODES["mul"], y, y)]
    return g


def program(region=Twice):
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    g.input_names = ["x", "y"]
    outs = g.region(region([x, y], body())).tolist()
    g.outputs = [g.emit(CODES["add"], outs[0], x), outs[1]]
    return g


POINT = [np.float64(0.7), np.float64(1.3)]


def once(x, y):
    return np.sin(x) * y, y * y


def slope(x, y):
    return np.array([[np.cos(x) * y, np.sin(x)], [0.0, 2.0 * y]])


def jacobian(x, y):
    return slope(*once(x, y)) @ slope(x, y) + [[1.0, 0.0], [0.0, 0.0]]


def kinds(g):
    return [region.kind for region in g.regions.values()]


def test_it_means_what_its_class_says():
    g = program()
    validate(g)
    u, v = once(*once(*POINT))
    np.testing.assert_allclose(run(g, POINT), [u + POINT[0], v], rtol=1e-15)


def test_equal_regions_are_one_node():
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    assert np.array_equal(g.region(Twice([x, y], body())), g.region(Twice([x, y], body())))
    assert len(g.regions) == 1


@pytest.mark.parametrize(
    "change",
    [
        prune,
        expand,
        fast,
        lambda g: remove_dead_code(g).graph,
        lambda g: expand(remove_dead_code(g).graph, calls=True),
    ],
    ids=["prune", "expand", "fast", "dead code", "dead code and expand"],
)
def test_passes_keep_it(change):
    g = program()
    new = change(g)
    validate(new)
    assert "twice" in kinds(new)
    np.testing.assert_allclose(run(new, POINT), run(g, POINT), rtol=1e-14)


def test_copying():
    g = program()
    into = Graph()
    x = into.input(F64)
    into.outputs = inline(into, g, [x, into.const(1.3)])
    validate(into)
    assert run(into, POINT[:1]) == run(g, POINT)


def test_bodies_are_rewritten():
    (region,) = expand(program()).regions.values()
    assert "sin" not in statistics(region.bodies[0]).by_op


def test_retyping():
    new = retype(program())
    validate(new)
    assert new.output_dtypes == [F32, F32]
    (region,) = new.regions.values()
    assert region.out_dtypes == [F32, F32]
    expected = [np.float32(v) for v in run(program(), POINT)]
    np.testing.assert_allclose(run(new, [np.float32(v) for v in POINT]), expected, rtol=1e-6)


def test_text_and_figures():
    text = repr(program())
    assert "%2 = twice (%0 %1)" in text
    assert "      graph (2 f64)" in text
    assert statistics(program()).by_op["twice"] == 1
    assert operations(program()) == Counter({"mul": 4, "sin": 2, "add": 1})


def test_an_invalid_one_is_refused_in_its_own_words():
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    wrong = body()
    wrong.outputs[0] = wrong.const(True, B8)
    g.outputs = g.region(Twice([x, y], wrong)).tolist()[1:]
    with pytest.raises(GraphError, match=r"node %2 \(region\): has a body that changes dtypes"):
        validate(g)


def test_sparsity():
    assert dependence(program()) == [0b11, 0b10]


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_derivatives(mode):
    entries = jacobian_graph(program(), [0, 1], mode=mode)
    validate(entries.graph)
    full = np.zeros((2, 2))
    full[entries.rows, entries.columns] = run(entries.graph, POINT)
    assert list(zip(entries.rows, entries.columns)) == [(0, 0), (0, 1), (1, 1)]
    np.testing.assert_allclose(full, jacobian(*POINT), rtol=1e-14)


def test_second_derivatives_by_both_modes():
    first = forward_graph(program(), [0])
    again = reverse_graph(first, [0])
    validate(again)
    seeds = [np.float64(s) for s in (0.0, 0.0, 1.0, 0.0)]
    *_, found = run(again, [*POINT, np.float64(1.0), *seeds])
    h = 1e-5
    x, y = POINT
    expected = (jacobian(x + h, y)[0, 0] - jacobian(x - h, y)[0, 0]) / (2 * h)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_without_a_derivative_the_error_says_what_is_missing():
    @record
    class Opaque(Region):
        @property
        def out_dtypes(self):
            return [F64]

    g = Graph()
    g.outputs = g.region(Opaque([g.input(F64)])).tolist()
    with pytest.raises(GraphError, match="Opaque the methods push_forward and pull_back"):
        forward_graph(g, [0])


def lower_twice(low, scope, region, outs):
    """The one lowering, for all languages."""
    given, f = scope.bindings(region.inputs.tolist()), scope.f
    between = low.block(f, region, region.body, given, range(len(given)))
    values = low.block(f, region, region.body, between, scope.numbers(outs))
    for i, binding in zip(outs, values):
        scope.bind(i, binding)


@pytest.fixture
def lowered(monkeypatch):
    monkeypatch.setitem(REGIONS, Twice, lower_twice)


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return [rng.normal(size=9), rng.normal(size=9)]


def test_native_code(lowered, columns):
    native.check(program(), columns, lanes=[4])


def test_native_derivatives(lowered, columns):
    g = forward_graph(program(), [0, 1])
    native.check(g, [*columns, *columns], lanes=[4])


def test_c_code(lowered, columns, tmp_path):
    case = Program("twice", program(), columns)
    for float_type in ("double", "float"):
        c_code.Bundle([case], float_type).check(tmp_path, "gcc", "-O2")


def test_another_language(lowered, columns):
    function = build(program(), 1000)
    for x, y in zip(*columns):
        for got, want in zip(function(x, y), run(program(), [x, y])):
            assert_bits(np.asarray(got), np.asarray(want))


def test_without_a_lowering_the_error_says_where_it_belongs(columns):
    with pytest.raises(GraphError, match=r"'twice' have no lowering: .*lowering/regions\.py"):
        native.check(program(), columns)
