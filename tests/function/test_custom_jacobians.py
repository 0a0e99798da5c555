"""Functions that bring their Jacobians: the same derivatives of any order, recorded once."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import TraceError
from archimedes.function.derivatives import custom_jacobians

pytestmark = pytest.mark.usefixtures("compiled_once")

A = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])


def plain(x, p):
    return A @ np.sin(x) * p[:2] + p[2] * np.array([x[0] * x[1], x[2] ** 3])


def slopes(x, p):
    by_x = (A * np.cos(x)) * p[:2, None]
    more = np.stack([np.stack([x[1], x[0], 0.0]), np.stack([0.0, 0.0, 3.0 * x[2] ** 2])])
    return by_x + p[2] * more


def made(directions=1):
    """Return the function with its Jacobian in x; that in p is its own business."""
    f = arc.custom_jac(plain)
    f.defjac(lambda x, p: (slopes(x, p), None), directions=directions)
    return f


X, P = np.array([0.3, -0.8, 1.2]), np.array([2.0, -1.5, 0.7])


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@pytest.mark.parametrize("directions", [1, 3, 100])
def test_derivatives_of_first_and_second_order(backend, directions):
    f = made(directions)
    same = lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)
    run = lambda g: arc.compile(g, backend=backend)(X, P)
    for argnums in (0, 1, (0, 1)):
        ours, theirs = (run(arc.jac(g, argnums=argnums)) for g in (f, plain))
        for a, b in zip(np.atleast_1d(ours) if argnums != (0, 1) else ours,
                        np.atleast_1d(theirs) if argnums != (0, 1) else theirs):  # fmt: skip
            same(a, b)
    w = np.array([0.4, -2.0])
    for argnums in (0, 1):
        line = lambda g: arc.grad(lambda x, p: w @ g(x, p), argnums=argnums)  # noqa: B023
        bowl = lambda g: arc.hess(lambda x, p: w @ g(x, p) ** 2, argnums=argnums)  # noqa: B023
        for kind in (line, bowl):
            same(run(kind(f)), run(kind(plain)))
    second = lambda g: arc.jac(arc.jac(g, argnums=0), argnums=0)
    same(run(second(f)), run(second(plain)))


def test_directions_and_adjoints():
    f = made()
    found = []
    for g in (f, plain):
        along = arc.jvp(g, argnums=(0, 1))(X, P, (np.ones(3), np.arange(3.0)))
        back = arc.vjp(g, argnums=(0, 1))(X, P, np.array([1.0, -2.0]))
        found.append((along, *back))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_the_rule_is_recorded_once_for_all_directions(monkeypatch):
    calls = []
    whole = custom_jacobians.JacobianRule._matrix
    monkeypatch.setattr(
        custom_jacobians.JacobianRule, "_matrix", lambda *a: calls.append(1) or whole(*a)
    )
    arc.jac(made())(X, P)
    assert len(calls) == 1
    arc.jac(made(directions=4))(X, P)
    assert len(calls) == 1


def test_what_runs_has_no_call_in_it():
    """The function is copied to where it is called, and shares what is computed there."""
    f = made()
    both = arc.compile(lambda x, p: f(x, p) + plain(x, p), backend="llvm")
    alone = arc.compile(lambda x, p: plain(x, p) + plain(x, p), backend="llvm")
    np.testing.assert_array_equal(both(X, P), alone(X, P))
    assert both.report(X, P).native_operations == alone.report(X, P).native_operations


def test_batches():
    f = made()
    xs = np.random.default_rng(0).normal(size=(9, 3))
    ours, theirs = (arc.vmap(arc.jac(g), in_axes=(0, None))(xs, P) for g in (f, plain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    inside = lambda g: arc.jac(lambda p: arc.vmap(g, in_axes=(0, None))(xs, p).sum(0))(P)
    np.testing.assert_allclose(inside(f), inside(plain), rtol=1e-12)
    total = lambda g: arc.hess(lambda x: (arc.vmap(g, in_axes=(0, None))(xs * x, P) ** 2).sum())(X)
    np.testing.assert_allclose(total(f), total(plain), rtol=1e-12)


def test_patterns_come_from_the_function():
    f = arc.custom_jac(lambda x: x**2)
    f.defjac(lambda x: (np.diag(2.0 * x),))
    assert arc.sparsity(f)(X).nnz == 3


def test_misuse():
    f = arc.custom_jac(lambda x, p: plain(x, p))
    with pytest.raises(TraceError, match=r"no derivative rule yet.*defjac"):
        arc.jac(f)(X, P)
    f.defjac(lambda x, p: slopes(x, p))
    with pytest.raises(TraceError, match="must return a tuple of 2"):
        arc.jac(f)(X, P)
    f.defjac(lambda x, p: (slopes(x, p).T, None))
    with pytest.raises(TraceError, match=r"returned shape \(3, 2\) for argument 0, \(2, 3\)"):
        arc.jac(f)(X, P)
    pairs = arc.custom_jac(lambda d: d["x"] ** 2)
    pairs.defjac(lambda d: (np.diag(2.0 * d["x"]),))
    with pytest.raises(TraceError, match="takes arrays and returns one array"):
        arc.jac(lambda x: pairs({"x": x}))(X)

    def leaking(y):
        g = arc.custom_jac(lambda x: x**2)
        g.defjac(lambda x: (np.diag(2.0 * x) * y,))
        return arc.jac(g)(X)

    with pytest.raises(TraceError, match="traced values from outside"):
        arc.compile(leaking)(1.0)
