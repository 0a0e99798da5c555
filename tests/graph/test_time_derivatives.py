"""States moved along a flow and times of events: rules of the graph, against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.derivatives.flows import event_time, move_state
from tests.c.checking import Bundle
from tests.programs.program import Program

A, K = 0.7, 1.3
ONE = np.ones(())


def damped(k):
    """x' = -k t x, so that x(b) = x(a) exp(-k (b^2 - a^2) / 2)."""
    return lambda t, x: -k * t * x


def flow(p):
    a, b, x, k = p
    return move_state(damped(k), a, b, np.stack([x]))[0]


def flow_exact(p):
    a, b, x, k = p
    return x * np.exp(-k * (b * b - a * a) / 2.0)


def crossing(p):
    """When x falls to q: t^2 = a^2 + 2 log(x / q) / k."""
    a, x, k, q = p
    return event_time(damped(k), lambda t, y: y[0] - q, a, np.stack([x]))


def crossing_exact(p):
    a, x, k, q = p
    return np.sqrt(a * a + 2.0 * np.log(x / q) / k)


FLOW = np.array([A, A, 2.0, K])
CROSSING = np.array([A, 2.0, K, 2.0])
PAIRS = [(flow, flow_exact, FLOW), (crossing, crossing_exact, CROSSING)]


@pytest.mark.parametrize(("fn", "exact", "at"), PAIRS, ids=["flow", "event time"])
def test_orders_in_all_arguments(fn, exact, at):
    assert np.isclose(arc.compile(fn)(at), exact(at), rtol=1e-15)
    first = [arc.grad(f)(at) for f in (fn, exact)]
    assert np.allclose(*first, rtol=1e-12, atol=1e-13)
    wanted = arc.hess(exact)(at)
    for second in (arc.hess(fn), arc.jac(arc.jac(fn)), arc.jac(arc.grad(fn))):
        assert np.allclose(second(at), wanted, rtol=1e-11, atol=1e-12)
    third = [arc.jac(arc.hess(f))(at) for f in (fn, exact)]
    assert np.allclose(*third, rtol=1e-10, atol=1e-11)


def test_mixed_derivatives_that_vanish_at_first_order():
    """The value does not depend on k at all, but its slope in b does."""
    point = np.copy(FLOW)
    assert arc.grad(flow)(point)[3] == 0.0
    mixed = arc.jac(arc.jac(lambda k, b: flow(np.stack([A, b, 2.0, k]))), argnums=1)
    assert np.isclose(mixed(K, A), -2.0 * A)


def test_patterns_are_those_of_the_solution():
    """A chain: each state reads its neighbour, so that the last depends on all before it."""

    def chain(t, x):
        return np.concatenate([x[:1], x[:-1]])

    found = arc.sparsity(lambda x, b: move_state(chain, 0.5, b, x))(np.ones(4), 0.5)
    dense = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    assert np.array_equal(dense != 0, np.tril(np.ones((4, 4), dtype=bool)))


def test_the_same_bits_in_c(tmp_path: Path):
    program = arc.compile(lambda p: np.concatenate([arc.hess(flow)(p).ravel(), arc.grad(flow)(p)]))
    graph = program.graph(FLOW)
    columns = [np.array([value, value + 0.25]) for value in FLOW]
    Bundle([Program("flow", graph, columns)]).check(tmp_path, "gcc", "-O1")
