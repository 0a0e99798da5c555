"""custom_jvp, custom_vjp, stop_gradient: the user's rule is what is used, in every mode.

The rules below are deliberately wrong by a factor, to see that it is the rule that counts.
"""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from tests.blocks.code_size import code_size
from tests.graph.spec import validate

X = np.array([0.5, -1.0, 2.0])


def forward_rule():
    @arc.custom_jvp
    def f(x):
        return np.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), 10.0 * np.cos(primals[0]) * tangents[0]

    return f


def reverse_rule():
    @arc.custom_vjp
    def f(x):
        return np.sin(x)

    f.defvjp(lambda x: (f(x), np.cos(x)), lambda c, w: (10.0 * c * w,))
    return f


KINDS = {"jvp": forward_rule, "vjp": reverse_rule}


@pytest.mark.parametrize("kind", KINDS)
def test_both_kinds_in_both_modes_and_second_order(kind):
    f = KINDS[kind]()
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-15)
    np.testing.assert_allclose(arc.compile(f)(X), np.sin(X), rtol=1e-15)
    want = 10 * np.cos(X)
    np.testing.assert_allclose(arc.jvp(f)(X, np.ones(3)), want, rtol=1e-15)
    np.testing.assert_allclose(arc.vjp(f)(X, np.ones(3)), want, rtol=1e-15)
    np.testing.assert_allclose(arc.jac(f)(X), np.diag(want), rtol=1e-15)
    total = lambda x: np.sum(f(x))
    np.testing.assert_allclose(arc.grad(total)(X), want, rtol=1e-15)
    # the rule itself is differentiated: -10 sin
    second = np.diag(-10 * np.sin(X))
    for d in (
        arc.hess(total),
        arc.jac(arc.grad(total)),
        arc.jac(lambda x: arc.jvp(f)(x, x * 0 + 1)),
    ):
        validate(d.graph(X))
        np.testing.assert_allclose(d(X), second, rtol=1e-14, atol=1e-14)
    third = arc.grad(arc.grad(arc.grad(lambda s: f(s))))
    np.testing.assert_allclose(third(0.3), -10 * np.cos(0.3), rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_inside_regions(kind):
    f = KINDS[kind]()
    np.testing.assert_allclose(arc.vmap(arc.grad(f))(X), 10 * np.cos(X), rtol=1e-15)
    looped = lambda x: arc.scan(lambda c, s: (c + f(s), None), 0.0, x)[0]
    np.testing.assert_allclose(arc.grad(looped)(X), 10 * np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(arc.jac(looped)(X), 10 * np.cos(X), rtol=1e-15)
    chosen = lambda x: arc.cond(x > 0, f, np.cos, x)
    np.testing.assert_allclose(arc.grad(chosen)(0.5), 10 * np.cos(0.5), rtol=1e-15)
    np.testing.assert_allclose(arc.grad(chosen)(-0.5), np.sin(0.5), rtol=1e-15)


def test_several_arguments_trees_and_integers():
    @arc.custom_jvp
    def f(d, n, scale):
        return {"p": d["a"] ** n * scale, "q": d["b"]}

    @f.defjvp
    def rule(primals, tangents):
        (d, n, scale), (dd, _, ds) = primals, tangents
        out = f(d, n, scale)
        return out, {"p": 3 * d["a"] ** 2 * scale * dd["a"] + d["a"] ** 3 * ds, "q": dd["b"]}

    at = ({"a": 2.0, "b": X}, 3, 5.0)
    j = arc.jac(lambda d, s: f(d, 3, s)["p"], argnums=(0, 1))(at[0], 5.0)
    assert j[0]["a"] == 60.0 and j[1] == 8.0
    np.testing.assert_array_equal(j[0]["b"], np.zeros(3))
    g = arc.grad(lambda d: f(d, 3, 5.0)["p"] + np.sum(f(d, 3, 5.0)["q"]))(at[0])
    assert g["a"] == 60.0 and g["b"].tolist() == [1.0] * 3


def test_vjp_rule_of_trees_with_residuals():
    @arc.custom_vjp
    def f(s, k):
        return s["x"] * k

    f.defvjp(
        lambda s, k: (f(s, k), {"saved": (s["x"], k)}),
        lambda r, w: ({"x": r["saved"][1] * w}, np.sum(r["saved"][0] * w)),
    )
    g = arc.grad(lambda s, k: np.sum(f(s, k) ** 2), argnums=(0, 1))({"x": X}, 3.0)
    np.testing.assert_allclose(g[0]["x"], 2 * 9 * X)
    np.testing.assert_allclose(g[1], 2 * 3 * X @ X)
    np.testing.assert_allclose(arc.jac(f, argnums=1)({"x": X}, 3.0), X)


def test_keywords_and_static():
    @arc.custom_jvp
    def f(x, scale=2.0):
        return x * scale

    f.defjvp(lambda p, t: (f(*p), 7.0 * t[0]))
    assert arc.grad(lambda x: f(x))(1.0) == 7.0
    assert arc.grad(lambda x: f(x, scale=3.0))(1.0) == 7.0


def test_plain_calls_run_the_function_itself():
    calls = []

    @arc.custom_jvp
    def f(x):
        calls.append(type(x))
        return x

    assert f(2.0) == 2.0 and calls == [float]


def test_closure_over_values_that_are_differentiated_is_refused():
    def outer(p, kind):
        if kind == "jvp":
            f = arc.custom_jvp(lambda x: x * p)
            f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
        else:
            f = arc.custom_vjp(lambda x: x * p)
            f.defvjp(lambda x: (f(x), None), lambda r, w: (3.0 * w,))
        return f(2.0)

    for kind in KINDS:
        for derivative in (arc.grad, arc.jac, arc.hess):
            with pytest.raises(arc.TraceError, match=r"closes over a value.*as an argument"):
                derivative(outer)(1.5, kind)
        np.testing.assert_allclose(arc.compile(outer)(1.5, kind), 3.0)

    # closing over a value that is not differentiated is fine
    def fine(x, p):
        f = arc.custom_jvp(lambda y: y * p)
        f.defjvp(lambda primals, tangents: (None, 3.0 * tangents[0]))
        return f(x)

    assert arc.grad(fine)(2.0, 5.0) == 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arc.custom_jvp(np.sin), r"sin has no derivative rule yet.*sin\.defjvp"),
        (lambda: arc.custom_vjp(np.sin), r"sin has no derivative rule yet.*sin\.defvjp"),
        (lambda: _with_jvp(lambda p, t: t[0]), r"must return a pair \(result, tangent\)"),
        (lambda: _with_jvp(lambda p, t: (p[0], np.zeros(5))), r"returned tangent of shape \(5,\)"),
        (lambda: _with_vjp(lambda x: x, lambda r, w: (w,)), r"pair \(result, residuals\)"),
        (lambda: _with_vjp(lambda x: (x, x), lambda r, w: w), "tuple of 1 cotangents"),
        (lambda: _with_vjp(lambda x: (x, x), lambda r, w: (w, w)), "tuple of 1 cotangents"),
        (
            lambda: _with_vjp(lambda x: (x, x), lambda r, w: (np.ones(7),)),
            r"returned cotangent\[0\] of shape \(7,\), \(3,\) is needed",
        ),
    ],
)
def test_rules_that_are_wrong(make, message):
    f = make()
    with pytest.raises(arc.TraceError, match=message):
        arc.jac(lambda x: f(x))(X)


