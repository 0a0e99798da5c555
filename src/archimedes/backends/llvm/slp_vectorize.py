"""Superword-level parallelism: equal elementary functions of one call go into SIMD lanes.

A program that one call runs has its lanes free. The sines and cosines of a robot's joints, the
exponentials of a table of rates, are the same program on several arguments: as a ``Map`` they are
computed some at a time, in the time of one, and are written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from archimedes.graph.ops import ARITY, CODES, CONST, TABLE
from archimedes.graph.passes import Transformer
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, Map, Scan, Switch, While
from archimedes.graph.regions.base import Region

#: How many operations further than the first of a group the last of its arguments may be.
NEAR = 32
_IS_ELEMENTARY = tuple(op.elementary for op in TABLE)
#: By op: what it is computed with, because most of it is the same.
_WITH = {CODES["cos"]: CODES["sin"]}


class _Row(NamedTuple):
    """Operands, and by op the node that is a function of them."""

    operands: tuple[int, ...]
    nodes: dict[int, int]


def slp_vectorize(graph: Graph, lanes: int) -> Graph:
    """Return an equal graph in which functions of more than half as many arguments are maps.

    Bodies that run for one instance at a time are rewritten too. A graph without such functions
    is returned as it is.
    """
    return _rewrite(graph, lanes, {})


def _rewrite(graph: Graph, lanes: int, known: dict[str, Graph]) -> Graph:
    if not (graph.regions or any(map(_IS_ELEMENTARY.__getitem__, graph.op))):
        return graph
    key = graph.digest()
    if key not in known:
        bodies = {}
        for i, region in graph.regions.items():
            new = [
                _rewrite(body, lanes, known) for body in region.bodies if _has_free_lanes(region)
            ]
            if any(x is not y for x, y in zip(new, region.bodies)):
                bodies[i] = new
        groups = _groups(graph, lanes)
        known[key] = _Vectorizer(graph, bodies).write(groups) if bodies or groups else graph
    return known[key]


class _Vectorizer(Transformer):
    """Writes a graph with maps among its nodes; ``bodies`` are those of regions, by region."""

    simplify = False

    def __init__(self, src: Graph, bodies: dict[int, list[Graph]]) -> None:
        dst = Graph()
        super().__init__(dst, src, [dst.input(kind) for kind in src.input_dtypes])
        self.bodies = bodies

    def write(self, groups: Sequence[Sequence[_Row]]) -> Graph:
        """Return the graph with these groups as maps."""
        for group in groups:
            # What its arguments are made of comes before, whatever order it was written in.
            self.run(self.src.live([j for row in group for j in row.operands]))
            self._append_map(group)
        return self.program()

    def run(self, nodes: Sequence[int]) -> None:
        """Write those of the nodes that are not there yet."""
        super().run([i for i in nodes if self.to[i] < 0 and i not in self.outs])

    def region(self, i: int, region: Region) -> Sequence[int]:
        """Write a region with its new bodies."""
        bodies = self.bodies.get(i, region.bodies)
        return self.dst.region(self.relink(region).with_bodies(bodies)).tolist()

    def _append_map(self, group: Sequence[_Row]) -> None:
        """Append a map, and note where its results are."""
        body = Graph()
        inputs = [body.input(self.src.dtype[j]) for j in group[0].operands]
        codes = sorted({code for row in group for code in row.nodes})
        body.outputs = [body.emit(code, *inputs) for code in codes]
        operands = np.array([self.to[j] for row in group for j in row.operands])
        outs = self.dst.region(Map(operands, body, len(group), len(inputs)))
        for row, results in zip(group, outs.reshape(len(group), -1).tolist()):
            for code, i in row.nodes.items():
                self.to[i] = results[codes.index(code)]


def _has_free_lanes(region: Region) -> bool:
    """Return whether bodies run for one instance at a time."""
    return isinstance(region, (Call, While, Switch)) or (
        isinstance(region, Scan) and region.carry > 0
    )


def _groups(g: Graph, lanes: int) -> list[list[_Row]]:
    """Return the groups of functions to be computed together, in an order that is possible."""
    rows: dict[tuple[int, ...], _Row] = {}
    for i in () if g.effects() else g.live():
        code = g.op[i]
        if _IS_ELEMENTARY[code]:
            operands = (g.a[i], g.b[i], g.c[i])[: ARITY[code]]
            # Functions of constants are shorter.
            if all(g.op[j] != CONST for j in operands):
                family = _WITH.get(code, code)
                rows.setdefault((family, *operands), _Row(operands, {})).nodes[code] = i
    if 2 * len(rows) <= lanes:
        return []
    levels = _levels(g, g.live([j for row in rows.values() for j in row.operands]))
    alike: dict[tuple[int, ...], list[_Row]] = {}
    for (family, *_), row in rows.items():
        level = max(levels[j][0] for j in row.operands)
        kinds = [g.dtype[j] for j in row.operands]
        alike.setdefault((level, family, *kinds), []).append(row)
    groups = [near for key in sorted(alike) for near in _near(alike[key], levels)]
    return [group for group in groups if 2 * len(group) > lanes]


def _levels(g: Graph, live: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return the depth of each node in elementary functions, and in operations.

    No function depends on another of the same depth.
    """
    levels: dict[int, tuple[int, int]] = {}
    for i in live:
        before = [levels[j] for j in g.operands(i)]
        level = max((rank for rank, _ in before), default=0) + _IS_ELEMENTARY[g.op[i]]
        levels[i] = level, max((depth for _, depth in before), default=0) + 1
    return levels


def _near(rows: Sequence[_Row], levels: dict[int, tuple[int, int]]) -> Iterator[list[_Row]]:
    """Yield rows in groups that are about equally far from the beginning."""
    depths = [max(levels[j][1] for j in row.operands) for row in rows]
    group: list[_Row] = []
    first = 0
    for k in sorted(range(len(rows)), key=depths.__getitem__):
        if group and depths[k] > first + NEAR:
            yield group
            group = []
        first = first if group else depths[k]
        group.append(rows[k])
    yield group
