"""Polynomials of the elementary and special functions, and the table of logarithms for pow.

The polynomials are in ``coefficients.toml``. Those of the elementary functions were fitted with
Remez' exchange algorithm in 70-digit arithmetic to the function named in the row, with the weight
that makes the error relative to the final result; the leading coefficients were rounded to float64
first and the others refitted. Those of the special functions are Chebyshev interpolants in 60
digits, rounded.

The table of logarithms: the octave [0.6875, 1.375) is cut into 128 intervals by the seven bits
below ``START``. Interval i has a reciprocal ``RECIPROCALS[i]`` of ten bits, near 1 over its middle,
whose negative logarithm is ``LOG_HIGH[i] + LOG_LOW[i]``; the high part is a multiple of 2^-42, like
LN2_HIGH, so that ``k ln2`` can be added to it exactly. The two intervals that touch 1 have
reciprocal 1, so that the logarithm near 1 keeps its relative accuracy. The table is computed in
exact integers, so it is the same on every machine; the tests recompute all of it with mpmath.
"""

from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Minimax:
    """A polynomial ``sum(c[i] x**i)`` close to ``target(x)`` on ``interval``, or a quotient.

    ``over`` are the coefficients of the polynomial below, where there is one.

    The largest ``|weight(x) * (polynomial - target)|`` is ``2**-bits``; ``target`` and ``weight``
    are formulas in ``x`` that mpmath can evaluate.

    Example: ``POLYNOMIALS["cos"].c[0]`` is close to 1/24.
    """

    target: str
    weight: str
    interval: tuple[float, float]
    bits: float
    c: list[float]
    over: tuple[float, ...] = (1.0,)


# By the loader, which also reads archives: importlib.resources takes 15 ms to import.
_loader: Any = __spec__.loader
_text = _loader.get_data(str(Path(__file__).with_name("coefficients.toml"))).decode()


def _read_row(text: str) -> Minimax:
    """Return a row of the file; its values are literals of Python too (tomllib loads in 10 ms)."""
    _, *parts = re.split(r"^(\w+) = ", text, flags=re.MULTILINE)
    return Minimax(**dict(zip(parts[::2], map(literal_eval, parts[1::2]))))


_, *_parts = re.split(r"^\[(\w+)\]$", _text, flags=re.MULTILINE)
POLYNOMIALS = dict(zip(_parts[::2], map(_read_row, _parts[1::2])))

START = 0x3FE6000000000000
"""Bits of 0.6875."""
INDEX_SHIFT = 45
"""Bits of a significand to drop to get the interval's number."""
_EDGES = [0.6875 + k / 256 for k in range(80)] + [1.0 + k / 128 for k in range(49)]
_SCALED_RECIPROCALS = [512 if 1.0 in ends else round(1024 / sum(ends)) for ends in pairwise(_EDGES)]


def _scaled_log(n: int, bits: int) -> int:
    """Return ``2**bits log(512 / n)`` by the series of ``2 artanh((512 - n) / (512 + n))``."""
    top, below = 512 - n, 512 + n
    power, total, k = (top << (bits + 1)) // below, 0, 1
    while power not in (0, -1):
        total += power // k
        power, k = power * top**2 // below**2, k + 2
    return total


_LOGS = [_scaled_log(n, 160) for n in _SCALED_RECIPROCALS]
_SCALED_LOG_HIGH = [(x + 2**117) >> 118 for x in _LOGS]
RECIPROCALS = tuple(n / 512 for n in _SCALED_RECIPROCALS)
LOG_HIGH = tuple(n / 2**42 for n in _SCALED_LOG_HIGH)
LOG_LOW = tuple((x - (n << 118)) / 2**160 for x, n in zip(_LOGS, _SCALED_LOG_HIGH))
