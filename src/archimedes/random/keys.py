"""Keys, which name streams of random numbers, and the generator behind them, Threefry-2x64-20.

A key is an int64 array (2,): an ordinary array, which may be an argument, a leaf of a struct, a
carry of `scan`, or one row of a batch. A key never changes; drawing twice with one key gives the
same numbers twice. New keys come from `split` and `fold_in`, which count in streams of their own,
so that what is drawn from a key is independent of the keys made from it.

The generator makes a block of 128 random bits from a key and a counter. Source: J. K. Salmon,
M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC11, 2011
(Random123). Additions, rotations and exclusive ors of 64-bit words, held in int64, whose sums wrap
around: plain NumPy, exact in every backend and on every target.

Legend: ``k`` a key of two words, ``x`` the two words that are stirred, ``s`` the number of an
injection of the key.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.function import vmap
from archimedes.random.arguments import as_integers, check_key, check_shape

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike

__all__ = ["fold_in", "key", "split"]

ROUNDS = 20
#: R_64x2 of Random123: how far the second word turns in round r (mod 8).
ROTATIONS = (16, 42, 12, 31, 16, 32, 24, 21)
#: SKEIN_KS_PARITY64: the third word of the key schedule is this, with both words of the key.
PARITY = 0x1BD11BDAA9FC1A22


def mask(bits: int) -> int:
    """Return an integer whose lowest `bits` bits are set.

    >>> mask(4)
    15
    """
    return (1 << bits) - 1


def shift_right(x: Array, n: int) -> Array:
    """Shift int64 words right by 0 < n < 64 places; zeros come in, not copies of the sign.

    >>> import numpy as np
    >>> int(shift_right(np.int64(-1), 60))
    15
    """
    return (x >> n) & mask(64 - n)


def threefry(k0: Array, k1: Array, x0: Array, x1: int | np.int64 | Array) -> tuple[Array, Array]:
    """Return the two words for key (k0, k1) and counter (x0, x1), all int64 of one shape.

    >>> import numpy as np
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> [hex(int(x[0]) % 2**64) for x in threefry(zero, zero, zero, zero)]
    ['0xc2b6e3a8c2c69865', '0x6f81ed42f350084d']
    """
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for r in range(ROUNDS):
        turn = ROTATIONS[r % 8]
        x0 = x0 + x1
        x1 = ((x1 << turn) | shift_right(x1, 64 - turn)) ^ x0
        if r % 4 == 3:
            s = r // 4 + 1
            x0 = x0 + schedule[s % 3]
            x1 = x1 + schedule[(s + 1) % 3] + s
    return x0, x1


#: The second word of a block's counter says what the block is for; the first one counts.
DRAW, SPLIT, FOLD = range(3)


def block(key: Array, index: Array, purpose: int | np.int64 | Array = DRAW) -> Array:
    """Return the two words (2,) of a checked key for one count."""
    return np.stack(threefry(key[0], key[1], index, purpose))


_blocks = vmap(block, in_axes=(None, 0, None), name="threefry")


def blocks(key: Array, indices: Array, purpose: int) -> Array:
    """Return the blocks (n, 2) of a checked key for counts (n,)."""
    return _blocks(key, indices, np.int64(purpose))


def key(seed: Any) -> Array:
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


def random_words(key: Array, shape: tuple[int, ...]) -> Array:
    """Return random int64 words; number i is the same for every shape that has so many."""
    return in_pairs(lambda key, indices: blocks(key, indices, DRAW), key, shape)


def in_pairs(draw: Callable[[Array, Array], Array], key: Array, shape: tuple[int, ...]) -> Array:
    """Return numbers of which ``draw(key, indices)`` makes two of each block."""
    count = math.prod(shape)
    return draw(key, np.arange(-(-count // 2))).reshape(-1)[:count].reshape(shape)[()]


def split(key: Array, n: int = 2) -> Array:
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


def fold_in(key: Array, i: ArrayLike) -> Array:
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
    number = as_integers(i, "i", "arc.random.fold_in")
    return blocks(key, np.reshape(number, -1), FOLD).reshape(*np.shape(number), 2)
