"""The readable form, the figures, and passes that keep the meaning."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import archimedes as arc
from archimedes.graph import CODES, F64, I64, TABLE, Graph, inline, prune, statistics
from archimedes.graph.ops import CONST
from archimedes.graph.passes import Transformer, with_outputs
from archimedes.graph.regions import Call, Host, Scan

from .building import graph_of, op, run, same
from .spec import validate

# ---- text --------------------------------------------------------------------------------------


def test_text_of_a_small_function():
    f = arc.compile(lambda x, n: np.sin(x[0]) * 2.0 + x[1] / n)
    assert str(f.graph(np.ones(2), 3)).splitlines() == [
        "graph (2 f64, 1 i64)",
        "  %0 = input 0  # x[0] : f64",
        "  %1 = input 1  # x[1] : f64",
        "  %2 = input 2  # n : i64",
        "  %3 = sin %0 : f64",
        "  %4 = const 2.0 : f64",
        "  %5 = mul %3 %4 : f64",
        "  %6 = f64 %2 : f64",
        "  %7 = div %1 %6 : f64",
        "  %8 = add %5 %7 : f64",
        "  return %8",
    ]


def test_text_shows_bodies_and_tables():
    def f(x, i):
        table = arc.interpolant([0.0, 1.0, 3.0], [1.0, 2.0, 0.0])
        carry, _ = arc.scan(lambda c, s: (c * s + x[0], None), 1.0, x)
        return carry + table(x[0]) + arc.callback(abs, 0.0, carry)

    text = str(arc.compile(f).graph(np.ones(3), 1))
    assert "scan 3 steps, 1 carried, 1 a step (" in text
    assert re.search(r"\n {6}graph \(3 f64\)\n {8}%0 = input", text), "the body is indented"
    assert "table0 = float64[3]" in text and "lookup table0 %" in text
    assert "host abs (%" in text
    assert not re.search(r"\d{12,}", text), "no memory addresses"


def test_text_of_every_region_has_no_addresses():
    body = graph_of([F64], lambda g, x: op(g, "sin", x))
    g = Graph()
    x = g.input(F64)
    g.outputs = g.region(Call([x], body)).tolist()
    g.outputs += g.region(Host([x], lambda v: v, (F64,), "probe")).tolist()
    assert re.findall(r"^  %\d+ = (\w+[^(\n]*)\(", str(g), re.MULTILINE) == ["call ", "host probe "]


def test_runs_of_ids_are_shortened():
    g = graph_of([F64] * 6, lambda g, *ids: [*ids, ids[0]])
    assert str(g).splitlines()[-1] == "  return %0..%5 %0"


def test_unused_inputs_are_counted_not_listed():
    text = str(graph_of([F64] * 1000, lambda g, *ids: ids[7]))
    assert text.splitlines() == ["graph (1000 f64)", "  %7 = input 7 : f64", "  return %7"]


# ---- figures -----------------------------------------------------------------------------------


def test_statistics():
    def build(g, x, y):
        s = op(g, "sin", x)
        op(g, "cos", y)  # nothing reads it
        return [op(g, "add", op(g, "mul", s, y), g.const(2.0)), s]

    s = statistics(graph_of([F64, F64], build))
    assert (s.nodes, s.inputs, s.outputs, s.constants, s.depth) == (3, 2, 2, 1, 3)
    assert s.by_op == {"sin": 1, "mul": 1, "add": 1}
    assert s.total == 3 and s.regions == ()
    # x and y; sin and y once x is used up; sin and the product, then sin and the sum
    assert s.live_values == 3
    assert "3 operations" in str(s) and "depth 3" in str(s)


def test_statistics_of_regions():
    body = graph_of([F64], lambda g, x: op(g, "sin", op(g, "cos", x)))
    g = graph_of([F64], lambda g, x: g.region(Scan([x], body, 9, 1, 0)).tolist())
    s = statistics(g)
    assert s.by_op == {"scan": 1} and s.nodes == 1 and s.total == 3
    assert s.regions[0][0] == "scan" and s.regions[0][1][0].by_op == {"cos": 1, "sin": 1}


def test_empty_graph_has_figures_and_text():
    s = statistics(Graph())
    assert (s.nodes, s.depth, s.live_values) == (0, 0, 0)
    assert str(Graph()).startswith("graph (no inputs)")


# ---- passes ------------------------------------------------------------------------------------

NAMES = ("add", "mul", "sub", "min", "max", "sin", "neg", "abs")


@st.composite
def random_graphs(draw):
    """Straight-line programs in which some nodes are calls and some are never read."""
    g = Graph()
    ids = [g.input(F64) for _ in range(3)] + [g.const(0.5), g.const(-1.5)]
    for _ in range(draw(st.integers(1, 25))):
        name = draw(st.sampled_from((*NAMES, "call")))
        picks = [ids[draw(st.integers(0, len(ids) - 1))] for _ in range(2)]
        if name == "call":
            body = graph_of([F64, F64], lambda g, a, b: [op(g, "mul", a, b), op(g, "cos", a)])
            ids.extend(g.region(Call(picks, body)).tolist())
        else:
            ids.append(op(g, name, *picks[: TABLE[CODES[name]].arity]))
    # A literal zero is where the graph departs from IEEE: not the subject here.
    assume(0.0 not in g.value.values())
    g.outputs = [ids[draw(st.integers(0, len(ids) - 1))] for _ in range(3)]
    return g


@settings(max_examples=150, deadline=None)
@given(random_graphs())
def test_prune_keeps_meaning_and_drops_the_rest(g):
    point = [np.float64(v) for v in (0.3, -1.7, 2.5)]
    small = prune(g)
    validate(small)
    assert [same(a, b) for a, b in zip(run(small, *point), run(g, *point))] == [True] * 3
    assert len(small.inputs) == 3
    assert len(small.live()) == len(g.live())
    unread = set(range(len(small))) - set(small.live()) - set(small.inputs)
    assert all(small.op[i] == CODES["out"] for i in unread), "only unused results of regions"


@settings(max_examples=150, deadline=None)
@given(random_graphs())
def test_inline_twice_is_composition(g):
    """g(g(x)) by inlining equals running g on its own results, and equal calls are shared."""
    both = Graph()
    x = [both.input(F64) for _ in range(3)]
    both.outputs = inline(both, g, inline(both, g, x))
    validate(both)
    point = [np.float64(v) for v in (0.3, -1.7, 2.5)]
    want = run(g, *run(g, *point))
    # A constant result of the inner call may make a literal zero of the outer one, whose
    # products are zero whatever the other factor is.
    assert all(same(a, b) or a == 0.0 for a, b in zip(run(both, *point), want))
    size = len(both)
    assert inline(both, g, inline(both, g, x)) == both.outputs
    assert len(both) == size, "a second copy adds nothing"


def test_with_outputs_picks_inner_values():
    g = graph_of([F64], lambda g, x: op(g, "cos", op(g, "sin", x)))
    inner = with_outputs(g, [1, 0])
    validate(inner)
    assert run(inner, np.float64(0.5)) == run(
        graph_of([F64], lambda g, x: [op(g, "sin", x), x]), np.float64(0.5)
    )


def test_inlining_on_constants_folds():
    g = graph_of([F64, I64], lambda g, x, i: op(g, "add", x, g.lookup(np.array([5.0, 6.0]), i)))
    into = Graph()
    (out,) = inline(into, g, [into.const(1.0), into.const(1, I64)])
    assert into.op[out] == CONST and into.value[out] == 7.0


class Cosines(Transformer):
    def region(self, i, region):
        return [op(self.dst, "cos", int(self.relink(region).inputs[0]))]


def test_a_transformer_may_replace_regions():
    body = graph_of([F64], lambda g, x: op(g, "sin", x))
    g = graph_of([F64], lambda g, x: g.region(Call([x], body)).tolist())
    into = Graph()
    copy = Cosines(into, g, [into.input(F64)])
    copy.run(g.live())
    assert into.op[copy.outputs()[0]] == CODES["cos"]


def test_names_survive_pruning():
    f = arc.compile(lambda x: x["b"] * 2.0)
    assert f.graph({"a": 1.0, "b": np.ones(2)}).input_names == ["x['a']", "x['b'][0]", "x['b'][1]"]


def test_closures_are_named_in_bodies():
    def f(x):
        return arc.vmap(lambda a: np.exp(a) * np.sin(x[0]) * np.cos(a) + a)(np.tile(x, 30))

    assert "# closure[0]" in str(arc.compile(f).graph(np.ones(4)))


def test_long_argument_lists_are_not_named():
    assert arc.compile(np.sum).graph(np.ones(3000)).input_names is None
