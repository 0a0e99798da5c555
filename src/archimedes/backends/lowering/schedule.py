"""The order in which the nodes of a graph are computed.

`depth_first_schedule` goes depth first from the outputs, to the operand that needs more registers
first (Sethi and Ullman, "The generation of optimal code for arithmetic expressions", J. ACM 17,
1970). Operands come right before their use, which keeps live ranges short. But a node right after
its operand has to wait for it, and a recursion over the bodies of a robot, say, is torn apart: for
the first result the order goes through all of them.

The other schedules start from that one. `latency_schedule` is for what is compiled as a whole: the
longest chains of operations go ahead, others fill the time in which they wait (Goodman and Hsu,
"Code scheduling and register allocation in large basic blocks", Proc. ICS 1988, weigh the same two:
waiting and registers), or nodes are moved back by their depth. `locality_schedule` is for what
memory limits, pieces of long programs and bodies with very many inputs: it counts loads, and takes
the order of the program where operands are nearer to their uses in that.

`register_pressure_schedule` is for statements of C. Compilers keep the order of long functions more
or less, and microcontrollers have few registers: in a large stack frame each access costs an
instruction more. Depth first, the articulated-body algorithm of a 7-joint arm has 208 values alive
at a time; in this order it has 121.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from archimedes.backends.lowering.analysis import has_host
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import ARITY, CONST, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

#: Positions by which a node is moved back for each operation that it stands on. A few more or less
#: make no difference; none at all makes loops of some hundred operations a fifth slower.
SPREAD = 20
#: A branch counts as so many operations of its chain: what comes together with the branches of
#: others leaves longer runs of instructions without any.
BRANCH = 10
#: So many values of vectors are near: they stay in the first cache.
NEAR = 1000
#: How far the longest chain of statements moves forward, as a part of the program.
LEAD = 0.1


class Schedule(NamedTuple):
    """``order``: ids to compute (no inputs, no constants); ``outs``: used outputs of regions."""

    order: list[int]
    outs: dict[int, list[int]]


def used_outputs(g: Graph, live: Sequence[int]) -> dict[int, list[int]]:
    """Return the ``out`` nodes among live ones, by region."""
    outs: dict[int, list[int]] = {}
    for i in live:
        if g.op[i] == OUT:
            outs.setdefault(g.a[i], []).append(i)
    return outs


def depth_first_schedule(g: Graph, outputs: Sequence[int], known: Container[int] = ()) -> Schedule:
    """Order the live nodes; each region is followed at once by its used outputs.

    Nodes in ``known`` have their values already, so that what only they need is left out.
    Graphs with host callbacks keep the order they were written in, since callbacks may have
    effects.
    """
    if has_host(g):
        return program_order(g, outputs)
    live = g.live(outputs)
    op = g.op
    outs = used_outputs(g, live)
    order: list[int] = []
    need = _registers_needed(g, live)
    done = bytearray(len(op))
    for i in live:
        if op[i] in (CONST, INPUT) or i in known:
            done[i] = 1
    for root in outputs:
        stack = [root]
        while stack:
            i = stack[-1]
            if done[i]:
                stack.pop()
                continue
            waiting = [j for j in g.operands(i) if not done[j]]
            if waiting:
                # The last pushed is visited first: the neediest operand goes on top.
                if len(waiting) > 1:
                    waiting.sort(key=need.__getitem__)
                stack.extend(waiting)
                continue
            stack.pop()
            for j in (i, *outs.get(i, ())):
                done[j] = 1
                order.append(j)
    return Schedule(order, outs)


def _registers_needed(g: Graph, live: Sequence[int]) -> list[int]:
    """Return the registers that each subtree needs at least, as if it were a tree."""
    op, a, b = g.op, g.a, g.b
    need = [0] * len(op)
    for i in live:
        if ARITY[op[i]] == 2:  # most of them
            x, y = need[a[i]], need[b[i]]
            need[i] = x + 1 if x == y else x if x > y else y
            continue
        needs = [need[j] for j in g.operands(i)]
        if op[i] == REGION:
            needs = [*{*needs}]
        # While an operand is computed, those before it, which need more, keep a register each.
        ranked = sorted(needs, reverse=True)
        need[i] = max((n + k for k, n in enumerate(ranked)), default=int(op[i] == INPUT))
    return need


def program_order(g: Graph, outputs: Sequence[int]) -> Schedule:
    """Return the live nodes in the order in which they were recorded, which takes no time."""
    live = g.live(outputs)
    outs = used_outputs(g, live)
    return Schedule(_by_number(g, [i for i in live if g.op[i] not in (CONST, INPUT)], outs), outs)


def _by_number(g: Graph, nodes: Sequence[int], outs: Mapping[int, Sequence[int]]) -> list[int]:
    """Return nodes by their number, outputs of regions behind their region."""
    return [j for i in sorted(nodes) if g.op[i] != OUT for j in (i, *outs.get(i, ()))]


# ---- list scheduling -----------------------------------------------------------------------


class _Dataflow:
    """The values that nodes define and read, and the nodes that read each value."""

    def __init__(
        self, g: Graph, values: Mapping[int, Sequence[int]], alias: Mapping[int, int]
    ) -> None:
        self.values = values
        self.readers: dict[int, list[int]] = {v: [] for mine in values.values() for v in mine}
        self.sources: dict[int, list[int]] = {}
        for i in values:
            operands = dict.fromkeys(alias.get(j, j) for j in g.operands(i))
            self.sources[i] = [v for v in operands if v in self.readers]
            for v in self.sources[i]:
                self.readers[v].append(i)

    def chains(self, g: Graph, branch: int) -> dict[int, int]:
        """Return the length of the longest chain of operations that begins with each node."""
        chains: dict[int, int] = {}
        for i in reversed(list(self.values)):
            own = branch if isinstance(g.regions.get(i), Switch) else 1
            behind = (chains[k] for v in self.values[i] for k in self.readers[v])
            chains[i] = own + max(behind, default=0)
        return chains

    def schedule(self, wanted: Sequence[int], rank: Mapping[int, float]) -> list[int]:
        """Return the nodes in order: the next one is the ready node that leaves the fewest values.

        Among equals it is the one of the lowest rank. Values in ``wanted`` stay to the end.
        """
        uses = {v: len(readers) for v, readers in self.readers.items()}
        for v in set(wanted) & uses.keys():
            uses[v] += 1
        missing = {i: len(sources) for i, sources in self.sources.items()}
        born = {i: sum(uses[v] > 0 for v in mine) for i, mine in self.values.items()}

        def entry(i: int) -> tuple[int, float, int]:
            return born[i] - sum(uses[v] == 1 for v in self.sources[i]), rank[i], i

        heap = [entry(i) for i in self.values if not missing[i]]
        heapify(heap)
        order: dict[int, None] = {}
        while heap:
            *_, i = heappop(heap)
            if i in order:  # it was entered again, when it had come to free more
                continue
            order[i] = None
            for v in self.sources[i]:
                uses[v] -= 1
                if uses[v] == 1:
                    # The last reader frees a value: it is worth more than when it was entered.
                    for k in self.readers[v]:
                        if k not in order and not missing[k]:
                            heappush(heap, entry(k))
            for v in self.values[i]:
                for k in self.readers[v]:
                    missing[k] -= 1
                    if not missing[k]:
                        heappush(heap, entry(k))
        return list(order)


def critical_path_schedule(g: Graph, start: Schedule) -> Schedule:
    """Return a schedule in which the longest chains of operations go ahead.

    Of the nodes whose operands are there, those come first that free more values than they make,
    then those with most operations behind them.
    """
    nodes = sorted(i for i in start.order if g.op[i] != OUT)
    region_of = {out: i for i, outs in start.outs.items() for out in outs}
    flow = _Dataflow(g, {i: [i] for i in nodes}, region_of)
    order = flow.schedule((), {i: -length for i, length in flow.chains(g, BRANCH).items()})
    return Schedule([k for i in order for k in (i, *start.outs.get(i, ()))], start.outs)


def register_pressure_schedule(
    g: Graph, outputs: Sequence[int], wanted: Sequence[int] = ()
) -> Schedule:
    """Order the live nodes so that few values are alive at a time, and few of them are spilled.

    Of the nodes whose operands are there, the next one is that which leaves the fewest values
    alive; among equals it is the one recorded first, where those that begin long chains count as
    recorded earlier: processors that look ahead find more to do at a time. Values of ``outputs``
    are stored as they come, those in ``wanted`` stay alive to the end. Each region is followed at
    once by its used outputs.

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x, y = g.input(0), g.input(0)
    >>> sums = [g.emit(CODES["add"], x, y), g.emit(CODES["sub"], x, y)]
    >>> g.outputs = [g.emit(CODES["sqrt"], s) for s in sums]
    >>> order = register_pressure_schedule(g, g.outputs).order
    >>> order == [sums[0], g.outputs[0], sums[1], g.outputs[1]]
    True
    """
    live = [i for i in g.live([*outputs, *wanted]) if g.op[i] not in (CONST, INPUT)]
    outs = used_outputs(g, live)
    nodes = [i for i in live if g.op[i] != OUT]
    flow = _Dataflow(g, {i: outs.get(i, [i]) for i in nodes}, {})
    chains = flow.chains(g, 1)
    lead = LEAD * len(nodes) / max(chains.values(), default=1)
    order = flow.schedule(wanted, {i: k - lead * chains[i] for k, i in enumerate(nodes)})
    return Schedule([k for i in order for k in (i, *outs.get(i, ()))], outs)


# ---- schedules for machine code ------------------------------------------------------------


def latency_schedule(g: Graph, start: Schedule, wanted: Sequence[int], registers: int) -> Schedule:
    """Return the order for a graph that is not cut, in which little has to wait for its operands.

    Where there are branches, as elementary functions have, the longest chains go ahead. Where there
    are no regions at all, nodes are moved back by their depth, and those in between are
    independent. Around loops and calls values stay near. So they do where memory is the limit: in
    bodies with more than a fourth as many inputs as operations, and more than one operand from
    memory for each.
    """
    if _is_fixed(g, start):
        return start
    if any(isinstance(region, Switch) for region in g.regions.values()):
        ahead = critical_path_schedule(g, start)
    elif not g.regions:
        ahead = Schedule(_spread(g, start.order), start.outs)
    else:
        return locality_schedule(g, start, wanted, registers)
    nodes = {*ahead.order}
    inputs = {j for i in nodes for j in g.operands(i) if j not in nodes and g.op[j] != CONST}
    if 4 * len(inputs) > len(nodes) and count_loads(g, ahead.order, registers) > len(nodes):
        return locality_schedule(g, start, wanted, registers)
    return ahead


def locality_schedule(g: Graph, start: Schedule, wanted: Sequence[int], registers: int) -> Schedule:
    """Return a schedule, or the order in which the graph was recorded where that is better.

    It is where fewer operands come from memory, and where not more values wait for their uses than
    in the other order (or than are near anyway).
    """
    if _is_fixed(g, start):
        return start
    recorded = _by_number(g, start.order, start.outs)
    if count_loads(g, recorded, registers) > count_loads(g, start.order, registers):
        return start
    waiting = max(count_live(g, recorded, wanted), default=0)
    if waiting <= NEAR or waiting <= max(count_live(g, start.order, wanted), default=0):
        return Schedule(recorded, start.outs)
    return start


def _is_fixed(g: Graph, start: Schedule) -> bool:
    """Return whether the order must not change, because of blocks in memory or callbacks."""
    return any(length_of(g.dtype[i]) for i in start.order) or has_host(g)


def count_loads(g: Graph, order: Sequence[int], registers: int) -> int:
    """Count the operands that come from memory.

    They are inputs, or others have displaced them since they were computed or used.
    """
    touched: dict[int, int] = {}
    count = 0
    for k, i in enumerate(order):
        for j in g.operands(i):
            if g.op[j] != CONST:
                before = touched.get(j)
                count += before is None or k - before > registers
                touched[j] = k
        touched[i] = k
    return count


def count_live(g: Graph, order: Sequence[int], wanted: Sequence[int] = ()) -> list[int]:
    """Return how many values are still to be used after each node; ``wanted`` are to the end."""
    position = {i: k for k, i in enumerate(order)}
    last = {j: k for k, i in enumerate(order) for j in g.operands(i) if j in position}
    last.update((i, len(order)) for i in wanted if i in position)
    change = [0] * (len(order) + 1)
    for i, k in last.items():
        change[position[i]] += 1
        change[k] -= 1
    return list(accumulate(change[:-1]))


def _spread(g: Graph, order: Sequence[int]) -> list[int]:
    """Sort nodes by their position and depth.

    Both grow from operands to their users, and so does the sum by which nodes are sorted.
    """
    depth = [0] * len(g.op)
    key = {}
    for k, i in enumerate(order):
        depth[i] = 1 + max((depth[j] for j in g.operands(i)), default=0)
        key[i] = k + SPREAD * depth[i]
    return sorted(order, key=key.__getitem__)
