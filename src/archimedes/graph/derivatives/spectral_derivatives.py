"""Derivatives of what uses eigenvectors or singular vectors, from both ends.

A region with a ``SpectralRule`` gives values and vectors of a matrix. The derivative of a target
has, for each turn of the vectors, the quotient of m (the derivative of the target along the turn)
by the gap of the turn, and near equal values its limit, for which the target must be known as a
program (``quotients.py``). In reverse the m come from the adjoints of the vectors, and are
themselves nodes of the graph. Forward, the region is cut out of the sweep: ``spectral_forward``
differentiates all that follows in the values and vectors, and then does as in reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from archimedes.graph.derivatives.forward import forward_sweep, push_direction
from archimedes.graph.derivatives.quotients import Limit, Part, Quotients, Turn, Values, between
from archimedes.graph.derivatives.reverse import add_term, reverse_sweep
from archimedes.graph.derivatives.sparsity import nodes_in
from archimedes.graph.dtypes import B8
from archimedes.graph.ops import CODES
from archimedes.graph.passes import prune
from archimedes.graph.program import Graph
from archimedes.graph.regions import Call, DerivativeRule, Map
from archimedes.graph.regions.base import Directions, Tangents

Ids = Sequence[int]
Rows = list[list[int | None]]

#: Sweeps of more (node, direction) pairs than this are one body in a ``Map``.
_UNROLLED = 4_000


class SpectralRule(DerivativeRule, Protocol):
    """The derivative of a region that gives the values and vectors of a matrix.

    Regions of one ``family`` on the same inputs give the same values. ``value_outputs`` are the
    positions of the values among the outputs (None for a literal), ``gauge_dependent`` those of
    vectors.
    """

    family: str
    value_outputs: list[int | None]
    gauge_dependent: frozenset[int]

    def values(self, g: Graph, outs: Ids) -> list[int]:
        """Return the ids of the values."""

    def turns(self, g: Graph, outs: Ids) -> list[Turn]:
        """Return the turns of the vectors."""

    def rates(self, g: Graph, outs: Ids, number: int) -> list[int | None]:
        """Return how fast the outputs change along a turn, whose number is computed."""

    def numerators(self, g: Graph, outs: Ids, rows: Rows) -> list[list[tuple[int, int]]]:
        """Return, for each row of adjoints and each turn, m and the size of its terms."""

    def gather_adjoints(
        self, g: Graph, inputs: Ids, outs: Ids, rows: Rows, turned: list[list[int]]
    ) -> Any:
        """Return rows of adjoints of inputs, from those of the outputs and the m / u."""


def spectral_reverse(rule: SpectralRule, g: Graph, inputs: Ids, outs: Ids, rows: Rows) -> Any:
    """Return rows of adjoints of the inputs of a region from those of its outputs."""
    values = _values(rule, g, outs)
    turns, numerators = rule.turns(g, outs), rule.numerators(g, outs, rows)
    by_turn = [list(row) for row in zip(*numerators)]
    limits = values.limits_of_numerators(turns, by_turn) if turns else None
    return _adjoints_in(g, rule, inputs, outs, rows, limits)


def _values(rule: SpectralRule, g: Graph, outs: Ids) -> Values:
    """Return the values, with all nodes that hold one, whichever region of the family made it."""
    ids = rule.values(g, outs)
    positions = {i: k for k, i in enumerate(ids) if i not in g.value}
    if positions:
        operands = g.regions[g.a[next(iter(positions))]].inputs.tolist()
        for other in list(g.regions.values()):
            mine = other.derivative if isinstance(other, Call) else None
            if getattr(mine, "family", None) == rule.family and other.inputs.tolist() == operands:
                other_outs = g.region(other).tolist()
                for k, output in enumerate(mine.value_outputs):  # type: ignore[union-attr]
                    if output is not None:
                        positions.setdefault(other_outs[output], k)
    vectors = [k for k, i in enumerate(outs) if i not in positions]

    def rates(body: Graph, number: int, values: list[int], vector_ids: list[int]) -> list[int]:
        ids = [values[positions[i]] if i in positions else -1 for i in outs]
        for k, i in zip(vectors, vector_ids):
            ids[k] = i
        every, zero = rule.rates(body, ids, number), body.const(0.0, body.dtype[vector_ids[0]])
        return [zero if (rate := every[k]) is None else rate for k in vectors]

    return Values(Quotients(g, ids), positions, [outs[k] for k in vectors], rates)


# ---- forward -------------------------------------------------------------------------------------


def spectral_forward(
    rule: SpectralRule,
    g: Graph,
    inputs: Ids,
    outs: list[int],
    seeds: list[Directions],
    targets: list[int],
    tangents: Tangents,
) -> None:
    """Add to the tangents of targets what passes through a region that was cut out."""
    values = _values(rule, g, outs)
    part = between(g, list(values.positions), targets, values.vectors)
    if part is None:
        return
    slopes = _slopes(g, part, outs, len(targets))
    turns = rule.turns(g, outs)
    limits = values.limits_of_targets(turns, part) if turns else None
    for k, row in enumerate(_adjoints(g, rule, inputs, outs, slopes, limits)):
        for partial, seed in zip(row, seeds):
            if partial is not None:
                for d, tangent in seed.items():
                    add_term(g, tangents[k], d, g.emit(CODES["mul"], partial, tangent))


def _slopes(g: Graph, part: Part, outs: list[int], targets: int) -> Rows:
    """Return, for each target, its derivatives in the outputs of the region."""
    inputs = {i: k for k, i in enumerate(part.reads)}
    if 4 * targets < len(outs):
        ones = [{k: g.const(1.0, dtype)} for k, dtype in enumerate(part.program.output_dtypes)]
        wanted = [i in set(outs) for i in part.reads]
        _, adjoints = reverse_sweep(g, part.program, part.reads, ones, wanted)
        return [[adjoints[inputs[i]].get(k) for i in outs] for k in range(targets)]
    if nodes_in(part.program) * len(outs) > _UNROLLED:
        return _slopes_in_a_loop(g, part, outs)
    seeds: list[Directions] = [{} for _ in part.reads]
    for k, i in enumerate(outs):
        seeds[inputs[i]] = {k: g.const(1.0, g.dtype[i])}
    _, tangents = forward_sweep(g, part.program, part.reads, seeds)
    return [[tangent.get(k) for k in range(len(outs))] for tangent in tangents]


def _slopes_in_a_loop(g: Graph, part: Part, outs: list[int]) -> Rows:
    """Return the same from one body in a loop, which takes the direction as an input."""
    body = Graph()
    rates = {i: body.input(g.dtype[i]) for i in outs}
    inputs = [body.input(g.dtype[i]) for i in part.reads]
    seeds = {k: rates[i] for k, i in enumerate(part.reads) if i in rates}
    body.outputs = push_direction(body, part.program, inputs, seeds)[1]
    units = [g.const(float(i == j), g.dtype[j]) for i in outs for j in outs]
    slopes = g.region(Map([*units, *part.reads], prune(body), len(outs), len(outs)))
    rows: Rows = slopes.reshape(len(outs), -1).T.tolist()
    return rows


def _adjoints(
    g: Graph,
    rule: SpectralRule,
    inputs: Ids,
    outs: list[int],
    slopes: Rows,
    limits: list[list[Limit]] | None,
) -> Any:
    """Return, for each target, the adjoints of the inputs of the region."""
    if len(slopes) * len(outs) ** 2 <= _UNROLLED:
        return _adjoints_in(g, rule, inputs, outs, slopes, limits)
    body = Graph()
    dtype = g.dtype[outs[0]]
    mine: Rows = [[body.input(dtype) for _ in outs]]
    known = None
    if limits is not None:
        known = [[Limit(body.input(dtype), body.input(B8))] for _ in limits]
    ids = [body.input(dtype) for _ in outs]
    (row,) = _adjoints_in(body, rule, inputs, ids, mine, known)
    zero, nothing = body.const(0.0, dtype), g.const(0.0, dtype)
    body.outputs = [zero if i is None else i for i in row]
    slices = [
        [
            *(nothing if i is None else i for i in slope),
            *(i for turn in limits or [] for i in turn[k]),
        ]
        for k, slope in enumerate(slopes)
    ]
    flat = [*(i for row in slices for i in row), *outs]
    adjoints = g.region(Map(flat, prune(body), len(slopes), len(slices[0])))
    return adjoints.reshape(len(slopes), -1).tolist()


def _adjoints_in(
    g: Graph,
    rule: SpectralRule,
    inputs: Ids,
    outs: Ids,
    slopes: Rows,
    limits: list[list[Limit]] | None,
) -> Any:
    """Return the same, unrolled: from the m / u for each target and turn."""
    quotients, turns = Quotients(g, rule.values(g, outs)), rule.turns(g, outs)
    turned = [
        [
            quotients.divide(m, turn, size, None if limits is None else limits[k][row])
            for k, (turn, (m, size)) in enumerate(zip(turns, numerators))
        ]
        for row, numerators in enumerate(rule.numerators(g, outs, slopes))
    ]
    return rule.gather_adjoints(g, inputs, outs, slopes, turned)
