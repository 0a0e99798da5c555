"""The order in which the nodes of a graph are computed, and its cost.

Depth first from the outputs, the operand that needs more registers first (Sethi and Ullman, "The
generation of optimal code for arithmetic expressions", J. ACM 17, 1970): operands come right
before their use, which keeps live ranges short. But a node right after its operand has to wait for
it, and recursions over the bodies of a robot, say, are taken apart: for the first result it goes
through all of them.

So that is where others start from. `in_one_piece` is for what is compiled as a whole: the longest
chains of operations go ahead, others fill the time in which they wait (Goodman and Hsu, "Code
scheduling and register allocation in large basic blocks", Proc. ICS 1988, weigh the same two:
waiting and registers), or nodes are moved back by their depth. `nearer` is for what memory limits,
parts of long programs and bodies with very many inputs: it counts, and takes the order in which the
program was written where operands are nearer to their uses in that.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import NamedTuple

from archimedes.backends.lowering.analysis import has_host
from archimedes.graph.dtypes import length_of
from archimedes.graph.ops import ARITY, CONST, INPUT, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Switch

__all__ = [
    "Schedule",
    "alive",
    "along_chains",
    "as_written",
    "in_one_piece",
    "loads",
    "nearer",
    "schedule",
    "statements",
    "used_outputs",
]

#: Places by which a node is moved back for each operation that it stands on. A few more or less
#: make no difference; none at all makes loops of some hundred operations a fifth slower.
SPREAD = 20
#: A branch counts as so many operations of its chain: what comes together with the branches of
#: others leaves longer runs of instructions without any.
BRANCH = 10
#: So many values of vectors are near: they stay in the first cache.
NEAR = 1000


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


def schedule(g: Graph, outputs: Sequence[int], known: Container[int] = ()) -> Schedule:
    """Order the live nodes; each region is followed at once by its used outputs.

    Nodes in ``known`` have their values already, so that what only they need is left out.
    Graphs with host callbacks keep the order they were written in, since callbacks may have
    effects.
    """
    if has_host(g):
        return as_written(g, outputs)
    live = g.live(outputs)
    op = g.op
    outs = used_outputs(g, live)
    order: list[int] = []
    need = _needs(g, live)
    done = bytearray(len(op))
    for root in outputs:
        stack = [root]
        while stack:
            i = stack[-1]
            if done[i]:
                stack.pop()
                continue
            code = op[i]
            if code in (CONST, INPUT) or i in known:
                done[i] = 1
                stack.pop()
                continue
            waiting = [j for j in g.operands(i) if not done[j]]
            if waiting:
                # The last pushed is visited first: the neediest operand goes on top.
                waiting.sort(key=need.__getitem__)
                stack.extend(waiting)
                continue
            stack.pop()
            done[i] = 1
            order.append(i)
            if code == REGION:
                for j in outs.get(i, ()):
                    done[j] = 1
                    order.append(j)
    return Schedule(order, outs)


def as_written(g: Graph, outputs: Sequence[int]) -> Schedule:
    """Return the live nodes in the order in which they were written, which takes no time."""
    live = g.live(outputs)
    op, outs = g.op, used_outputs(g, live)
    order: list[int] = []
    for i in live:
        if op[i] not in (CONST, INPUT, OUT):
            order.append(i)
            order.extend(outs.get(i, ()))
    return Schedule(order, outs)


def in_one_piece(g: Graph, found: Schedule, wanted: Sequence[int], registers: int) -> Schedule:
    """Return the order for a graph that is not cut, in which little has to wait for its operands.

    Where there are branches, as elementary functions have, it is that along chains; where there are
    no regions at all nodes are moved back by their depth, and those in between are independent;
    around loops and calls values stay near. So they do where memory is the limit: in bodies with
    more than a fourth as many inputs as operations, and more than one operand from memory for each.
    """
    if _is_fixed(g, found):
        return found
    if any(isinstance(region, Switch) for region in g.regions.values()):
        ahead = along_chains(g, found)
    elif not g.regions:
        ahead = Schedule(_spread(g, found.order), found.outs)
    else:
        return nearer(g, found, wanted, registers)
    made = {*ahead.order}
    given = {j for i in made for j in g.operands(i) if j not in made and g.op[j] != CONST}
    if 4 * len(given) > len(made) and loads(g, ahead.order, registers) > len(made):
        return nearer(g, found, wanted, registers)
    return ahead


def along_chains(g: Graph, found: Schedule) -> Schedule:
    """Return a schedule in which the longest chains of operations go ahead.

    Of the nodes whose operands are there, those come first that free more values than they make,
    then those with most operations behind them.
    """
    nodes = [i for i in _as_written(g, found) if g.op[i] != OUT]
    made_by = {out: i for i, outs in found.outs.items() for out in outs}
    users: dict[int, list[int]] = {i: [] for i in nodes}
    operands: dict[int, list[int]] = {}
    for i in nodes:
        operands[i] = [j for j in {made_by.get(j, j) for j in g.operands(i)} if j in users]
        for j in operands[i]:
            users[j].append(i)
    behind: dict[int, int] = {}
    for i in reversed(nodes):
        own = BRANCH if isinstance(g.regions.get(i), Switch) else 1
        behind[i] = own + max((behind[user] for user in users[i]), default=0)
    missing = {i: len(operands[i]) for i in nodes}
    uses = {i: len(users[i]) for i in nodes}
    ready: list[tuple[int, int, int]] = []

    def wait(i: int) -> None:
        freed = sum(uses[j] == 1 for j in operands[i]) - bool(users[i])
        heappush(ready, (-freed, -behind[i], i))

    for i in nodes:
        if not missing[i]:
            wait(i)
    order: dict[int, None] = {}
    while ready:
        i = heappop(ready)[-1]
        if i in order:  # it has come to free more, and was put in again
            continue
        order[i] = None
        for j in operands[i]:
            uses[j] -= 1
            if uses[j] == 1:
                last = next(user for user in users[j] if user not in order)
                if not missing[last]:
                    wait(last)
        for user in users[i]:
            missing[user] -= 1
            if not missing[user]:
                wait(user)
    return Schedule([k for i in order for k in (i, *found.outs.get(i, ()))], found.outs)


def nearer(g: Graph, found: Schedule, wanted: Sequence[int], registers: int) -> Schedule:
    """Return a schedule, or the order in which the graph was written where that is better.

    It is where fewer operands come from memory, and where not more values wait for their uses than
    in the other order (or than are near anyway).
    """
    if _is_fixed(g, found):
        return found
    written = Schedule(_as_written(g, found), found.outs)
    if loads(g, written.order, registers) > loads(g, found.order, registers):
        return found
    waiting = max(alive(g, written.order, wanted), default=0)
    if waiting <= NEAR or waiting <= max(alive(g, found.order, wanted), default=0):
        return written
    return found


def _is_fixed(g: Graph, found: Schedule) -> bool:
    """Tell whether the order has to stay: that of blocks of memory, and of callbacks."""
    return any(length_of(g.dtype[i]) for i in found.order) or has_host(g)


def _as_written(g: Graph, found: Schedule) -> list[int]:
    """Return the nodes by their number, outputs of regions behind their region."""
    order: list[int] = []
    for i in sorted(found.order):
        if g.op[i] != OUT:
            order.append(i)
            order.extend(found.outs.get(i, ()))
    return order


def loads(g: Graph, order: Sequence[int], registers: int) -> int:
    """Count the operands that come from memory.

    They are given, or others have displaced them since they were made or used.
    """
    touched: dict[int, int] = {}
    found = 0
    for k, i in enumerate(order):
        for j in g.operands(i):
            if g.op[j] != CONST:
                before = touched.get(j)
                found += before is None or k - before > registers
                touched[j] = k
        touched[i] = k
    return found


def alive(g: Graph, order: Sequence[int], wanted: Sequence[int] = ()) -> list[int]:
    """Return how many values are still to be used after each node; ``wanted`` are to the end."""
    location = {i: k for k, i in enumerate(order)}
    last = {j: k for k, i in enumerate(order) for j in g.operands(i) if j in location}
    last.update((i, len(order)) for i in wanted if i in location)
    change = [0] * (len(order) + 1)
    for i, k in last.items():
        change[location[i]] += 1
        change[k] -= 1
    return list(accumulate(change[:-1]))


def _spread(g: Graph, order: Sequence[int]) -> list[int]:
    """Sort nodes by their place and depth.

    Both the place in the order and the depth grow from operands to their users, and so does the
    sum by which nodes are sorted.
    """
    depth = [0] * len(g.op)
    location = {}
    for k, i in enumerate(order):
        depth[i] = 1 + max((depth[j] for j in g.operands(i)), default=0)
        location[i] = k + SPREAD * depth[i]
    return sorted(order, key=location.__getitem__)


def _needs(g: Graph, live: Sequence[int]) -> list[int]:
    """Registers that each subtree needs at least, as if it were a tree."""
    need = [0] * len(g.op)
    op, a, b, c = g.op, g.a, g.b, g.c
    for i in live:
        code = op[i]
        arity = ARITY[code]
        if arity == 2:
            x, y = need[a[i]], need[b[i]]
            need[i] = x + 1 if x == y else x if x > y else y
        elif arity == 1:
            need[i] = need[a[i]]
        elif arity == 3:
            x, y, z = sorted((need[a[i]], need[b[i]], need[c[i]]))
            need[i] = max(z, y + 1, x + 2)
        elif code == INPUT:
            need[i] = 1
        elif code == REGION:
            ranked = sorted({need[j] for j in g.operands(i)}, reverse=True)
            need[i] = max((n + k for k, n in enumerate(ranked)), default=0)
    return need


#: How far the longest chain moves forward, as a part of the program.
LEAD = 0.1


def statements(g: Graph, outputs: Sequence[int], wanted: Sequence[int] = ()) -> Schedule:
    """Order the live nodes of a graph; each region is followed at once by its used outputs.

    Values of ``outputs`` are stored as they come, those in ``wanted`` stay alive to the end.

    >>> from archimedes.graph.ops import CODES
    >>> g = Graph()
    >>> x, y = g.input(0), g.input(0)
    >>> sums = [g.emit(CODES["add"], x, y), g.emit(CODES["sub"], x, y)]
    >>> g.outputs = [g.emit(CODES["sqrt"], s) for s in sums]
    >>> statements(g, g.outputs).order == [sums[0], g.outputs[0], sums[1], g.outputs[1]]
    True
    """
    live = [i for i in g.live([*outputs, *wanted]) if g.op[i] not in (CONST, INPUT)]
    outs = used_outputs(g, live)
    nodes = [i for i in live if g.op[i] != OUT]
    values = {i: outs.get(i, [i]) for i in nodes}
    readers: dict[int, list[int]] = {j: [] for j in live}
    sources = {i: [j for j in dict.fromkeys(g.operands(i)) if j in readers] for i in nodes}
    for i in nodes:
        for j in sources[i]:
            readers[j].append(i)
    to_come = {j: len(found) for j, found in readers.items()}
    for j in set(wanted) & to_come.keys():
        to_come[j] += 1
    missing = {i: len(sources[i]) for i in nodes}
    born = {i: sum(to_come[j] > 0 for j in values[i]) for i in nodes}

    chains: dict[int, int] = {}
    for i in reversed(nodes):
        chains[i] = 1 + max((chains[k] for j in values[i] for k in readers[j]), default=0)
    lead = LEAD * len(nodes) / max(chains.values(), default=1)
    location = {i: k - lead * chains[i] for k, i in enumerate(nodes)}

    def entry(i: int) -> tuple[int, float, int]:
        return born[i] - sum(to_come[j] == 1 for j in sources[i]), location[i], i

    heap = [entry(i) for i in nodes if not missing[i]]
    heapify(heap)
    order: list[int] = []
    done: set[int] = set()
    while heap:
        *_, i = heappop(heap)
        if i in done:
            continue
        done.add(i)
        order += [i, *outs.get(i, ())]
        for j in sources[i]:
            to_come[j] -= 1
            if to_come[j] == 1:
                # The last reader frees a value: it is worth more than when it was entered.
                for k in readers[j]:
                    if k not in done and not missing[k]:
                        heappush(heap, entry(k))
        for j in values[i]:
            for k in readers[j]:
                missing[k] -= 1
                if not missing[k]:
                    heappush(heap, entry(k))
    return Schedule(order, outs)
