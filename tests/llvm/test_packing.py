"""Batches in lanes of instances: arrays that all of them read are packed, long bodies in stages."""

from __future__ import annotations

import math

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.lowering.nests import batch_nests, loop_fission, packing, vector_plans
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.graph import F64

from ..programs.values import assert_bits

RNG = np.random.default_rng(0)
#: Rows and columns that are no multiple of a tile or of the partial results, and that are.
W, U, V = (RNG.standard_normal(shape) for shape in ((67, 75), (64, 128), (75, 6)))


PROGRAMS = {
    "rows": (lambda x: W @ x, 75),
    "whole turns": (lambda x: U @ x, 128),
    "columns": (lambda x: x @ W, 67),
    "two axes": (lambda x: W @ x.reshape(75, 2) @ np.ones((2, 3)), 150),
    "in order": (lambda x: np.outer(x, x)[:40] @ V, 75),
    "largest": (lambda x: np.max(W * x, axis=1), 75),
    "layers": (lambda x: np.tanh(U[:, :67] @ np.tanh(W @ x)), 75),
}


@pytest.fixture
def packed(monkeypatch, tmp_path):
    """Return the copies that are written, with every array worth one."""
    found = []

    def note(*args):
        found.append(args)
        return packing.pack_read(*args)

    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(batch_nests, "LEAST", 64)
    monkeypatch.setattr(batch_nests, "pack_read", note)
    return found


def kernel_of(f, n, lanes):
    graph = arc.compile(f, loops_from=64).recording(np.zeros(n)).blocks
    size = f(np.zeros(n)).size
    return build(graph, [(n, F64)], [(size, F64)], lanes=lanes)


def check(kernel, n, count, threads=1):
    """Compare a batch with single calls, to the bit."""
    x = np.random.default_rng(n).standard_normal((count, n))
    out, one = np.zeros((count, kernel.outputs[0].size)), np.zeros(kernel.outputs[0].size)
    kernel.call_batch([x], [True], [out], count, threads)
    for k in range(count):
        kernel.call([x[k]], [one])
        assert_bits(out[k], one, f"instance {k} of {count}")


@pytest.mark.long_cases("*-8", "*s-4")
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_as_one_by_one(name, lanes, packed):
    f, n = PROGRAMS[name]
    kernel = kernel_of(f, n, lanes)
    few, many = packing.INSTANCES - 1, packing.INSTANCES + 5
    check(kernel, n, many)
    check(kernel, n, few)
    assert packed, "nothing was packed"


@pytest.mark.parametrize("shared", [True, False])
def test_arguments_that_all_instances_share(shared, packed):
    """Weights are packed where they are an argument that is the same for all, backwards too."""
    rng = np.random.default_rng(3)
    count = packing.INSTANCES + 3
    w = rng.standard_normal((67, 75) if shared else (count, 67, 75))
    x = rng.standard_normal((count, 75))
    f = arc.compile(lambda w, x: w[::-1, ::-1] @ x)
    graph = f.recording(w if shared else w[0], x[0]).blocks
    kernel = build(graph, [(67 * 75, F64), (75, F64)], [(67, F64)], lanes=4)
    out, one = np.zeros((count, 67)), np.zeros(67)
    kernel.call_batch([w, x], [not shared, True], [out], count)
    for k in range(count):
        kernel.call([w if shared else w[k], x[k]], [one])
        assert_bits(out[k], one, f"instance {k}")
    assert bool(packed) == shared


@pytest.mark.long
def test_over_threads_and_as_users_call_it(packed):
    f, n = PROGRAMS["layers"]
    check(kernel_of(f, n, 8), n, 8 * packing.INSTANCES, threads=2)
    x = np.random.default_rng(1).standard_normal((packing.INSTANCES, 8))
    first = np.random.default_rng(2).standard_normal((75, 8))
    mapped = arc.vmap(lambda x: f(np.tanh(first @ x)))(x)
    for backend in ("interpreter", "llvm"):
        one = arc.compile(lambda x: f(np.tanh(first @ x)), backend=backend)
        assert_bits(mapped[-1], one(x[-1]))
    assert packed


def bell(x):
    y = x * 0.5
    return np.tanh(x), np.where(y > 0.1, np.exp(-x * x), y) + y


@pytest.mark.long_cases("8")
@pytest.mark.parametrize("lanes", [4, 8])
def test_long_bodies_in_stages(lanes, monkeypatch, tmp_path):
    """Chunks that end with the block, and before it."""
    written = []

    def write(nest, *args):
        written.append(nest)
        loop_fission.write_stages(nest, *args)

    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(batch_nests, "write_stages", write)
    monkeypatch.setattr(vector_plans.Target, "registers", property(lambda _: 16))
    monkeypatch.setattr(vector_plans, "MANY", 1000)
    n = 277
    graph = arc.compile(bell).recording(np.zeros(n)).blocks
    kernel = build(graph, [(n, F64)], [(n, F64)] * 2, lanes=lanes)
    x = np.random.default_rng(n).standard_normal((11, n))
    x[0, :6] = [0.0, -0.0, np.inf, -np.inf, 1e300, 5e-324]
    outs, one = [np.zeros((11, n)) for _ in range(2)], [np.zeros(n) for _ in range(2)]
    kernel.call_batch([x], [True], outs, 11)
    assert written
    for k in range(11):
        kernel.call([x[k]], one)
        for got, want in zip(outs, one):
            assert_bits(got[k], want, f"instance {k}")


def layers(w, x):
    return w[1] @ np.tanh(w[0] @ x)


def test_instances_that_share_a_matrix_go_in_lanes():
    """A matrix that is a constant, or an argument that is the same for all; not their own."""
    shapes = [(256, 256), (64, 256), (256,)]
    w0, w1, x = (RNG.standard_normal(shape) for shape in shapes)
    wide = 2 * host_target().lanes
    own = arc.compile(layers).recording((w0, w1), x).blocks
    leaves = [(math.prod(shape), F64) for shape in shapes]
    kernel = build(own, leaves, [(64, F64)])
    assert kernel.lanes_of((False, False, True)) == wide
    assert kernel.lanes_of((True, True, True)) == kernel.lanes == 1
    constant = arc.compile(lambda x: layers((w0, w1), x)).recording(x).blocks
    assert build(constant, leaves[2:], [(64, F64)]).lanes == wide
    added = arc.compile(lambda x: x * w0[0] + x).recording(x).blocks
    assert build(added, leaves[2:], leaves[2:]).lanes == 1


@pytest.mark.long
def test_weights_as_an_argument():
    """As users map a policy over states: the bits of single calls."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((64, 128)), rng.standard_normal((70, 64))
    x = rng.standard_normal((packing.INSTANCES + 9, 128))
    mapped = arc.vmap(layers, in_axes=(None, 0))(w, x)
    one = arc.compile(layers, backend="interpreter")
    for k in (0, len(x) - 1):
        assert_bits(mapped[k], one(w, x[k]))
