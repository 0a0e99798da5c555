"""Derivatives of linear algebra against JAX in double precision and against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import archimedes as arc
from tests.optional_packages import import_or_skip

from .matrices import random, symmetric, traced


@pytest.fixture(scope="module")
def jax() -> Any:
    module = import_or_skip("jax")
    module.config.update("jax_enable_x64", True)
    return module


def spd(np: Any, x: Any) -> Any:
    return x @ x.T + np.eye(len(x))


def projector(np: Any, v: Any) -> Any:
    """Products of a vector set's components, free of the choice of signs."""
    return np.einsum("ij,kj->ikj", v, v)


def eigh_vectors(np: Any, x: Any) -> Any:
    w, v = np.linalg.eigh(x + x.T)
    return w[0] * projector(np, v)


def svd_vectors(np: Any, x: Any) -> Any:
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    return np.einsum("ij,jk->ikj", u, vt) * s[0]


def least_squares(np: Any, x: Any) -> Any:
    return np.linalg.lstsq(x[:, :-1], x[:, -1])[0]


Function = Callable[[Any, Any], Any]

#: name -> (function of (numpy or jax.numpy, x), shapes)
CASES: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "solve": (lambda np, x: np.linalg.solve(x, x[:, :2] ** 2), [(3, 3), (4, 4), (6, 6)]),
    "solve for b": (lambda np, x: np.linalg.solve(np.ones((3, 3)) + np.eye(3), x), [(3, 2)]),
    "solve stack": (lambda np, x: np.linalg.solve(x, x[0]), [(2, 3, 3)]),
    "inv": (lambda np, x: np.linalg.inv(x), [(3, 3), (5, 5)]),
    "inv of a triangle": (lambda np, x: np.linalg.inv(np.tril(x)), [(4, 4)]),
    "det": (lambda np, x: np.linalg.det(x), [(2, 2), (3, 3), (4, 4), (5, 5)]),
    "slogdet": (lambda np, x: np.linalg.slogdet(x)[1], [(2, 2), (3, 3), (5, 5)]),
    "matrix_power": (lambda np, x: np.linalg.matrix_power(x, -3), [(3, 3)]),
    "cholesky": (lambda np, x: np.linalg.cholesky(spd(np, x)), [(4, 4)]),
    "qr": (lambda np, x: np.linalg.qr(x)[0], [(3, 3), (5, 3)]),
    "qr r": (lambda np, x: np.linalg.qr(x)[1], [(3, 3), (5, 3)]),
    "lstsq": (least_squares, [(5, 3)]),
    "eigvalsh": (lambda np, x: np.linalg.eigvalsh(x + x.T), [(2, 2), (3, 3), (5, 5)]),
    "eigh": (eigh_vectors, [(2, 2), (4, 4)]),
    "svdvals": (lambda np, x: np.linalg.svd(x, compute_uv=False), [(3, 3), (4, 2), (2, 4)]),
    "svd": (svd_vectors, [(3, 3), (4, 2)]),
    "pinv": (lambda np, x: np.linalg.pinv(x), [(3, 3), (2, 4)]),
    "norm 2": (lambda np, x: np.linalg.norm(x, 2), [(3, 3), (2, 4)]),
    "norm nuc": (lambda np, x: np.linalg.norm(x, "nuc"), [(3, 3)]),
    "norm fro": (lambda np, x: np.linalg.norm(x), [(3, 3)]),
    "norm 3": (lambda np, x: np.linalg.norm(x, 3, axis=1), [(2, 4)]),
    "norm inf": (lambda np, x: np.linalg.norm(x, np.inf), [(3, 3)]),
    "cond": (lambda np, x: np.linalg.cond(x), [(3, 3)]),
    "multi_dot": (lambda np, x: np.linalg.multi_dot([x, x.T, x]), [(3, 2)]),
}
POINTS = [(name, shape) for name, (_, shapes) in CASES.items() for shape in shapes]


