"""Sorting of long arrays by merging: NumPy's order, ties, nans; all backends; derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.interpreter import evaluate as run_graph
from archimedes.graph.dtypes import DTYPES, item_type
from archimedes.graph.regions import Sort

from ..c.checking import needs

LONG = 4096


def with_ties(shape, dtype=np.float64):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    x.flat[:: max(7, x.size // 99)] = np.round(x.flat[:: max(7, x.size // 99)])
    x.flat[3::41] = np.resize([np.nan, np.inf, -np.inf, -0.0, 0.0], len(x.flat[3::41]))
    return x


FORMS = {
    "one row": ((LONG + 5,), lambda x: (np.sort(x), np.argsort(x, kind="stable"))),
    "rows": ((3, LONG), lambda x: (np.sort(x, axis=1), np.argsort(x, axis=-1, kind="stable"))),
    "columns": ((LONG + 1, 2), lambda x: (np.sort(x, axis=0), x[np.lexsort((x[:, 0], x[:, 1]))])),
}


@pytest.mark.long_cases("*2")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("form", FORMS)
def test_the_order_is_numpy_s(form, dtype):
    shape, f = FORMS[form]
    x = (
        with_ties(shape)
        if dtype is not np.int64
        else np.random.default_rng(1).integers(-9, 9, shape)
    )
    x = x.astype(dtype)
    found = arc.compile(f, backend="llvm")(x)
    for got, want in zip(found, f(x)):
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=dtype != np.int64)


@pytest.mark.long
def test_all_ways_give_the_same_bits():
    x = with_ties((LONG + 5,))
    f = FORMS["one row"][1]
    native, other = (arc.compile(f, backend=b)(x) for b in ("llvm", "interpreter"))
    batch = arc.vmap(f)(np.stack([x, x[::-1], -x]))
    for a, b, c in zip(native, other, batch):
        assert a.tobytes() == b.tobytes() == c[0].tobytes()


def test_derivatives_go_to_where_elements_were():
    x = np.random.default_rng(2).standard_normal(LONG + 9)
    weights = np.linspace(0.0, 1.0, len(x))
    slope = arc.grad(lambda v: np.sum(np.sort(v) * weights))(x)
    wanted = np.empty(len(x))
    wanted[np.argsort(x)] = weights
    np.testing.assert_array_equal(slope, wanted)


@pytest.mark.parametrize("shape", [(1, 64), (3, 70), (2, 129)])
def test_what_the_code_does_is_numpy_s_sort(shape):
    """The interpreter asks NumPy, and code merges: the same positions."""
    x = with_ties(shape)
    graph = arc.compile(lambda x: np.argsort(x, axis=1, kind="stable")).recording(x).blocks
    (region,) = (r for r in graph.regions.values() if isinstance(r, Sort))
    rng = np.random.default_rng(4)
    key = rng.integers(-5, 5, x.size).astype(DTYPES[item_type(region.body.input_dtypes[0])])
    (found,) = region.evaluate([key], None)
    assert np.array_equal(found, run_graph(region.body, [key])[0])
    wanted = np.argsort(key.reshape(shape), axis=1, kind="stable")
    assert np.array_equal(found.reshape(shape), wanted)


@pytest.mark.parametrize("shape", [(100, 1), (100, 2), (90, 5), (70, 16), (300, 17)], ids=str)
def test_many_short_rows(shape):
    x = with_ties(shape)

    def f(x):
        return np.sort(x), np.sort(x, kind="stable"), np.argsort(x, kind="stable")

    for got, want in zip(arc.compile(f)(x), f(x)):
        np.testing.assert_array_equal(got, want)


def test_the_interpreter_sorts_a_hundred_thousand():
    x = with_ties((100_003,))
    found = arc.compile(lambda x: np.argsort(x, kind="stable"), backend="interpreter")(x)
    assert np.array_equal(found, np.argsort(x, kind="stable"))


@pytest.mark.long
def test_as_c(tmp_path):
    """With the interpreter's bits; short rows, of which many are tried."""
    needs("gcc")
    x = np.random.default_rng(3).standard_normal((2, 70))
    arc.codegen(lambda x: np.sort(x), (x,), name="sorted_rows", output_dir=tmp_path, verify=True)


@pytest.mark.long
def test_a_hundred_thousand():
    x = with_ties((100_003,))
    assert np.array_equal(arc.compile(np.sort, backend="llvm")(x), np.sort(x), equal_nan=True)
