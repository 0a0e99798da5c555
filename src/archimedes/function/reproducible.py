"""Calls and elementary functions with the same bits everywhere: as recorded code computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.backends.registry import reference_backend
from archimedes.checks import is_traced
from archimedes.function.recording_store import Current, compile_frozen, find_or_make, form_of
from archimedes.graph.elementary import evaluate
from archimedes.symbolic import trace_error
from archimedes.symbolic.numpy_functions.elementwise_functions import record


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)`` as recorded code computes it.

    The function is called as it is, too, so that it can look at known numbers and refuse them.

    >>> call(lambda x: np.sqrt(x) + 1.0, 4.0)
    np.float64(3.0)
    """
    plain = function(*args)
    if is_traced(args, plain):
        return plain
    name = getattr(function, "__name__", "function")

    def make(current: Current) -> Any:
        return compile_frozen(
            lambda *args: current.functions[0](*args),
            (current,),
            name,
            backend=reference_backend().name,
        )

    return find_or_make("call", (function,), form_of(args), make)(*args)


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


def require_fixed(value: object, what: str) -> None:
    """Raise, at the user's line, for a traced value where a recording needs a fixed one."""
    if is_traced(value):
        raise trace_error(
            f"{what} is fixed when a function is recorded",
            "Declare the argument static (static_argnames).",
        )
