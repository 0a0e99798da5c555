"""Graph to Graph: nothing in a program that its outputs do not need, inside regions either.

``Graph.live`` follows every operand of a region. Here a region is asked what the outputs in use
depend on: carried values, slices, shared values and results that nobody reads are left out, and
its bodies are cut down to the rest. Bodies of calls keep all their outputs, so that calls of one
function stay calls of one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archimedes.graph.dtypes import B8
from archimedes.graph.ops import CODES, TABLE
from archimedes.graph.program import CONST, INPUT, LOOKUP, OUT, REGION, Graph
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While

__all__ = ["Origin", "Trimmed", "trim"]

_ARITY = tuple(op.arity for op in TABLE)

#: The graph that a graph was made from, and by node the node there.
Origin = tuple[Graph, Mapping[int, int]]
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Trimmed:
    """A new graph, and where its nodes come from: ``origin`` by ``id()`` of it and its bodies."""

    graph: Graph
    origin: Mapping[int, Origin] = field(repr=False)


def trim(graph: Graph) -> Trimmed:
    """Return the program without what its outputs do not need; all its inputs stay.

    Derivative rules of calls are left out too: bodies that compute the same then have the same
    digest, in every process.

    >>> g = Graph()
    >>> x, y = g.input(0), g.input(0)
    >>> body = Graph()
    >>> body.outputs = [body.input(0), body.input(0)]
    >>> g.outputs = [int(g.region(Switch([g.const(1, 2), x, y], (body, body)))[0])]
    >>> [len(r.inputs) for r in trim(g).graph.regions.values()]
    [2]
    """
    work = _Trimming()
    every = tuple(range(len(graph.inputs)))
    return Trimmed(work.cut(graph, every, tuple(range(len(graph.outputs)))), work.origin)


class _Trimming:
    def __init__(self) -> None:
        self.origin: dict[int, Origin] = {}
        self._known: dict[tuple[int, Numbers, Numbers], Graph] = {}
        self._reads: dict[tuple[int, Numbers], Numbers] = {}

    def reads(self, g: Graph, outputs: Sequence[int]) -> set[int]:
        """Return the numbers of the inputs that some outputs depend on."""
        key = (id(g), tuple(outputs))
        found = self._reads.get(key)
        if found is None:
            wanted, _ = self._live(g, outputs)
            found = self._reads[key] = tuple(k for k, i in enumerate(g.inputs) if wanted[i])
        return set(found)

    def _live(self, g: Graph, outputs: Sequence[int]) -> tuple[bytearray, dict[int, _Cut]]:
        """Mark the nodes that outputs depend on, and say how each region is cut."""
        wanted = bytearray(len(g.op))
        for i in (*(g.outputs[k] for k in outputs), *g.effects()):
            wanted[i] = 1
        used: dict[int, list[int]] = {}
        cuts: dict[int, _Cut] = {}
        for i in range(len(g.op) - 1, -1, -1):
            if not wanted[i]:
                continue
            code = g.op[i]
            if code == OUT:
                used.setdefault(g.a[i], []).append(g.b[i])
            if code == REGION:
                region = _reachable(g, g.regions[i])
                cut = cuts[i] = _CUTS[type(region)](self, region, sorted(used.get(i, ())))
                for j in region.inputs[list(cut.inputs)].tolist():
                    wanted[j] = 1
            else:
                for j in g.operands(i):
                    wanted[j] = 1
        return wanted, cuts

    def cut(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        """Return the part of a graph that computes some outputs, with some inputs only."""
        key = (id(src), inputs, outputs)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._cut(src, inputs, outputs)
        return found

    def _cut(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        wanted, cuts = self._live(src, outputs)
        dst = Graph()
        given = {k: dst.input(src.dtype[src.inputs[k]]) for k in inputs}
        op, a, b, c = src.op, src.a, src.b, src.c
        to = [-1] * len(op)
        outs: dict[int, Callable[[int], int]] = {}
        source: dict[int, int] = {}
        for i in range(len(op)):
            if not wanted[i]:
                continue
            code, before = op[i], len(dst.op)
            if code == OUT:
                to[i] = outs[a[i]](b[i])
            elif code == LOOKUP:
                to[i] = dst.lookup(src.tables[b[i]], to[a[i]])
            elif code == CONST:
                to[i] = dst.const(src.value[i], src.dtype[i])
            elif code == INPUT:
                to[i] = given[a[i]]
            elif code == REGION:
                outs[i] = self._place(dst, src.regions[i], cuts[i], to)
            else:
                to[i] = dst.emit(code, *(to[j] for j in (a[i], b[i], c[i])[: _ARITY[code]]))
            source.update((new, i) for new in range(before, len(dst.op)))
        dst.outputs = [to[src.outputs[k]] for k in outputs]
        if len(inputs) == len(src.inputs) and len(outputs) == len(src.outputs):
            dst.input_names, dst.output_names = src.input_names, src.output_names
        self.origin[id(dst)] = (src, source)
        return dst

    def _place(
        self, dst: Graph, region: Region, cut: _Cut, to: Sequence[int]
    ) -> Callable[[int], int]:
        """Append a region cut down, and return what takes the place of its outputs."""
        ids = np.array([to[region.inputs[k]] for k in cut.inputs], dtype=np.int64)
        if cut.region is None:  # it computes nothing: outputs are inputs
            position = dict(zip(cut.inputs, ids.tolist()))
            return lambda number: position[cut.outputs(number)]
        found = dst.region(cut.region(ids)).tolist()
        numbers = cut.outputs
        return lambda number: found[numbers(number)]


@dataclass(frozen=True)
class _Cut:
    """How a region is cut: positions of the inputs it keeps, and how it is made of their ids.

    ``outputs`` gives the new number of an output. ``region`` is None for loops of no step, and for
    calls that only hand values on: ``outputs`` then gives the number of an input.
    """

    inputs: Numbers
    region: Callable[[np.ndarray], Region] | None
    outputs: Callable[[int], int]


def _same(number: int) -> int:
    return number


def _position(numbers: Sequence[int]) -> Callable[[int], int]:
    return {old: new for new, old in enumerate(numbers)}.__getitem__


def _call(work: _Trimming, r: Call, used: list[int]) -> _Cut:
    body = r.body
    if all(body.op[i] == INPUT for i in body.outputs) and not body.effects():
        passed = [body.a[i] for i in body.outputs]
        return _Cut(tuple(sorted({passed[k] for k in used})), None, passed.__getitem__)
    every = tuple(range(len(r.body.outputs)))
    keep = tuple(sorted(work.reads(r.body, every)))
    body = work.cut(r.body, keep, every)
    return _Cut(keep, lambda ids: Call(ids, body, line=r.line), _same)


def _reachable(g: Graph, r: Region) -> Region:
    """Leave out the branches of a switch on a condition that it cannot take."""
    if not isinstance(r, Switch) or len(r.branches) < 3:
        return r
    index = int(r.inputs[0])
    chosen_by_bool = g.op[index] == CODES["i64"] and g.dtype[g.a[index]] == B8
    return replace(r, branches=r.branches[:2]) if chosen_by_bool else r


def _switch(work: _Trimming, r: Switch, used: list[int]) -> _Cut:
    outs = tuple(used)
    keep = tuple(sorted(set().union(*(work.reads(b, outs) for b in r.branches))))
    bodies = tuple(work.cut(b, keep, outs) for b in r.branches)
    if len(bodies) == 1:  # nothing to choose
        inputs = tuple(k + 1 for k in keep)
        return _Cut(inputs, lambda ids: Call(ids, bodies[0], line=r.line), _position(outs))
    inputs = (0, *(k + 1 for k in keep))
    return _Cut(inputs, lambda ids: Switch(ids, bodies, line=r.line), _position(outs))


def _carried(
    work: _Trimming, body: Graph, count: int, wanted: set[int], also: Sequence[int]
) -> tuple[Numbers, set[int]]:
    """Return which carried values matter over any number of steps, and the inputs they read."""
    alive = set(wanted)
    while True:
        reads = work.reads(body, [*sorted(alive), *also])
        more = {k for k in reads if k < count} - alive
        if not more:
            return tuple(sorted(alive)), reads
        alive |= more


def _scan(work: _Trimming, r: Scan, used: list[int]) -> _Cut:
    n, body = r.carry, r.body
    if r.length == 0:
        return _Cut(tuple(used), None, _same)
    kept = sorted({(k - n) % r.outs for k in used if k >= n})
    outs = tuple(n + k for k in kept)
    alive, reads = _carried(work, body, n, {k for k in used if k < n}, outs)
    slices = [j for j in range(r.slices) if n + j in reads]
    first_shared = n + r.length * r.slices
    shared = [k for k in range(n + r.slices, len(body.inputs)) if k in reads]
    part = work.cut(body, (*alive, *(n + j for j in slices), *shared), (*alive, *outs))
    inputs = (
        *alive,
        *(n + t * r.slices + j for t in range(r.length) for j in slices),
        *(first_shared + k - n - r.slices for k in shared),
    )
    carried, columns = _position(alive), _position(kept)

    def number(old: int) -> int:
        if old < n:
            return carried(old)
        step, k = divmod(old - n, r.outs)
        return len(alive) + step * len(kept) + columns(k)

    def make(ids: np.ndarray) -> Region:
        return Scan(ids, part, r.length, len(alive), len(slices), r.reverse, line=r.line)

    return _Cut(inputs, make, number)


def _map(work: _Trimming, r: Map, used: list[int]) -> _Cut:
    cut = _scan(work, Scan(r.inputs, r.body, r.length, 0, r.slices, line=r.line), used)

    def make(ids: np.ndarray) -> Region:
        assert cut.region is not None
        loop: Any = cut.region(ids)
        return Map(ids, loop.body, loop.length, loop.slices, line=r.line)

    return _Cut(cut.inputs, make if cut.region is not None else None, cut.outputs)


def _while(work: _Trimming, r: While, used: list[int]) -> _Cut:
    n = r.carry
    if r.limit == 0:
        return _Cut(tuple(used), None, _same)
    tested = work.reads(r.condition, [0])
    alive, reads = _carried(work, r.body, n, set(used) | {k for k in tested if k < n}, ())
    shared = [k for k in range(n, len(r.inputs)) if k in reads | tested]
    inputs = (*alive, *shared)
    condition = work.cut(r.condition, inputs, (0,))
    body = work.cut(r.body, inputs, alive)

    def make(ids: np.ndarray) -> Region:
        return While(ids, condition, body, len(alive), r.limit, line=r.line)

    return _Cut(inputs, make, _position(alive))


def _whole(work: _Trimming, r: Solve | Host, used: list[int]) -> _Cut:
    return _Cut(tuple(range(len(r.inputs))), r.with_inputs, _same)


_CUTS: dict[type[Region], Callable[[_Trimming, Any, list[int]], _Cut]] = {
    Call: _call,
    Scan: _scan,
    Map: _map,
    While: _while,
    Switch: _switch,
    Solve: _whole,
    Host: _whole,
}
