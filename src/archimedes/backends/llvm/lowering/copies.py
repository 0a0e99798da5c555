"""Moving many values at once: runs in memory become loops, not thousands of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import Binding, Location, Pointer
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, ITEM_MEMORY

__all__ = ["Column", "arrays", "copy_all", "slices_at", "stack_columns", "stacked_outputs"]

#: Shorter runs are written out.
RUN = 16
#: Straight-line copies are cut into blocks of this many: LLVM takes longer than linear in a block.
BLOCK = 256
#: Items of scalar code that are moved at once.
TOGETHER = 8

Copy = tuple[Location, Binding]


def arrays(f: Function, dtypes: Sequence[int]) -> list[Location]:
    """Reserve memory for values of mixed dtypes: one array a dtype, in order of position."""
    totals = {d: dtypes.count(d) for d in set(dtypes)}
    bases = {d: f.module.frame.array(d, totals[d]) for d in sorted(totals)}
    taken = dict.fromkeys(totals, 0)
    places = []
    for d in dtypes:
        places.append(bases[d].at(taken[d]))
        taken[d] += 1
    return places


def _follows(copy: Copy, other: Copy) -> bool:
    """Tell whether ``other`` reads and writes right behind ``copy``."""
    (to, source), (to2, source2) = copy, other
    if to2 != to.at(1):
        return False
    if source.location is not None and source2.location is not None:
        return source2.location == source.location.at(1)
    return source.constant is not None and source2.constant is not None


def copy_all(f: Function, copies: Sequence[Copy]) -> None:
    """Store each binding at its location; runs from array to array are loops."""
    k = written = 0
    while k < len(copies):
        end = k + 1
        while end < len(copies) and _follows(copies[end - 1], copies[end]):
            end += 1
        if end - k >= RUN:
            _copy_run(f, copies[k:end])
        else:
            for to, source in copies[k:end]:
                f.store(to, f.operand(source))
            written += end - k
            if written >= BLOCK:
                f.jump(f.label())
                written = 0
        k = end


def _copy_run(f: Function, run: Sequence[Copy]) -> None:
    to, source = run[0]
    start = source.location
    if start is None:
        start = f.module.table([b.constant[0] for _, b in run if b.constant], to.dtype)
    done = 0
    if f.spelling.lanes == 1:
        # Items lie one after the other: several at once, as they are in memory.
        done = len(run) - len(run) % TOGETHER
        kind, align = f"<{TOGETHER} x {ITEM_MEMORY[to.dtype]}>", ITEM_BYTES[to.dtype]
        with f.loop(0, done, step=TOGETHER) as loop:
            here, there = (f.address(f.moving(x, loop.counter, 1)) for x in (start, to))
            value = f.value(f"load {kind}, ptr {here}, align {align}")
            f.line(f"store {kind} {value}, ptr {there}, align {align}")
    if done < len(run):
        with f.loop(done, len(run)) as loop:
            value = f.load(f.moving(start, loop.counter, 1))
            f.store(f.moving(to, loop.counter, 1), value)


class Column(NamedTuple):
    """One value of a loop's slices over the steps: shared, or at ``start + step * stride``."""

    shared: Binding | None
    start: Location | None
    stride: int


def _column(f: Function, bindings: Sequence[Binding], dtype: int) -> Column:
    first = bindings[0]
    # As text too: 0.0 and -0.0 are equal numbers.
    if all(b == first and repr(b.constant) == repr(first.constant) for b in bindings):
        return Column(first, None, 0)
    start, second = first.location, bindings[1].location
    if start is not None and second is not None:
        stride = second.offset - start.offset
        if all(b.location == start.at(k * stride) for k, b in enumerate(bindings)):
            return Column(None, start, stride)
    if all(b.constant is not None for b in bindings):
        values = [b.constant[0] for b in bindings if b.constant]
        return Column(None, f.module.table(values, dtype), 1)
    start = f.module.frame.array(dtype, len(bindings))
    copy_all(f, [(start.at(k), b) for k, b in enumerate(bindings)])
    return Column(None, start, 1)


def stack_columns(
    f: Function, rows: Sequence[Sequence[Binding]], dtypes: Sequence[int]
) -> list[Column]:
    """Describe the slices of a loop column by column, given what each step reads."""
    return [_column(f, [row[j] for row in rows], d) for j, d in enumerate(dtypes)]


def slices_at(f: Function, columns: Sequence[Column], step: str) -> list[Binding]:
    """Return the bindings of one step's slices; columns of one array share a pointer."""
    moved: dict[tuple[Pointer, int, int], Location] = {}
    bindings = []
    for shared, start, stride in columns:
        if start is None:
            assert shared is not None
            bindings.append(shared)
            continue
        key = (start.pointer, stride, start.dtype)
        if key not in moved:
            moved[key] = f.moving(start._replace(offset=0), step, stride)
        bindings.append(Binding(location=moved[key].at(start.offset)))
    return bindings


def stacked_outputs(
    f: Function, dtypes: Sequence[int], length: int
) -> tuple[list[Location], dict[int, int]]:
    """Reserve one array a dtype for all steps; return the first step's places and the strides."""
    stride = {d: dtypes.count(d) for d in set(dtypes)}
    bases = {d: f.module.frame.array(d, stride[d] * length) for d in sorted(stride)}
    taken = dict.fromkeys(stride, 0)
    places = []
    for d in dtypes:
        places.append(bases[d].at(taken[d]))
        taken[d] += 1
    return places, stride
