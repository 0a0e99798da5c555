"""Very long loops inside one call run over threads: the same bits, whatever happens to threads."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime import loop_threads

N = (1 << 20) + 3


def wave(x):
    return np.sin(x) * x + 1.0


def outer(x, y):
    return np.sin(x[:, None] * y) + x[:, None]


@pytest.fixture
def cuts(monkeypatch):
    """Two threads; return what is cut, as it happens."""
    monkeypatch.setenv("ARCHIMEDES_THREADS", "2")
    found = []

    def over_chunks(run, n, threads, grain):
        found.append((n, threads))
        plain(run, n, threads, grain)

    plain = loop_threads.over_chunks
    monkeypatch.setattr(loop_threads, "over_chunks", over_chunks)
    return found


def test_ranges_have_the_bits_of_one_thread(cuts, monkeypatch):
    x = np.random.default_rng(0).normal(size=N)
    f = arc.compile(wave, backend="llvm")
    both = f(x)
    assert cuts == [(N, 2)]
    monkeypatch.setenv("ARCHIMEDES_THREADS", "1")
    assert f(x).tobytes() == both.tobytes()
    assert len(cuts) == 1
    assert arc.compile(wave, backend="interpreter")(x).tobytes() == both.tobytes()


def test_rows_are_cut_where_there_are_two_axes(cuts):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=1031), rng.normal(size=1033)
    made = arc.compile(outer, backend="llvm")(x, y)
    assert (1031, 2) in cuts
    assert made.tobytes() == arc.compile(outer, backend="interpreter")(x, y).tobytes()


def test_short_loops_are_not_cut(cuts):
    arc.compile(wave, backend="llvm")(np.ones(1000))
    assert not cuts


def test_a_batch_has_its_threads_already(cuts):
    x = np.random.default_rng(2).normal(size=(3, N))
    rows = arc.vmap(wave, threads=2)(x)
    assert not cuts
    assert rows[1].tobytes() == arc.compile(wave, backend="llvm")(x[1]).tobytes()


def test_kernels_do_without_threads(monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_THREADS", "2")
    x = np.random.default_rng(3).normal(size=N)
    f = arc.compile(wave, backend="llvm")
    expected = f(x)

    def refuse(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(loop_threads, "over_chunks", refuse)
    assert f(x).tobytes() == expected.tobytes()


def test_interrupts_arrive(monkeypatch):
    monkeypatch.setenv("ARCHIMEDES_THREADS", "2")
    x = np.ones(N)
    f = arc.compile(wave, backend="llvm")
    f(x)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop_threads, "over_chunks", interrupted)
    # A process that was started in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(x)
            for _ in range(500):
                time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
