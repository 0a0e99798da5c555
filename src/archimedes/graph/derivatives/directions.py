"""Many directions through long loops: instances of a map, each with one direction of its own.

A loop whose body carries a tangent along each of n directions is n times as long to compile. As a
map, its code does not depend on their number; what the tangents are made of is computed for each
direction anew, which costs no more than the tangents themselves, in lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archimedes.graph.blocks.references import as_block
from archimedes.graph.derivatives.bodies import reordered
from archimedes.graph.dtypes import B8, F64, I64, block_type
from archimedes.graph.passes import inline
from archimedes.graph.program import Graph
from archimedes.graph.regions import Map, Scan, While
from archimedes.graph.regions.base import Directions
from archimedes.graph.regions.blocks import has_blocks

__all__ = ["as_map", "in_one_map", "mapped"]

#: Directions are instances of a map where they are so many, and from so many pairs of a node in a
#: loop and a direction on: below, what they share is computed once, and compiled in about a second.
MANY, LONG = 4, 12_000
#: So many more directions may be forward ones.
WORTH = 8
_SCALARS = set(range(4))


def _nodes(g: Graph) -> int:
    """Count the nodes of a program, those of all bodies included."""
    return len(g) + sum(_nodes(body) for r in g.regions.values() for body in r.bodies)


def _in_loops(g: Graph) -> int:
    """Count the nodes of a program that are in loops."""
    total = 0
    for region in g.regions.values():
        count = _nodes if isinstance(region, (Scan, While)) else _in_loops
        total += sum(count(body) for body in region.bodies)
    return total


def as_map(src: Graph, directions: int) -> bool:
    """Tell whether derivatives of a program along so many directions are those of a map."""
    return directions >= MANY and directions * _in_loops(src) >= LONG


def in_one_map(src: Graph, forward: int, reverse: int) -> bool:
    """Tell whether to go forward in a map where going back has fewer directions.

    Going back through a loop makes all its steps twice, and its code holds every direction.
    """
    return reverse >= MANY and forward <= WORTH * reverse and as_map(src, forward)


def mapped(
    g: Graph, along: Graph, inputs: Sequence[int], chosen: np.ndarray, outputs: int
) -> list[Directions]:
    """Append the tangents of all outputs along all directions, and return them by output.

    ``along``: (inputs, k tangents) -> (outputs, tangents of outputs), of which there are
    ``outputs``; ``chosen`` (directions, k): which tangents are 1, others are 0.
    """
    one_by_one = has_blocks(along) and set(along.dtype) & _SCALARS <= {F64, I64, B8}
    made = (_by_scan if one_by_one else _by_map)(g, along, inputs, chosen, outputs)
    return [{d: row[i] for d, row in enumerate(made)} for i in range(outputs)]


def _by_map(
    g: Graph, along: Graph, inputs: Sequence[int], chosen: np.ndarray, outputs: int
) -> list[list[int]]:
    """Run the instances in lanes."""
    count, k = chosen.shape
    kinds = along.input_dtypes[len(inputs) :]
    seeds = [g.const(float(on), kind) for row in chosen for on, kind in zip(row, kinds)]
    order = [*range(len(inputs), len(inputs) + k), *range(len(inputs))]
    body = reordered(along, order, range(outputs, 2 * outputs))
    given = np.array([*seeds, *inputs], dtype=np.int64)
    return g.region(Map(given, body, count, k)).reshape(count, outputs).tolist()


def _by_scan(
    g: Graph, along: Graph, inputs: Sequence[int], chosen: np.ndarray, outputs: int
) -> list[list[int]]:
    """Run one instance after the other: programs with blocks have elements of these in lanes."""
    count, k = chosen.shape
    body = Graph()
    mine = body.input(block_type(F64, k))
    shared = [body.input(kind) for kind in along.input_dtypes[: len(inputs)]]
    tangents = [body.element(mine, body.const(j, I64)) for j in range(k)]
    found = inline(body, along, [*shared, *tangents])[outputs:]
    body.outputs = [as_block(body, np.array(found, dtype=np.int64), F64)]
    given = [g.block(chosen.astype(np.float64).ravel()), *inputs]
    (whole,) = g.region(Scan(np.array(given), body, count, 0, 1, stacked=True)).tolist()
    places = np.arange(count * outputs).reshape(count, outputs).tolist()
    return [[g.element(whole, g.const(at, I64)) for at in row] for row in places]
