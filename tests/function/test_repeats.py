"""A compiled function called again and again, natively and by a loop in Python."""

import threading

import numpy as np
import pytest

from archimedes.function import compile
from archimedes.function.batching.repeated_calls import Repeated
from archimedes.tree import struct


@struct
class State:
    x: np.ndarray
    count: int
    fine: bool


def one(state, gain, most):
    """Put out a row in every second round, for ``most`` rounds."""
    new = State(np.sin(gain * state.x), state.count + 1, ~state.fine)
    return new, np.concatenate([state.x, new.x]), new.fine, new.count < most


def begin(n=3):
    return State(np.linspace(0.1, 1.0, n), np.int64(0), np.False_)


def eager(state, gain, most, room):
    rows, going = [], True
    f = compile(one, backend="interpreter")
    while going and len(rows) < room:
        state, row, made, going = f(state, gain, most)
        if made:
            rows.append(row)
    return state, np.array(rows)


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize(("most", "room"), [(7, 10), (8, 10), (1, 10), (20, 4)])
def test_rounds_have_the_bits_of_single_calls(backend, most, room):
    rows = np.full((room, 6), np.nan)
    again = Repeated(compile(one, backend=backend))
    state, made = again(begin(), (1.1, most), rows)
    expected, kept = eager(begin(), 1.1, most, room)
    assert made == len(kept)
    assert np.array_equal(rows[:made], kept.reshape(made, 6))
    assert np.array_equal(state.x, expected.x)
    assert (state.count, state.fine) == (expected.count, expected.fine)


def test_goes_on_where_it_stopped_and_leaves_arguments_alone():
    again, rows, start = Repeated(compile(one)), np.empty((3, 6)), begin()
    kept = start.x.copy()
    first, made = again(start, (1.1, 12), rows)
    second, more = again(first, (1.1, 12), np.empty((50, 6)))
    assert (made, more) == (3, 3)
    assert np.array_equal(start.x, kept)
    assert np.array_equal(second.x, eager(begin(), 1.1, 12, 99)[0].x)


def test_other_kinds_of_arguments_are_other_recordings():
    again = Repeated(compile(one))
    for n in (3, 4, 3):
        state, made = again(begin(n), (np.float64(1.1), 4), np.empty((9, 2 * n)))
        assert made == 2
        assert state.x.shape == (n,)


def test_static_leaves_count_by_content():
    def shifted(x, how):
        return x + (1.0 if how["up"] == "yes" else -1.0), np.stack([x]), x < 9.0, x < 2.0

    again, rows = Repeated(compile(shifted)), np.empty((9, 1))
    assert float(again(np.float64(0.0), ({"up": "yes"},), rows)[0]) == 3.0
    assert float(again(np.float64(2.5), ({"up": "no"},), rows)[0]) == 1.5


def test_a_state_that_changes_its_kind_is_refused():
    again = Repeated(compile(lambda x: (np.stack([x, x]), np.stack([x]), x > 0, x > 0)))
    with pytest.raises(TypeError, match="its state changes shape or dtype"):
        again(np.float64(0.0), (), np.empty((1, 1)))


def test_threads_do_not_share_memory():
    again, found = Repeated(compile(one)), {}

    def work(k):
        state = State(np.full(3, 0.1 * (k + 1)), np.int64(0), np.False_)
        found[k] = again(state, (1.1, 2000), np.empty((1000, 6)))[0].x

    again(begin(), (1.1, 1), np.empty((1, 6)))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        state = State(np.full(3, 0.1 * (k + 1)), np.int64(0), np.False_)
        alone = Repeated(compile(one))(state, (1.1, 2000), np.empty((1000, 6)))[0]
        assert np.array_equal(found[k], alone.x)
