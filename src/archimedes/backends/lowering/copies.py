"""Copies of many values at once: runs and boxes in memory become loops instead of many lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import item_type, length_of

#: Where a value goes to, and what it is.
Copy = tuple[Location, Binding]


def arrays(d: Dialect, f: Any, dtypes: Sequence[int], length: int = 1) -> list[Location]:
    """Reserve memory for values of mixed types: one array per dtype, in order of position.

    With a ``length`` the arrays hold so many rows of these values. A block has its own array.
    """
    counts = Counter(x for x in dtypes if not length_of(x))
    bases = {x: d.array(f, x, counts[x] * length) for x in sorted(counts)}
    neighbours = {x: map(base.at, count()) for x, base in bases.items()}
    return [
        d.array(f, item_type(x), length_of(x) * length) if length_of(x) else next(neighbours[x])
        for x in dtypes
    ]


# ---- boxes: rows of copies -----------------------------------------------------------------


class Box(NamedTuple):
    """Rows of copies: the distances of elements, and of rows, in the target and in the source."""

    rows: int
    columns: int
    steps: tuple[int, int]
    apart: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of copies; 0 where there is no box."""
        return self.rows * self.columns


NO_BOX = Box(0, 0, (0, 0), (0, 0))


def box_at(copies: Sequence[Copy], start: int) -> Box:
    """Return the largest box, of at least two rows, of the copies from number ``start`` on.

    >>> def copy(to, source):
    ...     return Location("s1", to, 0), Binding(location=Location("s2", source, 0))
    >>> box_at([copy(3 * r + c, 2 * c + r) for r in range(2) for c in range(3)], 0)
    Box(rows=2, columns=3, steps=(1, 2), apart=(3, 1))
    """
    step = _distance(copies, start, start + 1)
    if step is None:
        return NO_BOX
    end = start + 2
    while _distance(copies, end - 1, end) == step:
        end += 1
    columns = end - start
    apart = _distance(copies, start, end)
    if apart is None:
        return NO_BOX
    rows = 1
    while _distance(copies, end - columns, end) == apart and all(
        _distance(copies, k, k + 1) == step for k in range(end, end + columns - 1)
    ):
        rows, end = rows + 1, end + columns
    return Box(rows, columns, step, apart) if rows > 1 else NO_BOX


def _distance(copies: Sequence[Copy], a: int, b: int) -> tuple[int, int] | None:
    """Return how far apart two copies are in target and source; None if in different arrays."""
    if b >= len(copies):
        return None
    (to, source), (to2, source2) = copies[a], copies[b]
    first, second = source.location, source2.location
    if first is None or second is None or to.array != to2.array or first.array != second.array:
        return None
    distance = to2.offset - to.offset, second.offset - first.offset
    return distance if min(distance) > 0 else None


# ---- copies ----------------------------------------------------------------------------------


def _follows(copy: Copy, other: Copy) -> bool:
    """Return whether ``other`` reads and writes right behind ``copy``."""
    (to, source), (to2, source2) = copy, other
    if to2 != to.at(1):
        return False
    if source.location is not None and source2.location is not None:
        return source2.location == source.location.at(1)
    return source.constant is not None and source2.constant is not None


def copy_all(d: Dialect, f: Any, copies: Sequence[Copy]) -> None:
    """Store each binding at its location; boxes and runs from array to array are loops."""
    k = unrolled = 0
    while k < len(copies):
        if d.boxes:
            box = box_at(copies, k)
            if box.size >= d.run:
                _copy_box(d, f, *copies[k], box)
                k += box.size
                continue
        end = k + 1
        while end < len(copies) and _follows(copies[end - 1], copies[end]):
            end += 1
        if end - k >= d.run:
            _copy_run(d, f, copies[k:end])
        else:
            for to, source in copies[k:end]:
                d.store(f, to, d.operand(f, source))
            unrolled += end - k
            if d.longest_block and unrolled >= d.longest_block:
                d.interrupt(f)
                unrolled = 0
        k = end


def _copy_box(d: Dialect, f: Any, to: Location, source: Binding, box: Box) -> None:
    """Write a loop over rows and one over their elements."""
    with d.for_loop(f, box.rows) as outer, d.for_loop(f, box.columns) as inner:
        first = d.advance(f, source.memory, outer.counter, box.apart[1])
        second = d.advance(f, to, outer.counter, box.apart[0])
        value = d.load(f, d.advance(f, first, inner.counter, box.steps[1]))
        d.store(f, d.advance(f, second, inner.counter, box.steps[0]), value)


