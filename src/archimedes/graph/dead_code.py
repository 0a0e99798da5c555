"""Dead code elimination: nothing in a program that its outputs do not need, inside regions either.

``Graph.live`` follows every operand of a region. Here a region is asked what the outputs in use
depend on: carried values, slices, shared values and results that nobody reads are left out, and
its bodies are pruned to the rest. Bodies that are called more than once keep all their outputs, so
that calls of one function stay calls of one function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from archimedes.graph.ops import OUT, REGION
from archimedes.graph.passes import Origin, Outputs, Transformer
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Numbers, Pruning, Region
from archimedes.graph.regions.call_regions import Call
from archimedes.records import record


@record
class LiveProgram:
    """A new graph, and where its nodes come from: ``origin`` by ``id()`` of it and its bodies."""

    graph: Graph
    origin: Mapping[int, Origin] = field(repr=False)


def remove_dead_code(graph: Graph) -> LiveProgram:
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
    bodies = _Bodies(graph)
    every = tuple(range(len(graph.inputs)))
    return LiveProgram(bodies.part(graph, every, tuple(range(len(graph.outputs)))), bodies.origin)


def inputs_read(graph: Graph) -> set[int]:
    """Return the numbers of the inputs whose values the outputs need.

    >>> g = Graph()
    >>> unused, used = g.input(0), g.input(0)
    >>> g.outputs = [used]
    >>> inputs_read(g)
    {1}
    """
    return _Bodies(graph).reads(graph, range(len(graph.outputs)))


@record
class _Needs:
    """What some outputs of a graph need: nodes, and for each region its outputs and what stays."""

    wanted: bytearray
    used: dict[int, list[int]]
    prunings: dict[int, Pruning]


class _Bodies:
    """The ``Pruner`` that regions ask: each question about a body is answered once."""

    def __init__(self, graph: Graph) -> None:
        self.origin: dict[int, Origin] = {}
        self._calls = _count_calls(graph)
        self._parts: dict[tuple[int, Numbers, Numbers], Graph] = {}
        self._reads: dict[tuple[int, Numbers], set[int]] = {}

    def reads(self, g: Graph, outputs: Sequence[int]) -> set[int]:
        """Return the numbers of the inputs that some outputs depend on."""
        key = (id(g), tuple(outputs))
        if key not in self._reads:
            wanted = self._find_needs(g, outputs).wanted
            self._reads[key] = {k for k, i in enumerate(g.inputs) if wanted[i]}
        return self._reads[key]

    def is_called_once(self, body: Graph) -> bool:
        """Return whether the program has one call of a body only."""
        return self._calls[body.digest()] == 1

    def part(self, src: Graph, inputs: Numbers, outputs: Numbers) -> Graph:
        """Return the part of a graph that computes some outputs, with some inputs only."""
        key = (id(src), inputs, outputs)
        if key not in self._parts:
            copy = _LiveCopy(src, inputs, self._find_needs(src, outputs))
            copy.run([i for i, wanted in enumerate(copy.needs.wanted) if wanted])
            dst = self._parts[key] = copy.dst
            dst.outputs = [copy.to[src.outputs[k]] for k in outputs]
            if len(inputs) == len(src.inputs) and len(outputs) == len(src.outputs):
                dst.input_names, dst.output_names = src.input_names, src.output_names
            self.origin[id(dst)] = (src, copy.source)
        return self._parts[key]

    def _find_needs(self, g: Graph, outputs: Sequence[int]) -> _Needs:
        """Mark the nodes that outputs depend on, and say what stays of each region."""
        wanted = bytearray(len(g.op))
        for i in (*(g.outputs[k] for k in outputs), *g.effects()):
            wanted[i] = 1
        used: dict[int, list[int]] = {}
        prunings: dict[int, Pruning] = {}
        for i in range(len(g.op) - 1, -1, -1):
            if not wanted[i]:
                continue
            code = g.op[i]
            if code == OUT:
                used.setdefault(g.a[i], []).append(g.b[i])
            operands = g.operands(i)
            if code == REGION:
                region = g.regions[i].within(g)
                prunings[i] = region.prune(self, sorted(used.get(i, ())))
                operands = region.inputs[list(prunings[i].inputs)].tolist()
            for j in operands:
                wanted[j] = 1
        return _Needs(wanted, used, prunings)


def _count_calls(graph: Graph) -> Counter[str]:
    """Count the calls of each body, by its digest; equal bodies are looked into once."""
    calls: Counter[str] = Counter()
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
                calls[region.body.digest()] += 1
    return calls


class _LiveCopy(Transformer):
    """Writes the part of a graph that is needed, with some of its inputs.

    Operations stay as they are: where a loop without steps gives out its inputs, what follows would
    be simplified once more, with other bits (a literal zero times nan is zero).
    """

    simplify = False

    def __init__(self, src: Graph, inputs: Numbers, needs: _Needs) -> None:
        dst = Graph()
        super().__init__(dst, src, (), sources=True)
        self.new_inputs = {k: dst.input(src.dtype[src.inputs[k]]) for k in inputs}
        self.needs = needs

    def input(self, i: int) -> int:
        return self.new_inputs[self.src.a[i]]

    def region(self, i: int, region: Region) -> Outputs:
        """Append what stays of a region, and return what takes the place of its outputs."""
        pruning, used = self.needs.prunings[i], self.needs.used.get(i, ())
        ids = [self.to[region.inputs[k]] for k in pruning.inputs]
        if pruning.region is None:  # it computes nothing: outputs are inputs
            outs: Outputs = dict(zip(pruning.inputs, ids))
        else:
            outs = self.dst.region(pruning.region(np.array(ids, dtype=np.int64))).tolist()
        return {number: outs[pruning.outputs(number)] for number in used}
