"""Derivative graphs of every region: valid by the spec, forward equal to reverse, near differences.

The sharp comparisons with independent oracles are in tests/derivatives; here the graphs
themselves are looked at.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.batching import vmap
from archimedes.function.compiled import Compiled
from archimedes.graph.derivatives.jacobian_graphs import (
    forward_graph,
    jacobian_graph,
    reverse_graph,
)
from archimedes.graph.derivatives.sparsity import dependence, pattern, work

from .building import F64, I64, Graph, graph_of, op, run
from .spec import validate

X = np.array([0.7, 0.4, 1.2])


@pytest.fixture(autouse=True)
def keep_regions(monkeypatch):
    """Small bodies are normally inlined or unrolled: keep them as regions."""
    monkeypatch.setattr(Compiled, "inline_limit", 0)
    monkeypatch.setattr(vmap, "UNROLL_LIMIT", 0)


def _call(x):
    return arc.compile(lambda y: np.sin(y * x[1]) * y)(x)


def _map(x):
    return arc.vmap(lambda a, b: np.sin(a) * b + x[0], in_axes=(0, None))(np.tile(x, 2), x[1])


def _implicit(x):
    return arc.root(lambda y, p: y**3 + p * y - 1.0, np.ones(3), x)


def _own_forward(x):
    @arc.custom_jvp
    def f(y):
        return np.exp(y) * y

    f.defjvp(lambda p, t: (f(*p), np.exp(p[0]) * (1.0 + p[0]) * t[0]))
    return f(x)


def _own_reverse(x):
    @arc.custom_vjp
    def f(y):
        return np.sin(y) * y

    f.defvjp(lambda y: (f(y), y), lambda y, w: ((np.sin(y) + y * np.cos(y)) * w,))
    return f(x)


PROGRAMS = {
    "straight": lambda x: np.array([np.sin(x[0]) * x[1], x[2] ** 3 / x[0]]),
    "call": _call,
    "scan": lambda x: arc.scan(lambda c, s: (c * s + np.sin(c), c * x[1]), x[0], x),
    "scan reversed closure": lambda x: arc.scan(lambda c, s: (c + s * x, c[0]), x, x)[1],
    "while": lambda x: arc.while_loop(lambda s: s[0] < 9.0, lambda s: s * 1.5 + x[1], x, 20),
    "fori": lambda x: arc.fori_loop(0, 4, lambda i, s: s * x + i, x),
    "switch": lambda x: arc.switch(
        (x[0] > 0.5).astype(int), [lambda a: a * x[1], lambda a: np.sin(a) * a], x
    ),
    "map": _map,
    "solve": lambda x: np.linalg.solve(np.diag(np.tile(x, 4)) + 0.1, np.tile(x[::-1], 4)),
    "lookup": lambda x: arc.interpolant([0.0, 0.5, 1.0, 2.0], [0.0, 1.0, -1.0, 3.0])(x),
    "cubic": lambda x: arc.interpolant(np.linspace(0, 2, 6), np.arange(6.0) ** 2, "cubic")(x),
    "implicit": _implicit,
    "own forward": _own_forward,
    "own reverse": _own_reverse,
    "host": lambda x: arc.callback(np.sin, x, x, jvp=lambda p, t: np.cos(p[0]) * t[0]),
    "nested": lambda x: arc.scan(
        lambda c, s: (
            arc.cond(s > 0.5, lambda: arc.vmap(lambda a: np.tanh(a) * s)(c), lambda: c * c),
            arc.while_loop(lambda v: v < 5.0, lambda v: v * 2.0 + c[0], s, 8),
        ),
        x,
        x,
    ),
}


EXPECTED = {"call": "call", "map": "map", "while": "while", "scan": "scan", "switch": "switch"}


@pytest.mark.parametrize("name", EXPECTED)
def test_programs_have_the_region_they_are_named_for(name):
    assert EXPECTED[name] in flat_graph(PROGRAMS[name])[0].statistics(X).by_op


def flat_graph(program, x=X):
    f = arc.compile(lambda x: arc.tree.ravel(program(x))[0])
    return f, f.graph(x)


def differences(f, x, h=1e-6):
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=1)


def dense(entries, x):
    values = run(entries.graph, *x)
    out = np.zeros(entries.shape)
    out[entries.rows, entries.columns] = values
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_order(name):
    f, g = flat_graph(PROGRAMS[name])
    validate(g)
    wrt = range(3)
    want = differences(f, X)
    by_mode = {}
    for mode in ("forward", "reverse"):
        entries = jacobian_graph(g, wrt, mode=mode)
        validate(entries.graph)
        by_mode[mode] = dense(entries, X)
        np.testing.assert_allclose(by_mode[mode], want, atol=2e-6, rtol=2e-6)
    np.testing.assert_allclose(by_mode["forward"], by_mode["reverse"], rtol=1e-11, atol=1e-13)
    assert jacobian_graph(g, wrt).mode in by_mode
    # one direction at a time
    forward, reverse = forward_graph(g, wrt), reverse_graph(g, wrt)
    validate(forward)
    validate(reverse)
    v, w = np.array([0.3, -1.0, 2.0]), np.linspace(-1.0, 1.0, len(g.outputs))
    m = len(g.outputs)
    np.testing.assert_allclose(run(forward, *X, *v)[m:], want @ v, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(run(reverse, *X, *w)[m:], w @ want, atol=1e-5, rtol=1e-5)
    np.testing.assert_array_equal(run(forward, *X, *v)[:m], run(g, *X))
    np.testing.assert_array_equal(run(reverse, *X, *w)[:m], run(g, *X))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "host"])
def test_second_order_graphs_are_valid(name):
    scalar = lambda x: np.sum(arc.tree.ravel(PROGRAMS[name](x))[0] ** 2)
    for transform in (
        arc.hess,
        lambda f: arc.jac(arc.jac(f)),
        lambda f: arc.grad(_sum(arc.grad(f))),
    ):
        made = transform(scalar)
        validate(made.graph(X))
    gradient = arc.grad(scalar)
    want = differences(gradient, X)
    np.testing.assert_allclose(arc.hess(scalar)(X), want, atol=2e-5, rtol=2e-5)


def _sum(f):
    return lambda x: np.sum(f(x))


def dense_pattern(g):
    """Return which outputs depend on which of three inputs, as booleans."""
    found = pattern(g, range(3))
    dense = np.zeros(found.shape, dtype=bool)
    dense[found.rows, found.columns] = True
    return dense


@pytest.mark.parametrize("name", PROGRAMS)
def test_pattern_covers_every_derivative(name):
    f, g = flat_graph(PROGRAMS[name])
    found = dense_pattern(g)
    assert not np.any((np.abs(differences(f, X)) > 1e-7) & ~found)


def test_pattern_is_exact_where_structure_is():
    """A scan in which step k reads only x[k] has a triangular pattern."""
    _, g = flat_graph(lambda x: arc.scan(lambda c, s: (c + s, c * s), 0.0, x)[1])
    found = dense_pattern(g)
    assert np.array_equal(found[1:], np.tri(3, dtype=bool)[1:]) and not found[0, 1:].any()


def test_no_derivative_through_steps_and_comparisons():
    _, g = flat_graph(lambda x: np.floor(x) * (x > x[0]) + np.rint(x) + arc.stop_gradient(x))
    assert not dense_pattern(g).any()
    entries = jacobian_graph(g, range(3))
    assert entries.graph.outputs == [] and entries.colors == 0


def test_work_counts_directions():
    g = graph_of([F64, F64], lambda g, x, y: op(g, "mul", op(g, "sin", x), y))
    assert work(g, [1, 0]) == 3  # x, sin, mul
    assert work(g, [1, 2]) == 5  # and y, and a second direction of mul
    assert dependence(g) == [0b11]


def test_integers_carry_no_derivative():
    g = graph_of([F64, I64], lambda g, x, n: op(g, "mul", x, op(g, "f64", n)))
    assert dependence(g) == [0b01]
    entries = jacobian_graph(g, [0])
    assert run(entries.graph, np.float64(2.0), np.int64(5)) == [5.0]


def test_columns_of_inputs_asked_for_twice_or_not_at_all():
    g = graph_of([F64, F64], lambda g, x, y: op(g, "mul", x, y))
    assert jacobian_graph(g, []).shape == (1, 0)
    entries = jacobian_graph(g, [1])
    assert run(entries.graph, np.float64(3.0), np.float64(4.0)) == [3.0]


def test_jacobian_of_no_outputs():
    g = Graph()
    g.input(F64)
    entries = jacobian_graph(g, [0])
    assert entries.shape == (0, 1) and entries.rows.size == 0
