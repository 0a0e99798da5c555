"""Random programs on blocks against the same programs on scalars: values, patterns, derivatives."""

from __future__ import annotations

import random

import numpy as np
import pytest

from archimedes.backends.interpreter import run
from archimedes.graph import CODES as C
from archimedes.graph import Graph
from archimedes.graph.blocks.building import loops, pack
from archimedes.graph.derivatives.jacobian_graphs import forward_graph, reverse_graph
from archimedes.graph.derivatives.sparsity import dependence
from archimedes.graph.dtypes import F64, I64, block_type, length_of
from archimedes.graph.regions import Accumulate, Affine, Gather, Move
from archimedes.graph.regions.interval_sets import unit_sets
from tests.blocks.unrolled import unrolled
from tests.graph.spec import validate

LINE = Affine(0, (1,))


def _two(kind, g, blocks, reads, shape, kept, combine="", partials=None):
    body = Graph()
    x, y = body.input(F64), body.input(F64)
    product = body.emit(C["mul"], x, y)
    if kind == "mul":
        body.outputs = [product]
    elif kind == "sin":
        body.outputs = [body.emit(C["add"], body.emit(C["sin"], x), body.emit(C["mul"], y, y))]
    else:
        square = body.emit(C["neg"], body.emit(C["mul"], x, x))
        body.outputs = [product, body.emit(C["exp"], square)]
    return loops(g, blocks, reads, body, shape, kept, combine, partials)


def _one(name):
    body = Graph()
    body.outputs = [body.emit(C[name], body.input(F64))]
    return body


def _elementwise(r, g, a, n, blocks, scalars):
    b = r.choice(blocks + scalars)
    other = length_of(g.dtype[b])
    m = min(n, other) if other else n
    back = Affine(m - 1, (-1,)) if r.random() < 0.5 else LINE
    reads = [Affine(r.randint(0, n - m), (1,)), back if other else None]
    blocks += _two(r.choice(["mul", "sin", "two"]), g, [a, b], reads, (m,), 1)


def _outer(r, g, a, n, blocks, scalars):
    b = r.choice(blocks)
    shape = min(n, 6), min(length_of(g.dtype[b]), 5)
    blocks += _two("mul", g, [a, b], [Affine(0, (1, 0)), Affine(0, (0, 1))], shape, 2)


def _sum(r, g, a, n, blocks, scalars):
    b = r.choice(blocks)
    other = length_of(g.dtype[b])
    m = min(other, n - 2)
    if r.random() < 0.5:
        if m > 0:
            scalars += _two("mul", g, [a, b], [Affine(1, (1,)), LINE], (m,), 0, "add")
    else:
        reads = [Affine(0, (1, 0)), Affine(0, (0, 1))]
        shape = (min(n, 4), other)
        blocks += _two("sin", g, [a, b], reads, shape, 1, "add", r.choice([1, 16]))


def _gather(r, g, a, n, blocks, scalars):
    k = r.randint(1, 30)
    places = Gather(np.array([r.randrange(n) for _ in range(k)]))
    blocks += _two("sin", g, [a, r.choice(scalars)], [places, None], (k,), 1)


