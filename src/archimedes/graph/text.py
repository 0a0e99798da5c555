"""Readable text of a graph, and figures about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

import numpy as np

from archimedes.graph.dtypes import type_name
from archimedes.graph.ops import BLOCK, CONST, INPUT, LOOKUP, OUT, REGION, TABLE
from archimedes.records import record

if TYPE_CHECKING:
    from archimedes.graph.program import Graph


@record
class Statistics:
    """Figures about the live part of a graph.

    ``nodes`` counts operations (no inputs, no constants), ``by_op`` the same by name, ``depth`` is
    the longest chain of operations, ``live_values`` the most values held at once in program
    order, ``regions`` the figures of each region's bodies.
    """

    nodes: int
    inputs: int
    outputs: int
    constants: int
    depth: int
    live_values: int
    by_op: dict[str, int]
    regions: tuple[tuple[str, tuple[Statistics, ...]], ...]

    @property
    def total(self) -> int:
        """Operations including those in the bodies of regions."""
        return self.nodes + sum(s.total for _, bodies in self.regions for s in bodies)

    def __str__(self) -> str:
        ops = ", ".join(f"{name} {count}" for name, count in self.by_op.items())
        return (
            f"{self.nodes} operations ({ops}), {self.constants} constants, depth {self.depth}, "
            f"at most {self.live_values} live values, {self.inputs} inputs, {self.outputs} outputs"
        )


def statistics(g: Graph) -> Statistics:
    """Measure a graph."""
    live = g.live()
    counts: Counter[str] = Counter()
    depth: dict[int, int] = {}
    last_use: dict[int, int] = {}
    regions = []
    for i in live:
        op = g.op[i]
        operands = list(g.operands(i))
        last_use |= dict.fromkeys(operands, i)
        work = 0 if op in (CONST, INPUT, OUT, BLOCK) else 1
        depth[i] = max((depth[j] for j in operands), default=0) + work
        if op == REGION:
            region = g.regions[i]
            counts[region.kind] += 1
            regions.append((region.kind, tuple(statistics(body) for body in region.bodies)))
        elif work:
            counts[TABLE[op].name] += 1
    last_use |= dict.fromkeys(g.outputs, len(g.op))
    change: Counter[int] = Counter()
    for i in (i for i in live if g.op[i] != CONST and i in last_use):
        change.update({i: 1})
        change.subtract({last_use[i] + 1: 1})
    held = accumulate(change[i] for i in sorted(change))
    return Statistics(
        nodes=sum(counts.values()),
        inputs=len(g.inputs),
        outputs=len(g.outputs),
        constants=sum(g.op[i] == CONST for i in live),
        depth=max((depth[i] for i in g.outputs), default=0),
        live_values=max(held, default=0),
        by_op=dict(counts.most_common()),
        regions=tuple(regions),
    )


def _ranges(ids: np.ndarray | list[int]) -> str:
    """Return ids as text, with runs abbreviated: ``%3..%15 %20``."""
    words: list[str] = []
    for _, run in groupby(enumerate(map(int, ids)), lambda pair: pair[1] - pair[0]):
        mine = [f"%{i}" for _, i in run]
        words += mine if len(mine) < 4 else [f"{mine[0]}..{mine[-1]}"]
    return " ".join(words)


def _input_line(g: Graph, i: int) -> str:
    name = f"  # {g.input_names[g.a[i]]}" if g.input_names else ""
    return f"input {g.a[i]}{name}"


def _region_line(g: Graph, i: int) -> str:
    region = g.regions[i]
    return f"{region.kind} {region.summary()}".rstrip() + f" ({_ranges(region.inputs)})"


def _operation_line(g: Graph, i: int) -> str:
    return f"{TABLE[g.op[i]].name} " + " ".join(f"%{j}" for j in g.operands(i))


#: The text of structural nodes, by op; all others are operations.
_LINES: dict[int, Callable[[Graph, int], str]] = {
    CONST: lambda g, i: f"const {g.value[i]!r}",
    INPUT: _input_line,
    OUT: lambda g, i: f"out %{g.a[i]} [{g.b[i]}]",
    LOOKUP: lambda g, i: f"lookup table{g.b[i]} %{g.a[i]}",
    BLOCK: lambda g, i: f"block table{g.b[i]}",
    REGION: _region_line,
}


def render(g: Graph, indent: str = "") -> str:
    """Return a graph as text: one node per line, bodies of regions indented.

    Unused inputs are counted in the first line but not listed.
    """
    kinds = Counter(type_name(d) for d in g.input_dtypes)
    signature = ", ".join(f"{count} {name}" for name, count in kinds.items()) or "no inputs"
    lines = [f"{indent}graph ({signature})"]
    for k, table in enumerate(g.tables):
        lines.append(f"{indent}  table{k} = {table.dtype}[{len(table)}]")
    for i in g.live():
        suffix = "" if g.op[i] == REGION else f" : {type_name(g.dtype[i])}"
        lines.append(f"{indent}  %{i} = {_LINES.get(g.op[i], _operation_line)(g, i)}{suffix}")
        if g.op[i] == REGION:
            lines.extend(render(body, indent + "      ") for body in g.regions[i].bodies)
    lines.append(f"{indent}  return {_ranges(g.outputs)}")
    return "\n".join(lines)
