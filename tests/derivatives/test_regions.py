"""Nested transforms against JAX, and the regions JAX does not have against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

from .cases import agree
from .nested_programs import PROGRAMS, JaxArc

X = np.array([0.7, -0.4, 1.2])


@pytest.mark.long_cases(
    "*_in_*", "hess*", "jac_argnums_one", "jac_contains_jac", "scan_of_newton", "vmap_of_hess"
)
@pytest.mark.parametrize("program", [pytest.param(p, id=p.__name__) for p in PROGRAMS])
def test_nested_program(program, jax_float64) -> None:
    jax = jax_float64
    oracle = jax.jit(lambda v: program(jax.numpy, JaxArc(jax), v))
    got = program(np, arc, X)
    agree(got, oracle(X), program.__name__)
    # and as a part of a larger trace, differentiated once more
    tangent = arc.jvp(lambda v: program(np, arc, v))(X, np.cos(X))
    want = jax.jvp(oracle, (jax.numpy.asarray(X),), (np.cos(X),))[1]
    agree(tangent, want, program.__name__)


GRID = np.array([-1.0, -0.2, 0.5, 1.1, 2.0])
DATA = np.array([0.3, 1.2, -0.4, 0.9, 2.5])


@pytest.mark.parametrize("cell", range(4))
def test_linear_interpolant_slope(cell: int) -> None:
    table = arc.interpolant([GRID], DATA, method="linear")
    x = 0.3 * GRID[cell] + 0.7 * GRID[cell + 1]
    slope = np.diff(DATA)[cell] / np.diff(GRID)[cell]
    np.testing.assert_allclose(arc.grad(lambda s: table(s))(x), slope, rtol=1e-13)
    np.testing.assert_allclose(arc.jvp(lambda s: table(s))(x, 2.0), 2.0 * slope, rtol=1e-13)
    np.testing.assert_allclose(arc.hess(lambda s: table(s) ** 2)(x), 2 * slope**2, rtol=1e-13)


def test_bilinear_interpolant_gradient() -> None:
    rows, columns = GRID[:3], GRID[1:]
    data = np.outer(rows, columns)  # bilinear, so interpolation is exact everywhere
    table = arc.interpolant([rows, columns], data, method="linear")
    got = arc.grad(lambda v: table(v[0], v[1]))(np.array([-0.5, 0.7]))
    np.testing.assert_allclose(got, [0.7, -0.5], rtol=1e-13)


def test_cubic_interpolant_derivative_agrees_with_differences_of_itself() -> None:
    table = arc.interpolant([GRID], DATA, method="cubic")
    f = arc.compile(lambda s: table(s))
    for x in (-0.6, 0.1, 0.8, 1.5):
        h = 1e-3  # the error of the five-point formula vanishes on a cubic
        want = (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h)
        np.testing.assert_allclose(arc.grad(lambda s: table(s))(x), want, rtol=1e-9)
        second = (f(x - h) - 2 * f(x) + f(x + h)) / h**2
        np.testing.assert_allclose(arc.hess(lambda s: table(s))(x), second, rtol=1e-6)


def test_implicit_function_derivative() -> None:
    # y**3 + y = p has dy/dp = 1 / (3 y**2 + 1)
    solve = arc.implicit(lambda y, p: y**3 + y - p)
    f = lambda p: solve(0.5, p)
    y = np.roots([1.0, 0.0, 1.0, -3.0])
    y = y[np.abs(y.imag) < 1e-9].real[0]
    slope = 1.0 / (3.0 * y**2 + 1.0)
    np.testing.assert_allclose(arc.compile(f)(3.0), y, rtol=1e-12)
    np.testing.assert_allclose(arc.grad(f)(3.0), slope, rtol=1e-12)
    np.testing.assert_allclose(arc.jvp(f)(3.0, 1.0), slope, rtol=1e-12)
    np.testing.assert_allclose(arc.vjp(f)(3.0, 2.0), 2.0 * slope, rtol=1e-12)
    np.testing.assert_allclose(arc.hess(f)(3.0), -6.0 * y * slope**3, rtol=1e-10)


def test_root_of_system_derivative() -> None:
    # p0 x = y and x y = p1, so x = sqrt(p1 / p0), y = sqrt(p0 p1)
    def residual(v, p):
        return np.array([p[0] * v[0] - v[1], v[0] * v[1] - p[1]])

    f = lambda p: arc.root(residual, np.array([1.0, 1.0]), args=(p,))
    p = np.array([0.8, 1.9])
    x, y = np.sqrt(p[1] / p[0]), np.sqrt(p[0] * p[1])
    want = np.array([[-0.5 * x / p[0], 0.5 * x / p[1]], [0.5 * y / p[0], 0.5 * y / p[1]]])
    agree(arc.compile(f)(p), np.array([x, y]), "root")
    agree(arc.jac(f)(p), want, "jac of root")
    agree(arc.vjp(f)(p, np.array([1.0, -2.0])), np.array([1.0, -2.0]) @ want, "vjp of root")
    agree(arc.jac(lambda p: np.sum(f(p) ** 2))(p), 2.0 * np.array([x, y]) @ want, "after root")


def test_implicit_inside_scan() -> None:
    solve = arc.implicit(lambda y, c: y + 0.1 * np.sin(y) - c)
    f = lambda c: arc.scan(lambda v, _: (solve(v, v), None), c, length=3)[0]
    y, slope = 0.9, 1.0
    for _ in range(3):
        target = y
        for _ in range(50):
            y = y - (y + 0.1 * np.sin(y) - target) / (1.0 + 0.1 * np.cos(y))
        slope /= 1.0 + 0.1 * np.cos(y)
    np.testing.assert_allclose(arc.compile(f)(0.9), y, rtol=1e-12)
    np.testing.assert_allclose(arc.grad(f)(0.9), slope, rtol=1e-11)


@pytest.mark.parametrize("body", [lambda q: 1.5, lambda q: np.full(2, 1.5), lambda q: X[0]])
def test_nested_map_of_a_body_that_ignores_its_argument(body) -> None:
    table = np.zeros((2, 3, 4))
    nested = lambda a: arc.vmap(lambda r: arc.vmap(body)(r))(a)
    want = np.broadcast_to(body(None), (2, 3, *np.shape(body(None))))
    np.testing.assert_array_equal(nested(table), want)
    np.testing.assert_array_equal(arc.compile(nested)(table), want)
    np.testing.assert_array_equal(arc.vmap(arc.vmap(body))(table), want)
