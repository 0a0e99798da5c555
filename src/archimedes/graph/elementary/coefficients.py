"""Polynomials of the elementary and special functions, and the table of logarithms for pow.

The polynomials are in ``coefficients.toml``. Those of the elementary functions were fitted with
Remez' exchange algorithm in 70-digit arithmetic to the function named in the row, with the weight
that makes the error relative to the final result; the leading coefficients were rounded to float64
first and the others refitted. Those of the special functions are Chebyshev interpolants in 60
digits, rounded.

The table of logarithms: the octave [0.6875, 1.375) is cut into 128 intervals by the seven bits
below ``START``. Interval i has a reciprocal ``reciprocals[i]`` of ten bits, near 1 over its middle,
whose negative logarithm is ``high[i] + low[i]``; the high part is a multiple of 2^-42, like
LN2_HIGH, so that ``k ln2`` can be added to it exactly. The two intervals that touch 1 have
reciprocal 1, so that the logarithm near 1 keeps its relative accuracy. The table is computed in
exact integers, so it is the same on every machine; the tests recompute all of it with mpmath.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from archimedes.records import record


@record
class Minimax:
    """A polynomial ``sum(c[i] x**i)`` close to ``target(x)`` on ``interval``, or a quotient.

    ``over`` are the coefficients of the polynomial below, where there is one.

    The largest ``|weight(x) * (polynomial - target)|`` is ``2**-bits``; ``target`` and ``weight``
    are formulas in ``x`` that mpmath can evaluate.

    Example: ``polynomials()["cos"].c[0]`` is close to 1/24.
    """

    target: str
    weight: str
    interval: tuple[float, float]
    bits: float
    c: list[float]
    over: tuple[float, ...] = (1.0,)


@cache
def polynomials() -> dict[str, Minimax]:
    """Return the rows of the file by name, read when they are first asked for.

    It is read by the loader, which also reads archives, and its values by ``float``: loading
    ``importlib.resources`` and ``tomllib`` takes 25 ms.

    >>> polynomials()["tanh"].over[-1]
    1.0
    """
    loader: Any = __spec__.loader
    text = loader.get_data(str(Path(__file__).with_name("coefficients.toml"))).decode()
    _, *parts = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], map(_read_row, parts[1::2])))


def _read_row(text: str) -> Minimax:
    rows = re.sub(r"^#.*", "", text, flags=re.MULTILINE)
    _, *parts = re.split(r"^(\w+) = ", rows, flags=re.MULTILINE)
    return Minimax(**dict(zip(parts[::2], map(_read_value, parts[1::2]))))


def _read_value(text: str) -> Any:
    """Return what TOML's strings, numbers and lists of numbers mean."""
    text = text.strip()
    if text.startswith("["):
        return [float(number) for number in text.strip("[], \n").split(",")]
    return text.strip('"') if text.startswith('"') else float(text)


START = 0x3FE6000000000000
"""Bits of 0.6875."""
INDEX_SHIFT = 45
"""Bits of a significand to drop to get the interval's number."""


class LogarithmTable(NamedTuple):
    """Reciprocals by interval, and their negative logarithms as ``high + low``."""

    reciprocals: tuple[float, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]


@cache
def logarithm_table() -> LogarithmTable:
    """Return the table of logarithms, computed when it is first asked for.

    >>> logarithm_table().reciprocals[79:81]
    (1.0, 1.0)
    """
    edges = [0.6875 + k / 256 for k in range(80)] + [1.0 + k / 128 for k in range(49)]
    reciprocals = [512 if 1.0 in ends else round(1024 / sum(ends)) for ends in pairwise(edges)]
    logs = [_scaled_log(n, 160) for n in reciprocals]
    high = [(x + 2**117) >> 118 for x in logs]
    return LogarithmTable(
        tuple(n / 512 for n in reciprocals),
        tuple(n / 2**42 for n in high),
        tuple((x - (n << 118)) / 2**160 for x, n in zip(logs, high)),
    )


def _scaled_log(n: int, bits: int) -> int:
    """Return ``2**bits log(512 / n)`` by the series of ``2 artanh((512 - n) / (512 + n))``."""
    top, below = 512 - n, 512 + n
    power, total, k = (top << (bits + 1)) // below, 0, 1
    while power not in (0, -1):
        total += power // k
        power, k = power * top**2 // below**2, k + 2
    return total
