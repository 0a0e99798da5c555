"""Copies of many values at once: runs and boxes in memory become loops instead of many lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import item_type, length_of

__all__ = [
    "Box",
    "Column",
    "arrays",
    "box_at",
    "copy_all",
    "moved_together",
    "slices_at",
    "stack_columns",
    "stacked_outputs",
]

Copy = tuple[Location, Binding]


class Box(NamedTuple):
    """Rows of copies: elements, and rows, are so far apart where they go to, and where they are."""

    rows: int
    columns: int
    steps: tuple[int, int]
    apart: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of copies; none where it is no box, or a single row of neighbours."""
        return self.rows * self.columns


NONE = Box(0, 0, (0, 0), (0, 0))


def box_at(copies: Sequence[Copy], start: int) -> Box:
    """Return the largest box that copies from number ``start`` on are, of two rows at least.

    >>> def copy(to, source):
    ...     return Location("s1", to, 0), Binding(location=Location("s2", source, 0))
    >>> box_at([copy(3 * r + c, 2 * c + r) for r in range(2) for c in range(3)], 0)
    Box(rows=2, columns=3, steps=(1, 2), apart=(3, 1))
    """
    step = _distance(copies, start, start + 1)
    if step is None:
        return NONE
    end = start + 2
    while _distance(copies, end - 1, end) == step:
        end += 1
    columns = end - start
    apart = _distance(copies, start, end)
    if apart is None:
        return NONE
    rows = 1
    while _is_row(copies, start + rows * columns, columns, step) and (
        _distance(copies, start + (rows - 1) * columns, start + rows * columns) == apart
    ):
        rows += 1
    return Box(rows, columns, step, apart) if rows > 1 else NONE


def _is_row(copies: Sequence[Copy], start: int, columns: int, step: tuple[int, int]) -> bool:
    return all(_distance(copies, k, k + 1) == step for k in range(start, start + columns - 1))


def _distance(copies: Sequence[Copy], a: int, b: int) -> tuple[int, int] | None:
    """Return how far apart two copies are, to and from; None where not in the same arrays."""
    if b >= len(copies):
        return None
    (to, source), (to2, source2) = copies[a], copies[b]
    first, second = source.location, source2.location
    if first is None or second is None or to.array != to2.array or first.array != second.array:
        return None
    found = to2.offset - to.offset, second.offset - first.offset
    return found if min(found) > 0 else None


Copy = tuple[Location, Binding]


def arrays(d: Dialect, f: Any, dtypes: Sequence[int], length: int = 1) -> list[Location]:
    """Reserve memory for values of mixed types: one array per dtype, in order of position.

    With a ``length`` the arrays hold so many rows of these values. A block has its own array.
    """
    if any(map(length_of, dtypes)):
        others = iter(arrays(d, f, [x for x in dtypes if not length_of(x)], length))
        return [
            d.array(f, item_type(x), length_of(x) * length) if length_of(x) else next(others)
            for x in dtypes
        ]
    totals = {x: dtypes.count(x) for x in sorted(set(dtypes))}
    bases = {x: d.array(f, x, total * length) for x, total in totals.items()}
    taken = dict.fromkeys(totals, 0)
    locations = []
    for x in dtypes:
        locations.append(bases[x].at(taken[x]))
        taken[x] += 1
    return locations


def _follows(copy: Copy, other: Copy) -> bool:
    """Tell whether ``other`` reads and writes right behind ``copy``."""
    (to, source), (to2, source2) = copy, other
    if to2 != to.at(1):
        return False
    if source.location is not None and source2.location is not None:
        return source2.location == source.location.at(1)
    return source.constant is not None and source2.constant is not None


def copy_all(d: Dialect, f: Any, copies: Sequence[Copy]) -> None:
    """Store each binding at its place; runs from array to array are loops."""
    k = written = 0
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
            written += end - k
            if d.longest_block and written >= d.longest_block:
                d.interrupt(f)
                written = 0
        k = end


def _copy_box(d: Dialect, f: Any, to: Location, source: Binding, box: Box) -> None:
    """Write two loops over rows that are so far apart where they go to, and where they are."""
    start = source.location
    assert start is not None
    with d.counted(f, box.rows, ()) as outer, d.counted(f, box.columns, ()) as inner:
        first = d.moving(f, start, outer.counter, box.apart[1])
        second = d.moving(f, to, outer.counter, box.apart[0])
        value = d.load(f, d.moving(f, first, inner.counter, box.steps[1]))
        d.store(f, d.moving(f, second, inner.counter, box.steps[0]), value)


