"""Side effects of recording: state kept in objects, and random numbers drawn.

A recorded function runs its Python once, so that a counter or an integral kept in an attribute
would move once and then stand still. After each recording, what the function reads is looked at
again. Changes are undone, and reported with the way to carry state. Constants where there was
nothing or None (``cached_property``, dicts that remember results, tables made when they are first
needed) are what a memo does, and stay: the function is then another one and is recorded once more,
which must change nothing.

Random numbers show by the state of their generator. Other threads may draw from the same generators
meanwhile. A changed state therefore has the recording repeated, with Python reporting each line of
this thread: a draw of the function's own shows up on the same line each time. See
docs/decisions/017-random-numbers.md.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FrameType, FunctionType
from typing import Any

from archimedes.errors import TraceError, refer_to
from archimedes.function.dependencies import tracked_reads
from archimedes.function.dependencies.states import ended_value
from archimedes.function.dependencies.tracked_reads import MISSING, Change, TrackedRead
from archimedes.function.dependencies.walk import Walk
from archimedes.symbolic.core.trace import attempt
from archimedes.symbolic.core.user_frames import frame_line, is_user_code
from archimedes.symbolic.recorded.nondeterminism import REMEDY, module_generators, refusal

_REMEDY = (
    "Python code runs once, when the function is recorded, so the change would not happen again "
    "in later calls. Carry state in the open: pass it as an argument and return its new value, "
    "with arc.scan as the carry of the loop, in a simulation as the memory of a Sampled part. "
    "For effects such as a log use arc.callback."
)
#: Instructions that write to a name.
_WRITING = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")


@contextmanager
def refuse_side_effects(
    name: str,
    reads: Sequence[TrackedRead],
    walk_again: Callable[[], Walk],
    lenient: bool = False,
    replay: Callable[[], Any] | None = None,
) -> Iterator[list[Change]]:
    """Refuse changes of ``reads`` made inside; the list has those that were let through, after.

    Parameters
    ----------
    name
        Name of the function, for messages.
    reads
        What the function reads.
    walk_again
        Walks through what is read.
    lenient
        Whether only traced values that are kept are refused.
    replay
        Does once more what is done inside, which tells where random numbers are drawn.
    """
    allowed: list[Change] = []
    try:
        yield allowed
    except BaseException:
        for read in _find_changed(reads):
            if any(_holds_ended_value(change.new) for change in read.changes()):
                read.restore()
        raise
    changed = _find_changed(reads)
    if replay is not None:
        changed = _refuse_draws(changed, replay)
    if changed:
        allowed += _check_changes(name, changed, walk_again, lenient)


def _find_changed(reads: Sequence[TrackedRead]) -> list[TrackedRead]:
    return [read for read in reads if not read.is_unchanged()]


def _check_changes(
    name: str, changed: list[TrackedRead], walk_again: Callable[[], Walk], lenient: bool
) -> list[Change]:
    """Refuse changes that are state; return the others."""
    changes = [change for read in changed for change in read.changes()]
    traced = [change for change in changes if _holds_ended_value(change.new)]
    state = [] if lenient else [change for change in changes if not _is_memo(change)]
    refused = traced or state
    if not refused:
        return changes
    functions = [o for o in walk_again().objects if isinstance(o, FunctionType)]
    for read in changed:
        read.restore()
    what = refused[0].what
    note = ", and would keep a traced value there" if traced else ""
    raise TraceError(
        f"{name}() changes {what} while it is recorded{note}, at\n"
        f"  {_writing_line(functions, what)}\n{_REMEDY}" + refer_to("memory")
    )


def check_memo(name: str, changes: Sequence[Change], same: bool) -> None:
    """Refuse what was taken for a memo, but lets the function compute something else."""
    if not same:
        raise TraceError(
            f"{name}() computes something else once {changes[0].what} is set, which it does "
            f"itself. {_REMEDY}"
        )


def _walk_all(value: Any) -> Walk:
    return Walk((value,), follows_all=True)


def _holds_ended_value(value: Any) -> bool:
    return value is not MISSING and ended_value(_walk_all(value)) is not None


def _is_memo(change: Change) -> bool:
    """Return whether a constant was added, or put in place of one of the same content."""
    if change.new is MISSING:
        return False
    if change.old is MISSING or change.old is None:
        return True
    return _walk_all(change.old).key == _walk_all(change.new).key


def _writing_line(functions: Sequence[FunctionType], what: str) -> str:
    """Return where a function is that writes to what was changed."""
    name = what.split("[")[0].split(".")[-1].split(" of ")[0].split(" ")[-1]
    for function in sorted(functions, key=lambda f: f.__name__ == "__init__"):
        for code in _codes(function.__code__):
            for step in dis.get_instructions(code):
                is_write = step.opname.startswith(_WRITING) and step.argval == name
                if is_write and step.positions is not None:
                    return f"{code.co_filename}:{step.positions.lineno}, in {code.co_name}"
    if not functions:
        return "an unknown line"
    code = functions[0].__code__
    return f"{code.co_filename}:{code.co_firstlineno}, in {code.co_name}"


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# ---- random numbers ----------------------------------------------------------------------------


def shared_generators() -> list[tracked_reads.GeneratorRead]:
    """Return the states of the generators that ``np.random`` and ``random`` draw from."""
    return [tracked_reads.GeneratorRead(name, value) for name, value in module_generators()]


def refuse_kept_generators(before: Sequence[TrackedRead], after: Walk) -> None:
    """Refuse generators that a function has made and kept: it would draw from them next time."""
    known = {id(read.value) for read in before if isinstance(read, tracked_reads.GeneratorRead)}
    for read in after.moving:
        if isinstance(read, tracked_reads.GeneratorRead) and id(read.value) not in known:
            functions = [o for o in after.objects if isinstance(o, FunctionType)]
            raise TraceError(
                f"{read.path} is a {type(read.value).__name__} that the function made while it "
                "was being recorded, and keeps: the numbers drawn from it would become constants, "
                f"the same in every call, at\n  {_writing_line(functions, read.path)}\n{REMEDY}"
            )


def _refuse_draws(changed: Sequence[TrackedRead], replay: Callable[[], Any]) -> list[TrackedRead]:
    """Refuse draws that a function made itself; return the changes that are none."""
    for read in changed:
        if isinstance(read, tracked_reads.GeneratorRead):
            line = _repeated_line(read, replay)
            if line is not None:
                for other in changed:
                    other.restore()
                kind = type(read.value).__name__
                what = refusal(f"{read.path} ({kind})").replace("was called", "was drawn from")
                raise TraceError(f"{what}, at\n  {line}\n{REMEDY}")
    return [read for read in changed if not isinstance(read, tracked_reads.GeneratorRead)]


def _repeated_line(read: tracked_reads.GeneratorRead, replay: Callable[[], Any]) -> str | None:
    """Return the line on which the function moves a generator each time; None if it does not."""
    now = read.renew()
    line = _drawing_line(read, replay)
    if line is not None:
        return line if _drawing_line(read, replay) == line else None
    if not now.is_unchanged():
        return None  # another thread goes on drawing
    # Setting a state, with a seed, shows only where there was another.
    read.restore()
    line = _drawing_line(read, replay)
    now.restore()
    return line


def _drawing_line(read: tracked_reads.GeneratorRead, replay: Callable[[], Any]) -> str | None:
    """Return the line of a user's code on which a generator moves as the function is recorded."""
    state = read.position(read.value)
    line = drawing = None

    def look(frame: FrameType | None) -> None:
        nonlocal state, line, drawing
        if drawing is None:
            now = read.position(read.value)
            if now != state:
                drawing = line
            state = now
            line = None if frame is None else frame_line(frame)

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        if not is_user_code(frame):
            return None
        look(frame)
        return step

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        outer: FrameType | None = frame
        if event == "return":
            outer = frame.f_back
            while outer is not None and not is_user_code(outer):
                outer = outer.f_back
        look(outer)
        return step

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        # The recording succeeded before: what goes wrong now has been drawn otherwise.
        with attempt(), suppress(Exception):
            replay()
    finally:
        sys.settrace(before)
    look(None)
    return drawing