def _copy_run(d: Dialect, f: Any, run: Sequence[Copy]) -> None:
    to, source = run[0]
    start = source.location
    if start is None:
        if all(b.is_like(source) for _, b in run):
            d.fill_run(f, to, d.operand(f, source), len(run))
            return
        start = d.table(f, [b.constant[0] for _, b in run if b.constant], to.dtype)
    d.copy_run(f, to, start, len(run))


# ---- what the steps of a loop read -----------------------------------------------------------


class Column(NamedTuple):
    """One value of a loop's slices over the steps: shared, or at ``start + step * stride``."""

    shared: Binding | None
    start: Location | None = None
    stride: int = 0


def _column(d: Dialect, f: Any, bindings: Sequence[Binding], dtype: int) -> Column:
    first, length, count = bindings[0], length_of(dtype) or 1, len(bindings)
    if all(b.is_like(first) for b in bindings):
        return Column(first)
    start, second = first.location, bindings[1].location
    if start is not None and second is not None:
        stride = second.offset - start.offset
        walks = stride > 0 or d.walks_back
        if walks and all(b.location == start.at(k * stride) for k, b in enumerate(bindings)):
            return Column(None, start, stride)
    if all(b.constant is not None for b in bindings):
        values = [b.constant[0] for b in bindings if b.constant]
        return Column(None, d.table(f, values, dtype), 1)
    # Put the values, or blocks, of all steps one behind the other.
    start = d.array(f, item_type(dtype), length * count)
    if length_of(dtype):
        for k, b in enumerate(bindings):
            d.copy_run(f, start.at(k * length), b.memory, length)
    else:
        copy_all(d, f, [(start.at(k), b) for k, b in enumerate(bindings)])
    return Column(None, start, length)


def stack_columns(
    d: Dialect, f: Any, rows: Sequence[Sequence[Binding]], dtypes: Sequence[int]
) -> list[Column]:
    """Describe the slices of a loop column by column, from what each step reads."""
    return [_column(d, f, [row[j] for row in rows], x) for j, x in enumerate(dtypes)]


def advance_all(
    d: Dialect, f: Any, starts: Sequence[tuple[Location, int]], step: str
) -> list[Location]:
    """Return each location ``step * stride`` elements further, with one address for each array."""
    bases: dict[tuple[Any, int, int], Location] = {}
    locations = []
    for start, stride in starts:
        key = (start.array, stride, start.dtype)
        if key not in bases:
            bases[key] = d.advance(f, start._replace(offset=0), step, stride)
        locations.append(bases[key].at(start.offset))
    return locations


def slices_at(d: Dialect, f: Any, columns: Sequence[Column], step: str) -> list[Binding]:
    """Return the bindings of one step's slices."""
    starts = [(c.start, c.stride) for c in columns if c.start is not None]
    locations = iter(advance_all(d, f, starts, step))
    return [c.shared or Binding(location=next(locations)) for c in columns]


# ---- what the steps of a loop put out --------------------------------------------------------


def output_columns(
    scope: Scope, columns: Sequence[Sequence[int | None]], dtypes: Sequence[int]
) -> list[tuple[Location, int]]:
    """Return where the first step puts each of its outputs, and the stride to the next step.

    ``columns`` are the nodes that stand for an output, step after step. One that an array waits
    for as it is goes straight there; the others go to arrays of their own.
    """
    length = len(columns[0]) if columns else 0
    direct = [_waiting_array(scope, column) for column in columns]
    own = [x for x, start in zip(dtypes, direct) if start is None]
    locations = iter(arrays(scope.dialect, scope.f, own, length))
    return [
        start or (next(locations), length_of(x) or own.count(x)) for x, start in zip(dtypes, direct)
    ]


def _waiting_array(scope: Scope, column: Sequence[int | None]) -> tuple[Location, int] | None:
    """Return start and stride of the array that waits for a column, and take it off the list."""
    waiting = [scope.waiting.get(i, []) if i is not None else [] for i in column]
    if any(len(locations) != 1 for locations in waiting):
        return None
    locations = [wanted[0] for wanted in waiting]
    first = locations[0]
    stride = locations[1].offset - first.offset if len(locations) > 1 else 1
    if stride <= 0 or any(p != first.at(k * stride) for k, p in enumerate(locations)):
        return None
    if not scope.dialect.takes_columns(locations):
        return None
    for i in column:
        if i is not None:
            del scope.waiting[i]
    return first, stride
