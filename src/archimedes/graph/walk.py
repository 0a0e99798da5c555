"""The one walk that writes a graph anew: copies, rewritings and sweeps say only what differs.

``Walk`` takes the nodes of a graph one after the other and puts something in the place of each
into another graph. What that is, is a method for each kind of node, which copies; passes
override those they are about. Everything that makes a graph from a graph goes through here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from archimedes.graph.ops import BLOCK, CONST, ELEMENT, INPUT, LOOKUP, OPERANDS, OUT, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions.base import Region

__all__ = ["Origin", "Walk"]

#: The graph that a graph was made from, and by node the node there.
Origin = tuple[Graph, Mapping[int, int]]
_NONE, _ALL = [False] * len(TABLE), [True] * len(TABLE)
#: Ids by the number of an output.
Outputs = Sequence[int] | Mapping[int, int]


class Walk:
    """Writes nodes of ``src`` into ``dst``, where ``inputs`` stand for the inputs of ``src``.

    ``to`` gives for a node of ``src`` what stands in its place (-1: nothing), ``outs`` for a
    region what stands in the place of its outputs, by number. ``source``, kept on request, gives
    for a node made in ``dst`` the one of ``src`` that it was made for.

    >>> from archimedes.graph.ops import CODES
    >>> src, dst = Graph(), Graph()
    >>> x = src.input(0)
    >>> src.outputs = [src.emit(CODES["add"], x, src.const(1.0))]
    >>> walk = Walk(dst, src, [dst.const(2.0)])
    >>> walk.run(src.live())
    >>> dst.value[walk.to[src.outputs[0]]]
    3.0
    """

    #: By op: whether ``operation`` is asked for it; None: for all, unless it is the one here.
    own: Sequence[bool] | None = None

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray, sources: bool = False
    ) -> None:
        self.dst, self.src = dst, src
        self.inputs = [int(i) for i in inputs]
        self.to = [-1] * len(src.op)
        self.outs: dict[int, Outputs] = {}
        self.source: dict[int, int] | None = {} if sources else None

    def run(self, nodes: Sequence[int]) -> None:
        """Write these nodes: ascending, and closed under operands with what ``to`` has already."""
        src, dst, to, source = self.src, self.dst, self.to, self.source
        op, a, b, c = src.op, src.a, src.b, src.c
        emit, operation = dst.emit, self.operation
        own = self.own
        if own is None:
            own = _NONE if type(self).operation is Walk.operation else _ALL
        made = len(dst.op)
        for i in nodes:
            code = op[i]
            count = OPERANDS[code]
            if count == 0:
                to[i] = self._structural(i, code)
            elif own[code]:
                operands = (to[a[i]], to[b[i]], to[c[i]])[:count]
                to[i] = operation(i, operands)
            elif count == 2:
                to[i] = emit(code, to[a[i]], to[b[i]])
            elif count == 1:
                to[i] = emit(code, to[a[i]])
            else:
                to[i] = emit(code, to[a[i]], to[b[i]], to[c[i]])
            if source is not None:
                source.update((new, i) for new in range(made, len(dst.op)))
                made = len(dst.op)

    def outputs(self) -> list[int]:
        """Return what stands in the place of the outputs of ``src``."""
        return [self.to[i] for i in self.src.outputs]

    def program(self) -> Graph:
        """Write all that is alive, and return the new graph with its outputs and names."""
        src, dst = self.src, self.dst
        self.run(src.live())
        dst.outputs = self.outputs()
        dst.input_names, dst.output_names = src.input_names, src.output_names
        return dst

    def _structural(self, i: int, code: int) -> int:
        src = self.src
        if code == CONST:
            return self.constant(i)
        if code == INPUT:
            return self.input(i)
        if code == OUT:
            return self.out(i)
        if code == LOOKUP:
            return self.dst.lookup(self.table(src.tables[src.b[i]]), self.to[src.a[i]])
        if code == ELEMENT:
            return self.element(i)
        if code == BLOCK:
            return self.block(i)
        self.outs[i] = self.region(i, src.regions[i])
        return -1

    # ---- what takes the place of a node -------------------------------------------------

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        """Return what stands for an operation on operands that are written already."""
        return self.dst.emit(self.src.op[i], *operands)

    def constant(self, i: int) -> int:
        """Return what stands for a constant."""
        return self.dst.const(self.src.value[i], self.src.dtype[i])

    def input(self, i: int) -> int:
        """Return what stands for an input."""
        return self.inputs[self.src.a[i]]

    def table(self, table: np.ndarray) -> np.ndarray:
        """Return what stands for a table that is looked up."""
        return table

    def block(self, i: int) -> int:
        """Return what stands for a table that is a block."""
        return self.dst.block(self.table(self.src.tables[self.src.b[i]]))

    def element(self, i: int) -> int:
        """Return what stands for an element of a block."""
        return self.dst.element(self.to[self.src.a[i]], self.to[self.src.b[i]])

    def region(self, i: int, region: Region) -> Outputs:
        """Return what stands for the outputs of a region of ``src``."""
        return self.dst.region(self.moved(region)).tolist()

    def out(self, i: int) -> int:
        """Return what stands for an output of a region."""
        return self.outs[self.src.a[i]][self.src.b[i]]

    def moved(self, region: Region) -> Region:
        """Return a region of ``src`` that reads what stands for its inputs."""
        to = self.to
        moved: Region = region.with_inputs([to[j] for j in region.inputs.tolist()])
        return moved
