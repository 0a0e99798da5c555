"""Graph to Graph: nothing in a program that its outputs do not need, inside regions either.

``Graph.live`` follows every operand of a region. Here a region is asked what the outputs in use
depend on: carried values, slices, shared values and results that nobody reads are left out, and
its bodies are cut down to the rest. Bodies that are called more than once keep all their outputs,
so that calls of one function stay calls of one function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from archimedes.graph.ops import OUT, REGION
from archimedes.graph.passes import Origin, Outputs, Walk
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Cut, Numbers, Region
from archimedes.graph.regions.call_regions import Call

__all__ = [
    "Origin",
    "Trimmed",
    "inputs_read",
    "remove_dead_code",
]


@dataclass(frozen=True)
class Trimmed:
    """A new graph, and where its nodes come from: ``origin`` by ``id()`` of it and its bodies."""

    graph: Graph
    origin: Mapping[int, Origin] = field(repr=False)


def remove_dead_code(graph: Graph) -> Trimmed:
    """Return the program without what its outputs do not need; all its inputs stay.

    Derivative rules of calls are left out too: bodies that compute the same then have the same
    digest, in every process.

    >>> from archimedes.graph.regions import Switch
    >>> g = Graph()
    >>> x, y = g.input(0), g.input(0)
    >>> body = Graph()
    >>> body.outputs = [body.input(0), body.input(0)]
    >>> g.outputs = [int(g.region(Switch([g.const(1, 2), x, y], (body, body)))[0])]
    >>> [len(r.inputs) for r in remove_dead_code(g).graph.regions.values()]
    [2]
    """
    work = _Trimming(graph)
    every = tuple(range(len(graph.inputs)))
    return Trimmed(work.part(graph, every, tuple(range(len(graph.outputs)))), work.origin)


def inputs_read(graph: Graph) -> set[int]:
    """Return the numbers of the inputs whose values the outputs need.

    >>> g = Graph()
    >>> unused, used = g.input(0), g.input(0)
    >>> g.outputs = [used]
    >>> inputs_read(g)
    {1}
    """
    return _Trimming(graph).reads(graph, range(len(graph.outputs)))


@dataclass(frozen=True)
class _Needed:
    """What some outputs of a graph need: marked nodes, and by region its outputs and its cut."""

    wanted: bytearray
    used: dict[int, list[int]]
    cuts: dict[int, Cut]


class _Trimming:
    """The ``Cutter`` that regions ask: each question about a body is answered once."""

    def __init__(self, graph: Graph) -> None:
        self.origin: dict[int, Origin] = {}
        self._calls = _call_sites(graph)
        self._known: dict[tuple[int, Numbers, Numbers], Graph] = {}
        self._reads: dict[tuple[int, Numbers], Numbers] = {}

    def reads(self, g: Graph, outputs: Sequence[int]) -> set[int]:
        """Return the numbers of the inputs that some outputs depend on."""
        key = (id(g), tuple(outputs))
        found = self._reads.get(key)
        if found is None:
            wanted = self._needed(g, outputs).wanted
            found = self._reads[key] = tuple(k for k, i in enumerate(g.inputs) if wanted[i])
        return set(found)

    def once(self, body: Graph) -> bool:
        """Tell whether the program has one call of a body only."""
        return self._calls[body.digest()] == 1

    def _needed(self, g: Graph, outputs: Sequence[int]) -> _Needed:
        """Mark the nodes that outputs depend on, and say how each region is cut."""
        wanted = bytearray(len(g.op))
        for i in (*(g.outputs[k] for k in outputs), *g.effects()):
            wanted[i] = 1
        used: dict[int, list[int]] = {}
        cuts: dict[int, Cut] = {}
        for i in range(len(g.op) - 1, -1, -1):
            if not wanted[i]:
                continue
            code = g.op[i]
            if code == OUT:
                used.setdefault(g.a[i], []).append(g.b[i])
            if code == REGION:
                region = g.regions[i].within(g)
                cut = cuts[i] = region.cut(self, sorted(used.get(i, ())))
                for j in region.inputs[list(cut.inputs)].tolist():
                    wanted[j] = 1
            else:
                for j in g.operands(i):
                    wanted[j] = 1
        return _Needed(wanted, used, cuts)

    def part(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        """Return the part of a graph that computes some outputs, with some inputs only."""
        key = (id(src), inputs, outputs)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._cut(src, inputs, outputs)
        return found

    def _cut(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        needed = self._needed(src, outputs)
        walk = _Cutting(src, inputs, needed)
        walk.run([i for i, wanted in enumerate(needed.wanted) if wanted])
        dst = walk.dst
        dst.outputs = [walk.to[src.outputs[k]] for k in outputs]
        if len(inputs) == len(src.inputs) and len(outputs) == len(src.outputs):
            dst.input_names, dst.output_names = src.input_names, src.output_names
        assert walk.source is not None
        self.origin[id(dst)] = (src, walk.source)
        return dst


def _call_sites(graph: Graph) -> Counter[str]:
    """Count the calls of each body by its digest, in graphs that are written once each."""
    sites: Counter[str] = Counter()
    seen: set[str] = set()
    left = [graph]
    while left:
        g = left.pop()
        if g.digest() in seen:
            continue
        seen.add(g.digest())
        for region in (g.regions[i] for i in g.live() if i in g.regions):
            left += region.bodies
            if isinstance(region, Call):
                sites[region.body.digest()] += 1
    return sites


class _Cutting(Walk):
    """Writes the part of a graph that is needed, with some of its inputs."""

    def __init__(self, src: Graph, inputs: Numbers, needed: _Needed) -> None:
        dst = Graph()
        super().__init__(dst, src, (), sources=True)
        self.given = {k: dst.input(src.dtype[src.inputs[k]]) for k in inputs}
        self.needed = needed

    def input(self, i: int) -> int:
        return self.given[self.src.a[i]]

    def region(self, i: int, region: Region) -> Outputs:
        """Append a region cut down, and return what takes the place of its outputs."""
        cut, used = self.needed.cuts[i], self.needed.used.get(i, ())
        ids = [self.to[region.inputs[k]] for k in cut.inputs]
        if cut.region is None:  # it computes nothing: outputs are inputs
            position = dict(zip(cut.inputs, ids))
            return {number: position[cut.outputs(number)] for number in used}
        found = self.dst.region(cut.region(np.array(ids, dtype=np.int64))).tolist()
        return {number: found[cut.outputs(number)] for number in used}
