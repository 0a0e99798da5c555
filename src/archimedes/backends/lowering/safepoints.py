"""Safepoints: where long loops let Python run, so that Ctrl-C is heard.

A loop that may take long looks up after every ``steps`` steps, which are about as many operations
as a millisecond has. Loops around such loops look up at every step: how long these took is not
known when code is written.
"""

from __future__ import annotations

from typing import NamedTuple

from archimedes.backends.work import EVERYTHING, operations
from archimedes.graph.program import Graph

__all__ = ["BUDGET", "Safepoint", "safepoint_of"]

#: Operations between two safepoints; what makes no more of them has none.
BUDGET = 1 << 20


class Safepoint(NamedTuple):
    """After how many steps a loop looks up, and how many operations one of them has, at least."""

    steps: int
    work: int


def safepoint_of(length: int, *bodies: Graph) -> Safepoint | None:
    """Return the safepoint of a loop over these bodies; None where it is over soon anyway."""
    most = sum(operations(body, EVERYTHING) for body in bodies)
    if length * most <= BUDGET:
        return None
    work = max(1, sum(operations(body, rounds=1) for body in bodies))
    return Safepoint(1 if most > BUDGET else max(1, BUDGET // work), work)
