"""Statistical tests of the generator: each takes a key and a size and returns p-values.

A p-value is even over (0, 1) if the numbers are what they claim. Large samples are cut into
chunks, each with numbers of its own key; where a chunk gives a p-value, those of all chunks are
tested for evenness once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np
from scipy import stats

import archimedes as arc

__all__ = ["TESTS", "Test"]

Test = Callable[[np.ndarray, int], dict[str, float]]
CHUNK = 1_000_000

TESTS: dict[str, Test] = {}


def listed(test: Test) -> Test:
    TESTS[test.__name__] = test
    return test


def chunks(draw: Callable[..., np.ndarray], key: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield n numbers in chunks, the k-th of key fold_in(key, k)."""
    for k in range(-(-n // CHUNK)):
        yield draw(arc.random.fold_in(key, k), min(CHUNK, n - k * CHUNK))


def chi_square(counts: np.ndarray, expected: np.ndarray | float | None = None) -> float:
    counts = np.asarray(counts, dtype=np.float64).ravel()
    expected = np.full(counts.size, counts.sum() / counts.size) if expected is None else expected
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), counts.size - 1))


def even(p_values: list[float]) -> float:
    """Return the p-value of p-values: their own where there is only one."""
    return float(stats.kstest(p_values, "uniform").pvalue) if len(p_values) > 1 else p_values[0]


@listed
def chi_square_of_cells(key: np.ndarray, n: int) -> dict[str, float]:
    """Upper and lower 12 bits of words; pairs of neighbours by 6 bits each; single bits."""
    upper, lower, pairs = (np.zeros(4096, dtype=np.int64) for _ in range(3))
    ones, total = np.zeros(64, dtype=np.int64), 0
    for words in chunks(arc.random.bits, key, n):
        words = words.view(np.uint64)
        upper += np.bincount((words >> np.uint64(52)).astype(np.int64), minlength=4096)
        lower += np.bincount((words & np.uint64(4095)).astype(np.int64), minlength=4096)
        six = (words >> np.uint64(58)).astype(np.int64)
        even_count = len(six) // 2 * 2
        pairs += np.bincount(64 * six[:even_count:2] + six[1:even_count:2], minlength=4096)
        for b in range(64):
            ones[b] += np.count_nonzero(words & np.uint64(1 << b))
        total += len(words)
    z = (ones - total / 2) / np.sqrt(total / 4)
    return {
        "upper bits": chi_square(upper),
        "lower bits": chi_square(lower),
        "pairs": chi_square(pairs),
        "single bits": float(stats.chi2.sf(np.sum(z**2), 64)),
    }


@listed
def kolmogorov_smirnov(key: np.ndarray, n: int) -> dict[str, float]:
    """Uniform, normal and exponential numbers against SciPy's distribution functions."""
    found = {}
    for name, draw, cdf in (
        ("uniform", arc.random.uniform, "uniform"),
        ("normal", arc.random.normal, "norm"),
        ("exponential", arc.random.exponential, "expon"),
    ):
        key, mine = arc.random.split(key)
        found[name] = even([float(stats.kstest(x, cdf).pvalue) for x in chunks(draw, mine, n)])
    return found


@listed
def normal_tails(key: np.ndarray, n: int) -> dict[str, float]:
    """Counts of normal numbers between whole ones, as far out as ten are expected beyond."""
    far = np.arange(1.0, 9.0)
    last = np.count_nonzero(n * stats.norm.sf(far) > 10)
    edges = np.arange(-last, last + 1)
    counts = np.zeros(len(edges) + 1)
    for z in chunks(arc.random.normal, key, n):
        counts += np.bincount(np.searchsorted(edges, z), minlength=len(counts))
    return {"cells": chi_square(counts, n * np.diff(stats.norm.cdf([-np.inf, *edges, np.inf])))}


