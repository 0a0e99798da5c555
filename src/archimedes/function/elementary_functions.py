"""Ops that NumPy has no function for, on plain and traced arrays alike: ``erf``, ``gamma``, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.graph.elementary import evaluate
from archimedes.symbolic import trace_error
from archimedes.symbolic.numpy_functions.elementwise_functions import record

__all__ = ["apply_elementary", "require_fixed"]


def apply_elementary(name: str, *operands: Any) -> Any:
    """Apply the op of that name elementwise: float32 stays, other real dtypes give float64.

    >>> apply_elementary("erf", np.array([0.0, 1.0])).round(4)
    array([0.    , 0.8427])
    """
    if is_traced(*operands):
        return record(name, *operands)
    arrays = [np.asarray(x) for x in operands]
    for x in arrays:
        if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
            raise TypeError(f"special.{name} takes real numbers, got an array of dtype {x.dtype}")
    narrow = all(x.dtype == np.float32 for x in arrays)
    return evaluate(name, *(x if narrow else x.astype(float) for x in arrays))


def require_fixed(value: Any, what: str) -> None:
    """Raise, at the user's line, for a traced value where a recording needs a fixed one."""
    if is_traced(value):
        raise trace_error(
            f"{what} is fixed when a function is recorded",
            "Declare the argument static (static_argnames).",
        )
