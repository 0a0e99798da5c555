"""Equal elementary functions of one call are computed in lanes: same bits, shorter code."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.slp_vectorize import slp_vectorize
from archimedes.graph import CODES, F32, F64, Graph
from archimedes.graph.regions import Map

from .checking import check

#: Ordinary and odd arguments, those of the rare branches among them.
ODD = [0.0, -0.0, 0.3, -2.5, 1e5, 1.2e5, -1e300, 5e-324, np.inf, -np.inf, np.nan, 0.7853981, 710.0]
FEATURES = [None, "-avx,-avx2,-avx512f,-fma"]


def functions_of(names, count, dtype=F64):
    """Return a graph of the functions of each of so many inputs."""
    g = Graph()
    given = [g.input(dtype) for _ in range(count)]
    g.outputs = [g.emit(CODES[name], x) for x in given for name in names]
    return g


def columns(count, dtype=np.float64, rows=40):
    rng = np.random.default_rng(count)
    odd = rng.choice(ODD, (count, rows))
    with np.errstate(over="ignore"):
        return list(
            np.where(rng.random((count, rows)) < 0.5, odd, 3.0 * rng.normal(size=odd.shape)).astype(
                dtype
            )
        )


def maps_of(graph):
    return [r for r in graph.regions.values() if isinstance(r, Map)]


@pytest.mark.long_cases("2*", "70*")
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("count", [2, 3, 7, 70])
def test_sines_and_cosines(count, features):
    g = functions_of(["sin", "cos"], count)
    check(g, columns(count), scalars=40, target_features=features)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [F64, F32])
@pytest.mark.parametrize("name", ["exp", "log", "tan", "arctan", "cbrt", "tanh", "gamma"])
def test_other_functions(name, dtype):
    g = functions_of([name], 5, dtype)
    assert len(maps_of(slp_vectorize(g, 4))) == 1
    check(g, columns(5, np.float32 if dtype == F32 else np.float64), scalars=40)


def test_functions_of_two_arguments():
    g = Graph()
    given = [g.input(F64) for _ in range(6)]
    pairs = list(itertools.pairwise(given))
    g.outputs = [g.emit(CODES[name], a, b) for a, b in pairs for name in ("arctan2", "pow")]
    assert [r.length for r in maps_of(slp_vectorize(g, 4))] == [5, 5]
    check(g, columns(6), scalars=40)


def test_functions_of_functions_and_of_constants():
    g = Graph()
    sin, pow_, add = CODES["sin"], CODES["pow"], CODES["add"]
    x = [g.input(F64) for _ in range(5)]
    y = [g.emit(sin, v) for v in x]
    z = [g.emit(sin, g.emit(add, a, b)) for a, b in itertools.pairwise(y)]
    g.outputs = [*z, *(g.emit(pow_, v, g.const(2.5)) for v in x), g.emit(CODES["exp"], x[0])]
    found = slp_vectorize(g, 4)
    # The second sines need the first; powers of a constant exponent are shorter by themselves.
    assert [r.length for r in maps_of(found)] == [5, 4]
    check(g, columns(5), scalars=40)


def test_what_is_far_away_does_not_wait():
    g = Graph()
    x = [g.input(F64) for _ in range(8)]
    far = x[4:]
    for _ in range(100):
        far = [g.emit(CODES["add"], v, x[0]) for v in far]
    g.outputs = [g.emit(CODES["cos"], v) for v in [*x[:4], *far]]
    assert [r.length for r in maps_of(slp_vectorize(g, 4))] == [4, 4]
    check(g, columns(8), scalars=10)


def test_nothing_to_do_is_the_same_graph():
    for g in (functions_of(["sin"], 2), functions_of(["sqrt"], 9)):
        assert slp_vectorize(g, 4) is g


def step(x):
    return 0.1 * np.sin(x) + np.cos(x)


def in_loop(x):
    return arc.scan(lambda c, _: (step(c), np.sum(c)), x, length=4)


def until(x):
    return arc.while_loop(lambda c: c[0] < 3.0, lambda c: 0.5 + np.abs(step(c)), x, max_steps=9)


def branched(x):
    return arc.cond(x[0] > 0.0, step, lambda v: np.exp(-v * v), x)


def mapped(x):
    return arc.vmap(lambda v: np.sum(step(v + np.arange(5.0))))(x)


@pytest.mark.long_cases("-1.0*")
@pytest.mark.parametrize("function", [in_loop, until, branched, mapped])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_in_bodies_of_regions(function, sign):
    x = sign * np.linspace(0.2, 1.4, 6)
    got = arc.compile(function, backend="llvm")(x)
    want = arc.compile(function, backend="interpreter")(x)
    for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(want), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_in_parts():
    g = Graph()
    x = [g.input(F64) for _ in range(9)]
    y = [g.emit(CODES["sin"], v) for v in x]
    total = y[0]
    for k in range(200):
        total = g.emit(CODES["add"], g.emit(CODES["mul"], total, y[k % 9]), x[k % 7])
    g.outputs = [total, *y]
    check(g, columns(9), scalars=40, part=40)


def test_written_once():
    def code(count):
        return build(
            functions_of(["sin", "cos"], count), [(count, F64)], [(2 * count, F64)]
        ).source("llvm")

    text = code(7)
    assert len(re.findall(r"define internal \{ <", text)) == 1
    assert len(code(14).splitlines()) < 1.5 * len(text.splitlines())


def test_sines_of_some_and_cosines_of_others():
    g = Graph()
    x = [g.input(F64) for _ in range(6)]
    names = ["sin", "cos", "cos", "sin", "cos", "sin"]
    g.outputs = [g.emit(CODES[name], v) for name, v in zip(names, x)]
    assert [r.length for r in maps_of(slp_vectorize(g, 4))] == [6]
    check(g, columns(6), scalars=40)