@listed
def correlation(key: np.ndarray, n: int) -> dict[str, float]:
    """Neighbours up to 16 apart; streams of keys that are neighbours; numbers and their keys."""
    lags = np.zeros(16)
    for x in chunks(arc.random.uniform, key, n):
        x = (x - 0.5) * np.sqrt(12.0)
        for lag in range(1, 17):
            lags[lag - 1] += np.dot(x[:-lag], x[lag:])
    z = lags / np.sqrt(n)
    streams, squares = 0.0, 0
    for k in range(max(n // (2 * CHUNK), 1)):
        seeds = (2 * k, 2 * k + 1)
        a, b = (arc.random.normal(arc.random.key(seed), min(CHUNK, n)) for seed in seeds)
        streams, squares = streams + np.dot(a, b), squares + len(a)
    return {
        "neighbours": float(stats.chi2.sf(np.sum(z**2), 16)),
        "streams of neighbouring seeds": float(2 * stats.norm.sf(abs(streams) / np.sqrt(squares))),
    }


@listed
def first_numbers_of_many_keys(key: np.ndarray, n: int) -> dict[str, float]:
    """The first number of each of many keys: from split, from fold_in, from seeds in a row."""
    first = arc.vmap(arc.random.uniform)
    found = {}
    made = {
        "split": lambda start, count: arc.random.split(arc.random.fold_in(key, start), count),
        "fold_in": lambda start, count: arc.random.fold_in(key, np.arange(start, start + count)),
        "seeds": lambda start, count: np.stack(
            [np.arange(start, start + count), np.zeros(count, dtype=np.int64)], axis=1
        ),
    }
    for name, keys in made.items():
        counts = np.zeros(1024)
        for start in range(0, n, CHUNK):
            u = first(keys(start, min(CHUNK, n - start)))
            counts += np.bincount((u * 1024).astype(np.int64), minlength=1024)
        found[name] = chi_square(counts)
    return found


@listed
def birthday_spacings(key: np.ndarray, n: int) -> dict[str, float]:
    """Repeated spacings among 4096 birthdays in 2^32 days are Poisson with mean 4.

    Source: G. Marsaglia, Diehard, 1995; P. L'Ecuyer, R. Simard, TestU01, 2007, smarsa.
    """
    groups = max(n // 4096, 1)
    repeated: dict[str, list[np.ndarray]] = {"upper": [], "lower": []}
    for start in range(0, groups, 256):
        count = min(256, groups - start)
        words = arc.random.bits(arc.random.fold_in(key, start), (count, 4096)).view(np.uint64)
        for name, shift in (("upper", 32), ("lower", 0)):
            days = np.sort((words >> np.uint64(shift)) & np.uint64(2**32 - 1), axis=1)
            spacings = np.sort(np.diff(days, axis=1), axis=1)
            repeated[name].append(np.count_nonzero(np.diff(spacings, axis=1) == 0, axis=1))
    top = 10
    expected = groups * stats.poisson.pmf(np.arange(top), 4.0)
    expected = np.append(expected, groups - expected.sum())
    found = {}
    for name, parts in repeated.items():
        counts = np.bincount(np.minimum(np.concatenate(parts), top), minlength=top + 1)
        if groups >= 2000:
            found[name] = chi_square(counts, expected)
        else:  # the sum of Poisson numbers is one
            total = float(np.concatenate(parts).sum())
            low = stats.poisson.cdf(total, 4.0 * groups)
            high = stats.poisson.sf(total - 1, 4.0 * groups)
            found[name] = float(min(1.0, 2 * min(low, high)))
    return found


@listed
def whole_numbers(key: np.ndarray, n: int) -> dict[str, float]:
    """Dice, weighted choices, and the orders of five."""
    dice = np.zeros(7)
    weights = np.array([4.0, 0.5, 0.0, 3.0, 2.5])
    chosen = np.zeros(5)

    def roll(key: np.ndarray, count: int) -> np.ndarray:
        return arc.random.integers(key, -3, 4, count)

    def choose(key: np.ndarray, count: int) -> np.ndarray:
        return arc.random.choice(key, 5, count, p=weights)

    for x in chunks(roll, key, n):
        dice += np.bincount(x + 3, minlength=7)
    for x in chunks(choose, arc.random.fold_in(key, -1), n):
        chosen += np.bincount(x, minlength=5)
    keys = arc.random.split(key, max(n // 10, 1000))
    orders = arc.vmap(lambda key: arc.random.permutation(key, 5))(keys)
    names = {order: k for k, order in enumerate(permutations(range(5)))}
    base = 5 ** np.arange(5)
    codes = np.full(5**5, -1)
    for order, k in names.items():
        codes[np.dot(order, base)] = k
    return {
        "dice": chi_square(dice),
        "choice": chi_square(chosen[weights > 0], n * weights[weights > 0] / weights.sum())
        if chosen[2] == 0
        else 0.0,
        "orders": chi_square(np.bincount(codes[orders @ base], minlength=120)),
    }


@listed
def multivariate(key: np.ndarray, n: int) -> dict[str, float]:
    """Mean and covariance of correlated vectors: squared distances are chi-square numbers."""
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.8], [0.8, 1.0]])
    p_values = []
    for k in range(-(-n // CHUNK)):
        count = min(CHUNK, n - k * CHUNK) // 2
        x = arc.random.multivariate_normal(arc.random.fold_in(key, k), mean, cov, count) - mean
        distance = np.einsum("ni,ij,nj->n", x, np.linalg.inv(cov), x)
        p_values.append(float(stats.kstest(distance, stats.chi2(2).cdf).pvalue))
    return {"distances": even(p_values)}
