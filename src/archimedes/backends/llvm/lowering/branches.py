"""Branches that come together again.

Scalar code runs the branch that is taken. In SIMD lanes each branch that any lane takes runs for
all, and its values are blended in where it was taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.instructions import any_lane, blend, choose
from archimedes.backends.lowering.copies import copy_all
from archimedes.backends.lowering.dialect import Branching, Dialect, Join
from archimedes.backends.lowering.scope import Binding
from archimedes.graph.dtypes import I64

#: Branches of up to this many operations run in lanes whether or not a lane takes them.
CHEAP = 12


class _Branches(Join):
    """Branches being written: results too many for registers go to ``locations``."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        self.dialect, self.f = dialect, f
        self.index, self.costs, self.dtypes, self.locations = branching

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
        """Put values into their locations, or return their registers."""
        if self.locations:
            copy_all(self.dialect, self.f, list(zip(self.locations, values)))
            return []
        return [self.f.operand(b) for b in values]


class ScalarJoin(_Branches):
    """Runs the branch that is taken."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        super().__init__(dialect, f, branching)
        self.end = f.label()
        #: The values of each branch, and the basic block they come from.
        self.incoming: list[tuple[list[str], str]] = []
        # The last branch is tested first, so that a rare one stays out of the ordinary way.
        self.order = range(len(self.costs) - 1, -1, -1)

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
        """Remember values and the basic block they come from."""
        operands = self.put(values)
        self.incoming.append((operands, self.f.block))

    def results(self) -> list[str]:
        """Choose by the branch that was taken."""
        f = self.f
        f.start(self.end)
        return [
            f.phi(f.spelling.types[d], *((values[j], block) for values, block in self.incoming))
            for j, d in enumerate(self.dtypes if not self.locations else ())
        ]


class LaneJoin(_Branches):
    """Runs the branches that any lane takes (cheap ones always), and blends their values."""

    def __init__(self, dialect: Dialect, f: Function, branching: Branching) -> None:
        super().__init__(dialect, f, branching)
        self.order = sorted(range(len(self.costs)), key=lambda k: self.costs[k] > CHEAP)
        self.values: list[str] = []

    @contextmanager
    def branch(self, k: int) -> Iterator[None]:
        """Run a branch always if it is cheap or the only one, otherwise if any lane takes it."""
        f, cheap = self.f, self.costs[k] <= CHEAP
        if k != self.order[0] or not (cheap or len(self.costs) == 1):
            self.mask = self.takes(k)
        if cheap or not self.mask:
            yield
            return
        before, old = f.block, self.values or [f.spelling.literal(0, d) for d in self.dtypes]
        this, end = f.label(), f.label()
        f.fork(any_lane(f, self.mask), this, end, rare=self.is_rare(k))
        f.start(this)
        self.values = old
        yield
        new, after = self.values, f.block
        f.jump(end)
        if not self.locations:
            types = [f.spelling.types[d] for d in self.dtypes]
            self.values = [f.phi(t, (x, before), (y, after)) for t, x, y in zip(types, old, new)]

    def give(self, values: Sequence[Binding]) -> None:
        """Blend values in where the branch was taken."""
        f = self.f
        if not self.mask:
            self.values = self.put(values)
        elif not self.locations:
            new = [f.operand(b) for b in values]
            self.values = blend(f, self.mask, self.dtypes, new, self.values)
        else:
            for to, value in zip(self.locations, values):
                f.store(to, choose(f, to.dtype, self.mask, f.operand(value), f.load(to)))

    def results(self) -> list[str]:
        """Return what has been blended."""
        return self.values
