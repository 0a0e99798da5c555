"""Lowering of ``Switch``.

Scalar code runs the branch that is taken. In lanes each branch that any lane takes runs for all,
and is blended in where it was taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.copies import arrays, copy_all
from archimedes.backends.llvm.lowering.graph_lowering import IN_REGISTERS, Lowering
from archimedes.backends.llvm.lowering.memory import Binding, Location
from archimedes.backends.llvm.lowering.scope import Scope
from archimedes.backends.llvm.lowering.vectors import any_lane, blend, choose
from archimedes.graph.dtypes import I64
from archimedes.graph.regions import Switch

__all__ = ["lower_switch"]

#: Branches of up to this many operations run in lanes whether or not a lane takes them.
CHEAP = 12


def lower_switch(low: Lowering, scope: Scope, region: Switch, outs: Sequence[int]) -> None:
    """Compute a switch and bind its used outputs."""
    f = scope.f
    index, *rest = region.inputs.tolist()
    wanted = scope.numbers(outs)
    dtypes = [region.out_dtypes[k] for k in wanted]
    places = arrays(f, dtypes) if len(wanted) > IN_REGISTERS else []
    join = _Join(low, f, scope.operand(index), region, scope.bindings(rest), wanted, dtypes)
    results = join.in_lanes(places) if f.spelling.lanes > 1 else join.in_scalar(places)
    for k, i in enumerate(outs):
        found = Binding(location=places[k]) if places else Binding(operand=results[k])
        scope.bind(i, found)


class _Join:
    """A switch being written: its branches, and how their results come together.

    Results too many for registers are put in ``places``; otherwise they are returned.
    """

    def __init__(
        self,
        low: Lowering,
        f: Function,
        index: str,
        region: Switch,
        given: Sequence[Binding],
        wanted: Sequence[int],
        dtypes: Sequence[int],
    ) -> None:
        self.low, self.f, self.index = low, f, index
        self.branches, self.given = region.branches, given
        self.wanted, self.dtypes = wanted, dtypes
        self.costs = [low.cost(body) for body in region.branches]

    def takes(self, k: int) -> str:
        """Return the bool "branch k runs", for an index that is clamped to the branches."""
        last = len(self.branches) - 1
        relation = "sle" if k == 0 else "sge" if k == last else "eq"
        spelling = self.f.spelling
        limit = spelling.literal(k, I64)
        return self.f.value(f"icmp {relation} {spelling.types[I64]} {self.index}, {limit}")

    def is_rare(self, k: int) -> bool:
        """Guess that a long branch beside trivial ones is the exception."""
        return self.costs[k] > CHEAP and sum(self.costs) == self.costs[k]

    def values(self, k: int) -> list[Binding]:
        """Lower a branch in the current block."""
        return self.low.call(self.f, self.branches[k], self.given, self.wanted)

    def in_scalar(self, places: Sequence[Location]) -> list[str]:
        """Run the branch that is taken."""
        f, last = self.f, len(self.branches) - 1
        end = f.label()
        ways: list[tuple[list[str], str]] = []
        # The last branch is tested first, so that a rare one stays out of the ordinary way.
        for k in range(last, -1, -1):
            following = ""
            if k:
                this, following = f.label(), f.label()
                f.fork(self.takes(k), this, following, rare=self.is_rare(k))
                f.start(this)
            values = self.values(k)
            if places:
                copy_all(f, list(zip(places, values)))
                ways.append(([], f.block))
            else:
                ways.append(([f.operand(b) for b in values], f.block))
            f.line(f"br label %{end}")
            if following:
                f.start(following)
        f.start(end)
        if places:
            return []
        return [
            f.phi(f.spelling.types[d], *((values[j], block) for values, block in ways))
            for j, d in enumerate(self.dtypes)
        ]

    def in_lanes(self, places: Sequence[Location]) -> list[str]:
        """Run the branches that any lane takes, cheap ones without asking, and blend."""
        f, result = self.f, list[str]()
        count = len(self.branches)
        order = sorted(range(count), key=lambda k: self.costs[k] > CHEAP)
        for turn, k in enumerate(order):
            first = turn == 0 and (self.costs[k] <= CHEAP or count == 1)
            if first:
                values = self.values(k)
                if places:
                    copy_all(f, list(zip(places, values)))
                else:
                    result = [f.operand(b) for b in values]
                continue
            mask = self.takes(k)
            if self.costs[k] <= CHEAP:
                result = self._blended(mask, k, places, result)
                continue
            before, old = f.block, result or [f.spelling.literal(0, d) for d in self.dtypes]
            this, end = f.label(), f.label()
            f.fork(any_lane(f, mask), this, end, rare=self.is_rare(k))
            f.start(this)
            new = self._blended(mask, k, places, old)
            after = f.block
            f.jump(end)
            if not places:
                types = [f.spelling.types[d] for d in self.dtypes]
                result = [f.phi(t, (x, before), (y, after)) for t, x, y in zip(types, old, new)]
        return result

    def _blended(
        self, mask: str, k: int, places: Sequence[Location], old: Sequence[str]
    ) -> list[str]:
        f = self.f
        values = self.values(k)
        if not places:
            return blend(f, mask, self.dtypes, [f.operand(b) for b in values], old)
        for place, value in zip(places, values):
            f.store(place, choose(f, place.dtype, mask, f.operand(value), f.load(place)))
        return []
