"""A result by name, the ways in which it is computed, and the hash of its bits.

The sign and the payload of a nan are outside the contract (``docs/numerics.md``): processors
differ in both. So every nan counts as one and the same; zeros have their signs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import archimedes as arc

__all__ = ["Result", "bits_of", "hash_of", "of_function", "seeded"]

#: Numbers of a result: arrays in a fixed order.
Numbers = Sequence[np.ndarray]


@dataclass(frozen=True)
class Result:
    """Numbers that every way must give: interpreted, as native code, one at a time, in batches."""

    name: str
    ways: Mapping[str, Callable[[], Any]]

    def numbers(self, way: str) -> list[np.ndarray]:
        """Compute it in one of its ways."""
        return [np.asarray(leaf) for leaf in arc.tree.leaves(self.ways[way]())]


def bits_of(array: np.ndarray) -> np.ndarray:
    """Return the array's bits as unsigned integers, the same for every nan."""
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array).view(f"f{array.dtype.itemsize // 2}")
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def hash_of(numbers: Numbers) -> str:
    """Return the hash of shapes, types and bits, little end first."""
    digest = hashlib.sha256()
    for array in numbers:
        bits = bits_of(array)
        digest.update(f"{array.dtype.kind}{array.dtype.itemsize}{array.shape}".encode())
        digest.update(bits.astype(bits.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:16]


def seeded(seed: int, *shape: int) -> np.ndarray:
    """Return numbers between -1 and 1, the same on every processor.

    NumPy's normal numbers are not: they take logarithms of the C library.
    """
    return 2.0 * np.random.default_rng(seed).random(shape) - 1.0


def of_function(name: str, f: Callable[..., Any], *columns: Any, single: int = 4) -> Result:
    """Return the result of a function of one instance, over the instances of a batch.

    One call at a time is made for the first instances alone; the others are computed in a batch.
    """

    def one_by_one(backend: str) -> Any:
        compiled = arc.compile(f, backend=backend)
        rows = [arc.tree.map(lambda x, k=k: np.asarray(x)[k], columns) for k in range(single)]
        alone = [arc.tree.leaves(compiled(*row)) for row in rows]
        rest = arc.tree.leaves(in_batch(backend))
        return [np.concatenate([np.stack(ones), x[single:]]) for *ones, x in zip(*alone, rest)]

    @cache
    def in_batch(backend: str) -> Any:
        return arc.vmap(arc.compile(f, backend=backend))(*columns)

    return Result(
        name,
        {
            "interpreted": lambda: one_by_one("interpreter"),
            "interpreted batch": lambda: in_batch("interpreter"),
            "native": lambda: one_by_one("llvm"),
            "native batch": lambda: in_batch("llvm"),
        },
    )
