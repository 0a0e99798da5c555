"""Hessians through solves: right, recorded in reasonable time, and not far from a solve's cost."""

from __future__ import annotations

import time

import numpy as np
import pytest

import archimedes as arc
from archimedes.graph.derivatives import sparsity


def decay(t, x, k):
    return -k * x


def pendulum(t, x, k):
    return np.stack([x[1], -k * np.sin(x[0])])


def test_one_state_through_an_adaptive_solve():
    def final(p):
        return arc.odeint(decay, (0.0, 1.5), p[0], args=(p[1],))

    began = time.process_time()
    found = arc.hess(final)(np.array([1.0, 2.0]))
    # x(T) = a exp(-k T)
    small = np.exp(-3.0)
    exact = [[0.0, -1.5 * small], [-1.5 * small, 2.25 * small]]
    assert np.allclose(found, exact, rtol=1e-7, atol=1e-10)
    assert time.process_time() - began < 10.0


def test_bodies_are_read_once(monkeypatch):
    """Nested loops and branches: one pass over each body, whatever the depth."""
    passes = []
    plain = sparsity._propagate
    monkeypatch.setattr(
        sparsity, "_propagate", lambda g, *rest: passes.append(id(g)) or plain(g, *rest)
    )

    def final(p):
        return arc.odeint(decay, (0.0, 1.5), p[0], args=(p[1],))

    arc.jac(arc.grad(final))(np.array([1.0, 2.0]))
    assert len(passes) < 200


@pytest.mark.parametrize("size", [1, 2])
def test_a_thousand_steps_cost_few_solves(size):
    fn, x0 = (decay, [1.0]) if size == 1 else (pendulum, [1.0, 0.0])

    def final(p):
        x = arc.odeint(fn, (0.0, 10.0), p[:-1], "rk4", args=(p[-1],), dt=0.01)
        return np.sum(x * x)

    point = np.array([*x0, 2.0])
    solve, second = arc.compile(final), arc.hess(final)
    began = time.process_time()
    second(point)
    assert time.process_time() - began < 10.0

    def seconds(f):
        f(point)
        times = []
        for _ in range(5):
            began = time.process_time()
            f(point)
            times.append(time.process_time() - began)
        return min(times)

    for _ in range(4):  # until native
        solve(point)
    assert seconds(second) <= 30.0 * seconds(solve)


def test_the_search_for_events_leaves_no_trace():
    """Reverse mode keeps every round of a loop that it comes back through: not of this one."""

    def after(p):
        event = arc.Event(lambda t, x, k: x - p, reset=lambda t, x, k: x + 1.0)  # p: closure
        return arc.odeint(decay, (0.0, 1.0), 1.0, "heun", args=(1.0,), dt=0.25, events=event)

    def largest(g):
        bodies = [body for region in g.regions.values() for body in region.bodies]
        return max([len(g), *map(largest, bodies)])

    assert largest(arc.grad(after).graph(0.5)) < 10_000
