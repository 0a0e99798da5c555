"""Sets of columns as intervals, against matrices of booleans."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.graph.regions.interval_sets import (
    Rows,
    compose,
    fill,
    join,
    merge,
    union,
    union_of,
    unit_sets,
    unite,
    widen,
)


def rows_of(dense):
    rows, columns = np.nonzero(dense)
    return merge([(rows, columns, columns + 1)], len(dense))


def dense_of(rows, shape):
    found = np.zeros(shape, dtype=bool)
    if isinstance(rows, Rows):
        assert len(rows) == shape[0]
        found[rows.entries()] = True
    return found


def mask_of(row):
    return sum(1 << int(j) for j in np.flatnonzero(row))


CASES = [(m, n, p) for m in (1, 3, 40) for n in (1, 9, 700) for p in (0.0, 0.02, 0.5, 1.0)]


@pytest.mark.parametrize(("m", "n", "p"), CASES)
def test_against_booleans(m, n, p):
    rng = np.random.default_rng(m * n)
    a, b = (rng.random((m, n)) < p for _ in range(2))
    rows, other = rows_of(a), rows_of(b)
    assert np.array_equal(dense_of(rows, a.shape), a)
    # Intervals are apart: as few as there can be.
    edges = np.diff(a.astype(int), axis=1, prepend=0) == 1
    assert np.array_equal(np.diff(rows.first), edges.sum(axis=1))
    assert [rows[k] for k in range(m)] == [mask_of(row) for row in a]
    assert rows.union() == union_of(rows) == mask_of(a.any(axis=0))
    places = rng.integers(0, m, 2 * m)
    assert np.array_equal(dense_of(rows.take(places), (2 * m, n)), a[places])
    assert np.array_equal(dense_of(rows[m // 3 : m], (m - m // 3, n)), a[m // 3 :])
    assert np.array_equal(dense_of(unite([rows, other, rows], m), a.shape), a | b)
    assert np.array_equal(dense_of(union(rows, other), a.shape), a | b)
    assert np.array_equal(dense_of(widen(rows), a.shape), np.tile(a.any(axis=0), (m, 1)))
    assert np.array_equal(dense_of(fill(mask_of(a[0]), 3), (3, n)), np.tile(a[0], (3, 1)))
    both = join([(rows, m), (mask_of(b[0]), 2), (0, 1)])
    expected = np.concatenate([a, b[:1], b[:1], np.zeros((1, n), dtype=bool)])
    assert np.array_equal(dense_of(both, expected.shape), expected)
    local = rng.random((5, m)) < max(p, 0.3)
    product = local.astype(int) @ a.astype(int) > 0
    assert np.array_equal(dense_of(compose(rows_of(local), rows), (5, n)), product)


def test_equal_sets_and_none():
    assert unit_sets(3, 4) == unit_sets(3, 4) and unit_sets(3, 4) != unit_sets(2, 4)
    assert rows_of(np.zeros((2, 2), dtype=bool)) == 0 and not unite([0, 0], 3)
    assert union(0, unit_sets(0, 2)) == unit_sets(0, 2) and union(1, 2) == 3
