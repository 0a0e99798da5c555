"""The one walk that writes a graph anew: copies, rewritings and sweeps say only what differs.

``Walk`` takes the nodes of a graph one after the other and puts something in the place of each
into another graph. What that is, is a method for each kind of node, which copies; passes
override those they are about. Everything that makes a graph from a graph goes through here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archimedes.graph.digests import constant_key, table_digest
from archimedes.graph.ops import (
    ARITY,
    BLOCK,
    CONST,
    ELEMENT,
    INPUT,
    LOOKUP,
    OPERANDS,
    OUT,
    REGION,
    TABLE,
)
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Region

__all__ = [
    "Emit",
    "Origin",
    "Walk",
    "copy_into",
    "inline",
    "prune",
    "rewrite",
    "with_outputs",
]

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


#: Puts something of its own making in the place of a region, which reads ids of the new graph
#: already; returns the outputs' ids.
Place = Callable[[int, Region], Sequence[int]]


class _Copy(Walk):
    place: Place | None = None

    def region(self, i: int, region: Region) -> Outputs:
        if self.place is None:
            return super().region(i, region)
        return list(self.place(i, self.moved(region)))


def copy_into(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int] | np.ndarray,
    nodes: Sequence[int],
    place: Place | None = None,
) -> list[int]:
    """Re-emit the given nodes of ``src`` (ascending, closed under operands) into ``dst``.

    ``inputs`` are the ids in ``dst`` that take the place of ``src.inputs``. ``place`` may put
    something else in the place of a region of ``src``. Returns a list that maps ids of ``src`` to
    ids of ``dst`` (-1 where not copied).
    """
    if place is None and _is_beginning(dst, src, inputs, nodes):
        return _begun(dst, src)
    first = len(dst.op)
    walk = _Copy(dst, src, inputs)
    walk.place = place
    walk.run(nodes)
    to = walk.to
    if src.lines is not None and dst.lines is not None:
        for i in nodes:
            if to[i] >= first:
                dst.lines[to[i]] = src.lines[i]
    return to


def _is_beginning(
    dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray, nodes: Sequence[int]
) -> bool:
    """Tell whether ``dst`` has nothing but the inputs of ``src``, all of which is to be copied."""
    count = len(src.inputs)
    return (
        len(dst.op) == len(dst.inputs) == count == len(inputs)
        and not src.regions
        and dst.lines is None
        and src.inputs == list(range(count))
        and list(inputs) == dst.inputs == src.inputs
        and dst.input_dtypes == src.input_dtypes
        # Inputs that nothing reads are not among the nodes.
        and len(nodes) - bisect_left(nodes, count) == len(src.op) - count
    )


def _begun(dst: Graph, src: Graph) -> list[int]:
    """Copy all of ``src`` at once: each node has been simplified and is there once."""
    dst.op, dst.a, dst.b, dst.c = list(src.op), list(src.a), list(src.b), list(src.c)
    dst.dtype, dst.value, dst.tables = list(src.dtype), dict(src.value), list(src.tables)
    every = range(len(src.op))
    index: dict[tuple[Any, ...], int] = dict(zip(zip(src.op, src.a, src.b, src.c), every))
    for i, value in src.value.items():
        index[constant_key(value, src.dtype[i])] = i
    for number, table in enumerate(src.tables):
        index["table", table_digest(table)] = number
    dst._index = index
    return list(every)


def inline(dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray) -> list[int]:
    """Copy a program into ``dst`` on the given input ids and return the ids of its outputs."""
    to = copy_into(dst, src, inputs, src.live())
    return [to[i] for i in src.outputs]


def with_outputs(src: Graph, outputs: Sequence[int]) -> Graph:
    """Return a pruned graph with the same inputs and other outputs.

    Nodes keep their order, so nothing is simplified or shared anew: this is a renumbering.
    """
    live = src.live([*src.inputs, *outputs])
    dst = Graph()
    if len(live) == len(src.op):
        dst.op, dst.a, dst.b, dst.c = list(src.op), list(src.a), list(src.b), list(src.c)
        dst.dtype, dst.value, dst.tables = list(src.dtype), dict(src.value), list(src.tables)
        dst.regions, dst.inputs, dst.outputs = dict(src.regions), list(src.inputs), list(outputs)
        dst.input_names = src.input_names
        dst.lines = None if src.lines is None else list(src.lines)
        return dst
    to = dict(zip(live, range(len(live))))
    dst.op = [src.op[i] for i in live]
    arity = [ARITY[code] for code in dst.op]
    # Operands move; what is stored in their place (an input's position) does not.
    dst.a = [to[src.a[i]] if n > 0 else src.a[i] for i, n in zip(live, arity)]
    dst.b = [to[src.b[i]] if n > 1 else src.b[i] for i, n in zip(live, arity)]
    dst.c = [to[src.c[i]] if n > 2 else src.c[i] for i, n in zip(live, arity)]
    dst.dtype = [src.dtype[i] for i in live]
    dst.value = {to[i]: value for i, value in src.value.items() if i in to}
    dst.tables = list(src.tables)
    for i, region in src.regions.items():
        if i in to:
            dst.regions[to[i]] = region.with_inputs([to[j] for j in region.inputs.tolist()])
    dst.inputs = [to[i] for i in src.inputs]
    dst.outputs = [to[i] for i in outputs]
    dst.input_names = src.input_names
    dst.lines = None if src.lines is None else [src.lines[i] for i in live]
    return dst


def prune(src: Graph) -> Graph:
    """Return the graph without the nodes its outputs do not need (all inputs stay)."""
    dst = with_outputs(src, src.outputs)
    dst.output_names = src.output_names
    return dst


#: ``emit(dst, i, operands)`` returns what takes the place of node i on operands in ``dst``.
Emit = Callable[[Graph, int, tuple[int, ...]], int]
Emitter = Callable[[Graph], Emit]


class _Rewriting(Walk):
    """Writes the operations by another hand, and rewrites bodies in the same way."""

    def __init__(
        self, src: Graph, emitter: Emitter, known: dict[str, Graph], own: Sequence[bool] | None
    ) -> None:
        dst = Graph()
        self.own = own
        super().__init__(dst, src, [dst.input(dtype) for dtype in src.input_dtypes])
        self.emit, self.emitter, self.known = emitter(src), emitter, known

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        return self.emit(self.dst, i, operands)

    def region(self, i: int, region: Region) -> Outputs:
        bodies = self._bodies(region)
        if isinstance(region, Call) and region.copied:
            return inline(self.dst, bodies[0], self.moved(region).inputs)
        return self.dst.region(self.moved(region).with_bodies(bodies)).tolist()

    def _bodies(self, region: Region) -> list[Graph]:
        return [rewrite(body, self.emitter, self.known, self.own) for body in region.bodies]

    def run(self, nodes: Sequence[int]) -> None:
        """Write nodes; those before the first that changes are copied as they are, all at once."""
        same = self._same(nodes)
        if same > len(self.src.inputs):
            self._copy(same)
            nodes = nodes[bisect_left(nodes, same) :]
        super().run(nodes)

    def _same(self, nodes: Sequence[int]) -> int:
        """Count the nodes before the first that goes, or changes otherwise than in its bodies."""
        src, own, count = self.src, self.own, len(self.src.inputs)
        if own is None or self.dst.lines is not None or src.inputs != [*range(count)]:
            return 0
        for i in nodes[bisect_left(nodes, count) :]:
            code = src.op[i]
            copied = code == REGION and getattr(src.regions[i], "copied", False)
            if i != count or own[code] or copied:
                break
            count += 1
        return count

    def _copy(self, count: int) -> None:
        """Make the first nodes of ``dst`` those of ``src``."""
        src, dst = self.src, self.dst
        for name in ("op", "a", "b", "c", "dtype"):
            getattr(dst, name)[:] = getattr(src, name)[:count]
        index = dst._index
        index.update(zip(zip(dst.op, dst.a, dst.b, dst.c), range(count)))
        for number, table in enumerate(src.tables):
            index["table", table_digest(table)] = number
        dst.tables = list(src.tables)
        self.to[:count] = range(count)
        for i, value in src.value.items():
            if i < count:
                dst.value[i] = value
                index[constant_key(value, src.dtype[i])] = i
        for i, region in src.regions.items():
            if i < count:
                made = dst.regions[i] = self.moved(region).with_bodies(self._bodies(region))
                index[REGION, made.key()] = i

    def out(self, i: int) -> int:
        region = self.src.a[i]
        if region in self.outs:
            return super().out(i)
        return self.dst._shared(OUT, region, self.src.b[i], self.src.dtype[i])


def rewrite(
    src: Graph,
    emitter: Emitter,
    known: dict[str, Graph] | None = None,
    own: Sequence[bool] | None = None,
) -> Graph:
    """Return the live part of a program with its operations put down by another hand.

    ``emitter(graph)`` is asked for each graph (``src`` and every body in it) and returns the
    function that writes its operations (by op, those of ``own``; others are copied). All inputs
    stay. ``known`` holds bodies done already.
    Derivative rules are left out: they have done their work, and are no part of a kernel; bodies
    that were calls for their sake alone are copied to where they are called.
    """
    known = {} if known is None else known
    found = known.get(src.digest())
    if found is not None:
        return found
    walk = _Rewriting(src, emitter, known, own)
    dst = walk.program()
    known[src.digest()] = dst
    return dst
