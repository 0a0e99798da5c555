"""einsum of booleans: products are "and", sums are "or", as NumPy's are."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc


@pytest.mark.parametrize("size", [3, 20])
@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,jk->", "ij,jk->k", "ij,ij->i", "ii", "ij->j"]
)
def test_sums_of_booleans_are_or(subscripts: str, size: int) -> None:
    rng = np.random.default_rng(size)
    count = subscripts.count(",") + 1
    for density in (0.05, 0.5):
        operands = [rng.random((size, size)) < density for _ in range(count)]
        want = np.einsum(subscripts, *operands)
        got = arc.compile(lambda *x: np.einsum(subscripts, *x))(*operands)
        assert got.dtype == want.dtype == bool
        np.testing.assert_array_equal(got, want)


def test_dtype_says_what_is_summed() -> None:
    a = np.array([[True, True, False], [True, True, True]])
    count = arc.compile(lambda a: np.einsum("ij->i", a, dtype=int))(a)
    np.testing.assert_array_equal(count, [2, 3])
    assert count.dtype == np.int64
    with pytest.raises(TypeError, match="cast"):
        arc.compile(lambda a: np.einsum("ij->i", a, dtype=int))(1.0 * a)
