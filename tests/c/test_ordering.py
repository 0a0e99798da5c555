"""The order of statements: complete, operands first, few values alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.lowering.schedule import (
    Schedule,
    count_loads,
    critical_path_schedule,
    depth_first_schedule,
    latency_schedule,
    register_pressure_schedule,
)
from archimedes.graph import Graph
from archimedes.graph.expand import expand
from archimedes.graph.ops import CONST, INPUT, OUT

from .test_programs import graph_case


def most_alive(g: Graph, order: Sequence[int]) -> int:
    """Count the values that are computed and still to be read, at the worst moment."""
    last = {j: k for k, i in enumerate(order) if g.op[i] != OUT for j in g.operands(i)}
    return max(sum(last.get(j, -1) > k for j in order[: k + 1]) for k in range(len(order)))


def layers(x: np.ndarray) -> np.ndarray:
    """Recorded layer by layer: everything in a layer is alive in the order of the recording."""
    for _ in range(6):
        x = np.sqrt(x * x + 1.0)
    return x


def terms(x: np.ndarray) -> np.ndarray:
    """NumPy adds in pairs: six levels of them."""
    return np.sum(np.sqrt(x * x + 1.0) * x)


@pytest.mark.parametrize(("function", "bound"), [(layers, 1), (terms, 6)])
def test_few_values_are_alive(function, bound: int):
    g = arc.compile(function).graph(np.ones(50))
    order = register_pressure_schedule(g, g.outputs).order
    assert most_alive(g, order) <= bound < 40 < most_alive(g, sorted(order))


def chains(g: Graph, outputs: Sequence[int]) -> Schedule:
    return critical_path_schedule(g, depth_first_schedule(g, outputs))


def whole(g: Graph, outputs: Sequence[int]) -> Schedule:
    return latency_schedule(g, depth_first_schedule(g, outputs), outputs, registers=16)


#: Of C statements, and of instructions.
ORDERS = {
    "c": register_pressure_schedule,
    "depth first": depth_first_schedule,
    "chains": chains,
    "whole": whole,
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("seed", range(5))
def test_every_node_comes_once_behind_its_operands(seed: int, name: str):
    check_order(graph_case(seed).graph, ORDERS[name])


@pytest.mark.parametrize("name", ORDERS)
def test_so_it_does_without_regions(name: str):
    check_order(arc.compile(terms).graph(np.ones(50)), ORDERS[name])


def test_nodes_do_not_wait_for_the_one_before():
    g = arc.compile(layers).graph(np.ones(50))
    waiting = {}
    for name in ("depth first", "whole"):
        order = ORDERS[name](g, g.outputs).order
        waiting[name] = sum(a in g.operands(b) for a, b in pairwise(order))
    assert waiting["whole"] < 0.2 * waiting["depth first"]


def test_the_longest_chain_goes_ahead_among_branches():
    # Two sines are branches; what the chain of ten squares needs is not left to the end.
    def function(x: np.ndarray) -> np.ndarray:
        short, long = np.sin(x[0]), np.sin(x[1])
        results = [short + k for k in range(20)]
        for _ in range(10):
            long = long * long + 1.0
        return np.array([*results, long])

    g = expand(arc.compile(function).graph(np.ones(2)))
    assert whole(g, g.outputs).order == chains(g, g.outputs).order
    order, before = whole(g, g.outputs).order, depth_first_schedule(g, g.outputs).order
    assert order.index(g.outputs[-1]) < before.index(g.outputs[-1])


def test_bodies_that_mostly_read_memory_keep_their_operands_near():
    def sums(x: np.ndarray) -> np.ndarray:
        return np.array([a * b + c * d for a, b, c, d in x.reshape(100, 4)])

    g = arc.compile(sums).graph(np.ones(400))
    found = depth_first_schedule(g, g.outputs)
    assert whole(g, g.outputs).order in (found.order, sorted(found.order))
    assert count_loads(g, found.order, 16) == 400
    # With as many operations on few inputs independent ones come in between.
    g = arc.compile(lambda x: np.array([np.sum((x + k) * x) for k in range(4)])).graph(np.ones(20))
    found = depth_first_schedule(g, g.outputs)
    assert whole(g, g.outputs).order not in (found.order, sorted(found.order))


def check_order(g: Graph, ordered: Callable[..., Schedule]) -> None:
    order, outs = ordered(g, g.outputs)
    computed = [i for i in g.live(g.outputs) if g.op[i] not in (CONST, INPUT)]
    assert sorted(order) == computed
    place = {i: k for k, i in enumerate(order)}
    assert all(place.get(j, -1) < place[i] for i in order for j in g.operands(i))
    for region, found in outs.items():
        assert order[place[region] + 1 :][: len(found)] == found
