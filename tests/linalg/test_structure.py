"""Block triangular form, against brute force and SciPy's structural rank."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import structural_rank

from archimedes.symbolic.linalg.matrices import block_triangular, permutation_sign

patterns = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n).map(
        lambda bits: np.array(bits).reshape(n, n)
    )
)


@given(patterns)
def test_blocks_can_be_solved_in_order(nonzero: np.ndarray) -> None:
    n = len(nonzero)
    blocks = block_triangular(nonzero)
    if structural_rank(csr_array(nonzero.astype(float))) < n:
        assert blocks is None
        return
    assert blocks is not None
    assert sorted(r for rows, _ in blocks for r in rows) == list(range(n))
    assert sorted(c for _, columns in blocks for c in columns) == list(range(n))
    known: set[int] = set()
    for rows, columns in blocks:
        assert len(rows) == len(columns)
        known.update(columns)
        for row in rows:
            assert set(np.flatnonzero(nonzero[row])) <= known


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_permuted_triangles_fall_apart(n: int, shuffle) -> None:
    rows, columns = list(range(n)), list(range(n))
    shuffle.shuffle(rows)
    shuffle.shuffle(columns)
    pattern = np.tri(n, dtype=bool)[np.ix_(rows, columns)]
    blocks = block_triangular(pattern)
    assert blocks is not None and all(len(r) == 1 for r, _ in blocks)


def test_sign_is_that_of_the_permutation_matrix() -> None:
    for n in range(1, 5):
        for order in itertools.permutations(range(n)):
            blocks = [([k], [c]) for k, c in enumerate(order)]
            assert permutation_sign(blocks) == round(np.linalg.det(np.eye(n)[list(order)]))


def test_dense_matrix_is_one_block_in_its_own_order() -> None:
    assert block_triangular(np.ones((3, 3), dtype=bool)) == [([0, 1, 2], [0, 1, 2])]
