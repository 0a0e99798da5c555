"""``out=`` and the native path of batches: same results, the caller's memory, clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import archimedes as arc
from archimedes.function.execution import tiers
from tests.entries import needs_entries


@pytest.fixture(autouse=True, params=["at once", "later"])
def entries(request, monkeypatch):
    """Native entries made at the first call, and after a few."""
    monkeypatch.setattr(tiers, "FIRST_CALLS", 0 if request.param == "at once" else 2)
    return request.param


@arc.struct
class State:
    pos: Any
    energy: Any


def model(x, k):
    return State(x.pos * k + 1.0, np.sum(x.pos**2) + x.energy)


X = State(np.array([1.0, -2.0, 3.0]), np.array(0.5))
N = 37
XS = State(np.arange(3.0 * N).reshape(N, 3), np.linspace(-1.0, 1.0, N))


def blank(like):
    return arc.tree.map(lambda a: np.full(np.shape(a), np.nan), like)


def same(got, want):
    assert arc.tree.structure(got) == arc.tree.structure(want)
    for a, b in zip(arc.tree.leaves(got), arc.tree.leaves(want)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", ["llvm", "interpreter", "auto"])
def test_single_calls_write_into_out(backend):
    f = arc.compile(model, backend=backend)
    out = blank(X)
    for _ in range(3):
        assert f(X, 2.0, out=out) is out
        same(out, model(X, 2.0))
    assert f(X, 3.0, out=out) is out
    same(out, model(X, 3.0))


def test_keywords_and_out():
    f = arc.compile(model, backend="llvm")
    out = blank(X)
    same(f(X, k=2.0, out=out), model(X, 2.0))


def test_out_may_be_the_input():
    f = arc.compile(lambda x: x[::-1] * 2.0, backend="llvm")
    x = np.arange(5.0)
    for _ in range(3):
        want = x[::-1] * 2.0
        assert f(x, out=x) is x
        np.testing.assert_array_equal(x, want)


def test_out_that_overlaps_the_input_in_part():
    f = arc.compile(lambda x: np.cumsum(x), backend="llvm")
    memory = np.arange(9.0)
    f(memory[:6], out=np.empty(6))
    want = np.cumsum(memory[:6])
    f(memory[:6], out=memory[3:])
    np.testing.assert_array_equal(memory[3:], want)


def test_a_parameter_called_out_is_the_functions_own():
    f = arc.compile(lambda x, out: x + out)
    assert f(1.0, out=2.0) == 3.0
    assert arc.vmap(f, in_axes=(0, None))(np.ones(3), 2.0).tolist() == [3.0, 3.0, 3.0]


def test_results_that_are_constant():
    f = arc.compile(lambda x: (x + 1.0, np.array([5.0, 6.0])), backend="llvm")
    out = np.zeros(2), np.zeros(2)
    f(np.ones(2), out=out)
    same(out, (np.array([2.0, 2.0]), np.array([5.0, 6.0])))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros(3), "structure of the result"),
        (State(np.zeros(4), np.zeros(())), r"out\.pos has shape \(4,\)"),
        (State(np.zeros(3, np.float32), np.zeros(())), r"dtype float32"),
        (State(np.zeros(3), 0.0), r"out\.energy is a float.*np\.empty\(\(\)\)"),
        (State(np.zeros(6)[::2], np.zeros(())), r"view with gaps"),
    ],
)
def test_out_of_another_form(out, message):
    with pytest.raises((ValueError, TypeError), match=message):
        arc.compile(model)(X, 2.0, out=out)


def test_out_that_shares_memory_with_itself():
    f = arc.compile(lambda x: (x, x + 1.0))
    a = np.zeros(2)
    with pytest.raises(ValueError, match="shares memory"):
        f(np.ones(2), out=(a, a))


def test_read_only_out():
    a = np.zeros(2)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        arc.compile(lambda x: x + 1.0)(np.ones(2), out=a)


def test_out_inside_a_recording():
    f = arc.compile(lambda x: x + 1.0)
    with pytest.raises(arc.TraceError, match="out= takes numbers"):
        arc.compile(lambda x: f(x, out=np.zeros(2)))(np.ones(2))
    with pytest.raises(arc.TraceError, match="out= takes numbers"):
        arc.compile(lambda x: arc.vmap(f)(x, out=np.zeros(2)))(np.ones(2))


def batched(threads=None, backend="llvm"):
    return arc.vmap(arc.compile(model, backend=backend), in_axes=(0, None), threads=threads)


def want_batch(k):
    rows = [model(State(p, e), k) for p, e in zip(XS.pos, XS.energy)]
    return State(np.stack([r.pos for r in rows]), np.stack([r.energy for r in rows]))


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_batches_write_into_out(threads, backend):
    f, out = batched(threads, backend), blank(XS)
    for k in (2.0, 3.0, 4.0):
        assert f(XS, k, out=out) is out
        same(out, want_batch(k))


@needs_entries
def test_the_native_path_of_a_batch():
    f = batched(threads=1)
    for _ in range(3):
        f(XS, 2.0)
    assert f._shortcuts
    for k in (2.0, 3.0):
        same(f(XS, k), want_batch(k))
    # Other lengths take the same path, other forms the slow one.
    short = State(XS.pos[:5], XS.energy[:5])
    (fast,) = f._shortcuts
    assert fast(short, 2.0) is not NotImplemented
    empty = fast(State(XS.pos[:0], XS.energy[:0]), 2.0)
    assert empty.pos.shape == (0, 3) and empty.energy.shape == (0,)
    for other in (
        (State(XS.pos, XS.energy[:5]), 2.0),
        (State(XS.pos[:, ::-1], XS.energy), 2.0),
        (State(XS.pos.astype(np.float32), XS.energy), 2.0),
        (State(XS.pos[0], XS.energy), 2.0),
        (XS, np.ones(3)),
        (XS, "2"),
        (XS,),
        (XS, 2.0, 2.0),
    ):
        assert fast(*other) is NotImplemented
    with pytest.raises(ValueError, match="different lengths"):
        f(State(XS.pos, XS.energy[:5]), 2.0)
    same(f(State(XS.pos[:, ::-1], XS.energy), 2.0).pos[:, ::-1], want_batch(2.0).pos)


@needs_entries
def test_large_batches_leave_the_one_thread_path():
    f = arc.vmap(arc.compile(lambda x: x + 1.0, backend="llvm"))
    for _ in range(3):
        f(np.zeros(10))
    (fast,) = f._shortcuts
    assert fast(np.zeros(10)).shape == (10,)
    assert fast(np.zeros(3_000_000)) is NotImplemented


def test_overlap_of_a_batch_and_its_out():
    f = arc.vmap(arc.compile(lambda x: x[::-1] * 2.0, backend="llvm"), threads=1)
    x = np.arange(30.0).reshape(10, 3)
    want = x[:, ::-1] * 2.0
    f(x)
    f(x, out=np.empty_like(x))
    f(x, out=x)
    np.testing.assert_array_equal(x, want)


def test_a_failing_kernel_is_reported_by_the_slow_path():
    def fails(x):
        raise ValueError("from the callback")

    f = arc.vmap(arc.compile(lambda x: arc.callback(fails, x, x), backend="llvm"))
    for _ in range(2):
        with pytest.raises(ValueError, match="from the callback"):
            f(np.ones(3))


def test_out_needs_the_batch_axis_in_front():
    f = arc.vmap(lambda x: x + 1.0, out_axes=1)
    with pytest.raises(ValueError, match="out_axes=0"):
        f(np.ones((4, 3)), out=np.ones((4, 3)))
