"""lstsq, polyfit and pinv of matrices of any rank, against NumPy and central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import archimedes as arc

from .matrices import check_like_numpy, random, traced

SHAPES = [(1, 1), (2, 2), (3, 3), (6, 6), (1, 3), (3, 1), (4, 2), (2, 4), (5, 3), (3, 5)]


def of_rank(rank: int, m: int, n: int) -> np.ndarray:
    return random(rank, m, rank) @ random(rank + 1, rank, n)


def with_singular_values(m: int, n: int, values: list[float]) -> np.ndarray:
    k = len(values)
    left, right = np.linalg.qr(random(3, m, k))[0], np.linalg.qr(random(4, n, k))[0]
    return left @ np.diag(values) @ right.T


def differences(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """Jacobian by central differences, good for about nine digits."""
    step, columns = 1e-6, []
    for at in np.ndindex(x.shape):
        change = np.zeros_like(x)
        change[at] = step
        columns.append((function(x + change) - function(x - change)) / (2 * step))
    return np.moveaxis(np.array(columns), 0, -1).reshape(*np.shape(function(x)), *x.shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_full_rank(shape: tuple[int, int]) -> None:
    a, b = random(0, *shape), random(1, shape[0], 2)
    solve = lambda a, b: np.linalg.lstsq(a, b)
    for right in (b, b[:, 0]):
        want, got = np.linalg.lstsq(a, right), traced(solve, a, right)
        assert got[2] == want[2] == min(shape)
        for w, g in zip(want[:2] + want[3:], got[:2] + got[3:]):
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12 * np.max(np.abs(w), initial=0))


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
@pytest.mark.parametrize("shape", [(2, 2), (6, 4), (4, 6), (5, 1), (20, 18), (18, 20)], ids=str)
def test_the_shortest_of_several_solutions(shape: tuple[int, int], scale: float) -> None:
    b = random(5, shape[0], 2)
    solve = arc.compile(lambda a, b: np.linalg.lstsq(a, b))  # one recording for all ranks
    for rank in sorted({0, 1, min(shape) - 1}):
        a = scale * of_rank(rank, *shape)
        x, _, found, _ = solve(a, b)
        want = np.linalg.lstsq(a, b)
        assert found == want[2] == rank
        np.testing.assert_allclose(x, want[0], rtol=1e-9, atol=1e-11 * np.max(np.abs(want[0])))


@pytest.mark.parametrize("rcond", [None, 0.3, 1e-6, 0.0, -1.0, 1.0])
def test_rcond_says_what_is_cut(rcond: float | None) -> None:
    a, b = with_singular_values(6, 4, [3.0, 1.5, 0.6, 1e-7]), random(6, 6)
    want = np.linalg.lstsq(a, b, rcond)
    x, _, rank, _ = traced(lambda a, b: np.linalg.lstsq(a, b, rcond), a, b)
    assert rank == want[2]
    np.testing.assert_allclose(x, want[0], rtol=1e-8)
    # a matrix that is known while recording, and a traced rcond
    x, residuals, rank, _ = traced(lambda b: np.linalg.lstsq(a, b, rcond), b)
    assert rank == want[2] and np.shape(residuals) == want[1].shape
    np.testing.assert_allclose(x, want[0], rtol=1e-8)
    if rcond is not None:
        x = traced(lambda a, b, r: np.linalg.lstsq(a, b, r)[0], a, b, rcond)
        np.testing.assert_allclose(x, want[0], rtol=1e-8)


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 1)], ids=str)
def test_nothing_to_solve(shape: tuple[int, int, int]) -> None:
    a, b = np.ones(shape[:2]), np.ones((shape[0], shape[2]))
    want, got = np.linalg.lstsq(a, b), traced(lambda a, b: np.linalg.lstsq(a, b), a, b)
    assert got[2] == want[2]
    for k in (0, 1, 3):
        np.testing.assert_allclose(got[k], want[k], atol=1e-15)


def test_polynomials_through_too_few_points() -> None:
    x, y = np.array([1.0, 1.0, 1.0, 2.0, 2.0]), random(7, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.RankWarning)
        want, cut = np.polyfit(x, y, 3), np.polyfit(x, y, 3, rcond=0.2)
    np.testing.assert_allclose(traced(lambda x, y: np.polyfit(x, y, 3), x, y), want, rtol=1e-10)
    with pytest.warns(np.exceptions.RankWarning):  # the rank is known while recording
        known = traced(lambda y: np.polyfit(x, y, 3), y)
    np.testing.assert_allclose(known, want, rtol=1e-10)
    got = traced(lambda x, y: np.polyfit(x, y, 3, rcond=0.2), x, y)
    np.testing.assert_allclose(got, cut, rtol=1e-10)


@pytest.mark.long_cases("*(6, 4)")
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (6, 4), (4, 4)], ids=str)
@pytest.mark.parametrize("rcond", [0.02, 0.15, 0.3])
def test_derivatives_where_singular_values_are_cut(shape: tuple[int, int], rcond: float) -> None:
    a = with_singular_values(*shape, [3.0, 1.5, 0.6, 0.2][: min(shape)])
    b, weights = random(8, shape[0]), random(9, shape[1])
    inverse = lambda a: np.linalg.pinv(a, rcond)
    solve = lambda a: np.linalg.lstsq(a, b, rcond)[0]
    want = differences(inverse, a)
    np.testing.assert_allclose(arc.jac(inverse)(a), want, atol=1e-8 * np.abs(want).max())
    want = differences(solve, a)
    np.testing.assert_allclose(arc.jac(solve)(a), want, atol=1e-8 * np.abs(want).max())
    got = arc.grad(lambda a: weights @ solve(a))(a)
    scale = 1e-8 * np.abs(want).max()
    np.testing.assert_allclose(got, np.tensordot(weights, want, 1), atol=scale)


@pytest.mark.parametrize("rcond", [1e-15, 0.1])
def test_second_derivatives_at_equal_singular_values(rcond: float) -> None:
    a = np.diag([2.0, 2.0, 0.05])[:, : 2 if rcond < 0.1 else 3]
    cost = lambda a: np.sum(np.linalg.pinv(a, rcond) ** 2)
    want = differences(arc.grad(cost), a)
    np.testing.assert_allclose(arc.hess(cost)(a), want, atol=1e-8)


def test_derivatives_at_constant_rank() -> None:
    # x = v (u . b) / (|u|^2 |v|^2) solves least squares with u v^T.
    v, b = random(10, 3), random(11, 5)
    solve = lambda u: np.linalg.lstsq(np.outer(u, v), b)[0]
    formula = lambda u: v * (u @ b) / ((u @ u) * (v @ v))
    u = random(12, 5)
    np.testing.assert_allclose(arc.jac(solve)(u), arc.jac(formula)(u), rtol=1e-11, atol=1e-13)


def test_derivatives_of_large_deficient_systems() -> None:
    a, b, weights = of_rank(17, 20, 18), random(13, 20), random(14, 18)
    d, step = a @ random(15, 18, 18), 1e-7  # keeps the rank
    cost = lambda a: weights @ np.linalg.lstsq(a, b, 1e-10)[0]
    want = (cost(a + step * d) - cost(a - step * d)) / (2 * step)
    np.testing.assert_allclose(np.sum(arc.grad(cost)(a) * d), want, rtol=1e-6)


def test_an_ill_conditioned_problem() -> None:
    # The exact answer is known: the right-hand side lies in the range.
    t = np.linspace(0, 1, 20)
    a, x = t[:, None] ** np.arange(8), np.ones(8)
    for got in (
        traced(lambda m, y: np.linalg.lstsq(m, y)[0], a, a @ x),
        traced(lambda y: np.linalg.lstsq(a, y)[0], a @ x),
    ):
        assert np.abs(got - x).max() < 10 * np.finfo(float).eps * np.linalg.cond(a)


def test_batches_of_several_ranks() -> None:
    a = np.stack([of_rank(rank, 4, 3) for rank in (0, 1, 2, 3, 1, 3)])
    b = random(16, 6, 4)
    got = arc.vmap(lambda a, b: np.linalg.lstsq(a, b)[0])(a, b)
    want = [np.linalg.lstsq(*row)[0] for row in zip(a, b)]
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_errors() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Incompatible dimensions"):
        traced(np.linalg.lstsq, random(0, 3, 2), random(1, 2))
    with pytest.raises(np.linalg.LinAlgError, match="must be two-dimensional"):
        traced(np.linalg.lstsq, random(0, 2, 3, 2), random(1, 3))


def test_beyond_the_size_of_singular_values() -> None:
    def solution(a, b):
        x, residuals, rank, values = np.linalg.lstsq(a, b)
        assert values is None
        return x, residuals, rank

    a, b = random(0, 18, 17), random(1, 18)
    x, residuals, rank = traced(solution, a, b)
    want = np.linalg.lstsq(a, b)
    assert rank == 17
    np.testing.assert_allclose(x, want[0], rtol=1e-11)
    np.testing.assert_allclose(residuals, want[1], rtol=1e-12)


@pytest.mark.long_cases("(1*")
@pytest.mark.parametrize("shape", [(20, 18), (18, 20), (17, 17)], ids=str)
def test_large_pseudo_inverses(shape: tuple[int, int]) -> None:
    check_like_numpy(lambda a: np.linalg.pinv(a, 1e-10), of_rank(9, *shape))
    check_like_numpy(np.linalg.pinv, random(0, *shape))
