"""Threefry-2x64-20: a block of 128 random bits as a function of a key and a counter.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
1, 2, 3, SC11, 2011 (Random123). Additions, rotations and exclusive ors of 64-bit words, held in
int64, whose sums wrap around: plain NumPy, exact in every backend and on every target.

Legend: ``k`` a key of two words, ``x`` the two words that are stirred, ``s`` the number of an
injection of the key.
"""

from __future__ import annotations

from typing import Any

__all__ = ["mask", "shift_right", "threefry"]

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


def shift_right(x: Any, n: int) -> Any:
    """Shift int64 words right by 0 < n < 64 places; zeros come in, not copies of the sign.

    >>> import numpy as np
    >>> int(shift_right(np.int64(-1), 60))
    15
    """
    return (x >> n) & mask(64 - n)


def threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
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