@pytest.mark.long_cases(
    "det-(2, 2)",
    "det-(4, 4)",
    "det-(5, 5)",
    "e*",
    "inv of a*",
    "inv-*",
    "lstsq*",
    "m*",
    "norm 2-(2, 4)",
    "p*",
    "qr-(5, 3)",
    "s*",
)
@pytest.mark.parametrize(("name", "shape"), POINTS, ids=str)
def test_both_modes_against_jax(name: str, shape: tuple[int, ...], jax: Any) -> None:
    function = CASES[name][0]
    x = random(21, *shape)
    mine, theirs = (lambda v: function(np, v)), (lambda v: function(jax.numpy, v))
    want = np.asarray(jax.jit(jax.jacfwd(theirs))(x))
    scale = 1e-11 * np.abs(want).max()
    np.testing.assert_allclose(arc.jac(mine)(x), want, rtol=1e-10, atol=scale)
    bar = random(22, *np.shape(mine(x)))
    pulled = np.tensordot(bar, want, bar.ndim)
    got = arc.grad(lambda v: np.sum(bar * mine(v)))(x)
    np.testing.assert_allclose(got, pulled, rtol=1e-10, atol=1e-11 * np.abs(pulled).max())


SECOND = [
    (name, (3, 3))
    for name in ("solve", "inv", "det", "slogdet", "qr r", "eigvalsh", "svdvals", "pinv", "norm 2")
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "shape"), SECOND, ids=str)
def test_second_derivatives_against_jax(name: str, shape: tuple[int, ...], jax: Any) -> None:
    function = CASES[name][0]
    x, bar = random(23, *shape), random(24, *np.shape(function(np, random(23, *shape))))
    theirs = jax.jacfwd(jax.jacfwd(lambda v: jax.numpy.sum(bar * function(jax.numpy, v))))
    want = np.asarray(jax.jit(theirs)(x))
    got = arc.hess(lambda v: np.sum(bar * function(np, v)))(x)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10 * np.abs(want).max())


# ---- points where formulas break down -----------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4])
def test_determinant_at_singular_matrices(n: int) -> None:
    gradient = arc.grad(lambda a: np.linalg.det(a))
    np.testing.assert_allclose(gradient(np.zeros((n, n))), np.zeros((n, n)))
    lacking = np.diag([0.0, *range(2, n + 1)])
    want = np.zeros((n, n))
    want[0, 0] = np.prod(np.arange(2.0, n + 1))
    np.testing.assert_allclose(gradient(lacking), want)


def cofactors(a: np.ndarray) -> np.ndarray:
    """Determinants of what is left without a row and a column, exact for small whole numbers."""
    found = np.empty_like(a)
    for i, j in np.ndindex(a.shape):
        found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return np.rint(found)


def whole(n: int, rank: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return 1.0 * rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, n))


@pytest.mark.long
@pytest.mark.parametrize("lost", [0, 1, 2, 3])
@pytest.mark.parametrize("n", [5, 6, 7])
def test_cofactors_of_larger_matrices(n: int, lost: int) -> None:
    a = whole(n, n - lost)
    want, scale = cofactors(a), np.linalg.norm(a, 2) ** (n - 1)
    gradient = arc.grad(np.linalg.det)
    np.testing.assert_allclose(gradient(a), want, atol=1e-14 * scale)
    # Nearly singular: det A^-T would lose all digits.
    near = a + 1e-14 * random(n, n, n)
    np.testing.assert_allclose(gradient(near), want, atol=1e-12 * scale)


def test_second_derivatives_of_a_singular_determinant() -> None:
    n = 5
    curve = arc.hess(np.linalg.det)
    for lost in (0, 1, 2, 3, 5):
        a = whole(n, n - lost)
        # Cofactors are affine in each entry: a difference over a whole step is a derivative.
        want, start = np.empty((n, n, n, n)), cofactors(a)
        for i, j in np.ndindex(n, n):
            step = np.zeros((n, n))
            step[i, j] = 1.0
            want[:, :, i, j] = cofactors(a + step) - start
        scale = max(1.0, np.linalg.norm(a, 2)) ** (n - 2)
        np.testing.assert_allclose(curve(a), want, atol=1e-13 * scale)


def test_eigenvalues_at_repeated_values() -> None:
    # Along a direction that keeps eigenvectors, derivatives are those of the diagonal.
    jacobian = arc.jac(lambda a: np.linalg.eigvalsh(a))(2.0 * np.eye(3))
    assert np.isfinite(jacobian).all()
    np.testing.assert_allclose(np.einsum("kii->k", jacobian), np.ones(3))
    total = arc.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(2.0 * np.eye(3))
    np.testing.assert_allclose(total, 4.0 * np.eye(3), atol=1e-14)
    # The vectors have none.
    assert np.isnan(arc.jac(lambda a: np.linalg.eigh(a)[1])(np.eye(3))).any()


