"""User rules for derivatives, ``stop_gradient`` and host callbacks."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

X = np.array([0.7, -0.4, 1.2])


def marked_jvp():
    """sin whose user rule has a recognisable factor 3, so that using it cannot be missed."""

    @arc.custom_jvp
    def f(x):
        return np.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (v,) = primals, tangents
        return np.sin(x), 3.0 * np.cos(x) * v

    return f


def marked_vjp():
    @arc.custom_vjp
    def f(x):
        return np.sin(x)

    f.defvjp(lambda x: (np.sin(x), x), lambda x, w: (3.0 * np.cos(x) * w,))
    return f


RULES = {"custom_jvp": marked_jvp, "custom_vjp": marked_vjp}


@pytest.mark.parametrize("kind", RULES)
def test_value_is_the_function_itself(kind: str) -> None:
    f = RULES[kind]()
    np.testing.assert_allclose(arc.compile(lambda x: f(x))(X), np.sin(X), rtol=1e-15)
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-15)


@pytest.mark.parametrize("kind", RULES)
def test_reverse_uses_the_rule(kind: str) -> None:
    f = RULES[kind]()
    got = arc.grad(lambda x: np.sum(f(x) * x))(X)
    np.testing.assert_allclose(got, 3.0 * np.cos(X) * X + np.sin(X), rtol=1e-14)


@pytest.mark.parametrize("kind", RULES)
def test_jac_uses_the_rule(kind: str) -> None:
    f = RULES[kind]()
    np.testing.assert_allclose(
        arc.jac(lambda x: f(x))(X), np.diag(3.0 * np.cos(X)), rtol=1e-14, atol=1e-15
    )


def test_forward_uses_the_rule() -> None:
    f = marked_jvp()
    got = arc.jvp(lambda x: f(x))(X, np.ones(3))
    np.testing.assert_allclose(got, 3.0 * np.cos(X), rtol=1e-14)


@pytest.mark.parametrize("kind", RULES)
def test_second_derivative_differentiates_the_rule(kind: str) -> None:
    f = RULES[kind]()
    got = arc.grad(lambda x: np.sum(arc.grad(lambda y: np.sum(f(y)))(x)))(X)
    np.testing.assert_allclose(got, -3.0 * np.sin(X), rtol=1e-14)


@pytest.mark.parametrize("kind", RULES)
def test_rule_inside_scan_and_vmap(kind: str) -> None:
    f = RULES[kind]()
    scanned = arc.grad(lambda x: arc.scan(lambda c, s: (c + f(s), None), 0.0, x)[0])(X)
    np.testing.assert_allclose(scanned, 3.0 * np.cos(X), rtol=1e-14)
    mapped = arc.grad(lambda x: np.sum(arc.vmap(lambda s: f(s))(x)))(X)
    np.testing.assert_allclose(mapped, 3.0 * np.cos(X), rtol=1e-14)


def test_rule_of_two_arguments() -> None:
    @arc.custom_jvp
    def product(a, b):
        return a * b

    @product.defjvp
    def rule(primals, tangents):
        (a, b), (da, db) = primals, tangents
        return a * b, 2.0 * da * b + 5.0 * a * db

    f = lambda x: np.sum(product(x, np.sin(x)))
    want = 2.0 * np.sin(X) + 5.0 * X * np.cos(X)
    np.testing.assert_allclose(arc.grad(f)(X), want, rtol=1e-14)
    np.testing.assert_allclose(arc.jvp(f)(X, np.ones(3)), want.sum(), rtol=1e-14)


def test_vjp_rule_with_residuals() -> None:
    @arc.custom_vjp
    def norm(x):
        return np.sqrt(np.sum(x**2))

    def forward(x):
        length = np.sqrt(np.sum(x**2))
        return length, (x, length)

    norm.defvjp(forward, lambda saved, w: (w * saved[0] / (saved[1] + 1e-300),))
    np.testing.assert_allclose(arc.grad(lambda x: norm(x))(X), X / np.linalg.norm(X), rtol=1e-14)
    np.testing.assert_allclose(arc.grad(lambda x: norm(x))(np.zeros(3)), 0.0, atol=1e-15)


def test_gradient_clipping_rule() -> None:
    @arc.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, w: (np.clip(w, -1.0, 1.0),))
    got = arc.grad(lambda x: np.sum(10.0 * clipped(x) ** 2))(np.array([0.01, -3.0]))
    np.testing.assert_allclose(got, [0.2, -1.0], rtol=1e-14)


def test_stop_gradient() -> None:
    got = arc.grad(lambda x: np.sum(arc.stop_gradient(x) * x**2))(X)
    np.testing.assert_allclose(got, 2.0 * X * X, rtol=1e-14)
    np.testing.assert_array_equal(
        arc.jac(lambda x: arc.stop_gradient(np.sin(x)))(X), np.zeros((3, 3))
    )
    np.testing.assert_array_equal(arc.jvp(lambda x: arc.stop_gradient(x) * 1.0)(X, X), np.zeros(3))
    np.testing.assert_allclose(
        arc.hess(lambda x: np.sum(arc.stop_gradient(x) * x**2))(X), np.diag(2.0 * X), rtol=1e-14
    )
    np.testing.assert_array_equal(arc.stop_gradient(X), X)


def test_callback_value() -> None:
    seen = []

    def host(x):
        seen.append(np.array(x))
        return np.sort(x)[::-1].copy()

    f = arc.compile(lambda x: arc.callback(host, np.zeros(3), x * 2.0) + 1.0)
    np.testing.assert_array_equal(f(X), np.sort(2.0 * X)[::-1] + 1.0)
    np.testing.assert_array_equal(seen[-1], 2.0 * X)
    f(X + 1.0)
    np.testing.assert_array_equal(seen[-1], 2.0 * (X + 1.0))


def host_square(x):
    return np.asarray(x) ** 2


def square_through_host(x):
    """x**2 on the host, with its derivative given in NumPy."""
    return arc.callback(
        host_square, np.zeros(3), x, jvp=lambda primals, tangents: 2.0 * primals[0] * tangents[0]
    )


def test_callback_with_derivative() -> None:
    np.testing.assert_allclose(arc.jac(square_through_host)(X), np.diag(2.0 * X), rtol=1e-14)
    np.testing.assert_allclose(arc.jvp(square_through_host)(X, X), 2.0 * X * X, rtol=1e-14)
    np.testing.assert_allclose(arc.vjp(square_through_host)(X, X), 2.0 * X * X, rtol=1e-14)
    got = arc.grad(lambda x: np.sum(np.sin(square_through_host(x))))(X)
    np.testing.assert_allclose(got, np.cos(X**2) * 2.0 * X, rtol=1e-13)
    second = arc.hess(lambda x: np.sum(square_through_host(x)))(X)
    np.testing.assert_allclose(second, 2.0 * np.eye(3), rtol=1e-13)


def test_callback_inside_scan() -> None:
    body = lambda c, _: (0.5 * square_through_host(c), None)
    rollout = lambda x: arc.scan(body, x, length=2)[0]
    np.testing.assert_allclose(arc.compile(rollout)(X), 0.5 * (0.5 * X**2) ** 2, rtol=1e-14)
    np.testing.assert_allclose(arc.jac(rollout)(X), np.diag(0.5 * X**3), rtol=1e-13, atol=1e-15)


def test_callback_without_derivative_says_so() -> None:
    with pytest.raises(arc.ArchimedesError, match="jvp"):
        arc.grad(lambda x: np.sum(arc.callback(host_square, np.zeros(3), x)))(X)
