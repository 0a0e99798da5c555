"""Euler sequences: what the letters of ``"xyz"`` or ``"ZXZ"`` mean."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import NamedTuple

from archimedes.errors import explained

__all__ = ["Sequence", "parse_sequence"]


#: Sign of the permutation (i, j, m) of the axes, with m the one left over.
PARITY = {(0, 1): 1.0, (1, 2): 1.0, (2, 0): 1.0, (1, 0): -1.0, (2, 1): -1.0, (0, 2): -1.0}


class Sequence(NamedTuple):
    """An Euler sequence.

    `axes` are 0, 1, 2 for the letters x, y, z, in their order. `factors` lists positions in
    `axes` from left to right in the matrix product R_BE: in the order of the letters when
    extrinsic (`in_order`), in reverse when intrinsic. For three letters, `i` and `j` are the axes
    of the first two factors and `m` the one left over, `parity` the sign of the permutation
    (i, j, m), and the sequence is `proper` if the third axis is i again instead of m.
    """

    axes: tuple[int, ...]
    factors: tuple[int, ...]
    in_order: bool
    i: int = 0
    j: int = 0
    m: int = 0
    parity: float = 1.0
    proper: bool = False


@functools.cache
def parse_sequence(seq: str, full: bool = False) -> Sequence:
    """Return the meaning of an Euler sequence; with `full` it must have three letters.

    Lower case is extrinsic (about the axes of the reference frame), upper case intrinsic (about
    the axes as already turned), as in SciPy.

    >>> parse_sequence("zyx").axes
    (2, 1, 0)
    """
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3 or set(seq.lower()) - set("xyz"):
        raise ValueError(
            explained(
                "sequence", f"seq must be one to three of the letters x, y and z, got {seq!r}"
            )
        )
    if seq not in (seq.lower(), seq.upper()):
        raise ValueError(
            explained(
                "sequence",
                "seq must be all lower case (extrinsic) or all upper case (intrinsic), got "
                f"{seq!r}",
            )
        )
    if any(a == b for a, b in pairwise(seq)):
        raise ValueError(
            explained("sequence", f"seq must not repeat an axis next to itself, got {seq!r}")
        )
    axes = tuple("xyz".index(letter) for letter in seq.lower())
    order = tuple(range(len(seq)))
    in_order = seq.islower()
    factors = order if in_order else order[::-1]
    if len(seq) == 3:
        i, j, k = (axes[n] for n in factors)
        return Sequence(axes, factors, in_order, i, j, 3 - i - j, PARITY[i, j], i == k)
    if full:
        raise ValueError(
            f"seq must have three letters here, since fewer do not describe every rotation or "
            f"rate, got {seq!r}"
        )
    return Sequence(axes, factors, in_order)
