"""The loops of the method as native functions, made once for all problems."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

from archimedes.function.execution.array_functions import array_functions
from archimedes.optimize.solvers.interior_point import (
    band_factors,
    band_loops,
    place_loops,
    point_loops,
)

__all__ = ["FUNCTIONS", "native_loops"]

#: The kinds of parameters of each loop, and what describes it.
FUNCTIONS = {
    name: function
    for module in (place_loops, band_loops, band_factors, point_loops)
    for name, function in module.functions.items()
}


@lru_cache(maxsize=1)
def native_loops() -> SimpleNamespace | None:
    """Return the functions of ``band_loops.py`` and those beside it, or None without them."""
    made = array_functions(FUNCTIONS, Path(__file__).parent)
    return None if made is None else SimpleNamespace(**made)