def _extreme(r, g, a, n, blocks, scalars):
    if r.random() < 0.5:
        scalars += loops(g, [a], [LINE], _one("sin"), (n,), 0, r.choice(["max", "min"]))
    else:
        q = max(1, n // 3)
        read = Affine(0, (q, 1)) if 3 * q <= n else Affine(0, (0, 1))
        blocks += loops(g, [a], [read], _one("sin"), (3, q), 1, "max")


def _pack(r, g, a, n, blocks, scalars):
    half = min(n, 6) // 2
    if half:
        box = Move(0, (2, half), Affine(0, (9, 2)), Affine(0, (half, 1)))
        fill = Move(1, (2,), Affine(19, (-1,)), None)
        again = Move(0, (2, 2), Affine(14, (1, 2)), Affine(0, (1 if n > 1 else 0, 0)))
        boxes = [box, again, fill] if r.random() < 0.5 else [box, fill]
        blocks.append(pack(g, 20, F64, [a, r.choice(scalars)], boxes))


def _element(r, g, a, n, blocks, scalars):
    scalars.append(g.emit(C["sin"], g.element(a, g.const(r.randrange(n), I64))))


def _accumulate(r, g, a, n, blocks, scalars):
    index = g.block(np.array([r.randrange(7) for _ in range(n)]))
    blocks.append(int(g.region(Accumulate([a, index], 7, F64))[0]))


def _read_inside(r, g, a, n, blocks, scalars):
    k = r.randint(2, 9)
    index = g.block(np.array([r.randrange(n) for _ in range(k)]))
    body = Graph()
    element = body.element(body.input(g.dtype[a]), body.input(I64))
    body.outputs = [body.emit(C["mul"], element, element)]
    blocks += loops(g, [a, index], [None, LINE], body, (k,), 1)


STEPS = [_elementwise, _outer, _sum, _gather, _extreme, _pack, _element, _accumulate, _read_inside]


def program(seed: int) -> Graph:
    """Make a program of a block and a scalar, with a block and a scalar as results."""
    r, g = random.Random(seed), Graph()
    n = r.choice([5, 12, 40])
    blocks = [g.input(block_type(F64, n))]
    scalars = [g.input(F64)]
    blocks.append(g.block(np.random.default_rng(seed).standard_normal(n)))
    for _ in range(r.randint(1, 5)):
        a = r.choice(blocks)
        r.choice(STEPS)(r, g, a, length_of(g.dtype[a]), blocks, scalars)
    g.outputs = [blocks[-1], scalars[-1]]
    validate(g)
    return g


def _flat(values):
    return np.concatenate([np.atleast_1d(x) for x in values])


def _like(rng, values):
    return [
        rng.standard_normal(len(x)) if np.ndim(x) else np.float64(rng.standard_normal())
        for x in values
    ]


@pytest.mark.parametrize("seed", range(20))
def test_values_patterns_and_derivatives(seed):
    check(seed)


def check(seed: int) -> None:
    """Compare one program with its scalars, to second derivatives."""
    g = program(seed)
    flat = unrolled(g)
    n = length_of(g.input_dtypes[0])
    rng = np.random.default_rng(seed)
    x = [rng.standard_normal(n), np.float64(rng.standard_normal())]
    values = run(g, x)
    # To the bit, but that a constant zero of scalars is dropped, and one in a table has a sign.
    np.testing.assert_array_equal(_flat(values), _flat(run(flat, [*_flat(x)])))
    found = dependence(g, [unit_sets(0, n), 1 << n])
    rows = [
        row
        for sets, kind in zip(found, g.output_dtypes)
        for row in ((sets or [0] * length_of(kind)) if length_of(kind) else [sets])
    ]
    assert all(p | q == p for p, q in zip(rows, dependence(flat), strict=True))
    every = range(n + 1)
    back, flat_back = reverse_graph(g, [0, 1]), reverse_graph(flat, every)
    t, bars = _like(rng, x), _like(rng, values)
    more = _like(rng, run(back, [*x, *bars]))
    for ours, scalars, given in (
        (forward_graph(g, [0, 1]), forward_graph(flat, every), [*x, *t]),
        (back, flat_back, [*x, *bars]),
        (forward_graph(back, [0, 1]), forward_graph(flat_back, every), [*x, *bars, *t]),
        (reverse_graph(back, [0, 1]), reverse_graph(flat_back, every), [*x, *bars, *more]),
    ):
        validate(ours)
        wanted = _flat(run(scalars, [*_flat(given)]))
        np.testing.assert_allclose(_flat(run(ours, given)), wanted, rtol=1e-11, atol=1e-12)
