"""Graph to Graph: the one traversal that rewrites a graph, and copies and passes built on it.

``Transformer`` takes the nodes of a graph one after the other and puts something in the place of
each into another graph. What that is, is a method for each kind of node, which copies; passes
override those they are about. Everything that makes a graph from a graph goes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from archimedes.graph.ops import ARITY, INPUT, OPERANDS, OUT, REGION, TABLE
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call
from archimedes.graph.regions.base import Region

R = TypeVar("R", bound=Region)
#: The graph that a graph was made from, and by node the node there.
Origin = tuple[Graph, Mapping[int, int]]
_NONE, _ALL = [False] * len(TABLE), [True] * len(TABLE)
#: Ids by the number of an output.
Outputs = Sequence[int] | Mapping[int, int]


class Transformer:
    """Writes nodes of ``src`` into ``dst``, where ``inputs`` stand for the inputs of ``src``.

    ``to`` maps a node of ``src`` to its replacement (-1: none yet), ``outs`` a region to the
    replacements of its outputs, by number. ``source``, filled on request, maps a node of ``dst`` to
    the node of ``src`` that it was made for.

    >>> from archimedes.graph.ops import CODES
    >>> src, dst = Graph(), Graph()
    >>> x = src.input(0)
    >>> src.outputs = [src.emit(CODES["add"], x, src.const(1.0))]
    >>> copy = Transformer(dst, src, [dst.const(2.0)])
    >>> copy.run(src.live())
    >>> dst.value[copy.to[src.outputs[0]]]
    3.0
    """

    #: By op: whether ``operation`` is asked for it; None: for all, unless it is the one here.
    own: Sequence[bool] | None = None
    #: Whether copies may be simpler than what they are copies of; so are all behind an own one.
    simplify = True

    def __init__(
        self, dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray, sources: bool = False
    ) -> None:
        self.dst, self.src = dst, src
        self.inputs = [int(i) for i in inputs]
        self.to = [-1] * len(src.op)
        self.outs: dict[int, Outputs] = {}
        self.source: dict[int, int] = {}
        self._note_sources = sources

    def run(self, nodes: Sequence[int]) -> None:
        """Write these nodes: ascending, with all operands among them or in ``to`` already."""
        src, dst, to = self.src, self.dst, self.to
        op, a, b, c = src.op, src.a, src.b, src.c
        emit, operation = dst.emit if self.simplify else dst.emit_simplified, self.operation
        own = self.own
        if own is None:
            own = _NONE if type(self).operation is Transformer.operation else _ALL
        written = len(dst.op)
        for i in nodes:
            code = op[i]
            count = OPERANDS[code]
            if count == 0:
                to[i] = self._structural(i, code)
            elif own[code]:
                emit = dst.emit
                to[i] = operation(i, (to[a[i]], to[b[i]], to[c[i]])[:count])
            elif count == 2:
                to[i] = emit(code, to[a[i]], to[b[i]])
            elif count == 1:
                to[i] = emit(code, to[a[i]])
            else:
                to[i] = emit(code, to[a[i]], to[b[i]], to[c[i]])
            if self._note_sources:
                self.source.update((new, i) for new in range(written, len(dst.op)))
                written = len(dst.op)

    def copy(self, nodes: Sequence[int]) -> None:
        """Write these nodes, and note the user's lines that they come from."""
        first, src, lines = len(self.dst.op), self.src, self.dst.lines
        self.run(nodes)
        if src.lines is not None and lines is not None:
            for i in nodes:
                if self.to[i] >= first:
                    lines[self.to[i]] = src.lines[i]
                for out in self.outs.get(i, ()):  # of a region, which has no replacement itself
                    if out >= first and self.dst.op[out] == OUT:
                        lines[self.dst.a[out]] = src.lines[i]

    def outputs(self) -> list[int]:
        """Return the replacements of the outputs of ``src``."""
        return [self.to[i] for i in self.src.outputs]

    def program(self) -> Graph:
        """Write all live nodes, and return the new graph with its outputs and names."""
        src, dst = self.src, self.dst
        self.run(src.live())
        dst.outputs = self.outputs()
        dst.input_names, dst.output_names = src.input_names, src.output_names
        return dst

    def _structural(self, i: int, code: int) -> int:
        if code == REGION:
            self.outs[i] = self.region(i, self.src.regions[i])
            return -1
        replace: Callable[[int], int] = getattr(self, TABLE[code].name)
        return replace(i)

    # ---- replacements: structural nodes have a method of the name of their op ------------

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        """Return the replacement of an operation, whose operands are written already."""
        return self.dst.emit(self.src.op[i], *operands)

    def const(self, i: int) -> int:
        """Return the replacement of a constant."""
        return self.dst.const(self.src.value[i], self.src.dtype[i])

    def input(self, i: int) -> int:
        """Return the replacement of an input."""
        return self.inputs[self.src.a[i]]

    def table(self, table: np.ndarray) -> np.ndarray:
        """Return the replacement of a constant table."""
        return table

    def lookup(self, i: int) -> int:
        """Return the replacement of a lookup in a table."""
        return self.dst.lookup(self.table(self.src.tables[self.src.b[i]]), self.to[self.src.a[i]])

    def block(self, i: int) -> int:
        """Return the replacement of a table that is a block."""
        return self.dst.block(self.table(self.src.tables[self.src.b[i]]))

    def element(self, i: int) -> int:
        """Return the replacement of an element of a block."""
        return self.dst.element(self.to[self.src.a[i]], self.to[self.src.b[i]])

    def region(self, i: int, region: Region) -> Outputs:
        """Return the replacements of the outputs of a region."""
        return self.dst.region(self.relink(region)).tolist()

    def out(self, i: int) -> int:
        """Return the replacement of an output of a region."""
        return self.outs[self.src.a[i]][self.src.b[i]]

    def relink(self, region: R) -> R:
        """Return a region of ``src`` that reads the replacements of its inputs."""
        to = self.to
        linked: R = region.with_inputs([to[j] for j in region.inputs.tolist()])
        return linked


