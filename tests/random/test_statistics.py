"""The statistical tests on few numbers; ``python -m tests.random`` runs them on 10^8."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import archimedes as arc

from .statistics import TESTS


@pytest.mark.parametrize("name", TESTS)
def test_short(name):
    found = TESTS[name](arc.random.key(2024), 100_000)
    assert all(1e-4 < p < 1 - 1e-4 for p in found.values()), found


def test_the_tests_find_a_bad_generator(monkeypatch):
    """Words of a linear congruential generator modulo 2^64 fail."""

    def bad(key, shape=()):
        words = np.arange(int(np.prod(shape)), dtype=np.uint64) * np.uint64(6364136223846793005)
        return (words + np.uint64(int(key[0]) % 2**64)).view(np.int64).reshape(shape)

    monkeypatch.setattr(arc.random, "bits", bad)
    for name in ("chi_square_of_cells", "birthday_spacings"):
        assert min(TESTS[name](arc.random.key(1), 100_000).values()) < 1e-6


def test_normal_numbers_are_quantiles_to_the_last_tail():
    """The number of a word is the normal quantile of its share, on both sides alike."""
    from archimedes.random.continuous import _normals

    shares = np.array([2**62, 2**50, 12345, 7, 1, 0], dtype=np.int64)
    expected = stats.norm.isf((shares + 0.5) * 2.0**-64)
    np.testing.assert_allclose(_normals(shares), expected, rtol=1e-13)
    np.testing.assert_array_equal(_normals(shares | np.iinfo(np.int64).min), -_normals(shares))
    assert _normals(shares)[-1] > 9.1


def test_exponential_numbers_are_positive_and_fine_at_both_ends():
    from archimedes.random.continuous import _exponentials

    ends = _exponentials(np.array([0, np.iinfo(np.int64).min], dtype=np.int64))
    np.testing.assert_allclose(ends, [2.0**-65, 65 * np.log(2.0)], rtol=1e-13)


@pytest.mark.parametrize("weights", [[0.0, 3.0, 1.0, 0.0, 2.0], [1e-308, 0.0, 1e-308, 5e-324]])
def test_entries_without_probability_are_never_drawn(weights):
    p = np.array(weights)
    able = np.flatnonzero(p)
    for count in range(1, len(able) + 1):
        for seed in range(20):
            drawn = arc.random.choice(arc.random.key(seed), len(p), count, replace=False, p=p)
            assert set(drawn) <= set(able)
            assert len(set(drawn)) == count


def test_weighted_draws_without_replacement():
    """Ordered pairs: the first with p_i, the second with p_j / (1 - p_i)."""
    p = np.array([0.5, 0.0, 0.3, 0.2])
    keys = arc.random.split(arc.random.key(7), 40_000)
    pairs = arc.vmap(lambda key: arc.random.choice(key, 4, 2, replace=False, p=p))(keys)
    counts = np.bincount(4 * pairs[:, 0] + pairs[:, 1], minlength=16)
    expected = np.outer(p, p) / (1.0 - p)[:, None] * (1.0 - np.eye(4))
    possible = expected.ravel() > 0.0
    assert counts[~possible].sum() == 0
    found = stats.chisquare(counts[possible], len(keys) * expected.ravel()[possible])
    assert 1e-4 < found.pvalue < 1.0 - 1e-4
