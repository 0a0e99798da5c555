"""Very long loops run over threads: ranges of an axis, each a call of the same function."""

from __future__ import annotations

import math
from typing import NamedTuple

from archimedes.backends.llvm.calling_convention import LOOP_THREADS
from archimedes.backends.llvm.lowering.assembler import PARAMETERS, Function, Module
from archimedes.backends.llvm.lowering.nests.vector_plans import Plan
from archimedes.backends.llvm.lowering.prologue import add_guarded
from archimedes.graph.regions import Nest

#: What a function of a range of an axis takes; ``own`` is memory of the thread, where it is not the
#: one that the frame belongs to.
RANGE = f"{PARAMETERS}, i64 %begin, i64 %end, ptr %own"
#: Loops of so many operations in all, of which loads and stores at a point are some (fewer where
#: values are combined), are worth threads: they take about 70 microseconds. A piece has so many.
OPERATIONS, PIECE = 1 << 21, 1 << 18
MOVES, LOADS = 8, 2
_THREADS = f"@{LOOP_THREADS}"


class Ranges(NamedTuple):
    """The axis that is cut, and the number of points that pieces are multiples of."""

    axis: int
    grain: int


def ranges_of(region: Nest, plan: Plan, cost: int) -> Ranges | None:
    """Return how a loop is cut, or None where it is not.

    A kept axis is cut: its points have nothing to do with each other.
    """
    each = cost + (LOADS if region.combine else MOVES)
    work = math.prod(region.shape) * each
    if plan.axis < 0 or not region.kept or work < OPERATIONS:
        return None
    others = [axis for axis in range(region.kept) if axis not in (plan.axis, plan.across)]
    if others:
        axis, grain = others[0], 1
    elif plan.axis < region.kept:
        axis, grain = plan.axis, plan.lanes
    else:
        axis, grain = plan.across, plan.rows
    if axis < 0:
        return None
    pieces = -(-PIECE * region.shape[axis] // (work * grain))
    return Ranges(axis, grain * max(1, pieces))


def call_ranges(f: Function, module: Module, inner: str, count: int, grain: int) -> None:
    """Call a function for all of an axis, in ranges over threads, or at once without threads.

    ``inner`` is the function ``i32 (RANGE)``; threads call it in the default environment. Without
    a ``grain`` it is not cut.
    """
    if not grain:
        f.value(f"call i32 {inner}({PARAMETERS}, i64 0, i64 {count}, ptr null)")
        return
    guarded = module.fresh("arc_range")
    add_guarded(module, guarded.removeprefix("@"), RANGE, inner.removeprefix("@"))
    line = f"{_THREADS} = external global ptr, align 8"
    if line not in module.global_lines:
        module.global_lines.append(line)
    done = f.memory("i32")
    f.line(f"store i32 0, ptr {done}, align 4")
    threads = f.value(f"load ptr, ptr {_THREADS}, align 8")
    f.line(
        f"call void {threads}(ptr {guarded}, {PARAMETERS}, i64 {count}, i64 {grain}, ptr {done})"
    )
    status = f.value(f"load i32, ptr {done}, align 4")
    with f.when(f.value(f"icmp eq i32 {status}, 0")):
        f.value(f"call i32 {inner}({PARAMETERS}, i64 0, i64 {count}, ptr null)")
