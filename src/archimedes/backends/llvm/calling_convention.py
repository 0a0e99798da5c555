"""What kernels and those who call them agree on: names, arrays, statuses.

It imports nothing of the lowering, which is read when there is something to compile: kernels from
the disk do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.program import Graph

#: The function for one instance, and the one for many (``lowering/entries.py``).
SCALAR, BATCH = "arc_scalar", "arc_batch"
#: What a kernel calls at its safepoints, and for loops over threads: words that hold an address.
SAFEPOINT, LOOP_THREADS = "arc_safepoint", "arc_loop_threads"
#: What a kernel returns where there is no memory for its frame.
NO_MEMORY = 1
#: Status of a kernel in which something was raised (``backends/interrupts.py`` has it).
RAISED = 2
#: Operations per function, unless a caller says otherwise.
PART = 1500


class Leaf(NamedTuple):
    """An array of a call: number of items (of one instance) and dtype code."""

    size: int
    dtype: int


def fixed_leaves(g: Graph, fixed: Sequence[int]) -> list[Leaf]:
    """Return the arrays that hold the values of nodes sorted by type; blocks have their own."""
    kinds = [g.dtype[i] for i in fixed]
    counts = Counter(kind for kind in kinds if not length_of(kind))
    blocks = [Leaf(length_of(kind), item_type(kind)) for kind in kinds if length_of(kind)]
    return [*(Leaf(counts[d], d) for d in sorted(counts)), *blocks]
