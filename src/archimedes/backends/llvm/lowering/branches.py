"""Branches that come together again.

Scalar code runs the branch that is taken. In lanes each branch that any lane takes runs for all,
and is blended in where it was taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.instructions import any_lane, blend, choose
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import Dialect, Join
from archimedes.backends.lowering.scope import Binding, Location
from archimedes.graph.dtypes import I64

__all__ = ["LaneJoin", "ScalarJoin"]

#: Branches of up to this many operations run in lanes whether or not a lane takes them.
CHEAP = 12


class _Branches(Join):
    """Branches being written: results too many for registers go to ``locations``."""

    def __init__(
        self,
        dialect: Dialect,
        f: Function,
        index: str,
        costs: Sequence[int],
        dtypes: Sequence[int],
        locations: Sequence[Location],
    ) -> None:
        self.dialect, self.f, self.index = dialect, f, index
        self.costs, self.dtypes, self.locations = costs, dtypes, locations

    def takes(self, k: int) -> str:
        """Return the bool "branch k runs", for an index that is clamped to the branches."""
        last = len(self.costs) - 1
        relation = "sle" if k == 0 else "sge" if k == last else "eq"
        spelling = self.f.spelling
        limit = spelling.literal(k, I64)
        return self.f.value(f"icmp {relation} {spelling.types[I64]} {self.index}, {limit}")

    def is_rare(self, k: int) -> bool:
        """Guess that a long branch beside trivial ones is the exception."""
        return self.costs[k] > CHEAP and sum(self.costs) == self.costs[k]

    def put(self, values: Sequence[Binding]) -> list[str]:
        """Put values into their places, or return their registers."""
        if self.locations:
            copy_all(self.dialect, self.f, list(zip(self.locations, values)))
            return []
        return [self.f.operand(b) for b in values]


class ScalarJoin(_Branches):
    """Runs the branch that is taken."""

    def __init__(
        self,
        dialect: Dialect,
        f: Function,
        index: str,
        costs: Sequence[int],
        dtypes: Sequence[int],
        locations: Sequence[Location],
    ) -> None:
        super().__init__(dialect, f, index, costs, dtypes, locations)
        self.end = f.label()
        self.ways: list[tuple[list[str], str]] = []
        # The last branch is tested first, so that a rare one stays out of the ordinary way.
        self.order = range(len(costs) - 1, -1, -1)

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Surround a branch by tests and jumps."""
        f, following = self.f, ""
        if k:
            this, following = f.label(), f.label()
            f.fork(self.takes(k), this, following, rare=self.is_rare(k))
            f.start(this)
        yield
        f.line(f"br label %{self.end}")
        if following:
            f.start(following)

    def give(self, values: Sequence[Binding]) -> None:
        """Remember values and the block they come from."""
        found = self.put(values)
        self.ways.append((found, self.f.block))

    def results(self) -> list[str]:
        """Choose by the way that was taken."""
        f = self.f
        f.start(self.end)
        if self.locations:
            return []
        return [
            f.phi(f.spelling.types[d], *((values[j], block) for values, block in self.ways))
            for j, d in enumerate(self.dtypes)
        ]


class LaneJoin(_Branches):
    """Runs the branches that any lane takes, cheap ones without asking, and blends."""

    def __init__(
        self,
        dialect: Dialect,
        f: Function,
        index: str,
        costs: Sequence[int],
        dtypes: Sequence[int],
        locations: Sequence[Location],
    ) -> None:
        super().__init__(dialect, f, index, costs, dtypes, locations)
        self.order = sorted(range(len(costs)), key=lambda k: costs[k] > CHEAP)
        self.mask = ""
        self.found: list[str] = []

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Run a branch that is cheap, or that is the first and only one; else ask the lanes."""
        f, cheap = self.f, self.costs[k] <= CHEAP
        if k == self.order[0] and (cheap or len(self.costs) == 1):
            yield
            return
        self.mask = self.takes(k)
        if cheap:
            yield
            return
        before, old = f.block, self.found or [f.spelling.literal(0, d) for d in self.dtypes]
        this, end = f.label(), f.label()
        f.fork(any_lane(f, self.mask), this, end, rare=self.is_rare(k))
        f.start(this)
        self.found = old
        yield
        new, after = self.found, f.block
        f.jump(end)
        if not self.locations:
            types = [f.spelling.types[d] for d in self.dtypes]
            self.found = [f.phi(t, (x, before), (y, after)) for t, x, y in zip(types, old, new)]

    def give(self, values: Sequence[Binding]) -> None:
        """Blend values in where the branch was taken."""
        f = self.f
        if not self.mask:
            self.found = self.put(values)
        elif not self.locations:
            fresh = [f.operand(b) for b in values]
            self.found = blend(f, self.mask, self.dtypes, fresh, self.found)
        else:
            for location, value in zip(self.locations, values):
                f.store(
                    location,
                    choose(f, location.dtype, self.mask, f.operand(value), f.load(location)),
                )

    def results(self) -> list[str]:
        """Return what has been blended."""
        return self.found
