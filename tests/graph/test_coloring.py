"""Colourings: the number of colours on known patterns, and exact recovery of random matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import archimedes as arc
from archimedes.graph.derivatives.coloring import pattern_of_sets


def banded(n, width):
    i, j = np.indices((n, n))
    return np.abs(i - j) <= width


def arrow(n):
    a = np.eye(n, dtype=bool)
    a[0] = a[:, 0] = True
    return a


patterns = st.integers(0, 9).flatmap(
    lambda m: st.integers(0, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.booleans(), min_size=n, max_size=n), min_size=m, max_size=m
        ).map(lambda rows: np.array(rows, dtype=bool).reshape(m, n))
    )
)


def _values(pattern):
    rng = np.random.default_rng(int(pattern.sum()))
    return np.where(pattern, rng.normal(size=pattern.shape), 0.0)


@settings(max_examples=300, deadline=None)
@given(patterns)
def test_columns_of_one_colour_give_every_entry(pattern):
    a = _values(pattern)
    colors = arc.coloring(pattern)
    assert colors.shape == (a.shape[1],)
    assert np.array_equal(colors < 0, ~pattern.any(axis=0))
    count = int(colors.max(initial=-1)) + 1
    seeds = np.stack([colors == c for c in range(count)], axis=1) if count else None
    recovered = np.zeros_like(a)
    if count:
        compressed = a @ seeds.astype(float)
        i, j = np.nonzero(pattern)
        recovered[i, j] = compressed[i, colors[j]]
    assert np.array_equal(recovered, a)


@settings(max_examples=200, deadline=None)
@given(patterns)
def test_rows_of_one_colour_give_every_entry(pattern):
    a = _values(pattern)
    colors = arc.coloring(pattern, mode="row")
    recovered = np.zeros_like(a)
    for c in range(int(colors.max(initial=-1)) + 1):
        compressed = (colors == c).astype(float) @ a
        for i in np.flatnonzero(colors == c):
            recovered[i, pattern[i]] = compressed[pattern[i]]
    assert np.array_equal(recovered, a)


@settings(max_examples=300, deadline=None)
@given(patterns)
def test_star_colouring_gives_every_entry_of_a_symmetric_matrix(pattern):
    n = min(pattern.shape)
    pattern = pattern[:n, :n] | pattern[:n, :n].T
    a = _values(pattern)
    a = np.where(pattern, a + a.T, 0.0)
    colors = arc.coloring(pattern, mode="star")
    count = int(colors.max(initial=-1)) + 1
    if not count:
        assert not pattern.any()
        return
    compressed = a @ np.stack([colors == c for c in range(count)], axis=1).astype(float)
    for i, j in zip(*np.nonzero(pattern)):
        alone_i = np.sum(pattern[i] & (colors == colors[j])) == 1
        alone_j = np.sum(pattern[j] & (colors == colors[i])) == 1
        assert alone_i or alone_j, "one of the two sweeps has the entry by itself"
        got = compressed[i, colors[j]] if alone_i else compressed[j, colors[i]]
        assert got == a[i, j]


@settings(max_examples=200, deadline=None)
@given(patterns)
def test_no_two_coloured_path_of_four(pattern):
    n = min(pattern.shape)
    adjacency = (pattern[:n, :n] | pattern[:n, :n].T) & ~np.eye(n, dtype=bool)
    colors = arc.coloring(adjacency, mode="star")
    edges = [list(np.flatnonzero(row)) for row in adjacency]
    for a in range(n):
        for b in edges[a]:
            assert colors[a] != colors[b]
            for c in edges[b]:
                for d in edges[c]:
                    if len({a, b, c, d}) == 4:
                        assert len({colors[v] for v in (a, b, c, d)}) > 2


@pytest.mark.parametrize("n", [3, 4, 10, 101])
def test_tridiagonal_needs_three(n):
    assert arc.coloring(banded(n, 1)).max() + 1 == 3
    assert arc.coloring(banded(n, 1), mode="row").max() + 1 == 3


@pytest.mark.parametrize("n", [5, 6, 30, 101])
def test_pentadiagonal_needs_five(n):
    assert arc.coloring(banded(n, 2)).max() + 1 == 5


@pytest.mark.parametrize("n", [3, 10, 100])
def test_arrow_needs_two_by_symmetry_and_all_without(n):
    assert arc.coloring(arrow(n), mode="star").max() + 1 == 2
    assert arc.coloring(arrow(n)).max() + 1 == n


def test_diagonal_dense_and_empty():
    assert arc.coloring(np.eye(7)).max() == 0
    assert sorted(arc.coloring(np.ones((4, 4)))) == [0, 1, 2, 3]
    assert arc.coloring(np.zeros((3, 4))).tolist() == [-1] * 4
    assert arc.coloring(np.zeros((0, 0))).tolist() == []
    assert arc.coloring(np.zeros((3, 0))).tolist() == []


def test_sparse_matrices_are_taken():
    assert arc.coloring(sparse.csc_array(banded(9, 1))).max() + 1 == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arc.coloring(np.ones(3)), r"coloring: a matrix is needed, got shape \(3,\)"),
        (lambda: arc.coloring(np.eye(3), mode="rows"), "mode='rows' is not one of 'column'"),
        (lambda: arc.coloring(np.ones((2, 3)), mode="star"), "needs a symmetric pattern"),
        (lambda: arc.coloring(np.triu(np.ones((3, 3))), mode="star"), "needs a symmetric"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_patterns_of_bit_sets_and_their_transposed():
    dense = np.random.default_rng(0).random((5, 70)) < 0.4
    rows = [sum(1 << int(j) for j in np.flatnonzero(r)) for r in dense]
    found = pattern_of_sets(rows, [0] * 5, 70)
    assert np.array_equal(np.stack([found.rows, found.columns]), np.stack(np.nonzero(dense)))
    turned = found.transpose
    assert np.array_equal(np.stack([turned.rows, turned.columns]), np.stack(np.nonzero(dense.T)))


def test_colours_of_a_million_columns():
    n = 300_000
    band = sparse.diags_array([1.0] * 3, offsets=[-1, 0, 1], shape=(n, n))
    assert arc.coloring(band).max() == 2
    assert arc.coloring(band, mode="star").max() == 2
    around = sparse.csr_array(band + sparse.coo_array(([1.0], ([0], [n - 1])), shape=(n, n)))
    colors = arc.coloring(around)
    seeds = sparse.csr_array((np.ones(n), (np.arange(n), colors)))
    assert (around @ seeds).max() == 1 and colors.max() <= 4
