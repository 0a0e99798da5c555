"""Safepoints in LLVM IR: a budget of operations, and what is asked where it is used up.

A kernel with long loops has a budget: three words on its stack, to which its frame has a pointer.

=====  ==========================================================================
bytes  what
=====  ==========================================================================
0-7    operations that are left
8-15   when Python had its last turn, in milliseconds (0: not yet)
16-19  the status: not zero from when the kernel is to end
=====  ==========================================================================

Loops take what they did off the budget. Where nothing is left, they call the function that the word
``@arc_safepoint`` points to (``runtime/calls_to_python.py``). If that returns a status other than
zero, the loop ends with whatever values it has. The code behind it still runs, and the kernel
returns the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archimedes.backends.llvm.calling_convention import SAFEPOINT
from archimedes.backends.lowering.analysis import BUDGET, Safepoint
from archimedes.backends.lowering.dialect import Loop

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.assembler import Function

__all__ = [
    "Run",
    "declare_safepoints",
    "has_safepoints",
    "open_budget",
    "status_of",
    "with_safepoints",
]

#: Where a frame has the pointer, in bytes, and where a budget has its words.
AT_FRAME = 8
_LAST, _STATUS, _SIZE = 8, 16, 24
_LINE = f"@{SAFEPOINT} = external global ptr"


@dataclass
class Run(Loop):
    """A loop between safepoints.

    ``first``: the counter it began with ("": it is but a step), ``work``: the operations for each
    that it is counted up by, ``left``: the block from which it was left.
    """

    first: str = ""
    work: int = 0
    left: str = ""

    def leave(self, f: Function, done: str) -> None:
        """Go from here to the label behind the loop, before the step."""
        if self.first:
            count = f.value(f"sub i64 {self.counter}, {self.first}")
            _take(f, f.value(f"mul i64 {count}, {self.work}"))
        self.left = f.block
        f.line(f"br label %{done}")


def has_safepoints(f: Function) -> bool:
    """Tell whether the module of a function has any."""
    return _LINE in f.module.global_lines


def declare_safepoints(f: Function) -> None:
    """Say that the module has some."""
    if not has_safepoints(f):
        f.module.global_lines.append(_LINE)


def open_budget(f: Function, frames: Sequence[str]) -> None:
    """Make the budget of a call, and tell its frames."""
    f.line(f"%budget = alloca [{_SIZE} x i8], align 8")
    f.line(f"store i64 {BUDGET}, ptr %budget, align 8")
    for at, kind in ((_LAST, "i64"), (_STATUS, "i32")):
        location = f.value(f"getelementptr i8, ptr %budget, i64 {at}")
        f.line(f"store {kind} 0, ptr {location}, align 8")
    for frame in frames:
        location = f.value(f"getelementptr i8, ptr {frame}, i64 {AT_FRAME}")
        f.line(f"store ptr %budget, ptr {location}, align 8")
    f.budget = "%budget"


def status_of(f: Function) -> str:
    """Return the status of the budget of a call, an i32."""
    location = f.value(f"getelementptr i8, ptr {f.budget}, i64 {_STATUS}")
    return f.value(f"load i32, ptr {location}, align 8")


def _budget(f: Function) -> str:
    """Return the address of the budget, which functions inside a call read from its frame."""
    if not f.budget:
        f.budget = "%budget"
        f.entry.append(f"  %budget.at = getelementptr i8, ptr %frame, i64 {AT_FRAME}")
        f.entry.append("  %budget = load ptr, ptr %budget.at, align 8")
    return f.budget


def _take(f: Function, work: int | str) -> str:
    """Take operations off the budget; return what is left."""
    budget = _budget(f)
    before = f.value(f"load i64, ptr {budget}, align 8")
    left = f.value(f"sub i64 {before}, {work}")
    f.line(f"store i64 {left}, ptr {budget}, align 8")
    return left


def _charge(f: Function, work: int | str, leave: str) -> str:
    """Take operations off the budget, and go to ``leave`` if the kernel is to end.

    Returns the block that goes there.
    """
    declare_safepoints(f)
    left = _take(f, work)
    ask, go_on = f.label(), f.label()
    f.fork(f.value(f"icmp slt i64 {left}, 0"), ask, go_on, rare=True)
    f.start(ask)
    function = f.value(f"load ptr, ptr @{SAFEPOINT}, align 8")
    status = f.value(f"call i32 {function}(ptr {f.budget})")
    f.fork(f.value(f"icmp ne i32 {status}, 0"), leave, go_on, rare=True)
    f.start(go_on)
    return ask


@contextmanager
def with_safepoints(
    f: Function,
    start: int | str,
    stop: int | str,
    safepoint: Safepoint,
    carried: Sequence[tuple[str, str]] = (),
    step: int = 1,
    done: str = "",
) -> Iterator[Run]:
    """Write a loop as ``f.loop`` does, with safepoints.

    A body may ``leave`` to the label ``done``, which is behind the loop.
    """
    done = done or f.label()
    write = _at_each_step if safepoint.steps == 1 else _in_runs
    with write(f, start, stop, safepoint, carried, step, done) as loop:
        yield loop


@contextmanager
def _at_each_step(
    f: Function,
    start: int | str,
    stop: int | str,
    safepoint: Safepoint,
    carried: Sequence[tuple[str, str]],
    step: int,
    done: str,
) -> Iterator[Run]:
    """Write a loop with a safepoint behind each step."""
    with f.loop(start, stop, carried, step) as inner:
        loop = Run(inner.counter, inner.carried, inner.carried)
        yield loop
        inner.next = loop.next
        _charge(f, safepoint.work, done)
    f.jump(done)


@contextmanager
def _in_runs(
    f: Function,
    start: int | str,
    stop: int | str,
    safepoint: Safepoint,
    carried: Sequence[tuple[str, str]],
    step: int,
    done: str,
) -> Iterator[Run]:
    """Write a loop over runs of steps, with a safepoint behind each run.

    The loop of a run is as it is elsewhere, so it costs nothing.
    """
    length, types = safepoint.steps * step, [kind for kind, _ in carried]
    work = max(1, safepoint.work // step)
    with f.loop(start, stop, carried, step=length) as runs:
        first = runs.counter
        following = f.value(f"add i64 {first}, {length}")
        whole = f.value(f"icmp slt i64 {following}, {stop}")
        end = f.value(f"select i1 {whole}, i64 {following}, i64 {stop}")
        with f.loop(first, end, list(zip(types, runs.carried)), step) as inner:
            loop = Run(inner.counter, inner.carried, inner.carried, first=first, work=work)
            yield loop
            inner.next = loop.next
        inside = list(inner.carried)
        runs.next = inside
        count = f.value(f"sub i64 {end}, {first}")
        asked = _charge(f, f.value(f"mul i64 {count}, {work}"), done)
    ends = [(f.block, list(runs.carried)), (asked, inside)]
    f.jump(done)
    if loop.left:
        ends.append((loop.left, inside))
    loop.carried = [
        f.phi(kind, *((values[k], block) for block, values in ends)) for k, kind in enumerate(types)
    ]
