"""The ``fma`` of the interpreter rounds once: against MPFR, on random and on hard operands."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest

from archimedes.graph import CODES, F32, F64, Graph
from archimedes.graph.derivatives.jacobian_graphs import forward_graph, reverse_graph
from archimedes.graph.fused_multiply_add import fused_multiply_add

from .building import SPECIAL_FLOATS, graph_of, op, run, same


def draw(rng: np.random.Generator, n: int, dtype: type) -> np.ndarray:
    """Special values, ordinary ones, all bit patterns, and few-bit numbers of all magnitudes."""
    bits = {np.float64: np.uint64, np.float32: np.uint32}[dtype]
    low, high = (-1070, 1020) if dtype is np.float64 else (-148, 126)
    with np.errstate(all="ignore"):
        kinds = [
            rng.choice(np.array(SPECIAL_FLOATS), n).astype(dtype),
            rng.normal(size=n).astype(dtype),
            rng.integers(0, np.iinfo(bits).max, n, dtype=bits, endpoint=True).view(dtype),
            (rng.normal(size=n) * 2.0 ** rng.integers(-60, 60, n)).astype(dtype),
            (rng.integers(-9, 9, n) * 2.0 ** rng.integers(low, high, n)).astype(dtype),
        ]
    return np.choose(rng.integers(0, len(kinds), n), kinds)


def operands(seed: int, n: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half of the sums cancel to some bits: where a second rounding would show."""
    rng = np.random.default_rng(seed)
    a, b, c = (draw(rng, n, dtype) for _ in range(3))
    with np.errstate(all="ignore"):
        nearby = 1 + rng.integers(-3, 4, n) * 2.0 ** -rng.integers(1, 56, n)
        against = (-(a * b) * nearby).astype(dtype)
    return a, b, np.where(rng.random(n) < 0.5, against, c)


@np.errstate(all="ignore")
def mpfr(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    with gmpy2.context(gmpy2.ieee(8 * a.itemsize)):
        rows = zip(*(x.astype(float).tolist() for x in (a, b, c)))
        exact = [gmpy2.fma(*map(gmpy2.mpfr, row)) for row in rows]
        return np.array([float(x) for x in exact]).astype(a.dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(3))
def test_rounds_once(seed, dtype):
    a, b, c = operands(seed, 10_000, dtype)
    want = mpfr(a, b, c)
    assert same(fused_multiply_add(a, b, c), want)
    with np.errstate(all="ignore"):
        single = np.array([fused_multiply_add(*row) for row in zip(a[:999], b, c)])
        assert same(single, want[:999])
        # Most of these operands tell a fused operation from two roundings.
        assert np.mean(~(a * b + c == want) & np.isfinite(want)) > 0.1


def test_midpoints():
    """Sums just beside the middle between two floats, by an amount the product holds alone."""
    x = 1.0 + 2.0**-30
    tiny = np.array([1.0, -1.0, 2.0**-40, -(2.0**-40)]) * 2.0**-53
    for base in (1.0, 1.0 + 2.0**-52, 3.0, -5.0):
        c = np.full(4, base)
        a, b = np.full(4, x), tiny / x
        assert same(fused_multiply_add(a, b, c), mpfr(a, b, c))


@np.errstate(over="ignore")
@pytest.mark.parametrize("scale", [-1074, -1040, -1023, -1022, -1021, -1000, 1020, 1023])
def test_ends_of_the_range(scale):
    rng = np.random.default_rng(scale + 2000)
    half = scale // 2
    a = rng.normal(size=3000) * 2.0**half
    b = rng.normal(size=3000) * 2.0 ** (scale - half)
    c = np.ldexp(rng.normal(size=3000), scale - rng.integers(-2, 60, 3000))
    assert same(fused_multiply_add(a, b, c), mpfr(a, b, c))


def test_shapes_broadcast_and_dtypes_stay():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = fused_multiply_add(a, np.float32(2.0), np.float32(1.0))
    assert out.dtype == np.float32 and out.tolist() == (2 * a + 1).tolist()
    assert type(fused_multiply_add(*np.array([2.0, 3.0, 4.0]))) is np.float64
    assert type(fused_multiply_add(*np.array([2.0, 3.0, 4.0], np.float32))) is np.float32
    for tiny in (1.0, 5e-324):  # the usual way, and that of exact rationals
        assert fused_multiply_add(np.array(tiny), np.float64(2.0), np.array(1.0)) == 2 * tiny + 1


def literal(g: Graph, value: float) -> int:
    return g.const(value)


@pytest.mark.parametrize(
    ("build", "want"),
    [
        (lambda g, x, y: op(g, "fma", x, y, literal(g, 0.0)), "mul %0 %1"),
        (lambda g, x, y: op(g, "fma", literal(g, 0.0), x, y), "return %1"),
        (lambda g, x, y: op(g, "fma", x, literal(g, 1.0), y), "add %0 %1"),
        (lambda g, x, y: op(g, "fma", literal(g, -1.0), x, y), "sub %1 %0"),
        (lambda g, x, y: op(g, "fma", y, x, x), "fma %0 %1 %0"),
        (lambda g, x, y: op(g, "fma", op(g, "neg", x), op(g, "neg", y), y), "fma %0 %1 %1"),
        (lambda g, x, y: op(g, "fma", *(literal(g, v) for v in (0.1, 10.0, -1.0))), "const 5.55"),
    ],
)
def test_exact_identities(build, want):
    assert want in str(graph_of([F64, F64], build))


def test_derivative():
    g = graph_of([F64] * 3, lambda g, *ids: op(g, "fma", *ids))
    _, tangent = run(forward_graph(g, [0, 1, 2]), *map(np.float64, (2, 3, 5, 0.5, 7, 11)))
    assert tangent == 0.5 * 3 + 2 * 7 + 11
    _, *adjoints = run(reverse_graph(g, [0, 1, 2]), *map(np.float64, (2, 3, 5, 10)))
    assert adjoints == [30, 20, 10]


def test_integers_are_refused():
    from archimedes.errors import GraphError

    from .spec import validate

    g = Graph()
    i, x = g.input(2), g.input(F32)
    g.outputs = [g.emit(CODES["fma"], i, i, i)]
    with pytest.raises(GraphError, match=r"\(fma\): does not take operands of"):
        validate(g)
    g.outputs = [g.emit(CODES["fma"], x, x, x)]
