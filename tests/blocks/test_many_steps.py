"""Loops over many steps, and maps over many instances: their values are blocks, not nodes."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.blocks.code_size import code_size

A = np.random.default_rng(3).standard_normal((3, 3))


def long_rows(x):
    m = x.reshape(-1, 80)
    last, (rows, sums) = arc.scan(lambda c, r: (0.5 * c + np.sin(r), (c * r, np.sum(r))), m[0], m)
    return np.append(last + rows.sum(axis=0), sums)


def many_steps(x):
    def step(c, r):
        return np.cos(c) * 0.9 + r[0] * r[1], {"a": c, "b": np.stack([c, r[0]]), "n": r[:0]}

    last, ys = arc.scan(step, 0.1, x.reshape(-1, 2))
    return np.concatenate([ys["b"].ravel(), [last, ys["a"].sum()], ys["n"].ravel()])


def repeated(x):
    return arc.fori_loop(0, 40_000, lambda i, u: u * 0.9999 + 1e-4 * np.sin(u), x[:2])


def mapped(x):
    pairs = arc.vmap(lambda v, s: (A @ v * s, np.sum(v)), in_axes=(0, None))(x.reshape(-1, 3), x[0])
    return np.append(pairs[0].ravel(), pairs[1])


def mapped_loops(x):
    def grown(v):
        return arc.while_loop(
            lambda u: np.sum(u) < 5.0, lambda u: u * 1.5 + 0.1, np.abs(v) + 0.1, 9
        )

    return arc.vmap(grown)(x.reshape(-1, 3)).ravel()


def mapped_rows(x):
    f = arc.vmap(lambda v, w: np.cumsum(v) * np.sum(w), in_axes=(0, None))
    return f(x.reshape(-1, 80), x[:80]).ravel()


def mapped_solves(x):
    """An instance has blocks of its own, and shares one; the last tile of lanes is not whole."""
    shared = np.outer(x[:12], x[:12]) + 12.0 * np.eye(12)
    f = arc.vmap(lambda b, k: (np.linalg.solve(shared, b) * k, np.argmax(b)))
    solved, places = f(x.reshape(-1, 12), np.arange(x.size // 12))
    return np.append(solved.ravel(), places)


CASES = {
    "long rows": (long_rows, 480, 4800),
    "many steps": (many_steps, 6_000, 18_000),
    "repeated": (repeated, 10, 20),
    "mapped": (mapped, 6_000, 18_000),
    "mapped loops": (mapped_loops, 6_000, 18_000),
    "mapped solves": (mapped_solves, 12 * 351, 12 * 1001),
    "mapped rows": (mapped_rows, 4_800, 9_600),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f, n, _ = CASES[name]
    rng = np.random.default_rng(n)
    x, direction = 0.3 * rng.standard_normal((2, n))
    native = arc.compile(f, backend="llvm")(x)
    np.testing.assert_allclose(native, f(x), rtol=1e-11, atol=1e-12)
    if name != "repeated":  # tens of thousands of steps one by one
        assert native.tobytes() == arc.compile(f, backend="interpreter")(x).tobytes()

    def total(x):
        return np.sum(np.cos(f(x)))

    slope = arc.grad(total)(x) @ direction
    np.testing.assert_allclose(slope, arc.jvp(total)(x, direction), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_programs_do_not_grow(name):
    f, *lengths = CASES[name]
    gradient = arc.grad(lambda x: np.sum(f(x)))
    for function in (arc.compile(f), gradient):
        found = [function.recording(np.full(n, 0.3)).blocks for n in lengths]
        small, large = map(code_size, found)
        assert large <= small + 20


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_maps_of_long_bodies_are_not_written_out(count):
    """One instance had its 200 elements taken apart, and a product of them in another order."""

    def ranked(x):
        return np.sort(x * x)

    f = arc.compile(lambda x: np.prod(arc.vmap(ranked)(x), axis=-1), backend="llvm")
    x = np.random.default_rng(count).normal(size=(count, 200))
    assert not count or len(f.recording(x).blocks.op) < 50
    np.testing.assert_allclose(f(x), np.prod(np.sort(x * x), axis=-1), rtol=1e-12)