def _copy_run(d: Dialect, f: Any, run: Sequence[Copy]) -> None:
    to, source = run[0]
    start = source.location
    if start is None:
        if all(b.is_like(source) for _, b in run):
            d.fill_run(f, to, d.operand(f, source), len(run))
            return
        start = d.table(f, [b.constant[0] for _, b in run if b.constant], to.dtype)
    d.copy_run(f, to, start, len(run))


# ---- what the steps of a loop read -------------------------------------------------------


class Column(NamedTuple):
    """One value of a loop's slices over the steps: shared, or at ``start + step * stride``."""

    shared: Binding | None
    start: Location | None = None
    stride: int = 0


def _column(d: Dialect, f: Any, bindings: Sequence[Binding], dtype: int) -> Column:
    first = bindings[0]
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
    if length_of(dtype):
        return _block_column(d, f, bindings, dtype)
    start = d.array(f, dtype, len(bindings))
    copy_all(d, f, [(start.at(k), b) for k, b in enumerate(bindings)])
    return Column(None, start, 1)


def _block_column(d: Dialect, f: Any, bindings: Sequence[Binding], kind: int) -> Column:
    """Put the blocks of all steps one behind the other."""
    length = length_of(kind)
    start = d.array(f, item_type(kind), length * len(bindings))
    for k, binding in enumerate(bindings):
        assert binding.location is not None
        d.copy_run(f, start.at(k * length), binding.location, length)
    return Column(None, start, length)


def stack_columns(
    d: Dialect, f: Any, rows: Sequence[Sequence[Binding]], dtypes: Sequence[int]
) -> list[Column]:
    """Describe the slices of a loop column by column, given what each step reads."""
    return [_column(d, f, [row[j] for row in rows], x) for j, x in enumerate(dtypes)]


def moved_together(
    d: Dialect, f: Any, locations: Sequence[tuple[Location, int]], step: str
) -> list[Location]:
    """Return each place ``step * stride`` elements further; those of one array move as one."""
    moved: dict[tuple[Any, int, int], Location] = {}
    found = []
    for location, stride in locations:
        key = (location.array, stride, location.dtype)
        if key not in moved:
            moved[key] = d.moving(f, location._replace(offset=0), step, stride)
        found.append(moved[key].at(location.offset))
    return found


def slices_at(d: Dialect, f: Any, columns: Sequence[Column], step: str) -> list[Binding]:
    """Return the bindings of one step's slices."""
    walked = [(c.start, c.stride) for c in columns if c.start is not None]
    locations = iter(moved_together(d, f, walked, step))
    return [
        c.shared if c.shared is not None else Binding(location=next(locations)) for c in columns
    ]


# ---- what the steps of a loop put out ----------------------------------------------------


def stacked_outputs(
    scope: Scope, columns: Sequence[Sequence[int | None]], dtypes: Sequence[int]
) -> list[tuple[Location, int]]:
    """Return where the first step puts each of its outputs, and the stride to the next step.

    ``columns`` are the nodes that stand for an output, step after step. One that is wanted in an
    array as it is goes straight there; the others go to arrays of their own.
    """
    d, length = scope.dialect, len(columns[0]) if columns else 0
    direct = [_direct(scope, column) for column in columns]
    own = [x for x, found in zip(dtypes, direct) if found is None]
    locations = iter(arrays(d, scope.f, own, length))
    return [
        (next(locations), length_of(x) or own.count(x)) if found is None else found
        for x, found in zip(dtypes, direct)
    ]


def _direct(scope: Scope, column: Sequence[int | None]) -> tuple[Location, int] | None:
    """Return start and stride of the array that wants a column, and note that it has it."""
    first = [scope.waiting.get(i, []) if i is not None else [] for i in column]
    if any(len(locations) != 1 for locations in first):
        return None
    locations = [wanted[0] for wanted in first]
    stride = locations[1].offset - locations[0].offset if len(locations) > 1 else 1
    if stride <= 0 or any(p != locations[0].at(k * stride) for k, p in enumerate(locations)):
        return None
    if not scope.dialect.takes_columns(locations):
        return None
    for i in column:
        if i is not None:
            del scope.waiting[i]
    return locations[0], stride
