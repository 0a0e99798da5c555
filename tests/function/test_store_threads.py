"""The store of recordings in threads: each thread records its own functions, as they are now."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import archimedes as arc
from archimedes.simulate import solve_dae


class Box:
    """Something that functions read."""

    def __init__(self, a):
        self.a = a


class Paused(list):
    """A list that does something else first, when somebody asks for its length."""

    def __init__(self, values, first):
        super().__init__(values)
        self.first = first

    def __len__(self):
        first, self.first = self.first, None
        if first is not None:
            thread = threading.Thread(target=first)
            thread.start()
            thread.join()
        return super().__len__()


def test_a_function_of_another_thread_is_not_recorded_in_place_of_ones_own():
    """Another thread solves with a function of the same content, and then changes what it reads."""

    def solve(box, x0):
        return arc.root(lambda x: x - box.a, x0)

    def other():
        box = Box(1.0)
        solve(box, np.zeros(2))
        box.a = 5.0

    # The other thread runs between the look into the store and the recording for three numbers.
    assert solve(Box(1.0), Paused([0.0, 0.0, 0.0], other)).tolist() == [1.0] * 3
    assert solve(Box(1.0), np.zeros(3)).tolist() == [1.0] * 3


def ends_at(a):
    """The time at which a motion of speed a has gone as far as a: one second."""
    stop = arc.Event(lambda t, x: x[0] - a[0], terminal=True)
    return arc.solve_ode(lambda t, x: a[:1] * 1.0, (0.0, 100.0), np.zeros(1), events=stop).t[-1]


def decayed(a):
    """The same of a differential-algebraic equation, at the time 1/a."""
    found = solve_dae(lambda t, x, v: v + a[:1] * x, (0.0, 1.0 / a[0]), np.ones(1), rtol=1e-8)
    return found.x[-1, 0] * np.e


@pytest.mark.parametrize("solve", [ends_at, decayed])
def test_threads_that_go_on_with_other_values(solve):
    """Functions of the same content, whose variables move on in each thread at its own pace."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(8):
            a = np.full(3, float(rng.integers(2, 5)))
            try:
                value = solve(a)
                if abs(value - 1.0) > 1e-5:
                    wrong.append(value)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]
