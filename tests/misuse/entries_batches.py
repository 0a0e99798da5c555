"""Batches that are called with something slightly different the next time."""

import numpy as np

import archimedes as arc

from .catalogue import entry


def over_rows(function, backend):
    return arc.vmap(arc.compile(function, backend=backend), in_axes=(0, None))


def over_rows_into(function, backend):
    mapped = over_rows(function, backend)
    return lambda x, shared: mapped(x, shared, out=np.empty(x.shape))


def _in_turn(run, one, other):
    f = run(lambda x, shared: x + np.ravel(shared, "K")[1])
    x = np.zeros(2)
    return [f(x, shared) for shared in [*[one] * 6, *[other] * 6, one]]


@entry("batches", through=over_rows)
def a_shared_array_in_another_memory_order(run):
    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    return _in_turn(run, np.asfortranarray(m), m)


@entry("batches", through=over_rows_into)
def a_shared_array_in_another_memory_order_with_out(run):
    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    return _in_turn(run, np.asfortranarray(m), m)


@entry("batches", through=over_rows)
def a_shared_array_without_axes_that_is_written_to(run):
    def f(x, shared):
        y = x + shared
        if isinstance(shared, np.ndarray):
            shared[...] = 5.0
            y = y + shared
        return y

    f, x = run(f), np.zeros(2)
    made = lambda: np.array(1.0)
    return [*[f(x, made()) for _ in range(6)], f(x, np.float64(2.0)), f(x, made())]
