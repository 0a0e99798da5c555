"""The pass behind ``numerics="fast"``: what fuses, what is inverted, what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.ulp import samples, ulp_errors

from archimedes.backends import interpreter
from archimedes.graph import DTYPES, F32, F64, I64, Graph, Scan, statistics
from archimedes.graph.elementary import ELEMENTARY
from archimedes.graph.fast import fast

from .building import graph_of, op, run
from .spec import validate


def ops(g: Graph) -> dict[str, int]:
    made = fast(g)
    validate(made)
    return statistics(made).by_op


def dot(g: Graph, *ids: int) -> int:
    total = op(g, "mul", ids[0], ids[1])
    for a, b in zip(ids[2::2], ids[3::2]):
        total = op(g, "add", total, op(g, "mul", a, b))
    return total


def test_products_become_part_of_sums():
    assert ops(graph_of([F64] * 6, dot)) == {"fma": 2, "mul": 1}
    assert ops(graph_of([F32] * 6, dot)) == {"fma": 2, "mul": 1}
    assert ops(graph_of([I64] * 4, dot)) == {"mul": 2, "add": 1}


@pytest.mark.parametrize("swapped", [False, True])
def test_differences(swapped):
    def build(g, x, y, z):
        product = op(g, "mul", x, y)
        return op(g, "sub", z, product) if swapped else op(g, "sub", product, z)

    g = graph_of([F64] * 3, build)
    assert ops(g) == {"neg": 1, "fma": 1}
    x = 1.0 + 2.0**-30
    (exact,) = run(fast(g), *map(np.float64, (x, x, x * x)))
    assert exact == (-1 if swapped else 1) * 2.0**-60


def test_a_literal_takes_the_sign():
    g = graph_of([F64] * 2, lambda g, x, y: op(g, "sub", y, op(g, "mul", x, g.const(3.0))))
    assert ops(g) == {"fma": 1}


def test_products_that_others_read_stay():
    def build(g, x, y):
        product = op(g, "mul", x, y)
        return [op(g, "add", product, x), op(g, "add", product, y)]

    assert ops(graph_of([F64] * 2, build)) == {"mul": 1, "add": 2}

    def shown(g, x, y):
        product = op(g, "mul", x, y)
        return [op(g, "add", product, x), product]

    assert ops(graph_of([F64] * 2, shown)) == {"mul": 1, "add": 1}


def test_errors_of_products_and_sums_stay_exact():
    """Dekker's product and Knuth's sum, whose error terms must be those of the rounded results."""

    def build(g, a, b):
        def split(x):
            t = op(g, "mul", x, g.const(2.0**27 + 1))
            high = op(g, "sub", t, op(g, "sub", t, x))
            return high, op(g, "sub", x, high)

        p = op(g, "mul", a, b)
        (a1, a2), (b1, b2) = split(a), split(b)
        e = op(g, "sub", op(g, "mul", a1, b1), p)
        for x, y in ((a1, b2), (a2, b1), (a2, b2)):
            e = op(g, "add", e, op(g, "mul", x, y))
        s = op(g, "add", p, b)
        t = op(g, "sub", s, p)
        d = op(g, "add", op(g, "sub", p, op(g, "sub", s, t)), op(g, "sub", b, t))
        return [p, e, s, d]

    g = graph_of([F64] * 2, build)
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=1000) for _ in range(2)]
    for strict, quick in zip(run(g, *columns), run(fast(g), *columns)):
        assert np.array_equal(strict, quick)


def test_shared_divisors_are_inverted_once():
    g = graph_of([F64] * 3, lambda g, x, y, d: [op(g, "div", x, d), op(g, "div", y, d)])
    assert ops(g) == {"mul": 2, "div": 1}
    g = graph_of([F64] * 2, lambda g, x, d: op(g, "div", x, d))
    assert ops(g) == {"div": 1}
    # A reciprocal is the one that the others share.
    g = graph_of([F64] * 2, lambda g, x, d: [op(g, "div", g.const(1.0), d), op(g, "div", x, d)])
    assert ops(g) == {"div": 1, "mul": 1}


def test_quotients_fuse_with_sums():
    def build(g, x, y, d):
        return [op(g, "add", y, op(g, "div", x, d)), op(g, "div", y, d)]

    assert ops(graph_of([F64] * 3, build)) == {"div": 1, "fma": 1, "mul": 1}


@pytest.mark.parametrize("dtype", [F64, F32])
def test_constant_divisors(dtype):
    g = graph_of([dtype], lambda g, x: op(g, "div", x, g.const(3.0, dtype)))
    assert ops(g) == {"mul": 1}
    for extreme in (1e-310, 1.7e308) if dtype == F64 else (1e-40, 3e38):
        g = graph_of([dtype], lambda g, x: op(g, "div", x, g.const(extreme, dtype)))  # noqa: B023
        assert ops(g) == {"div": 1}


def test_specials_of_shared_divisors():
    values = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan])
    x, d = (v.ravel() for v in np.meshgrid(values, values))
    g = graph_of([F64] * 2, lambda g, x, d: [op(g, "div", x, d), op(g, "div", d, d)])
    for strict, quick in zip(run(g, x, d), run(fast(g), x, d)):
        assert np.array_equal(np.isnan(strict), np.isnan(quick))
        assert np.allclose(strict, quick, rtol=3e-16, atol=0, equal_nan=True)
        numbers = ~np.isnan(strict)
        assert np.array_equal(np.signbit(strict[numbers]), np.signbit(quick[numbers]))


def test_within_rounding():
    """Of each operation the result is off by at most 1.5 ulp, where strict has 0.5."""
    rng = np.random.default_rng(1)
    x, y, d = (rng.normal(size=5000) for _ in range(3))
    g = graph_of([F64] * 3, lambda g, x, y, d: [op(g, "div", x, d), op(g, "div", y, d)])
    for strict, quick in zip(run(g, x, y, d), run(fast(g), x, y, d)):
        assert np.max(np.abs(strict - quick) / np.spacing(np.abs(strict))) <= 1.0


def test_bodies_of_regions():
    body = graph_of([F64] * 3, lambda g, c, x, d: op(g, "add", c, op(g, "mul", x, d)))
    g = Graph()
    c, d = g.input(F64), g.input(F64)
    rows = g.add_inputs(F64, 4).tolist()
    g.outputs = g.region(Scan([c, *rows, d], body, 4, 1, 1)).tolist()
    made = fast(g)
    validate(made)
    (region,) = made.regions.values()
    assert statistics(region.body).by_op == {"fma": 1}


@pytest.mark.parametrize("calls", [False, True])
def test_functions_are_expanded_with_fused_programs(calls):
    g = graph_of([F64], lambda g, x: [op(g, "sin", x), op(g, "cos", x)])
    made = fast(g, calls=calls)
    validate(made)
    stats = statistics(made)
    assert not {"sin", "cos"} & set(stats.by_op)
    bodies = [body for kind, bodies in stats.regions if kind == "call" for body in bodies]
    assert len(bodies) == (2 if calls else 0)
    assert all(body.by_op["fma"] > 9 for body in bodies or [stats])
    x = np.linspace(-9, 9, 101)
    inlined, called = (run(fast(g, calls=flag), x) for flag in (False, True))
    assert np.array_equal(inlined, called)


@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("name", ELEMENTARY)
def test_fused_functions_are_as_exact(name, dtype):
    """The bounds of ``tests/elementary/test_accuracy.py``."""
    operands = samples(name, 500, np.random.default_rng(3), DTYPES[dtype].name)
    columns = [np.ascontiguousarray(x) for x in np.broadcast_arrays(*operands)]
    g = graph_of([dtype] * len(columns), lambda g, *ids: op(g, name, *ids))
    (result,) = interpreter.run(fast(g), columns)
    bound = 0.0 if name == "fmod" else 1.0 if dtype == F64 else 0.501
    assert np.abs(ulp_errors(name, columns, result)).max() <= bound
