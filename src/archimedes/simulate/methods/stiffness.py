"""How an explicit method notices that a system is stiff.

Two stages of a step are taken at (nearly) the same time; how much their slopes differ, over how
much their states do, estimates the largest eigenvalue lambda of the Jacobian. Where h lambda lies
at the border of the method's stability region step after step, it is stability that bounds the
steps and not accuracy.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.2,
"Automatic stiffness detection", and the codes DOPRI5 and DOP853, for the rule of 15 and 6 steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.simulate.methods.pieces import piece
from archimedes.tree import struct

__all__ = ["Suspicion", "estimate", "is_stiff", "suspected"]

#: A system is stiff after HITS steps at the border, unless MISSES steps in a row are not there.
HITS, MISSES = 15, 6
#: The part of the stability region's extent from which on a step is at the border.
BORDER = 0.9


@struct
class Suspicion:
    """Steps at the border of stability so far, and those that were not since the last one."""

    hits: Any
    misses: Any


@piece()
def estimate(h: Any, slopes: Any, states: Any, x: Any, slope: Any) -> Any:
    """Return h |lambda| from the differences of two slopes and of the states they belong to.

    Numbers count relative to their size (x, or what the slope moves it by in a step): the fast
    ones are often small.
    """
    scale = np.abs(x) + np.abs(h * slope) + 1e-300
    weight = 1.0 / scale
    slopes, states = slopes * weight, states * weight
    much, little = np.sum(slopes * slopes), np.sum(states * states)
    known = little > 0.0
    return np.abs(h) * np.sqrt(np.where(known, much, 0.0) / np.where(known, little, 1.0))


def suspected(before: Suspicion, stiffness: Any, extent: float) -> Suspicion:
    """Return what is suspected after one more step; once certain it stays."""
    hit = stiffness > BORDER * extent
    misses = np.where(hit, 0, before.misses + 1)
    forgotten = (misses >= MISSES) & (before.hits < HITS)
    hits = np.where(hit, before.hits + 1, np.where(forgotten, 0, before.hits))
    return Suspicion(hits, misses)


def is_stiff(suspicion: Suspicion) -> Any:
    """Tell whether the steps so far make the system stiff."""
    return suspicion.hits >= HITS
