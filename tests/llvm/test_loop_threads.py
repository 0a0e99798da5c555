"""Long loops inside one call run over threads: the same bits, whatever happens to threads."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime import loop_threads
from tests.entries import is_supported

pytestmark = pytest.mark.skipif(
    not is_supported(), reason="threads of loops wait for CPython's locks"
)
N = (1 << 20) + 3


def wave(x):
    return np.sin(x) * x + 1.0


@pytest.fixture
def cuts(monkeypatch):
    """Two threads; return what says how many loops have been cut since it was last asked."""
    monkeypatch.setenv("ARCHIMEDES_THREADS", "2")
    loop_threads.forget()
    before = [loop_threads.loops_so_far()]

    def found():
        before.append(loop_threads.loops_so_far())
        return before[-1] - before[-2]

    yield found
    monkeypatch.undo()
    loop_threads.forget()


def with_threads(monkeypatch, number):
    monkeypatch.setenv("ARCHIMEDES_THREADS", str(number))
    loop_threads.forget()


def test_ranges_have_the_bits_of_one_thread(cuts, monkeypatch):
    x = np.random.default_rng(0).normal(size=N)
    f = arc.compile(wave, backend="llvm")
    both = f(x)
    assert cuts() == 1
    with_threads(monkeypatch, 1)
    assert f(x).tobytes() == both.tobytes()
    assert cuts() == 0
    with_threads(monkeypatch, 7)
    assert f(x).tobytes() == both.tobytes()
    assert cuts() == 1
    assert arc.compile(wave, backend="interpreter")(x).tobytes() == both.tobytes()


#: Programs of two arrays, and shapes for which they are long enough.
LOOPS = {
    "two axes": (lambda x, y: np.sin(x[:, None] * y) + x[:, None], (1031,), (1033,)),
    "matrix and vector": (lambda a, x: a @ x, (1003, 1001), (1001,)),
    "matrices": (lambda a, b: a @ b, (203, 190), (190, 210)),
    "wide matrices": (lambda a, b: a @ b.T, (40, 600), (610, 600)),
    "many matrices": (lambda a, b: a @ b, (9, 70, 66), (9, 66, 75)),
    "sums of rows": (lambda a, x: np.sum(a * x, axis=1), (1003, 1001), (1001,)),
    "whole numbers": (lambda a, x: np.sum((a > x).astype(np.int64), axis=1), (999, 1001), (1001,)),
}


@pytest.mark.long_cases("*s")
@pytest.mark.parametrize("name", LOOPS)
def test_rows_are_cut(name, cuts):
    """Where axes are kept: results are put together as one thread does."""
    f, *shapes = LOOPS[name]
    given = [np.random.default_rng(1).normal(size=shape) for shape in shapes]
    made = arc.compile(f, backend="llvm")(*given)
    assert cuts() >= 1
    assert made.tobytes() == arc.compile(f, backend="interpreter")(*given).tobytes()


def test_short_loops_and_whole_sums_are_not_cut(cuts):
    arc.compile(wave, backend="llvm")(np.ones(1000))
    arc.compile(lambda x: np.sum(x * x), backend="llvm")(np.ones(N))
    assert cuts() == 0


@pytest.mark.long
def test_a_batch_has_its_threads_already(cuts):
    x = np.random.default_rng(2).normal(size=(3, N))
    for threads in (1, 2):
        rows = arc.vmap(wave, threads=threads)(x)
        assert cuts() == 0
    assert rows[1].tobytes() == arc.compile(wave, backend="llvm")(x[1]).tobytes()


@pytest.mark.long
def test_many_threads_of_the_caller_at_once(cuts):
    """One of them has the helpers, the others do without."""
    x = np.random.default_rng(3).normal(size=(6, N // 4))
    f = arc.compile(wave, backend="llvm")
    expected = [f(row).tobytes() for row in x]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(20):
            assert [made.tobytes() for made in pool.map(f, x)] == expected
    assert cuts() > 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
# JAX, where another test has imported it, warns of every fork.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_forked_child_has_helpers_of_its_own(cuts):
    x = np.random.default_rng(4).normal(size=N // 4)
    f = arc.compile(wave, backend="llvm")
    expected = f(x).tobytes()
    child = os.fork()
    if not child:
        fine = loop_threads.loops_so_far() == 0
        fine = fine and all(f(x).tobytes() == expected for _ in range(3))
        os._exit(0 if fine and loop_threads.loops_so_far() == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert f(x).tobytes() == expected


@pytest.mark.long
def test_kernels_do_without_threads(cuts, monkeypatch):
    x = np.random.default_rng(3).normal(size=N)
    f = arc.compile(wave, backend="llvm")
    expected = f(x)
    assert cuts() == 1

    def refuse(*args):
        raise RuntimeError("can't start new thread")

    with_threads(monkeypatch, 50)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert f(x).tobytes() == expected.tobytes()
    assert cuts() == 0


@pytest.mark.long
def test_interrupts_arrive(cuts, monkeypatch):
    x = np.ones(N)
    f = arc.compile(wave, backend="llvm")
    f(x)

    def interrupted(*args):
        raise KeyboardInterrupt

    loop_threads.forget()
    monkeypatch.setattr(loop_threads._Helpers, "prepare", interrupted)
    # A process that was started in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(x)
            for _ in range(500):
                time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
