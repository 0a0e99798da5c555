"""Loops over blocks that feed each other become one, with the same bits."""

from __future__ import annotations

import numpy as np

from archimedes.backends.interpreter import run
from archimedes.graph import F64, Graph
from archimedes.graph.blocks.fusion import fuse_loops
from archimedes.graph.dtypes import block_type
from archimedes.graph.regions import Affine, Nest
from archimedes.graph.regions.block_regions import row_major

from ..programs.program import emit, graph_of
from ..programs.values import assert_bits


def product_and_sum(n: int, m: int, p: int) -> Graph:
    """All products of a matrix product as one block, then their sums: what einsum writes."""
    multiply = graph_of([F64, F64], lambda g, x, y: emit(g, "mul", x, y))
    same = graph_of([F64], lambda g, x: x)

    def build(g, a, b):
        shape = (n, p, m)
        reads = (Affine(0, (m, 0, 1)), Affine(0, (0, 1, p)))
        (terms,) = g.region(Nest([a, b], multiply, shape, reads, 3)).tolist()
        sums = Nest([terms], same, shape, (Affine(0, row_major(shape)),), 2, "add")
        return g.region(sums).tolist()

    return graph_of([block_type(F64, n * m), block_type(F64, m * p)], build)


def test_a_sum_of_products_stores_no_products():
    g = product_and_sum(7, 11, 5)
    one = fuse_loops(g)
    (loop,) = (one.regions[i] for i in one.live() if i in one.regions)
    assert loop.shape == (7, 5, 11) and loop.combine == "add"
    rng = np.random.default_rng(0)
    values = [rng.normal(size=77), rng.normal(size=55)]
    assert_bits(run(fuse_loops(g), values)[0], run(g, values)[0])
