"""What every function of ``np.linalg`` does first: dtypes, shapes, and the loop over a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.graph.blocks.references import constant_values
from archimedes.symbolic.core.dispatch import wrap
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.wide import in_loops, threshold

__all__ = [
    "CONSTANT",
    "MAX_SPECTRAL",
    "LinAlgError",
    "check_square",
    "check_stacked",
    "is_wide_matrix",
    "over_stack",
    "values_of",
]

LinAlgError = np.linalg.LinAlgError

#: Most columns of an eigenvalue or singular value problem: about 6 n^3 operations per sweep.
MAX_SPECTRAL = 16
#: Largest constant matrix that is factorised while recording.
CONSTANT = 24


def check_stacked(*arrays: Any) -> None:
    """Raise NumPy's error unless every array holds matrices."""
    for a in arrays:
        if a.ndim < 2:
            raise LinAlgError(
                f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
            )


def check_square(a: Any) -> None:
    """Raise NumPy's error unless the array holds square matrices."""
    check_stacked(a)
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError(
            f"Last 2 dimensions of the array must be square, got an array of shape {a.shape}"
        )


def is_wide_matrix(a: Any) -> bool:
    """Tell whether a matrix is worked on by loops: one of 16 x 16 or more, where it is a block.

    Smaller ones keep their elements, so that batches of them keep their lanes.
    """
    trace = current_trace()
    ids = trace.elements_of(a)
    if a.size < 4 * threshold():
        return False
    if in_loops(trace.graph, a.size, ids):
        return True
    return a.size > CONSTANT**2 and constant_values(trace.graph, ids, a.dtype) is not None


def values_of(a: Any) -> list[float | None]:
    """Return each element's value where it is a literal, else None."""
    trace = current_trace()
    value = trace.graph.value
    return [value.get(i) for i in trace.ids_of(a).ravel().tolist()]


def over_stack(function: Callable[..., Any], cores: Sequence[int], *arrays: Any) -> Any:
    """Apply a function of single matrices to stacks of them, broadcasting the leading axes.

    ``cores[k]`` is the number of trailing axes of ``arrays[k]`` that the function sees; it
    returns one traced array or a tuple of them.
    """
    trace = current_trace()
    ids = [trace.elements_of(a) for a in arrays]
    codes = [a.code for a in arrays]
    leading = [x.shape[: x.ndim - core] for x, core in zip(ids, cores)]
    stack = np.broadcast_shapes(*leading)
    if stack == ():
        return function(*(wrap(x, code, trace) for x, code in zip(ids, codes)))
    if 0 in stack:
        raise trace_error(
            f"np.linalg was given an empty stack of matrices (leading shape {stack})",
            "Leave the call out where there is nothing to compute.",
        )
    spread = [np.broadcast_to(x, stack + x.shape[x.ndim - core :]) for x, core in zip(ids, cores)]
    rows = []
    for at in np.ndindex(*stack):
        result = function(*(wrap(x[at], code, trace) for x, code in zip(spread, codes)))
        rows.append(result if isinstance(result, tuple) else (result,))
    joined = tuple(
        wrap(
            np.stack([trace.elements_of(x) for x in column]).reshape(stack + column[0].shape),
            column[0].code,
            trace,
        )
        for column in zip(*rows)
    )
    return joined if isinstance(result, tuple) else joined[0]
