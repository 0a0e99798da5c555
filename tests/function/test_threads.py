"""Many threads give what one gives, and recording in one does not disturb NumPy in another."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import archimedes as arc
from archimedes.symbolic.core.trace import _stack

THREADS = 8
CALLS = 10_000


@pytest.fixture(autouse=True)
def frequent_switches():
    """Let threads interleave as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work, count=THREADS):
    """Run work(k) in threads that start together; re-raise what fails."""
    barrier = threading.Barrier(count)
    failures = []

    def run(k):
        try:
            barrier.wait()
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


@arc.struct
class State:
    x: np.ndarray
    v: float


def swing(s, u):
    return State(s.x * s.v + u, s.x[0] - s.v)


def scalar(x):
    return x * 1.5 + 2.0


FUNCTIONS = {
    "numbers": (scalar, lambda k: (0.001 * k,)),
    "structs": (swing, lambda k: (State(np.array([k, 1.0 / (k + 1)]), 0.5 * k), 0.1)),
}


@pytest.mark.long_cases("numbers-interpreter", "structs*")
@pytest.mark.parametrize("backend", ["interpreter", "auto"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_function(name, backend):
    function, arguments = FUNCTIONS[name]
    one = arc.compile(function, backend=backend)
    inputs = [arguments(k) for k in range(100)]
    want = [arc.tree.leaves(one(*a)) for a in inputs]
    shared = arc.compile(function, backend=backend)
    wrong = [0] * THREADS
    # the interpreter needs some tens of microseconds a call
    calls = CALLS if backend == "auto" else CALLS // 5

    def work(t):
        for k in range(calls):
            at = (k + 13 * t) % 100
            got = arc.tree.leaves(shared(*inputs[at]))
            wrong[t] += any(np.any(a != b) for a, b in zip(got, want[at]))

    in_threads(work)
    assert wrong == [0] * THREADS
    assert len(shared.explain().splitlines()) == 1, "recorded once, kept once"


@pytest.mark.long
def test_different_functions_of_each_other():
    """Each thread has its own function; all of them call one that is shared."""
    inner = arc.compile(lambda x: np.sin(x) * x)

    def make(k):
        return arc.compile(lambda x: inner(x * (k + 1)) + k)

    xs = np.linspace(-2.0, 2.0, 50)
    want = [[f(x) for x in xs] for f in (make(k) for k in range(THREADS))]
    functions = [make(k) for k in range(THREADS)]
    wrong = [0] * THREADS

    def work(t):
        f, expected = functions[t], want[t]
        for k in range(CALLS):
            wrong[t] += f(xs[k % 50]) != expected[k % 50]

    in_threads(work)
    assert wrong == [0] * THREADS


def test_concurrent_first_calls():
    """Recording, differentiating and batching the same function for the first time, all at once."""
    rows = np.random.default_rng(0).normal(size=(6, 3))

    def f(x):
        y = np.zeros(3)
        y[0] = x[1]
        y[1:] = x[:2] * 2
        c, _ = arc.scan(lambda c, s: (c * s + np.sin(c), None), x[0], y)
        return arc.cond(c > 0, lambda: c * y, lambda: np.cos(y))

    for _ in range(10):
        compiled, jacobian, batch = arc.compile(f), arc.jac(f), arc.vmap(f)
        results = [None] * THREADS

        def work(t, compiled=compiled, jacobian=jacobian, batch=batch, results=results):
            results[t] = (compiled(rows[0]), jacobian(rows[0]), batch(rows))

        in_threads(work)
        for got in results[1:]:
            for a, b in zip(got, results[0]):
                np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(results[0][0], f(rows[0]), rtol=1e-14)


def test_many_shapes_at_once():
    f = arc.compile(lambda x: np.sum(x * x))

    def work(t):
        for k in range(60):
            n = (k + 7 * t) % 12
            assert f(np.full(n, 2.0)) == 4.0 * n

    in_threads(work)
    assert len(f.explain().splitlines()) == 12


def test_recording_in_one_thread_leaves_numpy_alone_in_others():
    stop = threading.Event()
    seen = set()

    def plain():
        while not stop.is_set():
            for made in (np.zeros(3), np.array([1.0, 2.0]), np.eye(2), np.asarray([1.0])):
                seen.add(type(made))
            a = np.zeros(3)
            a[0] = 1.0
            assert float(a.sum()) == 1.0

    def f(x):
        y = np.zeros(40)
        for k in range(40):
            y[k] = np.array([x, 1.0])[0] * k
        return np.sum(y)

    others = [threading.Thread(target=plain) for _ in range(3)]
    for t in others:
        t.start()
    try:
        for k in range(60):
            assert arc.compile(lambda x, k=k: f(x) + k)(1.0) == 780.0 + k
    finally:
        stop.set()
        for t in others:
            t.join()
    assert seen == {np.ndarray}
    assert np.zeros.__module__ == "numpy"


def test_an_error_while_recording_in_many_threads():
    def f(x):
        np.zeros(2)[0] = x
        raise KeyError("no")

    def work(t):
        compiled = arc.compile(f)
        for _ in range(50):
            with pytest.raises(KeyError):
                compiled(1.0)
            assert _stack.traces == []

    in_threads(work)
    assert type(np.zeros(2)) is np.ndarray
    assert arc.compile(scalar)(1.0) == 3.5


def test_callbacks_from_many_threads():
    f = arc.compile(lambda x: arc.callback(lambda v: v + threading.get_ident() * 0, 0.0, x) * 2)

    def work(t):
        for k in range(500):
            assert f(float(k)) == 2.0 * k

    in_threads(work)


@pytest.mark.long_cases("*200")
@pytest.mark.parametrize(("backend", "clears"), [("interpreter", 200), ("llvm", 10)])
def test_clearing_while_calling(backend, clears):
    """Native code that another thread is running must not go away."""
    f = arc.compile(scalar, backend=backend)
    done = threading.Event()

    def work(t):
        if t == 0:
            for _ in range(clears):
                f.clear_cache()
                assert f(2.0) == 5.0
            done.set()
        while not done.is_set():
            assert f(2.0) == 5.0

    in_threads(work)
