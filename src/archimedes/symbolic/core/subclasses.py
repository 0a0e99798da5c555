"""Subclasses of NumPy's array: their operators may mean something else, so they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.errors import ShapeDtypeError

__all__ = ["refuse_subclass"]

_PLAIN = frozenset({np.ndarray, np.memmap})
_OWN = "archimedes."
#: What to write instead, by the name of the class: importing ``numpy.ma`` takes a while.
_REMEDIES = {
    "MaskedArray": "fill its gaps first: x.filled(np.nan), or pass x.data and x.mask",
    "matrix": "its * and ** are those of matrices: pass np.asarray(x), and write @",
    "recarray": "pass its columns as arrays, or a struct of them (@arc.struct)",
}


def refuse_subclass(x: Any, name: Callable[[], str], line: Callable[[], str] | None = None) -> None:
    """Raise for arrays of a class that has rules of its own; ``name`` says what it is.

    Arrays in files (``np.memmap``) are arrays; so are those of this package.
    """
    kind = type(x)
    if kind in _PLAIN or not isinstance(x, np.ndarray) or kind.__module__.startswith(_OWN):
        return
    names = [c.__name__ for c in kind.__mro__ if c.__module__.partition(".")[0] == "numpy"]
    remedy = next((_REMEDIES[n] for n in names if n in _REMEDIES), "pass np.asarray(x)")
    where = f", at\n  {line()}\n" if line is not None else ", "
    raise ShapeDtypeError(
        f"{name()} is a {kind.__module__}.{kind.__qualname__}, whose rules a recorded function "
        f"would not keep{where}{remedy}."
    )
