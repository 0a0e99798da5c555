"""The expanded graph gives the bits of the elementary program it replaces."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.interpreter import run
from archimedes.graph import CODES, DTYPES, F32, F64, TABLE, Call, Graph, Scan, Switch
from archimedes.graph.elementary.table import ELEMENTARY, evaluate
from archimedes.graph.expand import expand, program

from ..programs.values import assert_bits, samples

NAMES = sorted(ELEMENTARY)


def elementary_ops(g: Graph) -> list[str]:
    found = [TABLE[g.op[i]].name for i in g.live() if TABLE[g.op[i]].elementary]
    return found + [
        n for r in g.regions.values() for body in r.bodies for n in elementary_ops(body)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [F64, F32])
def test_bits_of_the_program(name, dtype):
    g = Graph()
    ids = [g.input(dtype) for _ in range(ELEMENTARY[name].arity)]
    g.outputs = [g.emit(CODES[name], *ids)]
    rng = np.random.default_rng(3)
    columns = [samples(dtype, 600, rng) for _ in ids]
    expanded = expand(g)
    assert elementary_ops(expanded) == []
    (mine,) = run(expanded, columns)
    assert_bits(mine, evaluate(name, *columns), name)
    assert_bits(mine, run(g, columns)[0], name)


def test_sine_and_cosine_share_the_reduction():
    g = Graph()
    x = g.input(F64)
    g.outputs = [g.emit(CODES["sin"], x), g.emit(CODES["cos"], x)]
    together = len(expand(g).live())
    alone = len(program("sin", F64).live()) + len(program("cos", F64).live())
    assert together < 0.65 * alone
    assert len(expand(g).regions) == 1


def test_bodies_are_expanded_and_derivative_rules_dropped():
    body = Graph()
    x = body.input(F64)
    body.outputs = [body.emit(CODES["exp"], x)]
    inner = Graph()
    y = inner.input(F64)
    (z,) = inner.region(Call([y], body, derivative=object()))  # type: ignore[arg-type]
    inner.outputs = [int(z)]
    g = Graph()
    a = g.input(F64)
    (b,) = g.region(Scan([a], inner, 3, 1, 0))
    index = g.emit(CODES["truncate"], a)
    (c,) = g.region(Switch([index, int(b)], (inner, body)))
    g.outputs = [int(c)]
    expanded = expand(g)
    assert elementary_ops(expanded) == []
    assert expand(g).digest() == expanded.digest()
    values = np.linspace(-1.0, 3.0, 9)
    assert_bits(run(expanded, [values])[0], run(g, [values])[0])


def test_inputs_and_names_stay():
    g = Graph()
    g.input(F64)
    used = g.input(F32)
    g.input_names, g.output_names = ["a", "b"], ["y"]
    g.outputs = [g.emit(CODES["sin"], used)]
    expanded = expand(g)
    assert expanded.input_dtypes == [F64, F32]
    assert (expanded.input_names, expanded.output_names) == (["a", "b"], ["y"])
    assert expanded.output_dtypes == [F32]
    assert DTYPES[expanded.output_dtypes[0]] == np.float32
