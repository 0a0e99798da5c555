"""Dead code elimination and retyping: the same values from less, and from float32."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.interpreter import run
from archimedes.graph import B8, CODES, F32, F64, I64, Call, Graph, Scan, Switch, While
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.retype import retype

from ..programs.program import emit
from ..programs.random_graphs import random_graph
from ..programs.values import assert_bits, reference, samples
from .spec import validate


@pytest.mark.parametrize("block", range(4))
def test_live_programs_give_the_same_bits(block: int):
    for seed in range(block * 60, (block + 1) * 60):
        g = random_graph(seed)
        rng = np.random.default_rng(seed)
        columns = [samples(d, 9, rng) for d in g.input_dtypes]
        program = remove_dead_code(g).graph
        validate(program)
        assert program.input_dtypes == g.input_dtypes
        for got, want in zip(reference(program, columns, 9), reference(g, columns, 9)):
            assert_bits(got, want, f"seed {seed}")


@pytest.mark.parametrize("block", range(2))
def test_retyped_programs_are_valid_and_hold_no_double(block: int):
    for seed in range(block * 60, (block + 1) * 60):
        g = random_graph(seed)
        program = retype(g)
        validate(program)
        assert F64 not in program.input_dtypes + program.output_dtypes
        single = [F32 if d == F64 else d for d in g.output_dtypes]
        assert program.output_dtypes == single
        # What is left of float64 are operands and results of bit moves.
        moves = {CODES["bits"], CODES["from_bits"]}
        doubles = [i for i in program.live() if program.dtype[i] == F64]
        for i in doubles:
            users = [j for j in program.live() if i in program.operands(j)]
            assert program.op[i] in moves or {program.op[j] for j in users} <= moves


def test_retyping_rounds_as_float32_does():
    g = Graph()
    x = g.input(F64)
    third = g.emit(CODES["div"], x, g.const(3.0))
    big = g.emit(CODES["add"], x, g.const(1e300))
    table = g.lookup(np.array([0.1, 0.2]), g.emit(CODES["truncate"], x))
    count = g.emit(CODES["f64"], g.emit(CODES["truncate"], x))
    sign = g.emit(CODES["lt"], g.emit(CODES["bits"], x), g.const(0, I64))
    g.outputs = [third, big, table, count, g.emit(CODES["sin"], x), sign]
    values = run(retype(g), [np.float32(-1.0)])
    assert values[0] == np.float32(-1.0) / np.float32(3.0)
    assert values[1] == np.inf
    assert values[2] == np.float32(0.1)
    assert values[3] == np.float32(-1.0)
    assert abs(values[4] - np.float32(np.sin(-1.0))) <= np.spacing(np.float32(1.0))
    assert values[5]
    assert all(v.dtype in (np.float32, np.bool_) for v in values)


def test_loops_lose_what_nobody_reads():
    body = Graph()
    a, b, s, t, p, q = (body.input(F64) for _ in range(6))
    body.outputs = [body.emit(CODES["add"], a, s), body.emit(CODES["mul"], b, t), p, q]
    g = Graph()
    ids = g.add_inputs(F64, 12).tolist()
    scan = g.region(Scan(ids, body, 4, 2, 2))
    g.outputs = [int(scan[0])]
    (region,) = remove_dead_code(g).graph.regions.values()
    assert (region.carry, region.slices, region.outs, len(region.inputs)) == (1, 1, 0, 5)

    condition = Graph()
    x, _, top = condition.input(F64), condition.input(F64), condition.input(F64)
    condition.outputs = [condition.emit(CODES["lt"], x, top)]
    step = Graph()
    x, y, _ = step.input(F64), step.input(F64), step.input(F64)
    step.outputs = [step.emit(CODES["add"], x, x), step.emit(CODES["mul"], y, x)]
    h = Graph()
    ids = h.add_inputs(F64, 3).tolist()
    h.outputs = [int(h.region(While(ids, condition, step, 2, 9))[0])]
    (region,) = remove_dead_code(h).graph.regions.values()
    assert (region.carry, len(region.inputs)) == (1, 2)


def test_loops_without_a_step_and_switches_without_a_choice_disappear():
    body = Graph()
    x = body.input(F64)
    body.outputs = [body.emit(CODES["add"], x, x)]
    g = Graph()
    a, k = g.input(F64), g.input(I64)
    switched = int(g.region(Switch([k, a], (body,)))[0])
    g.outputs = [int(g.region(Scan([a], body, 0, 1, 0))[0]), switched]
    program = remove_dead_code(g).graph
    assert program.outputs[0] == program.inputs[0]
    (region,) = program.regions.values()
    assert isinstance(region, Call)


def test_branches_that_a_condition_cannot_take_disappear():
    branches = []
    for factor in (1.5, 2.5, 3.5):
        b = Graph()
        b.outputs = [b.emit(CODES["mul"], b.input(F64), b.const(factor))]
        branches.append(b)
    g = Graph()
    a, test = g.input(F64), g.input(B8)
    index = g.emit(CODES["i64"], test)
    g.outputs = g.region(Switch([index, a], tuple(branches))).tolist()
    (region,) = remove_dead_code(g).graph.regions.values()
    assert len(region.branches) == 2


def test_no_bit_changes_where_a_loop_has_no_steps():
    """What follows is not simplified once more: 0 * nan would be 0 for a literal zero."""
    g, body = Graph(), Graph()
    x, y = g.input(I64), g.input(F64)
    body.outputs = [emit(body, "add", body.input(I64), body.const(1, I64))]
    held = int(g.region(Scan(np.array([x]), body, 0, 1, 0))[0])
    zero = emit(g, "f64", emit(g, "sub", held, x))
    g.outputs = [emit(g, "mul", zero, y)]
    values = [np.int64(3), np.float64(np.nan)]
    assert np.isnan(run(g, values)[0])
    assert np.isnan(run(remove_dead_code(g).graph, values)[0])
