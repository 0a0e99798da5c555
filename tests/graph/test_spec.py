"""Each rule of a valid graph, broken once: the error names the node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archimedes.errors import GraphError
from archimedes.graph import B8, CODES, F32, F64, I64, Graph
from archimedes.graph.regions import Call, Host, Map, Scan, Solve, Switch, While

from .building import graph_of, op
from .spec import validate


def _valid():
    g = Graph()
    x, n, b = g.input(F64), g.input(I64), g.input(B8)
    s = op(g, "sin", x)
    out = op(g, "select", b, s, op(g, "add", s, g.const(1.5)))
    g.outputs = [out, g.lookup(np.array([1.0, 2.0]), n)]
    return g


def test_the_example_is_valid():
    validate(_valid())


def _forward_reference(g):
    g.a[3] = 5


def _negative_reference(g):
    g.a[3] = -1


def _mixed_operands(g):
    g.b[5] = 1


def _wrong_dtype_for_op(g):
    g.a[3] = 1


def _wrong_stored_dtype(g):
    g.dtype[3] = F32


def _select_test(g):
    g.a[6] = 3


def _constant_type(g):
    g.value[4] = 1


def _constant_missing(g):
    del g.value[4]


def _unlisted_input(g):
    g.inputs.pop()


def _input_number(g):
    g.inputs[0], g.inputs[1] = g.inputs[1], g.inputs[0]


def _input_out_of_range(g):
    g.inputs.append(99)


def _missing_table(g):
    g.tables.clear()


def _table_dtype(g):
    g.tables[0] = g.tables[0].astype(np.float32)


def _lookup_index(g):
    g.a[7] = 0


def _missing_output(g):
    g.outputs.append(99)


@pytest.mark.parametrize(
    ("breaking", "message"),
    [
        (_forward_reference, r"node %3 \(sin\): reads %5, which does not come before it"),
        (_negative_reference, r"node %3 \(sin\): reads %-1"),
        (_mixed_operands, r"node %5 \(add\): does not take operands of"),
        (_wrong_dtype_for_op, r"node %3 \(sin\): does not take operands of \['i64'\]"),
        (_wrong_stored_dtype, r"node %3 \(sin\): is stored as f32"),
        (_select_test, r"node %6 \(select\): has a test that is not bool"),
        (_constant_type, r"node %4 \(const\): holds 1, which is not a f64"),
        (_constant_missing, r"node %4 \(const\): holds None"),
        (_unlisted_input, r"node %2 \(input\): is not listed"),
        (_input_number, r"node %0 \(input\): is not listed"),
        (_input_out_of_range, r"input 3 is %99"),
        (_missing_table, r"node %7 \(lookup\): reads table 0, which does not exist"),
        (_table_dtype, r"node %7 \(lookup\): reads a table of float32"),
        (_lookup_index, r"node %7 \(lookup\): has an index that is not int64"),
        (_missing_output, r"output 2 is %99"),
    ],
)
def test_broken_node(breaking, message):
    g = _valid()
    breaking(g)
    with pytest.raises(GraphError, match=message):
        validate(g)


ONE = graph_of([F64], lambda g, x: op(g, "sin", x))
TWO = graph_of([F64, F64], lambda g, x, y: [op(g, "mul", x, y), x])
TEST = graph_of([F64], lambda g, x: op(g, "lt", x, g.const(1.0)))
SINGLE = graph_of([F32], lambda g, x: x)

# Inputs of the enclosing graph: 0, 1, 2 float64; 3 int64; 4 float32.
REGIONS = {
    "call": (Call([0], ONE), Call([0, 1], ONE), "gives its body other inputs"),
    "call dtype": (Call([0], ONE), Call([3], ONE), "gives its body other inputs"),
    "scan": (Scan([0, 1, 2], TWO, 2, 1, 1), Scan([0, 1], TWO, 2, 1, 1), "too few operands"),
    "scan slices": (
        Scan([0, 1, 2], TWO, 2, 1, 1),
        Scan([0, 1, 4], TWO, 2, 1, 1),
        "gives its body other inputs",
    ),
    "scan carry": (
        Scan([0, 1], ONE, 1, 1, 0),
        Scan([0], graph_of([F64], lambda g, x: op(g, "lt", x, x)), 1, 1, 0),
        "changes the dtypes of the carry",
    ),
    "scan length": (Scan([0], ONE, 0, 1, 0), Scan([0], ONE, -1, 1, 0), "negative count"),
    "while": (While([0], TEST, ONE, 1, 5), While([0], ONE, ONE, 1, 5), "does not return one bool"),
    "while body": (
        While([0], TEST, ONE, 1, 5),
        While([0], TEST, graph_of([F64], lambda g, x: [x, x]), 1, 5),
        "returns more than the carry",
    ),
    "while limit": (While([0], TEST, ONE, 1, 5), While([0], TEST, ONE, 1, -5), "negative limit"),
    "switch": (Switch([3, 0], (ONE, ONE)), Switch([0, 0], (ONE,)), "index that is not int64"),
    "switch branches": (
        Switch([3, 0], (ONE, ONE)),
        Switch([3, 0], (ONE, TEST)),
        "branch 1 that returns other dtypes",
    ),
    "switch inputs": (
        Switch([3, 0], (ONE, ONE)),
        Switch([3, 0], (ONE, TWO)),
        "gives its branch 1 other inputs",
    ),
    "switch empty": (Switch([3, 0], (ONE,)), Switch([3], ()), "has no branches"),
    "map": (Map([0, 1, 2], ONE, 3, 1), Map([0, 1], ONE, 3, 1), "too few operands"),
    "map shared": (Map([0, 1, 2], TWO, 2, 1), Map([0, 1, 4], TWO, 2, 1), "other inputs"),
    "solve": (Solve([0, 1], 1, 1, F64), Solve([0], 1, 1, F64), "needs 2 floating-point operands"),
    "solve dtype": (Solve([0, 1], 1, 1, F64), Solve([0, 4], 1, 1, F64), "mixed dtypes"),
    "host": (Host([0], lambda v: v, (F64,), "f"), Host([0], 3, (F64,), "f"), "no function"),
}


def _around(region):
    g = Graph()
    for dtype in (F64, F64, F64, I64, F32):
        g.input(dtype)
    g.regions[5] = region
    for parallel, value in ((g.op, CODES["region"]), (g.a, -1), (g.b, -1), (g.c, -1)):
        parallel.append(value)
    g.dtype.append(B8)
    return g


@pytest.mark.parametrize("name", REGIONS)
def test_broken_region(name):
    valid, broken, message = REGIONS[name]
    if name == "scan carry":
        valid = replace(valid, inputs=np.array([0]))
    validate(_around(valid))
    with pytest.raises(GraphError, match=rf"node %5 \(region\).*{message}"):
        validate(_around(broken))


def test_broken_body_is_found_inside_regions():
    bad = graph_of([F64], lambda g, x: op(g, "sin", x))
    bad.dtype[1] = F32
    outer = graph_of([F64], lambda g, x: g.region(Call([x], bad)).tolist(), check=False)
    nested = graph_of([F64], lambda g, x: g.region(Call([x], outer)).tolist(), check=False)
    with pytest.raises(GraphError, match=r"node %1 .*body 0: node %1 .*body 0: node %1 \(sin\)"):
        validate(nested)


def test_outputs_of_regions():
    g = graph_of([F64], lambda g, x: g.region(Call([x], ONE)).tolist())
    g.b[2] = 1
    with pytest.raises(GraphError, match=r"node %2 \(out\): is not an output of %1"):
        validate(g)
    g.b[2], g.a[2] = 0, 0
    with pytest.raises(GraphError, match=r"node %2 \(out\): reads %0, which is not a region"):
        validate(g)
    g = graph_of([F64], lambda g, x: g.region(Call([x], ONE)).tolist())
    g.outputs = [1]
    with pytest.raises(GraphError, match="output 0 is %1, which is not a value"):
        validate(g)
    g.outputs = [op(g, "not", 1)]
    with pytest.raises(GraphError, match="reads %1, which is a region"):
        validate(g)
    g = graph_of([F64], lambda g, x: g.region(Call([x], ONE)).tolist())
    g.regions.clear()
    with pytest.raises(GraphError, match=r"node %1 \(region\): has no region"):
        validate(g)
