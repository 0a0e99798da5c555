"""States at output times from rows of steps: many steps at once, a few outputs of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["evaluated", "width_for"]

#: Outputs of one step that are computed together: few sizes, so few kernels.
WIDTHS = (1, 4, 8, 12, 16)


def width_for(counts: np.ndarray) -> int:
    """Return how many outputs to compute together, given how many the steps have.

    The cost of a round is about that of its outputs and of reading a step.

    >>> width_for(np.array([15, 16])), width_for(np.array([1, 0, 1]))
    (16, 1)
    """
    costs = [(-(-counts // width)).sum() * (width + 4) for width in WIDTHS]
    return WIDTHS[int(np.argmin(costs))]


def evaluated(
    states: Callable[[Any, Any], Any],
    times: np.ndarray,
    rows: np.ndarray,
    firsts: np.ndarray,
    counts: np.ndarray,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute outputs ``firsts`` to ``firsts + counts`` of each step.

    ``states(rows, times)`` gives the states (R, width, n) at times (R, width) within steps.
    Returns states (k, n) and where among them the outputs lie, step by step.
    """
    rounds = -(-counts // width)
    at = np.repeat(np.arange(len(rows)), rounds)
    number = np.arange(len(at)) - np.repeat(np.cumsum(rounds) - rounds, rounds)
    first = firsts[at] + number * width
    places = np.minimum(first[:, None] + np.arange(width), len(times) - 1)
    found = states(rows.take(at, axis=0), times.take(places))
    used = np.minimum(counts[at] - number * width, width)
    shift = np.arange(len(at)) * width - (np.cumsum(used) - used)
    index = np.arange(int(used.sum())) + np.repeat(shift, used)
    return found.reshape(-1, found.shape[-1]), index
