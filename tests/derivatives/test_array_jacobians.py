"""Jacobians and Hessians of programs on arrays: right, and no longer than the program."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes import tree
from tests.blocks.code_size import code_size

N = 90
RNG = np.random.default_rng(5)
A = RNG.normal(size=(200, 200)) / 20
X = 0.3 * RNG.normal(size=200)


def stencil(u):
    zero = np.zeros(1)
    return np.concatenate([zero, u[2:] - 2 * u[1:-1] + u[:-2], zero]) * np.sin(u)


def dense(u):
    return np.tanh(A[: u.size, : u.size] @ u)


FUNCTIONS = {
    "stencil": stencil,
    "dense": dense,
    "few results": lambda u: np.stack([np.sum(u**2), np.sum(np.sin(u)), u[3] * u[5]]),
    "steps": lambda u: arc.scan(lambda c, r: (0.9 * c + np.sin(r), c * r), 0.1, u)[1],
    "sorted": lambda u: np.sort(u) * u,
    "constant rows": lambda u: np.concatenate([np.ones(5), u**2, u[:3]]),
    "sums": lambda u: np.cumsum(u) * u[0],
    "tree": lambda u: {"a": u**2, "b": (np.sum(u), u[:3])},
    "nothing": np.floor,
}


def flat(result):
    return np.concatenate([np.ravel(leaf) for leaf in tree.leaves(result)])


@pytest.mark.long_cases("*s*")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name):
    f, x, h = FUNCTIONS[name], X[:N], 1e-6
    found = arc.jac(f, flat=True)(x)
    steps = [(flat(f(x + h * e)) - flat(f(x - h * e))) / (2 * h) for e in np.eye(N)]
    np.testing.assert_allclose(found, np.stack(steps, axis=1), rtol=1e-7, atol=1e-8)
    again = arc.jac(arc.compile(f, backend="interpreter"), flat=True)(x)
    assert found.tobytes() == again.tobytes()
    sparse = arc.jac(f, sparse=True)
    assert np.array_equal(sparse(x).toarray(), found)
    weights = RNG.normal(size=len(found))
    if name != "tree":
        np.testing.assert_allclose(arc.vjp(f)(x, weights), weights @ found, rtol=1e-12, atol=1e-13)


@pytest.mark.long
@pytest.mark.parametrize("name", ["stencil", "dense", "sums"])
def test_hessians(name):
    def f(u):
        return np.sum(np.cos(FUNCTIONS[name](u)))

    x, h, slope = X[:N], 1e-5, arc.grad(f)
    found = arc.hess(f)(x)
    steps = [(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in np.eye(N)]
    np.testing.assert_allclose(found, np.stack(steps, axis=1), rtol=1e-6, atol=1e-6)
    sparse = arc.hess(f, sparse=True)
    np.testing.assert_allclose(sparse(x).toarray(), found, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(sparse.lower(x).toarray(), np.tril(found), rtol=1e-13, atol=1e-14)


def test_a_stencil_needs_few_directions():
    assert arc.jac(stencil, sparse=True).colors(X) == 3
    pattern = arc.jac(stencil, sparse=True).pattern(X)
    assert pattern.nnz == 3 * (X.size - 2) + 2


def test_leaves_of_many_kinds():
    p = {"a": X[:144].reshape(12, 12), "b": X[:3]}
    made = arc.jac(lambda p: np.append((p["a"] ** 2).sum(axis=0), p["b"] ** 2))(p)
    assert made["a"].shape == (15, 12, 12)
    np.testing.assert_array_equal(made["b"][12:], np.diag(2 * p["b"]))
    both = arc.jac(lambda x, k: x * k, argnums=(0, 1))(X, 2.0)
    np.testing.assert_array_equal(both[0], 2.0 * np.eye(X.size))
    np.testing.assert_array_equal(both[1], X)
    single = arc.jac(lambda u: np.sin(u))(X.astype(np.float32))
    assert single.dtype == np.float32
    mixed = arc.jac(lambda u: np.sin(u).astype(np.float32))(X)
    np.testing.assert_allclose(mixed, np.diag(np.cos(X)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("function", [stencil, dense])
@pytest.mark.parametrize("make", [arc.jac, lambda f: arc.hess(lambda u: np.sum(f(u) ** 2))])
def test_programs_do_not_grow(function, make):
    sizes = [code_size(make(function).recording(X[:n]).blocks) for n in (100, 200)]
    assert sizes[1] <= sizes[0] + 20


def test_cotangents_of_many_numbers():
    x = np.linspace(0.0, 1.0, 100_000)
    found = arc.vjp(lambda u: np.sin(u) * u)(x, x)
    np.testing.assert_allclose(found, x * (np.cos(x) * x + np.sin(x)), rtol=1e-13, atol=1e-15)
    assert code_size(arc.vjp(np.sin).recording(x, x).blocks) < 40


@pytest.mark.long
def test_a_long_program_of_numbers_is_swept_in_a_loop():
    small = A[:50, :50].copy()

    def f(u):
        return np.tanh(small @ np.tanh(small @ u))

    x = X[:50]
    found = arc.jac(f)(x)
    inner = np.tanh(small @ x)
    by_hand = (1 - f(x)[:, None] ** 2) * small @ ((1 - inner[:, None] ** 2) * small)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-14)


def test_jacobians_in_batches_and_again():
    x = np.stack([X[:N], X[100:190], X[5:95]])
    each = arc.vmap(arc.jac(stencil))(x)
    assert all(np.array_equal(a, arc.jac(stencil)(b)) for a, b in zip(each, x))
    third = arc.jac(lambda u: arc.jac(stencil)(u) @ u)(X[:70])
    h, e = 1e-6, np.eye(70)[7]
    g = lambda u: arc.jac(stencil)(u) @ u
    np.testing.assert_allclose(
        third[:, 7], (g(X[:70] + h * e) - g(X[:70] - h * e)) / (2 * h), rtol=1e-6, atol=1e-7
    )
