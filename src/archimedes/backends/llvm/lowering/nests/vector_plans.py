"""How the points of a nest are put into lanes: along which axis, how many at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from archimedes.backends.llvm.runtime.machine import Target
from archimedes.backends.lowering.analysis import is_in_order
from archimedes.graph.dtypes import B8, I64
from archimedes.graph.ops import CONST, INPUT, OPERANDS
from archimedes.graph.regions import Affine, Gather, Nest
from archimedes.graph.regions.block_regions import PARTIALS, row_major

#: Bodies of up to so many operations are short: loads and loops are most of the work.
SHORT = 8
#: Bodies of up to so many operations run on four registers at once, or on two.
FOUR, TWO = 8, 64
#: Over so many points longer ones do too: a fifth faster, and compiled in twice the time.
MANY, LONG = 10_000, 400
#: Fewer points than this along an axis are not worth lanes.
LEAST = 4
#: Loops over so many points run in stages (``stages.py``) where their bodies have so many
#: operations (at most ``TWO`` over fewer than ``MANY`` points): CPUs whose registers are few do not
#: look far ahead. A stage goes over a chunk of points, a multiple of all numbers of lanes.
STAGED, STAGES, CHUNK = 1_000, range(28, 201), 128


class Plan(NamedTuple):
    """``axis`` goes in ``lanes``; ``rows`` points of axis ``across`` are computed together.

    ``across`` is -1 where there is one row at a time, ``axis`` where lanes are instances.
    ``group`` are the partial results that are computed together where lanes are none of them
    (0: one after the other, in memory). ``stages`` tells that a body is computed in stages.
    """

    axis: int
    lanes: int
    across: int = -1
    rows: int = 1
    group: int = 0
    stages: bool = False


def in_any_order(region: Nest) -> Nest | None:
    """Return the nest with partial results, where the order of combining makes no difference.

    It makes none for integers and bools. The least and the greatest of floats are the same in any
    order too, unless they are zero: of zeros the last one counts, with its sign.
    """
    exact = all(dtype in (I64, B8) for dtype in region.body.output_dtypes)
    loose = bool(region.combine) and (exact or region.combine in ("min", "max"))
    if not loose or region.partials > 1 or region.reduced <= PARTIALS:
        return None
    return replace(region, partials=PARTIALS)


def _strides(region: Nest) -> list[tuple[int, ...]]:
    """Strides of all reads; a gather takes a load for each lane, whatever the axis."""
    return [
        read.strides if isinstance(read, Affine) else (2,) * len(region.shape)
        for read in region.reads
        if read is not None
    ]


def _price(region: Nest, axis: int) -> float:
    """Return what it costs to load, and store, a vector along an axis."""
    strides = [x[axis] for x in _strides(region)]
    if axis < region.kept:
        strides += [row_major(region.shape[: region.kept])[axis]] * len(region.body.outputs)
    return sum({0: 0.5, 1: 1.0, -1: 1.5}.get(s, 8.0) for s in strides)


def power_of_two_below(n: int) -> int:
    """Return the largest power of two that is not above a number."""
    return 1 << (n.bit_length() - 1)


def _together(region: Nest, cost: int) -> int:
    """Return how many registers to compute with at once, so that the CPU has enough to do."""
    if cost <= FOUR:
        return 4
    many = math.prod(region.shape) >= MANY
    return 2 if cost <= (LONG if many else TWO) else 1


def in_stages(region: Nest, axis: int, cost: int, target: Target, lanes: int = 1) -> bool:
    """Return whether a body of plain operations is computed in stages, for so many instances."""
    points, length = lanes * math.prod(region.shape), lanes * region.shape[axis]
    # Instances come again and again: the ends of their loops are foreseen.
    least = STAGED if lanes == 1 else STAGED // 4
    if region.combine or points < least or length < CHUNK or target.registers > 16:
        return False
    if cost not in STAGES or (cost > TWO and points < MANY):
        return False
    body = region.body
    computed = [body.op[i] for i in body.live() if body.op[i] not in (CONST, INPUT)]
    plain = all(OPERANDS[op] for op in computed)
    return plain and not any(isinstance(read, Gather) for read in region.reads)


def registers_of(target: Target) -> int:
    """Return the number of vector registers."""
    return 32 if target.lanes == 8 else 16


def registers_for(target: Target, lanes: int, values: int) -> int:
    """Return how many times so many values of some lanes fit into registers, at least once."""
    return max(1, (registers_of(target) - 4) // (max(1, lanes // target.lanes) * values))


def plan_of(region: Nest, cost: int, target: Target) -> Plan | None:
    """Return how to compute a nest in lanes, or None where that is not worth it.

    ``cost`` are the operations of its body.
    """
    shape, kept = region.shape, region.kept
    in_order = is_in_order(region)
    wide = [k for k in range(kept) if shape[k] >= LEAST]
    prices = {k: _price(region, k) for k in wide}
    axis = min(reversed(wide), key=prices.__getitem__, default=-1)
    if not in_order:
        last = len(shape) - 1
        whole = kept == last or shape[last] % region.partials == 0
        cheap = axis < 0 or _price(region, last) <= prices[axis]
        if whole and cheap and shape[last] > region.partials:
            return _along_reduced(region, last, cost, target)
    if axis < 0:
        return None
    return _along_kept(region, axis, cost, target, in_order)


def _along_reduced(region: Nest, axis: int, cost: int, target: Target) -> Plan:
    """Return the plan in which lanes are the partial results."""
    if cost > SHORT:
        lanes = target.lanes * min(2, _together(region, cost))
        return Plan(axis, min(lanes, region.partials))
    # Rows together load what they share once.
    across = region.kept - 1
    share = across >= 0 and any(x[across] == 0 for x in _strides(region))
    fitting = registers_of(target) // 2 // (region.partials // target.lanes)
    outs = len(region.body.outputs)
    rows = min(fitting // outs, region.shape[across]) if share else 1
    return Plan(axis, region.partials, across, rows) if rows > 1 else Plan(axis, region.partials)


def _along_kept(region: Nest, axis: int, cost: int, target: Target, in_order: bool) -> Plan:
    if in_stages(region, axis, cost, target):
        registers = 4 if math.prod(region.shape) >= MANY else 2
        return Plan(axis, registers * target.lanes, stages=True)
    registers = min(_together(region, cost), 2 if region.combine and in_order else 4)
    lanes = min(target.lanes * registers, power_of_two_below(region.shape[axis]))
    others = [k for k in range(region.kept) if k != axis and region.shape[k] > 1]
    if not region.combine or cost > SHORT:
        return Plan(axis, lanes)
    fitting = registers_for(target, lanes, len(region.body.outputs))
    if not in_order:
        one = len(region.shape) == region.kept + 1
        return Plan(
            axis, lanes, group=min(power_of_two_below(fitting), region.partials) if one else 0
        )
    rows = min(fitting, region.shape[others[-1]]) if others else 1
    return Plan(axis, lanes, others[-1], rows) if rows > 1 else Plan(axis, lanes)
