"""Branches and calls: few results and many, bodies that occur once and often."""

from __future__ import annotations

import numpy as np

from archimedes.graph import F64, I64, Call, Graph, Switch

from .program import Program, emit, graph_of, program


def branch(kind: int) -> Graph:
    """A body of two values: nothing, two operations, or a long chain."""
    b = Graph()
    x, y = b.input(F64), b.input(F64)
    if kind == 0:
        b.outputs = [x, y]
    elif kind == 1:
        b.outputs = [emit(b, "add", x, y), emit(b, "mul", x, y)]
    else:
        s = x
        for _ in range(kind):
            s = emit(b, "add", emit(b, "mul", s, y), emit(b, "cos", s))
        b.outputs = [s, emit(b, "div", s, y)]
    return b


def switch(*kinds: int) -> Program:
    g = Graph()
    k, x, y = g.input(I64), g.input(F64), g.input(F64)
    branches = tuple(branch(kind) for kind in kinds)
    first = g.region(Switch([k, x, y], branches))
    # The same branches again, on other values: they become functions.
    second = g.region(Switch([k, int(first[0]), y], branches))
    test = emit(g, "i64", emit(g, "lt", x, y))
    third = g.region(Switch([test, x, y], branches))
    g.outputs = [*first.tolist(), int(second[1]), *third.tolist()]
    made = program("switch_" + "_".join(map(str, kinds)), g)
    made.columns[0][:5] = [-(2**63), 2**63 - 1, 0, 1, -1]
    return made


def clamped() -> Program:
    branches = tuple(
        graph_of([F64], lambda g, x, k=k: emit(g, "add", x, g.const(10.0 * (k + 1))))
        for k in range(3)
    )
    g = graph_of([I64, F64], lambda g, i, x: g.region(Switch([i, x], branches)).tolist())

    def plain(i, x):
        return (x + 10.0 * (min(max(i, 0), 2) + 1),)

    columns = [np.array([-9, 0, 1, 2, 3, 2**62]), np.linspace(-1.0, 2.0, 6)]
    return program("clamped", g, plain, columns)


def many_results() -> Graph:
    branches = []
    for factor in (2.0, 3.0, 5.0):
        b = Graph()
        xs = b.add_inputs(F64, 80).tolist()
        b.outputs = [emit(b, "mul", x, b.const(factor)) for x in xs]
        branches.append(b)
    g = Graph()
    k = g.input(I64)
    xs = g.add_inputs(F64, 80).tolist()
    switched = g.region(Switch([k, *xs], tuple(branches)))
    called = g.region(Call(switched, branches[0]))
    again = g.region(Call(xs[::-1], branches[0]))
    g.outputs = [*called.tolist(), int(again[3])]
    return g


def calls() -> Graph:
    body = branch(6)
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    for _ in range(10):
        x, y = g.region(Call([x, y], body)).tolist()
    g.outputs = [x, y]
    return g


def one_call() -> Program:
    body = graph_of(
        [F64, F64],
        lambda g, x, y: [emit(g, "add", emit(g, "mul", x, y), g.const(1.0)), emit(g, "sub", x, y)],
    )
    g = graph_of([F64, F64], lambda g, x, y: g.region(Call([x, y], body)).tolist())
    return program("one_call", g, lambda x, y: (x * y + 1.0, x - y))


def calls_in_calls() -> Graph:
    """Functions that call functions; the inner one from two places and from one."""
    inner = branch(5)
    outer = graph_of([F64, F64], lambda g, x, y: g.region(Call([y, x], inner)).tolist())
    long = branch(9)
    only = graph_of([F64, F64], lambda g, x, y: g.region(Call([x, y], long)).tolist())
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    for body in (outer, only, inner, only, outer):
        x, y = g.region(Call([x, y], body)).tolist()
    g.outputs = [x, y]
    return g


def branches() -> list[Program]:
    return [
        *(switch(*k) for k in [(0,), (9,), (0, 9), (9, 0), (0, 1), (8, 9), (1, 9, 0, 8)]),
        *(clamped(), one_call(), program("results", many_results())),
        *(program("calls", calls()), program("calls_in_calls", calls_in_calls())),
    ]
