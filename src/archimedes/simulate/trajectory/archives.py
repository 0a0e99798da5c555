"""NumPy archives (``.npz``) read with care: no pickles, and one error for every kind of damage."""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

import numpy as np

__all__ = ["read_archive"]

#: What unpacking a damaged or hostile archive may raise.
_DAMAGE = (
    *(EOFError, KeyError, OSError, NotImplementedError, MemoryError, AttributeError, TypeError),
    *(SyntaxError, RecursionError, OverflowError, zipfile.BadZipFile, zlib.error),
)


def read_archive(file: Any) -> dict[str, np.ndarray]:
    """Return the arrays of an open archive by name; damage of any kind is a ValueError."""
    try:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is a single array, not an archive")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    except _DAMAGE as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if wrong := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise ValueError(f"{wrong[0]} is not an array")
    return arrays
