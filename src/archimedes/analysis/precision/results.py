"""Errors of results: of a number, or of an array as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archimedes.records import record

#: Elements that are smaller count as this part of the largest one.
LEAST_PART = 1e-3


@dataclass(frozen=True)
class ResultError:
    """The error of one result: of the element for which it is largest.

    Parameters
    ----------
    name : str
        The result, as a path: ``result.pos``.
    value, computed : float
        The element with the largest error, accurately and in the arithmetic that is examined.
    absolute : float
        Its error.
    relative : float
        The error divided by the element, which counts as at least a thousandth of the largest.
    digits : float
        Decimal digits that are right, at most those of the arithmetic.
    ulps : float
        The error in units in the last place of the element, which counts as above.
    sample : int
        The number of the sample of arguments with the largest error, 0 without ``ranges``.

    Examples
    --------
    >>> ResultError("y", 1.0, 1.001, 0.001, 0.001, 3.0, 8388.6, 0).digits
    3.0
    """

    name: str
    value: float
    computed: float
    absolute: float
    relative: float
    digits: float
    ulps: float
    sample: int


#: A result of less than so many times its noise counts as zero.
_NOISY = 16.0


def find_floors(
    high: Sequence[np.ndarray], noise: Sequence[np.ndarray], largest: float
) -> list[np.ndarray]:
    """Return what elements count as at least that float64 itself cannot tell from zero.

    ``noise`` is by how much they change with the last bits of the arguments. Divided by the size of
    a last bit it is the size of the terms that cancel, which is at most that of the ``largest``
    number on the way.
    """
    found = []
    for b, change in zip(high, noise):
        if b.dtype.kind != "f":
            found.append(np.zeros(b.shape))
            continue
        with np.errstate(all="ignore"):
            is_zero = np.abs(b) <= _NOISY * change
            terms = np.minimum(change / np.finfo(np.float64).eps, largest)
        found.append(np.where(is_zero & np.isfinite(terms), terms, 0.0))
    return found


def _sizes(b: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return the sizes that elements of a result count as."""
    sizes = np.where(np.isfinite(b), np.abs(b), 0.0).astype(float)
    return np.maximum(np.maximum(sizes, LEAST_PART * sizes.max(initial=0.0)), floor)


def relative_errors(
    low: Sequence[np.ndarray],
    high: Sequence[np.ndarray],
    errors: Sequence[np.ndarray],
    floors: Sequence[np.ndarray],
    atol: float,
) -> list[np.ndarray]:
    """Return the relative error of each result, for each sample; arrays are (samples, *shape).

    An element counts as at least a thousandth of the largest one, of all samples, and as its floor
    (see ``find_floors``). Integers and truth values are right or wrong.
    """
    found = []
    for a, b, error, floor in zip(low, high, errors, floors):
        if b.dtype.kind != "f":
            found.append(np.where((a != b).reshape(len(b), -1).any(axis=1), np.inf, 0.0))
            continue
        flat_a, flat_b = a.reshape(len(a), -1), b.reshape(len(b), -1)
        distance = np.abs(error.reshape(len(b), -1))
        same = (flat_a == flat_b) | (np.isnan(flat_a) & np.isnan(flat_b))
        bad = ~same & ~(np.isfinite(flat_a) & np.isfinite(flat_b))
        distance = np.where(same, distance * np.isfinite(flat_b), np.where(bad, np.inf, distance))
        distance = np.where(np.isnan(distance) | (distance <= atol), 0.0, distance)
        sizes = _sizes(flat_b, floor.reshape(len(b), -1))
        with np.errstate(all="ignore"):
            relative = np.where(distance == 0.0, 0.0, distance / sizes)
        found.append(relative.max(axis=1, initial=0.0))
    return found


@record
class Comparison:
    """Results in both arithmetics, (samples, *shape), their errors, and relative ones by sample."""

    low: list[np.ndarray]
    high: list[np.ndarray]
    errors: list[np.ndarray]
    floors: list[np.ndarray]
    relative: list[np.ndarray]

    @property
    def worst(self) -> np.ndarray:
        """The largest relative error of each result."""
        return np.array([float(x.max(initial=0.0)) for x in self.relative])


def describe_results(
    names: Sequence[str], compared: Comparison, dtype: np.dtype, digits: float
) -> tuple[ResultError, ...]:
    """Return the errors of all results that hold numbers."""
    found = []
    columns = compared.low, compared.high, compared.errors, compared.floors, compared.relative
    for name, a, b, error, floor, rel in zip(names, *columns):
        if not b.size:
            continue
        sample, worst = int(np.argmax(rel)), float(rel.max())
        at, size = _worst_element(a, b, error, floor, sample)
        # The largest number has no next one.
        ulp = float(np.spacing(dtype.type(min(size, 0.5 * float(np.finfo(dtype).max)))))
        right = digits if worst == 0 else min(digits, max(0.0, -float(np.log10(worst))))
        value, computed = float(b[sample].flat[at]), float(a[sample].flat[at])
        distance = abs(float(error[sample].flat[at]))
        if not np.isfinite(distance):
            distance = 0.0 if worst == 0 else np.inf
        found.append(
            ResultError(name, value, computed, distance, worst, right, distance / ulp, sample)
        )
    return tuple(found)


def _worst_element(
    a: np.ndarray, b: np.ndarray, error: np.ndarray, floor: np.ndarray, sample: int
) -> tuple[int, float]:
    """Return the element of a sample with the largest relative error, and the size it counts as."""
    mine = _sizes(b, floor)[sample].ravel()
    one, other = a[sample].ravel(), b[sample].ravel()
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(all="ignore"):
        relative = np.abs(error[sample].ravel()) / mine
    relative = np.where(np.isnan(relative), np.where(same, 0.0, np.inf), relative)
    at = int(np.argmax(relative))
    return at, float(mine[at])