# ---- copies ------------------------------------------------------------------------------


def copy_into(
    dst: Graph, src: Graph, inputs: Sequence[int] | np.ndarray, nodes: Sequence[int]
) -> list[int]:
    """Re-emit nodes of ``src`` (ascending, closed under operands) into ``dst``.

    ``inputs`` are the ids in ``dst`` that take the place of ``src.inputs``. Returns a list that
    maps ids of ``src`` to ids of ``dst`` (-1 where not copied).
    """
    copy = Transformer(dst, src, inputs)
    # Where inputs stay inputs no rule finds more than it did in ``src``.
    count, own = len(dst.op), {*copy.inputs}
    copy.simplify = len(own) < len(inputs) or any(
        not 0 <= i < count or dst.op[i] != INPUT for i in own
    )
    copy.copy(nodes)
    return copy.to


def inline(
    dst: Graph,
    src: Graph,
    inputs: Sequence[int] | np.ndarray,
    outputs: Sequence[int] | None = None,
) -> list[int]:
    """Copy a program into ``dst``, reading these ids, and return the ids of its outputs.

    ``outputs`` may name other nodes of ``src`` instead.
    """
    outputs = src.outputs if outputs is None else outputs
    to = copy_into(dst, src, inputs, src.live(outputs))
    return [to[i] for i in outputs]


def with_outputs(src: Graph, outputs: Sequence[int]) -> Graph:
    """Return a pruned graph with the same inputs and other outputs.

    Nodes keep their order, so nothing is simplified or shared anew: this is a renumbering.
    """
    live = src.live([*src.inputs, *outputs])
    dst = Graph()
    to = dict(zip(live, range(len(live))))
    columns = src.op, src.a, src.b, src.c, src.dtype
    if len(live) == len(src.op):  # nothing goes, and nothing moves
        dst.op, dst.a, dst.b, dst.c, dst.dtype = map(list, columns)
    else:
        dst.op, a, b, c, dst.dtype = ([column[i] for i in live] for column in columns)
        arity = [ARITY[code] for code in dst.op]
        # Operands move; what is stored in their place (an input's position) does not.
        dst.a = [to[j] if n > 0 else j for j, n in zip(a, arity)]
        dst.b = [to[j] if n > 1 else j for j, n in zip(b, arity)]
        dst.c = [to[j] if n > 2 else j for j, n in zip(c, arity)]
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


