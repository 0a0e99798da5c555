"""eigh, svd and pinv: values against NumPy, vectors by what they must satisfy."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

from .matrices import SQUARE, check_like_numpy, random, symmetric, traced

pytestmark = pytest.mark.usefixtures("compiled_once")

EPS = np.finfo(float).eps


def check_eigh(a: np.ndarray, scale: float = 30.0) -> None:
    n = a.shape[-1]
    eps = np.finfo(a.dtype).eps
    w, v = traced(np.linalg.eigh, a)
    assert w.dtype == v.dtype == a.dtype
    size = np.abs(np.linalg.eigvalsh(a)).max()
    limit = scale * n * eps * max(size, np.finfo(a.dtype).tiny)
    assert np.abs(w - np.linalg.eigvalsh(a)).max() <= limit
    assert (np.diff(w, axis=-1) >= 0).all()
    assert np.abs(v.mT @ v - np.eye(n)).max() <= scale * n * eps
    assert np.abs((v * w[..., None, :]) @ v.mT - a).max() <= limit
    np.testing.assert_allclose(traced(np.linalg.eigvalsh, a), w, atol=limit, rtol=0)


SYMMETRIC = {
    "random": lambda n: symmetric(0, n),
    "identity": lambda n: 3.0 * np.eye(n),
    "zero": lambda n: np.zeros((n, n)),
    "diagonal": lambda n: np.diag(np.arange(n, 0.0, -1.0)),
    "rank one": lambda n: np.ones((n, n)),
    "clustered": lambda n: np.eye(n) + 1e-9 * symmetric(1, n),
    "graded": lambda n: np.diag(np.logspace(0, -12, n)) + 1e-14 * symmetric(2, n),
    "tridiagonal": lambda n: 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1),
    "tiny": lambda n: 1e-200 * symmetric(3, n),
    "huge": lambda n: 1e200 * symmetric(4, n),
}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("name", sorted(SYMMETRIC))
def test_eigenvalues_and_vectors(name: str, n: int) -> None:
    check_eigh(SYMMETRIC[name](n))


@pytest.mark.long
def test_eigh_at_full_size_in_stacks_and_in_float32() -> None:
    check_eigh(symmetric(5, 12))
    check_eigh(np.stack([symmetric(6, 3), symmetric(7, 3)])[None])
    check_eigh(symmetric(8, 5).astype(np.float32))
    check_eigh((1e-25 * symmetric(9, 4)).astype(np.float32))


@pytest.mark.parametrize("uplo", ["L", "U", "l"])
def test_eigh_reads_one_triangle(uplo: str) -> None:
    check_like_numpy(lambda a: np.linalg.eigvalsh(a, uplo), random(0, 4, 4))


def test_nan_in_the_matrix_is_nan_in_the_values() -> None:
    for i, j in ((0, 0), (2, 1)):
        a = np.eye(3)
        a[i, j] = a[j, i] = np.nan
        assert np.isnan(traced(np.linalg.eigvalsh, a)).any()
        assert np.isnan(traced(np.linalg.svdvals, a)).any()


def test_integers_become_floats() -> None:
    a = np.array([[2, 1], [1, 2]])
    check_like_numpy(np.linalg.eigvalsh, a)
    check_like_numpy(np.linalg.svdvals, a)
    check_like_numpy(np.linalg.pinv, a)


# ---- singular values ----------------------------------------------------------------------------


def check_svd(a: np.ndarray, scale: float = 30.0) -> None:
    m, n = a.shape[-2:]
    eps = np.finfo(a.dtype).eps
    want = np.linalg.svd(a, compute_uv=False)
    limit = scale * max(m, n) * eps * max(want.max(), np.finfo(a.dtype).tiny)
    for full in (True, False):
        u, s, vt = traced(lambda x, full=full: np.linalg.svd(x, full_matrices=full), a)
        sizes = [x.shape for x in np.linalg.svd(a, full_matrices=full)]
        assert [x.shape for x in (u, s, vt)] == sizes
        assert u.dtype == s.dtype == vt.dtype == a.dtype
        assert np.abs(s - want).max() <= limit
        assert (np.diff(s, axis=-1) <= 0).all() and (s >= 0).all()
        k = s.shape[-1]
        assert np.abs(u.mT @ u - np.eye(u.shape[-1])).max() <= scale * m * eps
        assert np.abs(vt @ vt.mT - np.eye(vt.shape[-2])).max() <= scale * n * eps
        assert np.abs((u[..., :k] * s[..., None, :]) @ vt[..., :k, :] - a).max() <= limit
    for values in (np.linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False)):
        np.testing.assert_allclose(traced(values, a), want, atol=limit, rtol=0)


@pytest.mark.long_cases("(7*")
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (4, 2), (2, 5), (6, 3), (7, 7)], ids=str)
def test_singular_values_and_vectors(shape) -> None:
    check_svd(random(0, *shape))


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("name", sorted(SQUARE))
def test_svd_of_square_matrices(name: str, n: int) -> None:
    check_svd(SQUARE[name](n))


def test_svd_without_full_rank() -> None:
    check_svd(np.zeros((3, 2)))
    check_svd(np.ones((4, 4)))
    check_svd(random(0, 5, 2) @ random(1, 2, 4))
    check_svd(np.diag([1.0, 0.0, 2.0]))


@pytest.mark.long
def test_svd_at_full_size_in_stacks_and_in_float32() -> None:
    check_svd(random(0, 9, 8))
    check_svd(random(1, 2, 1, 3, 2))
    check_svd(random(2, 4, 3).astype(np.float32))
    check_svd((1e-25 * random(3, 4, 3)).astype(np.float32))
    check_svd(1e-200 * random(4, 3, 3))
    check_svd(1e200 * random(5, 3, 3))


def test_small_singular_values_of_graded_columns_are_relatively_accurate() -> None:
    # One-sided rotations keep what LAPACK's bidiagonalisation may lose (Demmel, Veselic, 1992).
    a = np.linalg.qr(random(0, 4, 4))[0] * np.logspace(0, -10, 4)
    np.testing.assert_allclose(traced(np.linalg.svdvals, a), np.logspace(0, -10, 4), rtol=1e-13)


def test_hermitian_reads_the_lower_triangle() -> None:
    check_like_numpy(lambda a: np.linalg.svd(a, compute_uv=False, hermitian=True), random(0, 3, 3))


# ---- pseudo-inverse -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 5), (2, 4, 3)], ids=str)
def test_pseudo_inverse(shape) -> None:
    check_like_numpy(np.linalg.pinv, random(0, *shape))


def test_pseudo_inverse_without_full_rank() -> None:
    check_like_numpy(np.linalg.pinv, random(0, 4, 2) @ random(1, 2, 3))
    check_like_numpy(np.linalg.pinv, np.ones((3, 3)))
    check_like_numpy(np.linalg.pinv, np.zeros((3, 2)))


def test_pseudo_inverse_options() -> None:
    a = np.diag([1.0, 0.1, 0.01])
    check_like_numpy(lambda x: np.linalg.pinv(x, 0.05), a)
    check_like_numpy(lambda x: np.linalg.pinv(x, rtol=0.05), a)
    check_like_numpy(lambda x: np.linalg.pinv(x, rtol=None), a)
    check_like_numpy(lambda x: np.linalg.pinv(x, hermitian=True), symmetric(0, 3))
    stack = np.stack([a, a])
    check_like_numpy(lambda x: np.linalg.pinv(x, rcond=np.array([0.05, 0.5])), stack)
    with pytest.raises(ValueError, match="can't be both set"):
        traced(lambda x: np.linalg.pinv(x, 0.1, rtol=0.1), a)


# ---- what is refused ----------------------------------------------------------------------------


def test_vectors_of_general_matrices_are_refused() -> None:
    with pytest.raises(arc.TraceError, match=r"(?s)test_spectral.*may be complex.*eigvals\(a\)"):
        traced(lambda a: np.linalg.eig(a), random(0, 3, 3))


def test_rank_is_refused() -> None:
    with pytest.raises(arc.TraceError, match=r"(?s)matrix_rank.*np\.sum\(np\.linalg\.svdvals"):
        traced(lambda a: np.linalg.matrix_rank(a), random(0, 3, 3))


def test_large_matrices_are_refused() -> None:
    for function in (np.linalg.eigh, np.linalg.svd, np.linalg.svdvals):
        with pytest.raises(arc.TraceError, match=r"(?s)17 columns is too large.*arc\.callback"):
            traced(lambda a, f=function: f(a), random(0, 17, 17))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="UPLO"):
        traced(lambda a: np.linalg.eigvalsh(a, "X"), random(0, 3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        traced(np.linalg.eigh, random(0, 2, 3))
    with pytest.raises(np.linalg.LinAlgError, match="at least two-dimensional"):
        traced(np.linalg.svd, random(0, 3))


def test_graphs_hold_one_sweep() -> None:
    counts = {n: arc.compile(np.linalg.eigh).statistics(symmetric(0, n)).total for n in (2, 3, 6)}
    assert counts[2] <= 30 and counts[3] <= 175 and counts[6] <= 1410
