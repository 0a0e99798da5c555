"""The order of an array's axes in memory, which ``ravel("K")`` and its like read."""

from __future__ import annotations

import numpy as np

__all__ = ["axis_order", "in_order"]


def axis_order(x: np.ndarray) -> tuple[int, ...] | None:
    """Return the axes of an array from the slowest to the fastest in memory, None for C order.

    Gaps and reversed axes do not count: it is the order of ``x.copy("K")``.

    >>> axis_order(np.zeros((2, 3))), axis_order(np.zeros((2, 3)).T)
    (None, (1, 0))
    """
    if x.ndim < 2 or x.flags.c_contiguous:
        return None
    template = np.empty_like(x, subok=False)
    if template.flags.c_contiguous:
        return None
    return tuple(sorted(range(x.ndim), key=lambda axis: -template.strides[axis]))


def in_order(values: np.ndarray, order: tuple[int, ...] | None) -> np.ndarray:
    """Return a copy with its axes in another order in memory, which owns that memory.

    >>> in_order(np.zeros((2, 3)), (1, 0)).strides
    (8, 16)
    """
    if order is None:
        return values.copy()
    shuffled = np.empty([values.shape[axis] for axis in order], values.dtype)
    made = np.empty_like(shuffled.transpose(np.argsort(order)))
    made[...] = values
    return made
