"""The order of statements: complete, operands first, few values alive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.c.ordering import statements
from archimedes.graph import Graph
from archimedes.graph.program import CONST, INPUT, OUT

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
    order = statements(g, g.outputs).order
    assert most_alive(g, order) <= bound < 40 < most_alive(g, sorted(order))


@pytest.mark.parametrize("seed", range(5))
def test_every_node_comes_once_behind_its_operands(seed: int):
    g = graph_case(seed).graph
    order, outs = statements(g, g.outputs)
    computed = [i for i in g.live(g.outputs) if g.op[i] not in (CONST, INPUT)]
    assert sorted(order) == computed
    place = {i: k for k, i in enumerate(order)}
    assert all(place.get(j, -1) < place[i] for i in order for j in g.operands(i))
    for region, found in outs.items():
        assert order[place[region] + 1 :][: len(found)] == found
