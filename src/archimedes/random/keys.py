"""Keys: what a stream of random numbers is named by.

A key is an int64 array (2,): an ordinary array, which may be an argument, a leaf of a struct, a
carry of `scan`, or one row of a batch. A key never changes; drawing twice with one key gives the
same numbers twice. New keys come from `split` and `fold_in`, which count in streams of their own,
so that what is drawn from a key is independent of the keys made from it.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function import vmap
from archimedes.random.arguments import check_key, check_shape, whole
from archimedes.random.threefry import threefry

__all__ = ["block", "fold_in", "in_pairs", "key", "random_words", "split"]

#: The second word of a block's counter says what the block is for; the first one counts.
DRAW, SPLIT, FOLD = range(3)


def block(key: Any, index: Any, purpose: Any = DRAW) -> Any:
    """Return the two words (2,) of a checked key for one count."""
    return np.stack(threefry(key[0], key[1], index, purpose))


_blocks = vmap(block, in_axes=(None, 0, None), name="threefry")


def blocks(key: Any, indices: Any, purpose: int) -> Any:
    """Return the blocks (n, 2) of a checked key for counts (n,)."""
    return _blocks(key, indices, np.int64(purpose))


def key(seed: Any) -> Any:
    """Return the random key for a seed.

    Parameters
    ----------
    seed : int
        A Python int of up to 128 bits, or an int64.

    Returns
    -------
    array (2,)
        The key, an array of int64.

    Examples
    --------
    >>> key(7)
    array([7, 0])
    """
    if is_traced(seed):
        if seed.dtype != np.int64 or seed.shape != ():
            raise TypeError(
                f"arc.random.key: seed must be one whole number, got {seed.dtype} of shape "
                f"{seed.shape}; for many keys write arc.random.split(key, n)"
            )
        return np.stack([seed, seed >> 63])
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(
            f"arc.random.key: seed must be one whole number, got {seed!r}; for many keys write "
            "arc.random.split(key, n)"
        ) from None
    if isinstance(seed, bool) or not -(2**127) <= number < 2**128:
        raise ValueError(f"arc.random.key: seed must be an int of at most 128 bits, got {seed!r}")
    words = [number % 2**64, (number >> 64) % 2**64]
    return np.asarray(words, dtype=np.uint64).view(np.int64)


def random_words(key: Any, shape: tuple[int, ...]) -> Any:
    """Return random int64 words; number i is the same for every shape that has so many."""
    return in_pairs(lambda key, indices: blocks(key, indices, DRAW), key, shape)


def in_pairs(draw: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return numbers of which ``draw(key, indices)`` makes two of each block."""
    count = math.prod(shape)
    return draw(key, np.arange(-(-count // 2))).reshape(-1)[:count].reshape(shape)[()]


def split(key: Any, n: int = 2) -> Any:
    """Return new keys that are independent of each other and of the draws from the given key.

    Parameters
    ----------
    key : array (2,)
        Random key.
    n : int, optional
        Number of keys, 2 by default.

    Returns
    -------
    array (n, 2)
        The keys.

    Examples
    --------
    >>> first, second = split(key(7))
    >>> first.shape
    (2,)
    """
    (count,) = check_shape((n,), "arc.random.split", "n")
    return blocks(check_key(key, "arc.random.split"), np.arange(count), SPLIT)


def fold_in(key: Any, i: Any) -> Any:
    """Return the key that belongs to a number.

    Unlike `split`, this needs no count in advance: take the number of a run, of a step or of a
    sensor.

    Parameters
    ----------
    key : array (2,)
        Random key.
    i : int or array of int64
        The number, or an array of numbers.

    Returns
    -------
    array
        A key (2,), or keys ``(*i.shape, 2)`` for an array.

    Examples
    --------
    >>> bool((fold_in(key(7), np.arange(3))[1] == fold_in(key(7), 1)).all())
    True
    """
    key = check_key(key, "arc.random.fold_in")
    number = whole(i, "i", "arc.random.fold_in")
    return blocks(key, np.reshape(number, -1), FOLD).reshape(*np.shape(number), 2)
