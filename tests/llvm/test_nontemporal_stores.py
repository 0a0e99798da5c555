"""Nontemporal stores: large results have the bits of others, wherever they begin."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.lowering import nontemporal_stores
from archimedes.backends.llvm.lowering.nests import loop_vectorize, vector_plans
from archimedes.backends.llvm.runtime import loop_threads
from archimedes.backends.llvm.runtime.machine import host_target
from tests.entries import is_supported

# ---- results of a batch ----------------------------------------------------------------------


def outer(x):
    return np.outer(np.sin(x), np.ones(9)) + np.arange(27.0).reshape(3, 9)


@pytest.mark.parametrize("offset", range(8))
def test_results_do_not_depend_on_where_they_go(monkeypatch, offset):
    monkeypatch.setenv("ARCHIMEDES_CACHE", "0")
    monkeypatch.setattr(nontemporal_stores, "TILE", 0)
    monkeypatch.setattr(nontemporal_stores, "BATCH", -1)
    function = arc.vmap(arc.compile(outer, backend="llvm"), threads=1)
    for count in (1, 2, 3, 8, 37):
        x = np.random.default_rng(count).normal(size=(count, 3))
        memory = np.full(count * 27 + 16, np.nan)
        out = memory[offset : offset + count * 27].reshape(count, 3, 9)
        function(x, out=out)
        expected = np.array([arc.compile(outer, backend="interpreter")(row) for row in x])
        assert np.array_equal(out, expected)
        assert np.isnan(memory[:offset]).all()
        assert np.isnan(memory[offset + count * 27 :]).all()


def test_small_batches_stay_in_the_caches():
    kernel = arc.vmap(arc.compile(lambda x: np.sin(x), backend="llvm"))
    assert kernel(np.ones((5, 2))).shape == (5, 2)
    assert nontemporal_stores.BATCH >= 16 << 20


# ---- results of a loop inside one call ---------------------------------------------------------


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
    monkeypatch.setattr(loop_vectorize, "OPERATIONS", 1000)
    monkeypatch.setattr(loop_vectorize, "PIECE", 100)
    monkeypatch.setenv("ARCHIMEDES_THREADS", "3")
    loop_threads.forget()
    x, y = np.random.default_rng(0).normal(size=(2, N))
    f, before = arc.compile(product, backend="llvm"), loop_threads.loops_so_far()
    for shift in range(4):
        room = np.full(N + 4, 7.0)
        f(x, y, out=room[shift : shift + N])
        assert room[shift : shift + N].tobytes() == product(x, y).tobytes()
    assert streamed and loop_threads.loops_so_far() == before + 4 * is_supported()
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
