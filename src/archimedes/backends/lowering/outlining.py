"""How long graphs are, which bodies become functions, and where a long function is cut.

Compilers take longer than linear in the length of a function. Bodies of calls and branches that
occur more than once are functions, whatever is longer than a part is cut; values that cross a cut
live in memory.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

from archimedes.backends.lowering.analysis import cost
from archimedes.backends.lowering.schedule import count_live
from archimedes.backends.lowering.scope import stays_in_place
from archimedes.graph.ops import CONST, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Region, Scan

_NO_CODE = (CONST, INPUT, OUT)
#: How far from where pieces would be equal a cut may be, in pieces.
AROUND = 0.15


class Sizes:
    """What is known of the lengths of graphs, for functions of about ``part`` operations."""

    def __init__(
        self, graphs: Sequence[Graph], part: int, shared: Mapping[type[Region], int]
    ) -> None:
        self.part = part
        self.shared = shared
        self._costs: dict[int, int] = {}
        self._sizes: dict[Graph, int] = {}
        self._uses: Counter[str] = Counter()
        for g in graphs:
            self._count_uses(g)

    def _count_uses(self, g: Graph) -> None:
        regions = (g.regions[i] for i in g.live() if i in g.regions)
        for region, body in ((r, body) for r in regions for body in r.bodies):
            self._uses[body.digest()] += 1
            count, least = self._uses[body.digest()], self.shared.get(type(region))
            is_function = least is not None and self.cost(body) >= least
            # What is in a function is written once; what is in other bodies, where they are.
            if count == 1 or (count == 2 and not is_function):
                self._count_uses(body)

    def cost(self, g: Graph) -> int:
        """Return the operations in a graph, all bodies included."""
        return cost(g, self._costs)

    def size(self, g: Graph) -> int:
        """Return the operations of a graph without those that are in other functions."""
        if g not in self._sizes:
            op, live = g.op, g.live()
            own = sum(op[i] not in _NO_CODE for i in live)
            inner = sum(self._blocks(g.regions[i]) for i in live if i in g.regions)
            self._sizes[g] = own + inner
        return self._sizes[g]

    def _blocks(self, region: Region) -> int:
        """Return the operations of the bodies that are inlined where their region is."""
        blocks = (b for b in region.bodies if not self.is_shared(region, b))
        return sum(size for size in map(self.size, blocks) if size <= self.part)

    def is_shared(self, region: Region, body: Graph) -> bool:
        """Return whether a body occurs more than once and is worth a function."""
        least = self.shared.get(type(region))
        return least is not None and self._uses[body.digest()] > 1 and self.size(body) >= least

    def cut_schedule(self, g: Graph, order: Sequence[int]) -> list[list[int]]:
        """Cut a schedule into pieces of about equal size, where few values cross.

        Outputs stay with their region.
        """
        done = [0, *accumulate(self._price(g, i) for i in order)]
        count = max(1, -(-done[-1] // self.part))
        size, crossing = done[-1] / count, count_live(g, order) if count > 1 else []
        cuts = [0]
        for k in range(1, count):
            first, equal, last = (
                bisect_left(done, size * (k + side * AROUND)) for side in (-1, 0, 1)
            )
            near = [at for at in range(first, last) if done[at] < done[at + 1]]
            ranked = ((crossing[at - 1], abs(done[at] - size * k), at) for at in near)
            cuts.append(min(ranked, default=(bisect_right(done, done[equal]) - 1,))[-1])
        return [list(order[a:b]) for a, b in pairwise([*cuts, len(order)]) if a < b]

    def _price(self, g: Graph, i: int) -> int:
        """Return the operations that stand where a node is written."""
        if g.op[i] == OUT:
            return 0
        return 1 + self._blocks(g.regions[i]) if g.op[i] == REGION else 1


def crossing_nodes(
    g: Graph, chunks: Sequence[Sequence[int]], wanted: Sequence[int] = ()
) -> list[int]:
    """Return the nodes that are read in another chunk than their own, or after all of them.

    Those that are read where their block is need not be kept anywhere.
    """
    home = {i: k for k, chunk in enumerate(chunks) for i in chunk}
    crossing = dict.fromkeys(i for i in wanted if i in home)
    crossing |= dict.fromkeys(j for k, _, j in _reads(g, chunks) if home.get(j, k) != k)
    return [i for i in crossing if not stays_in_place(g, i)]


def _reads(g: Graph, chunks: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the number of a chunk, a node in it, and a node that it reads."""
    for k, chunk in enumerate(chunks):
        for i in chunk:
            if g.op[i] != OUT:
                yield from ((k, i, j) for j in g.operands(i))


def shared_slots(
    g: Graph, chunks: Sequence[Sequence[int]], crossing: Sequence[int], wanted: Sequence[int] = ()
) -> list[int]:
    """Return the number of a slot for each crossing node, of one dtype each.

    A slot is used again in the chunks behind the last one that reads it; what is wanted after all
    chunks keeps its own.
    """
    last: dict[int, int] = {}
    for k, i, j in _reads(g, chunks):
        # What hands values on may give them out where they lie.
        last[j] = max(len(chunks) if _hands_on(g, i) else k, last.get(j, 0))
    last.update((i, len(chunks)) for i in wanted)
    asked, count = set(crossing), itertools.count()
    free: defaultdict[int, list[int]] = defaultdict(list)
    ending: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    slots: dict[int, int] = {}
    for k, chunk in enumerate(chunks):
        for dtype, slot in ending[k - 1]:
            free[dtype].append(slot)
        for i in chunk:
            if i in asked:
                room = free[g.dtype[i]]
                slots[i] = room.pop() if room else next(count)
                ending[last[i]].append((g.dtype[i], slots[i]))
    return [slots[i] for i in crossing]


def _hands_on(g: Graph, i: int) -> bool:
    """Return whether a region may return its inputs, as calls and loops without steps do."""
    region = g.regions.get(i)
    return isinstance(region, Call) or (isinstance(region, Scan) and not region.length)


def inputs_read(g: Graph, order: Sequence[int]) -> list[int]:
    """Return the numbers of the inputs that the nodes read."""
    return sorted({g.a[j] for *_, j in _reads(g, [order]) if g.op[j] == INPUT})
