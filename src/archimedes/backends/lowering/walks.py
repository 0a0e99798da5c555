"""Places that move with the axes of an index space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from archimedes.backends.lowering.copies import moved_together
from archimedes.backends.lowering.dialect import Dialect
from archimedes.backends.lowering.values import Place
from archimedes.graph.regions import Affine, Nest
from archimedes.graph.regions.nest import Read, row_major

__all__ = ["Walk", "along", "merged", "merged_nest", "moved_along"]


class Walk(NamedTuple):
    """A place, and by how many elements it moves along each axis.

    A dialect that has laid an array out anew says in ``layout`` what else it knows of that.
    """

    place: Place
    strides: tuple[int, ...]
    layout: Any = None


@contextmanager
def along(
    d: Dialect, f: Any, length: int, walks: Sequence[Walk], axis: int
) -> Iterator[tuple[str, list[Walk]]]:
    """Write a loop along an axis; places move with it. The counter is empty where there is none."""
    if length == 1:
        yield "", list(walks)
        return
    with d.counted(f, length, ()) as loop:
        yield loop.counter, moved_along(d, f, length, walks, axis, loop.counter)


def moved_along(
    d: Dialect, f: Any, length: int, walks: Sequence[Walk], axis: int, counter: str
) -> list[Walk]:
    """Return walks at a point of an axis."""
    steps = []
    back = ""
    for place, strides, _ in walks:
        stride = strides[axis]
        if stride < 0 and not d.walks_back:
            back = back or d.from_end(f, counter, length)
            steps.append((place.at(stride * (length - 1)), -stride, back))
        else:
            steps.append((place, stride, counter))
    moved: dict[int, Place] = {}
    for at in dict.fromkeys(at for *_, at in steps):
        mine = [k for k, (_, stride, c) in enumerate(steps) if c == at and stride]
        found = moved_together(d, f, [steps[k][:2] for k in mine], at)
        moved |= dict(zip(mine, found))
    return [
        walk._replace(place=moved.get(k, place))
        for k, ((place, _, _), walk) in enumerate(zip(steps, walks))
    ]


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]], apart: int = 0
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Make one axis of neighbours that are walked as one; leave out axes of length 1.

    Axes in front of number ``apart`` are not merged with those behind it.

    >>> merged((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
    ((6, 4), [(4, 1), (0, 1)])
    """
    axes: list[tuple[int, tuple[int, ...], bool]] = []
    for k, n in enumerate(shape):
        mine = tuple(s[k] for s in strides)
        if n == 1:
            continue
        if axes:
            m, before, front = axes[-1]
            if front == (k < apart) and all(b == s * n for b, s in zip(before, mine)):
                axes[-1] = (m * n, mine, front)
                continue
        axes.append((n, mine, k < apart))
    return tuple(n for n, *_ in axes), [tuple(x[1][j] for x in axes) for j in range(len(strides))]


def merged_nest(region: Nest) -> Nest:
    """Return the same nest over as few axes as its reads allow, at least one.

    Kept axes and reduced ones stay apart; a body that takes the indices needs all axes.
    """
    if region.indexed:
        return region
    every = row_major(region.shape)
    strides = [r.strides if isinstance(r, Affine) else every for r in region.reads if r is not None]
    # Results lie in C order, and so are the points of a reduction counted.
    shape, [*found, _] = merged(region.shape, [*strides, every], region.kept)
    kept = len(
        merged(region.shape[: region.kept], [x[: region.kept] for x in [*strides, every]])[0]
    )
    if region.kept and not kept:
        shape, found, kept = (1, *shape), [(0, *x) for x in found], 1
    if len(shape) == kept < len(region.shape) and region.combine:
        shape, found = (*shape, 1), [(*x, 0) for x in found]
    walked = iter(found)
    reads: list[Read] = []
    for read in region.reads:
        mine = () if read is None else next(walked)
        reads.append(Affine(read.offset, mine) if isinstance(read, Affine) else read)
    return replace(region, shape=shape, reads=tuple(reads), kept=kept)
