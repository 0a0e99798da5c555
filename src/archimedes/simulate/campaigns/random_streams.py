"""The random numbers of a campaign: a key for each place and run, and numbers in (0, 1) of it."""

from __future__ import annotations

import zlib

import numpy as np

from archimedes.random import fold_in, key
from archimedes.random.keys import DRAW
from archimedes.random.threefry import shift_right, threefry

__all__ = ["GENERATOR", "place_key", "run_keys", "uniform_numbers"]

#: Part of what a campaign is: another generator would draw other runs.
GENERATOR = "threefry2x64-20"


def run_keys(seed: int, name: str, start: int, stop: int) -> np.ndarray:
    """Return the keys (stop - start, 2) of some runs for the place of a name.

    >>> whole = run_keys(7, "mass", 0, 10)
    >>> bool((run_keys(7, "mass", 4, 6) == whole[4:6]).all())
    True
    """
    return fold_in(place_key(seed, name), np.arange(start, stop))


def place_key(seed: int, name: str) -> np.ndarray:
    """Return the key (2,) of the place of a name, below which every run has one."""
    return fold_in(key(seed), zlib.crc32(name.encode()))


def uniform_numbers(keys: np.ndarray, count: int) -> np.ndarray:
    """Return numbers (n, count) in (0, 1), made of the bits that each key (n, 2) gives.

    >>> from archimedes import random
    >>> key = random.key(3)
    >>> u, words = uniform_numbers(key[None], 4), random.bits(key, 4).view(np.uint64)
    >>> bool((u[0] == ((words >> np.uint64(12)) + 0.5) / 2**52).all())
    True
    """
    # Whole numbers are exact in NumPy too, so that no kernel has to be compiled for them.
    words = threefry(keys[:, :1], keys[:, 1:], np.arange(-(-count // 2)), np.int64(DRAW))
    flat = np.stack(words, axis=-1).reshape(len(keys), -1)[:, :count]
    # The centres of 2^52 cells: neither 0 nor 1 can come up.
    return (shift_right(flat, 12) + 0.5) * 2.0**-52
