"""Draws of integers, booleans, choices and permutations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_shape, check_that, is_traced
from archimedes.function import array, vmap
from archimedes.random import arguments
from archimedes.random.arguments import Shape, as_dtype, check_key, result_shape
from archimedes.random.continuous import exponential, uniform
from archimedes.random.keys import block, mask, random_words, shift_right

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike

__all__ = ["bernoulli", "bits", "choice", "integers", "permutation"]


def bits(key: Array, shape: Shape = ()) -> Any:
    """Return random 64-bit words.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    shape : int or tuple of int, optional
        Shape of the result, a single number by default.

    Returns
    -------
    array of int64
        Words in which all 64 bits are random.

    Examples
    --------
    >>> from archimedes.random import key
    >>> bits(key(0), 2).dtype
    dtype('int64')
    """
    what = "arc.random.bits"
    return random_words(check_key(key, what), arguments.check_shape(shape, what))


def _high_product(a: Array, b: Array) -> Array:
    """Return the upper 64 of the 128 bits of a product of unsigned words, by halves of 32."""
    a0, a1, b0, b1 = a & mask(32), shift_right(a, 32), b & mask(32), shift_right(b, 32)
    low, inner, outer = a0 * b0, a0 * b1, a1 * b0
    carry = shift_right(low, 32) + (inner & mask(32)) + (outer & mask(32))
    return a1 * b1 + shift_right(inner, 32) + shift_right(outer, 32) + shift_right(carry, 32)


def _below(key: Array, index: Array, low: Array, high: Array) -> Array:
    """Return low + floor(W (high - low) / 2^128) for the number W < 2^128 of a block."""
    words, span = block(key, index), high - low
    rest = words[1] * span
    total = rest + _high_product(words[0], span)
    least = np.iinfo(np.int64).min  # flipping the sign bit orders words as unsigned
    carried = (total ^ least) < (rest ^ least)
    return low + _high_product(words[1], span) + np.where(carried, 1, 0)


_between = vmap(_below, in_axes=(None, 0, None, None), name="integers")
_between_each = vmap(_below, in_axes=(None, 0, 0, 0), name="integers_each")


def integers(
    key: Array, low: ArrayLike, high: ArrayLike | None = None, shape: Shape | None = None
) -> Array:
    """Return whole numbers that are equally likely.

    Each number takes 128 random bits, so that the probabilities differ from each other by less than
    2^-64 of themselves.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    low : int or array_like
        Smallest number. If `high` is not given, this is the upper limit instead, and the smallest
        number is 0.
    high : int or array_like, optional
        Upper limit, which is itself not drawn.
    shape : int or tuple of int, optional
        Shape of the result. By default the shape that the other parameters broadcast to.

    Returns
    -------
    array of int64
        The draws. Inside a compiled function, limits in the wrong order give arbitrary numbers.

    Raises
    ------
    ValueError
        `low` is not below `high`.

    Examples
    --------
    >>> from archimedes.random import key
    >>> integers(key(0), 1, 7, shape=5)
    array([3, 6, 4, 5, 4])
    """
    what = "arc.random.integers"
    key = check_key(key, what)
    low, high = (0, low) if high is None else (low, high)
    low, high = arguments.as_integers(low, "low", what), arguments.as_integers(high, "high", what)
    shape = result_shape(shape, what, low=low, high=high)
    if not arguments.is_all_true(low < high):
        raise ValueError(f"{what}: low must be below high, got low={low!r} and high={high!r}")
    indices = np.arange(math.prod(shape))
    if np.ndim(low) == np.ndim(high) == 0:
        return _between(key, indices, low, high).reshape(shape)[()]
    bounds = [np.broadcast_to(x, shape).reshape(-1) for x in (low, high)]
    return _between_each(key, indices, *bounds).reshape(shape)


def bernoulli(key: Array, p: ArrayLike = 0.5, shape: Shape | None = None) -> Array:
    """Return bools that are True with a given probability.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    p : array_like, optional
        Probability of True, 0.5 by default.
    shape : int or tuple of int, optional
        Shape of the result. By default the shape that the other parameters broadcast to.

    Returns
    -------
    array of bool
        The draws.

    Examples
    --------
    >>> from archimedes.random import key
    >>> bernoulli(key(0), 0.5, 3)
    array([False,  True, False])
    """
    what = "arc.random.bernoulli"
    p = as_dtype(p, np.float64)
    check_that(lambda p: (p >= 0.0) & (p <= 1.0), p, f"{what}: p", "must be between 0 and 1")
    return uniform(check_key(key, what), result_shape(shape, what, p=p)) < p


def _ranks(words: Array) -> Array:
    """Return the place of each word in the order of all, (n,): each number below n once."""
    if not is_traced(words):
        ranks = np.empty(len(words), dtype=np.int64)
        ranks[np.argsort(words, kind="stable")] = np.arange(len(words))
        return ranks
    numbers = np.arange(len(words))

    def rank(word: Array, number: Any) -> Any:
        return np.sum((words < word) | ((words == word) & (numbers < number)))

    return vmap(rank, name="rank")(words, numbers)


def _take(values: Array, indices: Array) -> Array:
    """Return values[indices] along the first axis, for indices that may be traced."""
    if not is_traced(indices):
        return values[indices]
    rows = vmap(lambda index: array(values)[index], name="take")(indices.reshape(-1))
    return rows.reshape(*indices.shape, *np.shape(values)[1:])


def _values(a: ArrayLike, what: str) -> Array:
    """Return what is chosen from: the numbers below an int, or the rows of an array."""
    values = as_dtype(a)
    if np.ndim(values) == 0:
        if is_traced(values) or values.dtype.kind not in "iu" or values < 0:
            raise ValueError(
                f"{what}: expected an array, or a static int that is not negative, got {a!r}"
            )
        return np.arange(int(values))
    return values


def permutation(key: Array, x: ArrayLike) -> Array:
    """Return numbers or rows in random order.

    All orders are equally likely, up to n^2 2^-64. Inside a compiled function, a permutation of n
    entries takes n^2 comparisons.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    x : int or array (n, ...)
        Array whose rows are permuted. An int n stands for the numbers 0 to n - 1.

    Returns
    -------
    array
        The permuted entries.

    Examples
    --------
    >>> from archimedes.random import key
    >>> permutation(key(0), 5)
    array([1, 4, 0, 2, 3])
    """
    what = "arc.random.permutation"
    key, values = check_key(key, what), _values(x, what)
    return _take(values, _ranks(random_words(key, (len(values),))))


def choice(
    key: Array, a: ArrayLike, shape: Shape = (), replace: bool = True, p: ArrayLike | None = None
) -> Any:
    """Return entries that are drawn from an array.

    Parameters
    ----------
    key : array (2,)
        Random key. Never use the same key for two draws that should be independent.
    a : int or array (n, ...)
        What to draw from: the entries along the first axis. An int n stands for the numbers 0 to n
        - 1.
    shape : int or tuple of int, optional
        Shape of the draws, a single one by default.
    replace : bool, optional
        Whether an entry can be drawn more than once. True by default. With False and `p`, the
        entries are drawn one after another from those left, so that at least as many entries as
        draws need a probability above zero.
    p : array_like (n,), optional
        Relative probabilities, which are scaled to a sum of one. By default all entries are equally
        likely. An entry with probability zero is never drawn.

    Returns
    -------
    array
        The entries drawn. Inside a compiled function, where wrong probabilities cannot raise an
        error, they give nan; for integers the smallest int64, and for bools False.

    Raises
    ------
    ValueError
        Probabilities are negative, or too few of them are above zero.

    Examples
    --------
    >>> from archimedes.random import key
    >>> choice(key(0), np.array([2.0, 3.0, 5.0]), shape=4, p=[0.5, 0.25, 0.25])
    array([5., 2., 3., 5.])
    """
    what = "arc.random.choice"
    key, values, shape = check_key(key, what), _values(a, what), arguments.check_shape(shape, what)
    n, count = len(values), math.prod(shape)
    if (count and not n) or (count > n and not replace):
        raise ValueError(f"{what}: {count} entries cannot be chosen from {n} with {replace=}")
    sound = True
    weights: Any = None
    if p is not None:
        weights, sound = _probabilities(p, n, min(count, 1) if replace else count, what)
    if replace and weights is None:
        indices = integers(key, 0, n, shape) if count else np.zeros(shape, dtype=np.int64)
    elif replace:
        steps = np.cumsum(weights)
        indices = _search(steps, uniform(key, shape) * steps[-1])
    elif weights is None:
        indices = _ranks(random_words(key, (n,)))[:count].reshape(shape)
    else:
        # Clocks that ring at rate p: the order in which they ring is the order of such draws.
        # Those of rate zero never ring; the slowest others do so at a finite time.
        with np.errstate(over="ignore"):
            times = exponential(key, (n,)) / np.where(weights > 0.0, weights, 1.0)
        times = np.where(weights > 0.0, np.minimum(times, np.finfo(np.float64).max), np.inf)
        indices = np.argsort(times, kind="stable")[:count].reshape(shape)
    chosen = _take(values, indices)
    return chosen if sound is True else np.where(sound, chosen, _missing(chosen))


def _probabilities(p: ArrayLike, n: int, needed: int, what: str) -> tuple[Any, Any]:
    """Return p and whether it is sound: True where it is known, a traced bool where it is not."""
    p = as_dtype(p, np.float64)
    check_shape(p, f"{what}: p", (n,))
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.all(p >= 0.0) & np.isfinite(np.sum(p))
    above_zero = np.sum(p > 0.0)
    if is_traced(p):
        return p, usable & (above_zero >= needed)
    if not (usable and (above_zero or not n)):
        raise ValueError(
            f"{what}: p must be finite, also its sum, not negative, and not all zero, got {p!r}"
        )
    if above_zero < needed:
        raise ValueError(
            f"{what}: {needed} entries cannot be chosen without replacement: only {above_zero} of "
            f"{n} have a p above zero, got p={p!r}"
        )
    return p, True


def _missing(values: Array) -> Any:
    """Return what stands for entries that cannot be chosen: nan, or the least whole number."""
    if values.dtype.kind == "b":
        return False
    return np.nan if values.dtype.kind == "f" else np.iinfo(values.dtype).min


def _search(steps: Array, u: Array) -> Any:
    """Return how many of the rising steps are at or below each u."""
    if not is_traced(steps, u):
        return np.searchsorted(steps, u, side="right")
    counts = vmap(lambda x: np.searchsorted(steps, x, side="right"), name="search")(u.reshape(-1))
    return counts.reshape(u.shape)
