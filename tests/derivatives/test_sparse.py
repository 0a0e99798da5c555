"""Sparse Jacobians and Hessians: structural patterns, numbers of colours, equality with dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import archimedes as arc

N = 12
X = np.sin(1.0 + np.arange(N)) + 2.0


def band(width: int):
    """A chain whose output k depends on inputs k - width .. k + width."""

    def fn(x):
        padded = np.concatenate([np.zeros(width), x, np.zeros(width)])
        return np.array(
            [np.prod(np.sin(padded[k : k + 2 * width + 1]) + 2.0) for k in range(len(x))]
        )

    return fn


def arrow_energy(x):
    """Hessian: full first row and column, and the diagonal."""
    return np.sum(x[0] ** 2 * x[1:] ** 3) + np.sum(x**4)


def chain_energy(x):
    """Hessian: tridiagonal."""
    return np.sum(x[:-1] ** 2 * x[1:] ** 3)


def dense_row(x):
    """One output of everything, the others of one input each: rows need two colours."""
    return np.concatenate([np.array([np.sum(x**2)]), np.sin(x[1:])])


def band_pattern(width: int) -> np.ndarray:
    k = np.arange(N)
    return np.abs(k[:, None] - k[None, :]) <= width


def arrow_pattern() -> np.ndarray:
    pattern = np.eye(N, dtype=bool)
    pattern[0] = pattern[:, 0] = True
    return pattern


JACOBIANS = [
    ("tridiagonal", band(1), band_pattern(1)),
    ("pentadiagonal", band(2), band_pattern(2)),
    ("diagonal", lambda x: np.exp(x), np.eye(N, dtype=bool)),
    ("dense row", dense_row, np.eye(N, dtype=bool) | (np.arange(N)[:, None] == 0)),
    ("permuted", lambda x: x[::-1] ** 2, np.eye(N, dtype=bool)[::-1]),
    ("constant output", lambda x: np.concatenate([x[:2], np.ones(1)]), np.eye(3, N, dtype=bool)),
    ("difference", lambda x: np.diff(x**2), np.eye(N - 1, N) + np.eye(N - 1, N, 1) > 0),
]
JACOBIANS[5][2][2] = False
HESSIANS = [
    ("chain", chain_energy, band_pattern(1)),
    ("arrow", arrow_energy, arrow_pattern()),
    ("separable", lambda x: np.sum(np.exp(x)), np.eye(N, dtype=bool)),
    ("linear", lambda x: np.sum(3.0 * x), np.zeros((N, N), dtype=bool)),
]


def rows(table):
    return [pytest.param(*row[1:], id=row[0]) for row in table]


@pytest.mark.parametrize(("fn", "pattern"), rows(JACOBIANS))
def test_sparsity_pattern(fn, pattern) -> None:
    got = arc.sparsity(fn)(X)
    assert sp.issparse(got)
    assert got.dtype == bool
    np.testing.assert_array_equal(got.toarray(), pattern)


@pytest.mark.parametrize(("fn", "pattern"), rows(JACOBIANS))
def test_sparse_jacobian_equals_dense(fn, pattern) -> None:
    got = arc.jac(fn, sparse=True)(X)
    assert sp.issparse(got)
    assert got.nnz == pattern.sum()
    np.testing.assert_array_equal(structure(got), pattern)
    np.testing.assert_allclose(got.toarray(), arc.jac(fn)(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("fn", "pattern"), rows(HESSIANS))
def test_sparse_hessian_equals_dense(fn, pattern) -> None:
    got = arc.hess(fn, sparse=True)(X)
    assert sp.issparse(got)
    np.testing.assert_array_equal(structure(got), pattern)
    np.testing.assert_allclose(got.toarray(), arc.hess(fn)(X), rtol=1e-13, atol=1e-13)


def structure(matrix) -> np.ndarray:
    """Stored entries, also those that happen to be zero."""
    coo = matrix.tocoo()
    out = np.zeros(coo.shape, dtype=bool)
    out[coo.row, coo.col] = True
    return out


COLOURS = [
    ("tridiagonal columns", band_pattern(1), "column", 3),
    ("pentadiagonal columns", band_pattern(2), "column", 5),
    ("tridiagonal rows", band_pattern(1), "row", 3),
    ("pentadiagonal rows", band_pattern(2), "row", 5),
    ("diagonal columns", np.eye(N, dtype=bool), "column", 1),
    ("arrow columns", arrow_pattern(), "column", N),
    ("arrow star", arrow_pattern(), "star", 2),
    ("diagonal star", np.eye(N, dtype=bool), "star", 1),
    ("dense columns", np.ones((4, 4), dtype=bool), "column", 4),
    ("dense row columns", JACOBIANS[3][2], "column", N),
    ("dense row rows", JACOBIANS[3][2], "row", 2),
]


@pytest.mark.parametrize(("pattern", "mode", "colours"), rows(COLOURS))
def test_number_of_colours(pattern, mode: str, colours: int) -> None:
    got = np.asarray(arc.coloring(sp.csr_array(pattern), mode=mode))
    assert got.shape == (pattern.shape[0 if mode == "row" else 1],)
    assert np.issubdtype(got.dtype, np.integer)
    assert len(np.unique(got)) == colours
    assert valid(pattern, got, mode)


def valid(pattern: np.ndarray, colours: np.ndarray, mode: str) -> bool:
    """Column colouring: no row has two entries in columns of one colour (row: transposed).

    Star colouring (Coleman and More 1984): neighbours differ, and every path of four vertices in
    the adjacency graph has at least three colours.
    """
    if mode != "star":
        table = pattern if mode == "column" else pattern.T
        counts = [table[:, colours == c].sum(axis=1).max() for c in np.unique(colours)]
        return max(counts) <= 1
    n = len(pattern)
    near = [[j for j in range(n) if j != i and pattern[i, j]] for i in range(n)]
    proper = all(colours[i] != colours[j] for i in range(n) for j in near[i])
    paths = (
        {colours[a], colours[b], colours[c], colours[d]}
        for b in range(n)
        for c in near[b]
        for a in near[b]
        if a != c
        for d in near[c]
        if d not in (a, b)
    )
    return proper and all(len(seen) >= 3 for seen in paths)


@pytest.mark.parametrize("seed", range(20))
def test_random_patterns_have_valid_colourings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pattern = rng.random((8, 11)) < 0.25
    for mode in ("column", "row"):
        assert valid(pattern, np.asarray(arc.coloring(sp.csr_array(pattern), mode=mode)), mode)
    symmetric = rng.random((9, 9)) < 0.2
    symmetric = symmetric | symmetric.T | np.eye(9, dtype=bool)
    assert valid(symmetric, np.asarray(arc.coloring(sp.csr_array(symmetric), mode="star")), "star")


def test_sparse_jacobian_through_scan() -> None:
    def fn(x):
        return arc.scan(lambda c, s: (c * 0.5 + s, np.sin(s) * s), 0.0, x)[1]

    got = arc.jac(fn, sparse=True)(X)
    np.testing.assert_allclose(got.toarray(), np.diag(np.cos(X) * X + np.sin(X)), atol=1e-13)


def test_sparse_jacobian_of_matrix_argument() -> None:
    x = X.reshape(3, 4)
    got = arc.jac(lambda a: a[0] * a[1] + a[2], sparse=True)(x)
    want = np.zeros((4, 12))
    for k in range(4):
        want[k, [k, 4 + k, 8 + k]] = x[1, k], x[0, k], 1.0
    np.testing.assert_allclose(got.toarray(), want)
