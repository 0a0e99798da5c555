"""The loops of the method as native functions, made once for all problems."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

from archimedes.function.execution.array_functions import array_functions
from archimedes.optimize.solvers.interior_point import band_loops, point_loops

__all__ = ["native_loops"]


@lru_cache(maxsize=1)
def native_loops() -> SimpleNamespace | None:
    """Return the functions of ``band_loops.py`` and ``point_loops.py``, or None without them.

    They take ``id(array)`` for arrays; whoever calls them keeps these.
    """
    made = array_functions(band_loops.functions | point_loops.functions, Path(__file__).parent)
    return None if made is None else SimpleNamespace(**made)
