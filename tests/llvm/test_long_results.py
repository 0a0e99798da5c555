"""Very long results pass by the caches: the same bits, wherever the result begins."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.lowering import nontemporal_stores
from archimedes.backends.llvm.lowering.nests import loop_vectorize, threaded_loops, vector_plans
from archimedes.backends.llvm.runtime import loop_threads
from archimedes.backends.llvm.runtime.machine import host_target
from tests.entries import supported

N = 5003


def product(x, y):
    return x * y + x


@pytest.fixture
def streamed(monkeypatch, tmp_path):
    """Return the loops that are written so, with results of 4 kB for very long."""
    found = []

    def write(nest, *args):
        found.append(nest)
        nontemporal_stores.write_streamed(nest, *args)

    monkeypatch.setenv("ARCHIMEDES_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(nontemporal_stores, "LARGE", 4096)
    monkeypatch.setattr(loop_vectorize, "write_streamed", write)
    return found


@pytest.mark.long_cases("4096", "512")
@pytest.mark.skipif(not host_target().is_x86, reason="stores of x86")
@pytest.mark.parametrize("n", [512, 4096, N])
def test_results_that_begin_anywhere(n, streamed):
    x, y = np.random.default_rng(n).normal(size=(2, n))
    f = arc.compile(product, backend="llvm")
    for shift in range(9):
        room = np.full(n + 16, 7.0)
        f(x, y, out=room[shift : shift + n])
        assert room[shift : shift + n].tobytes() == product(x, y).tobytes()
        assert (room[:shift] == 7.0).all() and (room[shift + n :] == 7.0).all()
    assert len(streamed) == 1


@pytest.mark.skipif(not host_target().is_x86, reason="stores of x86")
def test_over_threads(streamed, monkeypatch):
    monkeypatch.setattr(threaded_loops, "OPERATIONS", 1000)
    monkeypatch.setattr(threaded_loops, "PIECE", 100)
    monkeypatch.setenv("ARCHIMEDES_THREADS", "3")
    loop_threads.forget()
    x, y = np.random.default_rng(0).normal(size=(2, N))
    f, before = arc.compile(product, backend="llvm"), loop_threads.loops_so_far()
    for shift in range(4):
        room = np.full(N + 4, 7.0)
        f(x, y, out=room[shift : shift + N])
        assert room[shift : shift + N].tobytes() == product(x, y).tobytes()
    assert streamed and loop_threads.loops_so_far() == before + 4 * supported()
    monkeypatch.undo()
    loop_threads.forget()


def test_others_are_stored_as_ever(streamed, monkeypatch):
    """Bools, sums of rows, bodies in stages, short ones."""
    monkeypatch.setattr(vector_plans.Target, "registers", property(lambda _: 16))
    x = np.random.default_rng(1).normal(size=N)
    for f in (
        lambda x: x > 0.5,
        lambda x: np.sum(x[:5000].reshape(1000, 5), axis=1),
        lambda x: np.tanh(x),
        lambda x: x[:100] * 2.0,
    ):
        arc.compile(f, backend="llvm")(x)
    assert not streamed
