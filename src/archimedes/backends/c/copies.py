"""Moving many values at once: runs in memory become loops, not thousands of statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.c.memory import Binding, Place
from archimedes.backends.c.tables import Tables
from archimedes.backends.c.writer import Function

__all__ = ["Column", "are_neighbours", "arrays", "copy_all", "slices_at", "stack_column"]

#: Shorter runs are written out.
RUN = 8

Copy = tuple[Place, Binding]


def arrays(f: Function, dtypes: Sequence[int]) -> list[Place]:
    """Reserve memory for values of mixed dtypes: one array a dtype, in order of position."""
    totals = {d: dtypes.count(d) for d in sorted(set(dtypes))}
    bases = {d: f.frame.array(d, total) for d, total in totals.items()}
    taken = dict.fromkeys(totals, 0)
    places = []
    for d in dtypes:
        places.append(bases[d].at(taken[d]))
        taken[d] += 1
    return places


def are_neighbours(bindings: Sequence[Binding]) -> bool:
    """Tell whether values lie one after the other in an array of their own type."""
    first = bindings[0].place
    if first is None or first.narrow:
        return False
    return all(b.place == first.at(k) for k, b in enumerate(bindings))


def _follows(copy: Copy, other: Copy) -> bool:
    """Tell whether ``other`` reads and writes right behind ``copy``."""
    (to, source), (to2, source2) = copy, other
    if to2 != to.at(1):
        return False
    if source.place is not None and source2.place is not None:
        return source2.place == source.place.at(1)
    return source.constant is not None and source2.constant is not None


def copy_all(f: Function, tables: Tables, copies: Sequence[Copy]) -> None:
    """Store each binding at its place; runs from array to array are loops."""
    k = 0
    while k < len(copies):
        end = k + 1
        while end < len(copies) and _follows(copies[end - 1], copies[end]):
            end += 1
        if end - k >= RUN:
            _copy_run(f, tables, copies[k:end])
        else:
            for to, source in copies[k:end]:
                f.store(to, source.text())
        k = end


def _copy_run(f: Function, tables: Tables, run: Sequence[Copy]) -> None:
    to, source = run[0]
    if source.constant is not None and all(b.text() == source.text() for _, b in run):
        with f.loop(len(run)) as counter:
            f.store(to.moving(counter, 1), source.text())
        return
    start = source.place
    if start is None:
        start = tables.place([b.constant[0] for _, b in run if b.constant], to.dtype)
    with f.loop(len(run)) as counter:
        f.store(to.moving(counter, 1), start.moving(counter, 1).read())


class Column(NamedTuple):
    """One value of a loop's slices over the steps: shared, or at ``start + step * stride``."""

    shared: Binding | None
    start: Place | None = None
    stride: int = 0


def stack_column(f: Function, tables: Tables, bindings: Sequence[Binding], dtype: int) -> Column:
    """Describe what the steps of a loop read, given the value of each step."""
    first = bindings[0]
    # Texts are compared, not numbers: 0.0 and -0.0 are equal numbers.
    if all(b.text() == first.text() for b in bindings):
        return Column(first)
    start, second = first.place, bindings[1].place
    if start is not None and second is not None:
        stride = second.offset - start.offset
        if stride > 0 and all(b.place == start.at(k * stride) for k, b in enumerate(bindings)):
            return Column(None, start, stride)
    if all(b.constant is not None for b in bindings):
        return Column(None, tables.place([b.constant[0] for b in bindings if b.constant], dtype), 1)
    start = f.frame.array(dtype, len(bindings))
    copy_all(f, tables, [(start.at(k), b) for k, b in enumerate(bindings)])
    return Column(None, start, 1)


def slices_at(columns: Sequence[Column], counter: str) -> list[Binding]:
    """Return the bindings of one step's slices."""
    return [
        Binding(place=start.moving(counter, stride)) if start is not None else shared or Binding()
        for shared, start, stride in columns
    ]
