"""Runs of double arithmetic as tables of steps, which one function carries out.

Where doubles are calculated by software, an addition in the text is some 14 bytes of code: operands
are loaded, a function is called, the result is stored. As a row of a table it is 4: the operation,
and three places of an array. What is computed, and in which order, is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from archimedes.backends.c.step_tables import (
    PLACES,
    SHORTEST,
    Layout,
    is_step,
    place_order,
    runs_of,
)
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.nests import Walk, along
from archimedes.backends.lowering.scope import Binding, Location, Scope
from archimedes.graph.dtypes import F64
from archimedes.graph.ops import CONST, ELEMENT, INPUT
from archimedes.graph.regions import Nest
from archimedes.graph.regions.nest import Affine, Gather, row_major

if TYPE_CHECKING:
    from archimedes.backends.c.c99 import C99

__all__ = ["STEPS", "Steps", "nest_in_steps"]

#: The helper that carries out a table.
STEPS: dict[str, str] = {
    "arc_steps": """\
/* Carry out steps of arithmetic on the elements of w. Each is four bytes: what is done, the number
   of the result, and those of a and b. The bits of what is done: 1 a * b (else b), 2 with the other
   sign, 4 added to a or, with 8, to the result; 16 a / b. */
static void arc_steps(double *w, const uint8_t *step, size_t count)
{
    for (; count > 0; --count) {
        const uint32_t what = step[0];
        double x = w[step[3]];
        if ((what & 17U) != 0) {
            const double a = w[step[2]];
            x = (what & 1U) != 0 ? a * x : a / x;
        }
        if ((what & 2U) != 0) {
            x = -x;
        }
        if ((what & 4U) != 0) {
            x = w[step[(what & 8U) != 0 ? 1 : 2]] + x;
        }
        w[step[1]] = x;
        step += 4;
    }
}
"""
}


class Steps:
    """The runs in the nodes of a scope; ``uses`` counts the readers of each node."""

    def __init__(self, c: C99, scope: Scope, order: Sequence[int], uses: Counter[int]) -> None:
        self.c, self.scope, self.uses = c, scope, uses
        self.runs = {run[0]: run for run in runs_of(scope.graph, order)}
        #: Nodes that only the steps of their own run read.
        self.inside: set[int] = set()

    def begin(self, i: int) -> bool:
        """Write the run that begins with a node; tell whether there is one."""
        run = self.runs.pop(i, None)
        if run is None:
            return False
        for part in self._parts(run):
            self._write(part)
        return True

    def _parts(self, run: Sequence[int]) -> Iterator[list[int]]:
        """Cut a run into pieces that have places enough."""
        layout = self._layout(run)
        if layout.size <= PLACES:
            yield list(run)
            return
        half = len(run) // 2
        for piece in (run[:half], run[half:]):
            yield from self._parts(piece)

    def _write(self, run: Sequence[int]) -> None:
        c, scope = self.c, self.scope
        f = scope.f
        layout = self._layout(run)
        w = c.array(f, F64, layout.size)
        _copy(c, f, [(w.at(k), binding) for k, binding in enumerate(layout.given)])
        layout.call(c, f, w)
        copies = []
        for i in run:
            if i not in layout.results:
                self.inside.add(i)
                continue
            here = w.at(layout.results[i])
            scope.names[i] = c.load(f, here)
            copies += [(to, Binding(location=here)) for to in scope.waiting.pop(i, ())]
        copies.sort(key=lambda pair: (repr(pair[0].array), pair[0].offset))
        _copy(c, f, copies)

    def _layout(self, run: Sequence[int]) -> Layout:
        scope = self.scope
        return Layout(scope.graph, run, self.uses, lambda j: _binding(scope, j), scope.waiting)


def _copy(c: C99, f: Any, copies: Sequence[tuple[Location, Binding]]) -> None:
    """Copy values; those that lie so far apart where they are, and where they go to, by a loop."""
    k = 0
    while k < len(copies):
        end, apart = k + 1, (0, 0)
        while end < len(copies):
            found = _apart(copies[end - 1], copies[end])
            if min(found) < 1 or (end > k + 1 and found != apart):
                break
            end, apart = end + 1, found
        (to, source), count = copies[k], end - k
        if count < c.run or source.location is None or apart == (1, 1):
            end = end if count >= c.run else k + 1
            copy_all(c, f, copies[k:end])
        else:
            with c.counted(f, count, ()) as loop:
                start = c.moving(f, source.location, loop.counter, apart[1])
                c.store(f, c.moving(f, to, loop.counter, apart[0]), c.load(f, start))
        k = end


def _apart(copy: tuple[Location, Binding], other: tuple[Location, Binding]) -> tuple[int, int]:
    """Return how far behind one copy another one writes and reads; 0 where that is no number."""
    (to, source), (to2, source2) = copy, other
    if to.array != to2.array:
        return 0, 0
    if source.constant is not None and source2.constant is not None:
        return to2.offset - to.offset, 1
    first, second = source.location, source2.location
    if first is None or second is None or first.array != second.array:
        return 0, 0
    return to2.offset - to.offset, second.offset - first.offset


def nest_in_steps(c: C99, scope: Scope, region: Nest, outs: Sequence[int]) -> bool:
    """Write a loop whose body is a table of steps, if it is such a loop."""
    body = region.body
    run = [i for i in body.live() if body.op[i] not in (CONST, INPUT)]
    if region.combine or region.indexed or len(run) < SHORTEST:
        return False
    if any(isinstance(read, Gather) for read in region.reads):
        return False
    if not all(is_step(body, i) for i in run):
        return False
    nest = _Nest(c, scope, region, outs, run)
    if nest.layout({}).size > PLACES:
        return False
    nest.write()
    return True


class _Nest:
    """A loop over a table of steps.

    What is the same at all points is put into the places of the steps once, in front of it.
    """

    def __init__(
        self, c: C99, scope: Scope, region: Nest, outs: Sequence[int], run: Sequence[int]
    ) -> None:
        self.c, self.scope, self.region, self.outs, self.run = c, scope, region, outs, run
        body = region.body
        self.given = dict(zip(body.inputs, scope.bindings(region.inputs.tolist())))
        self.reads = dict(zip(body.inputs, region.reads))
        self.wanted = [body.outputs[k] for k in scope.numbers(outs)]
        self.uses = Counter(self.wanted)
        for i in run:
            self.uses.update(body.operands(i))

    def layout(self, goals: Mapping[int, Sequence[Location]]) -> Layout:
        """Return the places of the steps."""
        return Layout(self.region.body, self.run, self.uses, self._binding, goals)

    def _binding(self, j: int) -> Binding:
        """Return what a node that is no step is, at the first point."""
        body = self.region.body
        if j not in self.given:
            return Binding(constant=(body.value[j], body.dtype[j]))
        walk = self._walk(j)
        return self.given[j] if walk is None else Binding(location=walk.location)

    def _walk(self, j: int) -> Walk | None:
        """Return how an input of the body moves along the axes; None if it is always the same."""
        read = self.reads.get(j)
        if not isinstance(read, Affine):
            return None
        place = self.given[j].location
        assert place is not None
        return Walk(place.at(read.offset), read.strides)

    def write(self) -> None:
        c, scope, shape = self.c, self.scope, self.region.shape
        f = scope.f
        to = [scope.new_block(i) for i in self.outs]
        layout = self.layout({i: [place] for i, place in zip(self.wanted, to)})
        w = c.array(f, F64, layout.size)
        inputs = {j: walk for j in self.given if (walk := self._walk(j)) is not None}
        places = [(w.at(k), j) for k, j in enumerate(layout.outer)]
        _copy(c, f, [(at, self._binding(j)) for at, j in places if j not in inputs])
        strides = row_major(shape)
        walks = list(inputs.values())
        for i, place in zip(self.outs, to):
            walks.append(Walk(place, tuple(scope.stride(i) * n for n in strides)))
        with ExitStack() as loops:
            for axis, length in enumerate(shape):
                _, walks = loops.enter_context(along(c, f, length, walks, axis))
            here = {j: Binding(location=walk.location) for j, walk in zip(inputs, walks)}
            _copy(c, f, [(at, here[j]) for at, j in places if j in inputs])
            layout.call(c, f, w)
            here |= {i: Binding(location=w.at(k)) for i, k in layout.results.items()}
            copies = [
                (walk.location, here.get(i) or self._binding(i))
                for i, walk in zip(self.wanted, walks[len(inputs) :])
            ]
            copies.sort(key=lambda pair: place_order([pair[0]]))
            _copy(c, f, copies)


def _binding(scope: Scope, j: int) -> Binding:
    g = scope.graph
    if g.op[j] == ELEMENT and j not in scope.bound and j not in scope.names:
        return Binding(location=scope.block(g.a[j]).at(g.value[g.b[j]]))
    return scope.binding(j)
