"""cholesky and qr against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

from .matrices import SQUARE, check_like_numpy, random, traced

SHAPES = [(1, 1), (2, 2), (3, 3), (6, 6), (1, 3), (3, 1), (4, 2), (2, 4), (5, 3), (3, 5)]


def positive(seed: int, n: int) -> np.ndarray:
    a = random(seed, n, n)
    return a @ a.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(n: int, upper: bool) -> None:
    a = positive(0, n)
    a[np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)] = 7.0
    check_like_numpy(lambda x: np.linalg.cholesky(x, upper=upper), a)
    check_like_numpy(lambda x: np.linalg.cholesky(x, upper=upper), np.stack([a, 2 * a]))
    check_like_numpy(lambda x: np.linalg.cholesky(x, upper=upper), a.astype(np.float32), rtol=1e-4)


def test_cholesky_of_a_band_stays_a_band() -> None:
    def banded(x):
        return np.linalg.cholesky(np.diag(x + 3.0) + np.diag(x[1:], 1) + np.diag(x[1:], -1))

    x = np.abs(random(0, 8))
    counts = arc.compile(banded).statistics(x).by_op
    assert counts == {"add": 8, "sqrt": 8, "div": 7, "mul": 7, "sub": 7}
    check_like_numpy(banded, x)


def test_cholesky_of_an_indefinite_matrix_is_nan() -> None:
    assert np.isnan(traced(np.linalg.cholesky, np.diag([1.0, -1.0]))).any()


def test_cholesky_needs_a_square_matrix() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        traced(np.linalg.cholesky, random(0, 2, 3))


# ---- qr -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr_equals_lapacks(shape, mode: str) -> None:
    function = lambda a: np.linalg.qr(a, mode)
    check_like_numpy(function, random(0, *shape))
    check_like_numpy(function, random(1, 2, *shape))
    check_like_numpy(function, random(2, *shape).astype(np.float32), rtol=1e-4)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr_of_dependent_columns(shape, mode: str) -> None:
    """Columns that repeat: Q is not unique, so that its properties are checked, not its numbers."""
    a = np.arange(float(np.prod(shape))).reshape(shape)[::-1] % 3 + 1
    q, r = traced(lambda a: np.linalg.qr(a, mode), a)
    want_q, want_r = np.linalg.qr(a, mode)
    assert (q.shape, r.shape) == (want_q.shape, want_r.shape)
    np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=1e-14)
    np.testing.assert_allclose(q @ r, a, atol=1e-13)
    np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", sorted(SQUARE))
def test_qr_is_backward_stable(name: str, n: int) -> None:
    a = SQUARE[name](n)
    q, r = traced(np.linalg.qr, a)
    eps = np.finfo(float).eps
    assert np.abs(q.T @ q - np.eye(n)).max() < 10 * n * eps
    assert np.linalg.norm(q @ r - a) < 10 * n * eps * np.linalg.norm(a)
    assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("size", [1e-200, 1e-160, 1e160, 1e200])
def test_qr_of_extreme_sizes(size: float) -> None:
    check_like_numpy(np.linalg.qr, size * random(0, 4, 3))


def test_qr_of_zeros_and_of_dependent_columns() -> None:
    check_like_numpy(np.linalg.qr, np.zeros((3, 2)))
    q, r = traced(np.linalg.qr, np.outer([1.0, 2.0, 3.0], [1.0, 1.0]))
    np.testing.assert_allclose(q.T @ q, np.eye(2), atol=1e-15)
    np.testing.assert_allclose(q @ r, np.outer([1.0, 2.0, 3.0], [1.0, 1.0]), atol=1e-15)


def test_qr_modes_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="Unrecognized mode 'best'"):
        traced(lambda a: np.linalg.qr(a, "best"), random(0, 3, 3))
    with pytest.raises(arc.TraceError, match=r"(?s)mode='raw'.*Use mode='reduced'"):
        traced(lambda a: np.linalg.qr(a, "raw"), random(0, 3, 3))
