"""State hidden in objects: what a function changed while it was recorded.

A recorded function runs its Python once, so that a counter or an integral kept in an attribute
would move once and then stand still. After each recording the places the function reads are
looked at again. Changed ones are put back, and reported with the way to carry state. Constants
in places that were empty or None (``cached_property``, dicts that remember results, tables made
when they are first needed) are what a memo does, and stay: the function is then another one and
is recorded once more, which must change nothing.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from archimedes.errors import TraceError, explained
from archimedes.function.identity.data_places import GeneratorPlace
from archimedes.function.identity.draws import refuse_draws
from archimedes.function.identity.places import MISSING, Change, Place
from archimedes.function.identity.reads import Walk
from archimedes.symbolic.core.trace import is_active
from archimedes.symbolic.recorded.nondeterminism import REMEDY

__all__ = ["check_memo", "leftover", "no_hidden_state", "refuse_kept_generators"]

_REMEDY = (
    "Python code runs once, when the function is recorded, so the change would not happen again "
    "in later calls. Carry state in the open: pass it as an argument and return its new value, "
    "with arc.scan as the carry of the loop, in a simulation as the memory of a Sampled part. "
    "For effects such as a log use arc.callback."
)


#: Instructions that write to a name.
_WRITING = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")


def leftover(walk: Walk) -> str | None:
    """Return the path of a value whose recording has ended, if the walk met one."""
    for path, value in walk.traced:
        if not is_active(value.owner.number):
            return path
    return None


@contextmanager
def no_hidden_state(
    name: str,
    places: Sequence[Place],
    again: Callable[[], Walk],
    frozen: bool = False,
    replay: Callable[[], Any] | None = None,
) -> Iterator[list[Change]]:
    """Refuse changes of ``places`` made inside; ``again`` walks through what is read.

    ``frozen``: only places that hold traced values are refused. ``replay`` does once more what is
    done inside, which tells where random numbers are drawn. The list that is returned has the
    changes that were let through, afterwards.
    """
    allowed: list[Change] = []
    try:
        yield allowed
    except BaseException:
        for place in _changed(places):
            if any(_ended(change.new) for change in place.changes()):
                place.restore()
        raise
    changed = _changed(places)
    if replay is not None:
        changed = refuse_draws(changed, replay)
    if changed:
        allowed += _judge(name, changed, again, frozen)


def refuse_kept_generators(before: Sequence[Place], after: Walk) -> None:
    """Refuse generators that a function has made and kept: it would draw from them next time."""
    known = {id(place.value) for place in before if isinstance(place, GeneratorPlace)}
    for place in after.positions:
        if isinstance(place, GeneratorPlace) and id(place.value) not in known:
            functions = [o for o in after.objects if isinstance(o, FunctionType)]
            raise TraceError(
                f"{place.path} is a {type(place.value).__name__} that the function made while it "
                "was being recorded, and keeps: the numbers drawn from it would become constants, "
                f"the same in every call, at\n  {_line(functions, place.path)}\n{REMEDY}"
            )


def _changed(places: Sequence[Place]) -> list[Place]:
    return [place for place in places if not place.same()]


def _judge(
    name: str, changed: list[Place], again: Callable[[], Walk], frozen: bool
) -> list[Change]:
    """Refuse changes that are state; return the others."""
    found = [change for place in changed for change in place.changes()]
    traced = [change for change in found if _ended(change.new)]
    state = [] if frozen else [change for change in found if not _is_memo(change)]
    guilty = traced or state
    if not guilty:
        return found
    functions = [o for o in again().objects if isinstance(o, FunctionType)]
    for place in changed:
        place.restore()
    first = guilty[0]
    kept = ", and would keep a traced value there" if traced else ""
    raise TraceError(
        explained(
            "memory",
            f"{name}() changes {first.what} while it is recorded{kept}, at\n"
            f"  {_line(functions, first.what)}\n{_REMEDY}",
        )
    )


def check_memo(name: str, changes: Sequence[Change], same: bool) -> None:
    """Refuse what was taken for a memo, but lets the function compute something else."""
    if not same:
        raise TraceError(
            f"{name}() computes something else once {changes[0].what} is set, which it does "
            f"itself. {_REMEDY}"
        )


def _walked(value: Any) -> Walk:
    return Walk((value,), every=True)


def _ended(value: Any) -> bool:
    return value is not MISSING and leftover(_walked(value)) is not None


def _is_memo(change: Change) -> bool:
    """Tell whether a constant was added, or put in place of one of the same content."""
    if change.old is MISSING or change.old is None:
        return change.new is not MISSING
    return change.new is not MISSING and _walked(change.old).key == _walked(change.new).key


def _line(functions: Sequence[FunctionType], what: str) -> str:
    """Return where a function is that writes to what was changed."""
    name = what.split("[")[0].split(".")[-1].split(" of ")[0].split(" ")[-1]
    for function in sorted(functions, key=lambda f: f.__name__ == "__init__"):
        for code in _codes(function.__code__):
            for step in dis.get_instructions(code):
                if (
                    step.opname.startswith(_WRITING)
                    and step.argval == name
                    and step.positions is not None
                ):
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