# ---- rewritings of graphs and of the bodies in them --------------------------------------


class Rewriter:
    """Rewrites graphs, each of them once, by a ``DeepTransformer`` that ``transform`` makes.

    Where it makes none the graph stays as it is. ``key`` says when two graphs count as one.
    ``origin`` gets an entry for each new graph, by its ``id``: where its nodes come from.
    """

    def __init__(
        self,
        transform: Callable[[Graph, Rewriter], Transformer | None],
        origin: dict[int, Origin] | None = None,
        key: Callable[[Graph], Hashable] = Graph.digest,
    ) -> None:
        self.transform, self.key = transform, key
        self.origin = {} if origin is None else origin
        self.known: dict[Hashable, Graph] = {}

    def __call__(self, src: Graph) -> Graph:
        key = self.key(src)
        dst = self.known.get(key)
        if dst is None:
            transformer = self.transform(src, self)
            dst = self.known[key] = src if transformer is None else transformer.program()
            if transformer is not None:
                self.origin[id(dst)] = (src, transformer.source)
        return dst


class DeepTransformer(Transformer):
    """Writes a new graph with the same inputs; ``rewriter`` rewrites the bodies in it."""

    def __init__(self, src: Graph, rewriter: Rewriter, sources: bool = True) -> None:
        dst = Graph.with_inputs(map(self.dtype, src.input_dtypes))
        super().__init__(dst, src, dst.inputs, sources)
        self.rewriter = rewriter

    def dtype(self, dtype: int) -> int:
        """Return the type of an input of ``dst``."""
        return dtype

    def copy_lines(self) -> None:
        """Note the user's lines of all nodes written so far, if their sources are noted."""
        lines = self.src.lines
        if lines is not None:
            nodes = map(self.source.get, range(len(self.dst.op)))
            self.dst.lines = [None if i is None else lines[i] for i in nodes]

    def region(self, i: int, region: Region) -> Outputs:
        linked, bodies = self.relink(region), [*map(self.rewriter, region.bodies)]
        changed = any(new is not old for new, old in zip(bodies, region.bodies))
        return self.dst.region(linked.with_bodies(bodies) if changed else linked).tolist()


#: ``emit(dst, i, operands)`` returns what takes the place of node i on operands in ``dst``.
EmitNode = Callable[[Graph, int, tuple[int, ...]], int]
Emitter = Callable[[Graph], EmitNode]


def rewrite(src: Graph, emitter: Emitter, own: Sequence[bool] | None = None) -> Graph:
    """Return the live part of a program with its operations written by ``emitter``.

    ``emitter(graph)`` is asked for each graph (``src`` and every body in it) and returns the
    function that writes its operations (by op, those of ``own``; others are copied). All inputs
    stay. Derivative rules are left out: they have done their work, and are no part of a kernel;
    bodies that were calls for their sake alone are copied to where they are called.
    """

    def transform(g: Graph, rewriter: Rewriter) -> Transformer | None:
        if own is None or g.regions or any(map(own.__getitem__, g.op)):
            return _Rewriting(g, rewriter, emitter(g), own)
        is_live = len(g.live([*g.inputs, *g.outputs])) == len(g.op)
        return None if is_live else _Rewriting(g, rewriter, emitter(g), own)

    return Rewriter(transform)(src)


class _Rewriting(DeepTransformer):
    def __init__(
        self, src: Graph, rewriter: Rewriter, emit: EmitNode, own: Sequence[bool] | None
    ) -> None:
        super().__init__(src, rewriter, sources=False)
        self.emit, self.own = emit, own
        self.simplify = any(isinstance(r, Call) and r.copied for r in src.regions.values())

    def operation(self, i: int, operands: tuple[int, ...]) -> int:
        return self.emit(self.dst, i, operands)

    def region(self, i: int, region: Region) -> Outputs:
        if isinstance(region, Call) and region.copied:
            return inline(self.dst, self.rewriter(region.body), self.relink(region).inputs)
        bodies = [*map(self.rewriter, region.bodies)]
        return self.dst.region(self.relink(region).with_bodies(bodies)).tolist()
