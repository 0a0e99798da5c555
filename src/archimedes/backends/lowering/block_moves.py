"""Lowering of ``Pack`` and ``Accumulate``: blocks made by copies, and by sums at indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.lowering.combining import combining
from archimedes.backends.lowering.copies import copy_all, moved_together
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.backends.lowering.walks import Walk, along, merged
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import OPERANDS, REGION
from archimedes.graph.regions import Accumulate, Move, Pack
from archimedes.graph.regions.nest import positions

if TYPE_CHECKING:
    from archimedes.backends.lowering.graph_lowering import Lowering

__all__ = ["await_numbers", "copy_box", "lower_accumulate", "lower_pack"]


def await_numbers(scope: Scope, order: Sequence[int]) -> None:
    """Have numbers that are put together to blocks written there as they are computed."""
    g = scope.graph
    computed = {i for i in order if OPERANDS[g.op[i]]}
    for i in order:
        region = g.regions[i] if g.op[i] == REGION else None
        if not isinstance(region, Pack) or not scope.outs.get(i) or not _covers(region):
            continue
        ids = region.inputs.tolist()
        numbers = [(ids[m.source], m.to.offset) for m in region.moves if _is_number(m)]
        mine = [(j, at) for j, at in numbers if j in computed]
        # Boxes that overlap are copied in their order.
        if not mine or sum(math.prod(m.shape) for m in region.moves) != region.length:
            continue
        to = scope.new_block(scope.outs[i][0])
        for j, at in mine:
            scope.waiting.setdefault(j, []).append(to.at(at))
            scope.awaited.add((scope.outs[i][0], j))


def _is_number(move: Move) -> bool:
    return move.start is None and math.prod(move.shape) == 1


def lower_pack(low: Lowering, scope: Scope, region: Pack, outs: Sequence[int]) -> None:
    """Copy boxes into a block."""
    d, f = low.dialect, scope.f
    (i,) = outs
    # Loops whose results are part of it may have been written into it already.
    to = scope.block(i) if i in scope.bound else scope.new_block(i)
    if not _covers(region):
        d.fill_run(f, to, d.literal(0, region.dtype), region.length)
    single: list[tuple[Place, Binding]] = []
    ids = region.inputs.tolist()
    for move in region.moves:
        source = ids[move.source]
        if source in scope.homes or (_is_number(move) and (i, source) in scope.awaited):
            continue
        value = scope.binding(source)
        if math.prod(move.shape) == 1:
            if move.start is not None and value.place is not None:
                value = Binding(place=value.place.at(move.start.offset))
            single.append((to.at(move.to.offset), value))
            continue
        copy_all(d, f, single)
        single = []
        copy_box(d, f, move, to, value)
    copy_all(d, f, single)


def _covers(region: Pack) -> bool:
    """Tell whether boxes cover the whole block."""
    if sum(math.prod(move.shape) for move in region.moves) < region.length:
        return False
    covered = np.zeros(region.length, dtype=bool)
    for move in region.moves:
        covered[positions(move.to, move.shape)] = True
    return bool(covered.all())


def copy_box(d: Dialect, f: Any, move: Move, to: Place, value: Binding) -> None:
    """Copy a box of elements, or fill it with a scalar."""
    shape, strides = merged(
        move.shape, [move.to.strides, *([move.start.strides] if move.start else [])]
    )
    walks = [Walk(to.at(move.to.offset), strides[0])]
    if move.start is not None and value.place is not None:
        walks.append(Walk(value.place.at(move.start.offset), strides[1]))
    elif value.place is not None:
        value = Binding(operand=d.operand(f, value))
    axis = 0
    with ExitStack() as loops:
        while axis < len(shape):
            last = axis == len(shape) - 1 and shape[axis] >= d.run
            ones = last and all(walk.strides[axis] == 1 for walk in walks)
            if ones and len(walks) == 2:
                d.copy_run(f, walks[0].place, walks[1].place, shape[axis])
                return
            if ones and value.constant is not None:
                d.fill_run(f, walks[0].place, d.operand(f, value), shape[axis])
                return
            _, walks = loops.enter_context(along(d, f, shape[axis], walks, axis))
            axis += 1
        source = d.load(f, walks[1].place) if len(walks) == 2 else d.operand(f, value)
        d.store(f, walks[0].place, source)


def lower_accumulate(low: Lowering, scope: Scope, region: Accumulate, outs: Sequence[int]) -> None:
    """Add values to the elements that indices name, one after the other."""
    d, f, g = low.dialect, scope.f, scope.graph
    (i,) = outs
    to = scope.new_block(i)
    values, indices = region.inputs.tolist()
    dtype = item_type(region.dtype)
    d.fill_run(f, to, d.literal(0, dtype), region.length)
    starts = [(scope.block(values), 1), (scope.block(indices), 1)]
    with d.counted(f, length_of(g.dtype[values]), ()) as loop:
        value, index = moved_together(d, f, starts, loop.counter)
        at = d.load(f, index)
        held = d.element(f, to, region.length, at)
        given = [Binding(operand=held), Binding(place=value)]
        (new,) = low.lower(f, combining("add", dtype), given, [0])
        d.put(f, to, region.length, at, d.operand(f, new))