def test_singular_values_at_repeated_and_zero_values() -> None:
    for point in (np.eye(3), np.zeros((3, 2)), np.diag([2.0, 2.0, 0.0])):
        assert np.isfinite(arc.jac(lambda a: np.linalg.svdvals(a))(point)).all()
        for part in (0, 2):
            vectors = lambda a, k=part: np.linalg.svd(a)[k]
            assert np.isnan(arc.jac(lambda a, f=vectors: f(a))(point)).any()
    np.testing.assert_allclose(
        arc.grad(lambda a: np.sum(np.linalg.svdvals(a)))(np.eye(3)), np.eye(3), atol=1e-15
    )


def test_function_of_a_matrix_by_its_eigenvalues() -> None:
    # d(A^2) = dA A + A dA
    def square(a):
        w, v = np.linalg.eigh(a)
        return (v * w**2) @ v.T

    a, da = symmetric(0, 3), symmetric(1, 3)
    np.testing.assert_allclose(arc.jvp(square)(a, da), da @ a + a @ da, rtol=1e-11, atol=1e-12)


def test_qr_of_a_triangular_matrix() -> None:
    # The reflections are the identity there; the factors turn all the same.
    r = np.triu(random(2, 3, 3)) + 2.0 * np.eye(3)
    da = random(3, 3, 3)
    step = 1e-6
    dq = np.einsum("ijkl,kl->ij", arc.jac(lambda a: np.linalg.qr(a)[0])(r), da)

    def positive(a):
        q, upper = np.linalg.qr(a)
        return q * np.sign(np.diagonal(upper))

    want = (positive(r + step * da) - positive(r - step * da)) / (2 * step)
    signs = np.sign(np.diagonal(np.linalg.qr(r)[1]))
    np.testing.assert_allclose(dq * signs, want, atol=1e-8)


def test_complete_qr_follows_the_algorithm() -> None:
    a, da, step = random(4, 4, 2), random(5, 4, 2), 1e-6
    complete = lambda x: np.linalg.qr(x, "complete")[0]
    want = (complete(a + step * da) - complete(a - step * da)) / (2 * step)
    got = np.einsum("ijkl,kl->ij", arc.jac(complete)(a), da)
    np.testing.assert_allclose(got, want, atol=1e-8)


def test_large_qr_against_differences() -> None:
    a, da, step = random(6, 2, 4), random(7, 2, 4), 1e-6
    for part in (0, 1):
        factor = lambda x, k=part: np.linalg.qr(x)[k]
        want = (factor(a + step * da) - factor(a - step * da)) / (2 * step)
        got = np.einsum("ijkl,kl->ij", arc.jac(lambda x, f=factor: f(x))(a), da)
        np.testing.assert_allclose(got, want, atol=1e-8)


def test_pseudo_inverse_at_constant_rank() -> None:
    # A(t) = b(t) c^T has rank one for all t; its pseudo-inverse is c b^T / (|b|^2 |c|^2).
    c = random(8, 2)

    def inverse(b):
        return np.linalg.pinv(np.outer(b, c))

    def formula(b):
        return np.outer(c, b) / ((b @ b) * (c @ c))

    b = random(9, 3)
    np.testing.assert_allclose(traced(inverse, b), formula(b), rtol=1e-12)
    np.testing.assert_allclose(arc.jac(inverse)(b), arc.jac(formula)(b), rtol=1e-10, atol=1e-13)


def test_one_triangle_has_the_whole_derivative() -> None:
    # NumPy reads the lower triangle only, so the upper one has no influence.
    gradient = arc.grad(lambda a: np.sum(np.linalg.cholesky(a)))(np.array([[4.0, 9.9], [1.0, 3.0]]))
    assert gradient[0, 1] == 0.0
    jacobian = arc.jac(lambda a: np.linalg.eigvalsh(a))(np.array([[4.0, 9.9], [1.0, 3.0]]))
    assert (jacobian[:, 0, 1] == 0.0).all() and (jacobian[:, 1, 0] != 0.0).all()


def test_jacobians_stay_small() -> None:
    def total(function, *args) -> int:
        return arc.jac(function).statistics(*args).total

    a, b = random(0, 3, 3), random(1, 3)
    assert total(lambda y: np.linalg.solve(a, y), b) <= 9
    assert total(np.linalg.inv, a) <= 200
    assert total(lambda x: np.linalg.solve(x, b), a) <= 260
    assert total(np.linalg.det, a) <= 40
    assert total(np.linalg.eigvalsh, a) <= 400
