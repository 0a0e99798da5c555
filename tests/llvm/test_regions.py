"""Regions in kernels, beyond the catalogue: their text, their callbacks."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.backends.llvm.runtime.kernel import build
from archimedes.graph import B8, F32, F64, I64, Graph, Host, Map, Scan, Solve, Switch

from ..programs.branches import calls
from ..programs.callbacks import hosted
from ..programs.program import emit
from ..programs.values import assert_bits, reference
from .checking import check


def test_calls_share_a_function():
    kernel = build(calls(), [(2, F64)], [(2, F64)])
    assert (
        kernel.source("llvm").count("define internal void @shared") == 1 + 1
    )  # body, and huge angles


def test_maps_of_scalar_kernels_run_in_lanes():
    inner = Graph()
    inner.outputs = [emit(inner, "mul", inner.input(F64), inner.const(3.0))]
    g = Graph()
    g.outputs = g.region(Map(g.add_inputs(F64, 4000).tolist(), inner, 4000, 1)).tolist()
    kernel = build(g, [(4000, F64)], [(4000, F64)])
    assert f"fmul <{kernel.lanes} x double>" in kernel.source("llvm")
    out = np.empty(4000)
    kernel.call([np.arange(4000.0)], [out])
    assert_bits(out, 3.0 * np.arange(4000.0))


def test_maps_of_batches_write_where_their_results_go():
    """A map whose results are two arrays is a loop for each, without copies in between."""
    inner = Graph()
    inner.outputs = [emit(inner, "mul", inner.input(F64), inner.const(3.0))]
    g = Graph()
    g.outputs = g.region(Map(g.add_inputs(F64, 70).tolist(), inner, 70, 1)).tolist()
    kernel = build(g, [(70, F64)], [(30, F64), (40, F64)])
    x = np.random.default_rng(1).normal(size=(9, 70))
    out = np.empty((9, 30)), np.empty((9, 40))
    kernel.call_batch([x], [True], out, 9)
    assert_bits(np.concatenate(out, axis=1), 3.0 * x)
    text = kernel.batch_source()
    body = text[text.index("define internal void @body") :].split("\n}")[0]
    assert body.count(" = phi i64 ") == 2
    assert body.count("store <") == 2


def test_solve_agrees_with_lapack():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(12, 12)), rng.normal(size=(12, 3))
    g = Graph()
    g.outputs = g.region(Solve(g.add_inputs(F64, 180), 12, 3, F64)).tolist()
    kernel = build(g, [(144, F64), (36, F64)], [(36, F64)])
    x = np.empty((12, 3))
    kernel.call([a, b], [x])
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-10)


# ---- callbacks ---------------------------------------------------------------------------------


def test_host_gets_and_gives_every_dtype():
    seen = []

    def probe(values):
        seen.append([type(v) for v in values])
        x, k, b, s = values
        return [x * 2.0, k + 1, not b, s * s]

    g = hosted(probe)
    columns = [np.arange(5.0), np.arange(5), np.arange(5) > 2, np.arange(5, dtype=np.float32)]
    check(g, columns)
    assert seen[-1] == [np.float64, np.int64, np.bool_, np.float32]


def test_host_in_loops_and_branches_is_called_where_it_should():
    calls = []

    def probe(values):
        calls.append(float(values[0]))
        return [values[0] + 1.0]

    side = Graph()
    x = side.input(F64)
    side.outputs = side.region(Host([x], probe, (F64,), "probe")).tolist()
    plain = Graph()
    plain.outputs = [plain.input(F64)]
    g = Graph()
    k, x = g.input(I64), g.input(F64)
    (y,) = g.region(Switch([k, x], (plain, side)))
    (z,) = g.region(Scan([int(y)], side, 2, 1, 0))
    g.outputs = [int(z)]
    kernel = build(g, [(1, I64), (1, F64)], [(1, F64)])
    out = np.empty((4, 1))
    numbers, values = np.array([0, 1, 0, 1]), np.array([10.0, 20.0, 30.0, 40.0])
    kernel.call_batch([numbers, values], [True, True], [out], 4)
    assert out[:, 0].tolist() == [12.0, 23.0, 32.0, 43.0]
    assert calls == [10.0, 11.0, 20.0, 21.0, 22.0, 30.0, 31.0, 40.0, 41.0, 42.0]


def test_exceptions_of_callbacks_come_through():
    def fail(values):
        raise KeyError(f"no entry for {values[0]}")

    g = hosted(fail)
    kernel = build(
        g, [(1, F64), (1, I64), (1, B8), (1, F32)], [(1, d) for d in (F64, I64, B8, F32)]
    )
    n = 50
    ins = [np.zeros(n), np.zeros(n, int), np.zeros(n, bool), np.zeros(n, np.float32)]
    outs = [np.zeros_like(x) for x in ins]
    for threads in (1, 2):
        with pytest.raises(KeyError, match=r"no entry for 0\.0"):
            kernel.call_batch(ins, [True] * 4, outs, n, threads=threads)
    with pytest.raises(KeyError, match=r"no entry for 0\.0"):
        kernel.call([x[:1] for x in ins], [x[:1] for x in outs])


def test_reference_is_the_interpreter():
    g = Graph()
    x = g.input(F64)
    g.outputs = [emit(g, "add", x, x)]
    assert_bits(reference(g, [np.array([1.0, 2.0])], 2)[0], np.array([2.0, 4.0]))