def _with_jvp(rule):
    f = arc.custom_jvp(lambda x: x * 1.0)
    f.defjvp(rule)
    return f


def _with_vjp(fwd, bwd):
    f = arc.custom_vjp(lambda x: x * 1.0)
    f.defvjp(fwd, bwd)
    return f


@pytest.mark.parametrize("kind", [arc.custom_jvp, arc.custom_vjp])
def test_not_a_function(kind):
    with pytest.raises(TypeError, match="must be a function, got int"):
        kind(3)


# ---- stop_gradient -----------------------------------------------------------------------------


def test_stop_gradient():
    f = lambda x: np.sum(x * arc.stop_gradient(x))
    np.testing.assert_array_equal(arc.grad(f)(X), X)
    np.testing.assert_array_equal(arc.jac(f)(X), X)
    np.testing.assert_array_equal(arc.hess(f)(X), np.zeros((3, 3)))
    assert arc.compile(f)(X) == X @ X


def test_stop_gradient_of_trees_and_plain_values():
    f = lambda d: d["a"] * arc.stop_gradient(d)["a"] + arc.stop_gradient(d)["n"]
    assert arc.grad(f)({"a": 3.0, "n": 2.0}) == {"a": 3.0, "n": 0.0}
    assert arc.stop_gradient({"a": 1, "b": "text"}) == {"a": 1, "b": "text"}
    assert arc.compile(lambda n: arc.stop_gradient(n) + 1)(3) == 4


def solving(kind):
    """Return x with ``A x = b``, whose rule takes twice the tangent of b and none of A."""

    def solve(A, b):
        return np.linalg.solve(A, b)

    if kind == "jvp":
        f = arc.custom_jvp(solve)
        f.defjvp(lambda p, t: (f(*p), 2.0 * np.linalg.solve(p[0], t[1])))
        return f
    f = arc.custom_vjp(solve)
    f.defvjp(
        lambda A, b: (f(A, b), A),
        lambda A, w: (None, 2.0 * np.linalg.solve(A.T, w)),
    )
    return f


@pytest.mark.parametrize("kind", KINDS)
def test_long_arguments_are_blocks(kind):
    """The program is as long for 90 rows as for 40, and the rule is used in both modes."""

    def problem(n):
        rng = np.random.default_rng(n)
        return np.eye(n) + rng.normal(size=(n, n)) / n, rng.normal(size=n)

    f = solving(kind)
    program = arc.compile(lambda A, b: f(A, 3.0 * b), loops_from=2)
    short, long = (code_size(program.recording(*problem(n)).blocks) for n in (40, 90))
    assert long == short
    A, b = problem(40)
    np.testing.assert_allclose(program(A, b), np.linalg.solve(A, 3.0 * b), rtol=1e-12)
    slope = 6.0 * np.linalg.inv(A)
    np.testing.assert_allclose(arc.jac(program, argnums=1)(A, b), slope, rtol=1e-9, atol=1e-12)
    w = np.arange(40.0)
    gradient = arc.grad(lambda b: np.sum(w * program(A, b)))(b)
    np.testing.assert_allclose(gradient, w @ slope, rtol=1e-9, atol=1e-12)
