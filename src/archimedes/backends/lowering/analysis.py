"""What is counted about a graph before code is written: cost, callbacks, what a batch shares.

Nothing else of the lowering is imported here, so that code from the disk runs without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.protocol import EVERYTHING, estimate_work
from archimedes.graph.ops import BLOCK, CONST, INPUT, OUT, REGION
from archimedes.graph.passes import with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.regions import Nest


def has_host(g: Graph) -> bool:
    """Return whether a graph calls back into Python, in bodies too."""
    return bool(g.effects())


def cost(g: Graph, known: dict[int, int]) -> int:
    """Count the operations of a graph and of the bodies in it. ``known`` caches by identity."""
    if id(g) not in known:
        live = g.live()
        plain = sum(g.op[i] not in (CONST, INPUT, OUT) for i in live)
        inner = sum(cost(b, known) for i in live if i in g.regions for b in g.regions[i].bodies)
        known[id(g)] = plain + inner
    return known[id(g)]


#: Fewer shared operations than this are not worth a call of their own.
WORTH = 4


def is_in_order(region: Nest) -> bool:
    """Return whether a nest combines values one after the other, not as partial results."""
    return region.partials == 1 or region.reduced <= region.partials


def invariant_nodes(g: Graph, varies: Sequence[bool]) -> set[int]:
    """Return the live nodes that are the same for all instances of a batch.

    ``varies`` tells which inputs differ from instance to instance.
    """
    invariant: set[int] = set()
    for i in g.live():
        code = g.op[i]
        if code == INPUT:
            same = not varies[g.a[i]]
        else:
            same = code in (BLOCK, CONST) or invariant.issuperset(g.operands(i))
        if same:
            invariant.add(i)
    return invariant


def fixed_nodes(g: Graph, varies: Sequence[bool]) -> list[int]:
    """Return the nodes that are computed once for a batch and read by what varies, by dtype.

    ``varies`` tells which inputs differ from instance to instance. Empty where next to nothing
    is shared, and for graphs with callbacks, which are called once per instance.
    """
    if has_host(g):
        return []
    invariant = invariant_nodes(g, varies)
    read = {j for i in g.live() if i not in invariant for j in g.operands(i)}
    border = invariant.intersection(read.union(g.outputs))
    fixed = [i for i in border if g.op[i] not in (BLOCK, CONST, INPUT, REGION)]
    has_region = any(g.op[i] == OUT for i in fixed)
    if cost(with_outputs(g, fixed), {}) < WORTH and not has_region:
        return []
    return sorted(fixed, key=lambda i: (g.dtype[i], i))


#: Operations between two safepoints; what makes no more of them has none.
BUDGET = 1 << 20


class Safepoint(NamedTuple):
    """A loop lets Python run after ``steps`` steps, of at least ``work`` operations each."""

    steps: int
    work: int


def safepoint_of(length: int, *bodies: Graph) -> Safepoint | None:
    """Return the safepoint of a loop over these bodies; None for a loop that ends soon anyway.

    A loop that may take long checks after about as many operations as a millisecond has. Loops
    around such loops check at every step: how long these took is not known when code is written.
    """
    most = sum(estimate_work(body, EVERYTHING) for body in bodies)
    if length * most <= BUDGET:
        return None
    work = max(1, sum(estimate_work(body, rounds=1) for body in bodies))
    return Safepoint(1 if most > BUDGET else max(1, BUDGET // work), work)
