"""Batches of programs with loops over blocks: instances in lanes, or elements of their arrays."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.graph import DTYPES
from archimedes.graph.dtypes import item_type, length_of

from ..programs.values import assert_bits

A = np.random.default_rng(0).standard_normal((15, 15))


def filter_step(x, P, y):
    """An extended Kalman filter of 15 states and 4 measurements."""
    F = np.eye(15) + 0.01 * A * np.cos(x)
    x, P, H = x + 0.01 * np.sin(A @ x), F @ P @ F.T + 0.01 * np.eye(15), A[:4]
    K = np.linalg.solve(H @ P @ H.T + np.eye(4), H @ P).T
    return x + K @ (y - H @ x), P - K @ (H @ P)


def factors(M):
    return np.linalg.cholesky(M @ M.T + np.eye(17))


def until_small(M):
    """Instances leave the loop at different times."""
    return arc.while_loop(lambda m: np.sum(m * m) > 1.0, lambda m: m @ m.T * 0.05, M, 30)


def in_rows(M):
    return arc.scan(lambda c, row: (c[::-1] * 0.5 + row, np.max(c)), M[0], M)[0]


def looked_up(x):
    return np.cumsum(x[np.argsort(x)][::3]) + np.where(x[:24] > 0, x[24:48], np.sum(x * x))


CASES = {
    "filter": (filter_step, [(15,), (15, 15), (4,)]),
    "factors": (factors, [(17, 17)]),
    "until small": (until_small, [(12, 12)]),
    "in rows": (in_rows, [(11, 70)]),
    "looked up": (looked_up, [(72,)]),
    "products": (lambda a, b: (a @ b, b.T @ a[0]), [(13, 19), (19, 11)]),
    "sums": (lambda a: (np.sum(np.sin(a), axis=0), np.sum(a), np.min(a, axis=1)), [(67, 9)]),
}


def kernel_of(name, lanes=None):
    f, shapes = CASES[name]
    arrays = [np.zeros(shape) for shape in shapes]
    graph = arc.compile(f).recording(*arrays).blocks
    assert any(map(length_of, graph.input_dtypes)), "no array is a block"
    outs = f(*arrays) if name != "in rows" else (np.zeros(70),)
    outs = outs if isinstance(outs, tuple) else (outs,)
    kinds = iter(graph.output_dtypes)
    codes = []
    for out in outs:
        first = next(kinds)
        for _ in range(0 if length_of(first) else out.size - 1):
            next(kinds)
        codes.append((out.size, item_type(first)))
    return build(graph, [(a.size, 0) for a in arrays], codes, lanes=lanes)


@pytest.mark.parametrize("name", [name for name in CASES if name != "filter"])
def test_the_same_bits_as_one_by_one(name):
    """Of whole tiles and of what is left, with an argument that all instances share."""
    rng = np.random.default_rng(1)
    kernel = kernel_of(name, lanes=4)
    for flags in ([True] * len(kernel.inputs), [False, *[True] * (len(kernel.inputs) - 1)]):
        if not any(flags):
            continue
        given = [
            rng.standard_normal((11 if b else 1, x.size)) for x, b in zip(kernel.inputs, flags)
        ]
        outs = [np.zeros((11, x.size), DTYPES[x.dtype]) for x in kernel.outputs]
        kernel.call_batch(given, flags, outs, 11)
        one = [np.zeros(x.size, DTYPES[x.dtype]) for x in kernel.outputs]
        for k in range(11):
            kernel.call([g[k if b else 0] for g, b in zip(given, flags)], one)
            for got, want in zip(outs, one):
                assert_bits(got[k], want, f"{name}, instance {k}")


@pytest.mark.parametrize("name", ["filter", "factors"])
def test_small_matrices_in_steps_go_in_lanes(name):
    assert kernel_of(name).lanes == host_target().lanes > 1


def test_long_arrays_have_lanes_of_their_own():
    n = 2_000
    graph = arc.compile(lambda x: np.sin(x) * x).recording(np.zeros(n)).blocks
    assert build(graph, [(n, 0)], [(n, 0)]).lanes == 1


@pytest.mark.long
def test_mapped_functions_are_called_so():
    """The batch of a user is the loop over single calls, to the bit."""
    rng = np.random.default_rng(2)
    x, P, y = rng.standard_normal((9, 15)), rng.standard_normal((9, 15, 15)), np.ones((9, 4))
    P = P @ P.swapaxes(1, 2)
    mapped = arc.vmap(filter_step)(x, P, y)
    one = arc.compile(filter_step, backend="llvm")
    for k in range(9):
        for got, want in zip(mapped, one(x[k], P[k], y[k])):
            assert_bits(got[k], want)
    assert_bits(mapped[1][0], arc.compile(filter_step, backend="interpreter")(x[0], P[0], y[0])[1])
