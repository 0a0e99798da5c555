"""Derivatives go to parameters; keys have none."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

KEY = arc.random.key(8)


def test_uniform():
    p = np.array([-1.0, 3.0])
    for n in (4, 40):
        jacobian = arc.jac(lambda p, n=n: arc.random.uniform(KEY, n, low=p[0], high=p[1]))(p)
        u = arc.random.uniform(KEY, n)
        np.testing.assert_allclose(jacobian, np.stack([1 - u, u], axis=1), rtol=1e-15)


def test_normal():
    p = np.array([0.5, 2.0])
    for n in (4, 40):

        def total(p, key, n=n):
            return np.sum(arc.random.normal(key, n, mean=p[0], std=p[1]) ** 2)

        z = arc.random.normal(KEY, n)
        x = p[0] + p[1] * z
        exact = np.array([np.sum(2 * x), np.sum(2 * x * z)])
        np.testing.assert_allclose(arc.grad(total)(p, KEY), exact, rtol=1e-12)
        second = 2 * np.array([[n, z.sum()], [z.sum(), np.sum(z * z)]])
        np.testing.assert_allclose(arc.hess(total)(p, KEY), second, rtol=1e-12)


def test_exponential():
    slope = arc.grad(lambda s: np.sum(arc.random.exponential(KEY, 5, scale=s)))(3.0)
    np.testing.assert_allclose(slope, np.sum(arc.random.exponential(KEY, 5)), rtol=1e-14)


def test_multivariate_normal():
    """Against the closed form of the factor of [[a, b], [b, c]]."""
    a, b, c = 2.0, 0.5, 1.5

    def draw(p):
        cov = np.stack([np.stack([p[0], p[1]]), np.stack([p[1], p[2]])])
        return arc.random.multivariate_normal(KEY, p[3:], cov, 3)

    z = arc.random.normal(KEY, (3, 2))
    rest = np.sqrt(c - b**2 / a)
    exact = np.zeros((3, 2, 5))
    exact[:, 0, 0] = z[:, 0] / (2 * np.sqrt(a))
    exact[:, 1, 0] = -z[:, 0] * b / (2 * a**1.5) + z[:, 1] * b**2 / a**2 / (2 * rest)
    exact[:, 1, 1] = z[:, 0] / np.sqrt(a) - z[:, 1] * b / (a * rest)
    exact[:, 1, 2] = z[:, 1] / (2 * rest)
    exact[:, 0, 3] = exact[:, 1, 4] = 1.0
    found = arc.jac(draw)(np.array([a, b, c, 0.1, 0.2]))
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-15)


def test_choice_passes_derivatives_to_what_is_chosen():
    values = np.array([1.0, 2.0, 3.0])
    jacobian = arc.jac(lambda a: arc.random.choice(KEY, a, 6))(values)
    np.testing.assert_array_equal(jacobian @ values, arc.random.choice(KEY, values, 6))
    assert set(jacobian.ravel()) == {0.0, 1.0}
    shuffled = arc.jac(lambda a: arc.random.permutation(KEY, a))(values)
    np.testing.assert_array_equal(shuffled @ values, arc.random.permutation(KEY, values))


def test_what_does_not_depend_on_a_parameter_has_no_slope():
    assert arc.grad(lambda p: p * arc.random.bernoulli(KEY, p))(0.3) in (0.0, 1.0)
    assert arc.grad(lambda x: x * np.sum(arc.random.uniform(KEY, 9)))(2.0) == np.sum(
        arc.random.uniform(KEY, 9)
    )


def test_a_derivative_with_respect_to_a_key_is_refused():
    with pytest.raises(TypeError, match="an int64 argument of its own"):
        arc.grad(lambda key: arc.random.normal(key))(KEY)
