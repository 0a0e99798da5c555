"""What a recorded function does besides computing: callbacks, and errors it catches."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError

BACKENDS = ("interpreter", "llvm")


def noting(log: list) -> object:
    def note(value):
        log.append(float(value))

    return note


@pytest.mark.parametrize("backend", BACKENDS)
def test_callbacks_without_a_result_are_called_in_order(backend: str) -> None:
    """The issue's own: callback(fn, None, x)."""
    log: list[float] = []
    note = noting(log)

    def f(x):
        arc.callback(note, None, x)
        arc.callback(lambda v: note(10 * v) or 2.0, 0.0, x)  # its result is not used
        arc.callback(note, None, 100 * x)
        return x + 1

    g = arc.compile(f, backend=backend)
    assert (g(1.0), g(2.0)) == (2.0, 3.0)
    assert log == [1.0, 10.0, 100.0, 2.0, 20.0, 200.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_callbacks_in_loops_branches_and_calls(backend: str) -> None:
    log: list[float] = []
    note = noting(log)
    inner = arc.compile(lambda x: (arc.callback(note, None, -x), x)[1])

    def f(x):
        def step(c, k):
            arc.callback(note, None, k)
            return c + 1.0, None

        def shown(y):
            arc.callback(note, None, 50.0)
            return y

        total, _ = arc.scan(step, x, np.arange(3))
        arc.fori_loop(5, 7, lambda i, c: (arc.callback(note, None, i), c)[1], x)  # result unused
        arc.cond(x > 0, shown, lambda y: y, x)
        inner(x)
        return total

    assert arc.compile(f, backend=backend)(2.0) == 5.0
    assert log == [0.0, 1.0, 2.0, 5.0, 6.0, 50.0, -2.0]
    log.clear()
    assert arc.compile(f, backend=backend)(-2.0) == 1.0
    assert 50.0 not in log


def test_a_function_that_returns_nothing_but_calls() -> None:
    log: list[float] = []
    note = noting(log)
    for backend in BACKENDS:
        assert arc.compile(lambda x: arc.callback(note, None, x), backend=backend)(3.0) is None
    assert log == [3.0, 3.0]


def test_derivatives_pass_by_callbacks_whose_result_is_not_used() -> None:
    log: list[float] = []
    note = noting(log)

    def f(x):
        arc.callback(note, None, x)
        arc.callback(lambda v: 0.0, 0.0, x)
        return x**2

    assert arc.grad(f)(3.0) == 6.0
    assert arc.jvp(f)(3.0, 1.0) == 6.0
    assert arc.hess(f)(3.0) == 2.0
    assert log and set(log) == {3.0}
    log.clear()
    np.testing.assert_array_equal(arc.vmap(f)(np.arange(3.0)), [0.0, 1.0, 4.0])
    assert sorted(log) == [0.0, 1.0, 2.0]


def swallow_everything(x):
    """The issue's own."""
    try:
        if x > 0:
            return x
    except Exception:
        pass
    return -x


def swallow_a_number(x):
    try:
        return float(x) * 2.0
    except TypeError:
        return x


def swallow_a_cache_miss(x):
    @functools.lru_cache
    def slow(v):
        return 2 * v

    try:
        return slow(x)
    except TypeError:
        return x


def swallow_inside_a_loop(x):
    try:
        return arc.fori_loop(0, 3, lambda i, c: c if c > 0 else -c, x)
    except Exception:
        return x


def swallow_an_overflow(x):
    try:
        return np.round(x).astype(int) + 2**70
    except OverflowError:
        return x


SWALLOWED = (
    swallow_everything,
    swallow_a_number,
    swallow_a_cache_miss,
    swallow_inside_a_loop,
    swallow_an_overflow,
)


@pytest.mark.parametrize("function", SWALLOWED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("through", [arc.compile, arc.grad], ids=lambda f: f.__name__)
def test_errors_of_recording_that_are_caught_are_raised_at_the_end(function, through) -> None:
    with pytest.raises(TraceError, match="caught this error and went on") as error:
        through(function)(3.0)
    assert "test_effects.py" in str(error.value)


def test_errors_that_numbers_raise_too_may_be_caught() -> None:
    def f(x):
        try:
            return x + np.ones(3)
        except ValueError:
            return x

    np.testing.assert_array_equal(arc.compile(f)(np.ones(2)), np.ones(2))
