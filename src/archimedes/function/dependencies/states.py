"""The states of what a function depends on: its code and all that it reads.

A recording belongs to a *state* of what its function reads. ``Dependencies.current`` returns the
state that holds now: the one of the last call if nothing has changed, one met before if the content
is the same again, or a new one, for which the function is recorded anew. See ``walk.py`` for what
is followed; ``freeze=True`` follows nothing.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.dependencies.live_arrays import with_live_arrays
from archimedes.function.dependencies.openers import Same
from archimedes.function.dependencies.tracked_reads import Guard, TrackedRead
from archimedes.function.dependencies.walk import Fingerprint, Walk, is_atom
from archimedes.graph.dtypes import STATIC
from archimedes.symbolic import is_tracing
from archimedes.symbolic.core.trace import is_active
from archimedes.tracebacks import inside
from archimedes.tree.content import declared_content
from archimedes.tree.treedef import TreeDef

if TYPE_CHECKING:
    from archimedes.function.leaf_specs import LeafSpec


#: States that a function keeps, and functions whose states are kept for ``fingerprint``.
STATES, REMEMBERED = 16, 64


class State:
    """What a function reads, as it was found: ``key`` by content, ``reads`` to look again."""

    #: The latest walk that found this content.
    walk: Walk

    def __init__(self, key: Fingerprint, reason: str = "") -> None:
        self.key = key
        #: What differed from the state before it.
        self.reason = reason
        self.statics: tuple[Any, ...] = ()
        self.reads: list[TrackedRead] = []
        #: The tables in programs of the arrays that are read where they lie.
        self.tables: dict[int, np.ndarray] = {}
        #: The generated test that nothing has changed, once it is worth its making: its terms, and
        #: as a function.
        self.guard: Guard | None = None
        self.check: Callable[[], bool] | None = None

    @property
    def live(self) -> list[np.ndarray]:
        """The large arrays that are read where they lie."""
        return [array for array, _ in self.walk.live]

    def renew(self, walk: Walk, statics: tuple[Any, ...]) -> None:
        """Take over where the same content was found now."""
        self.walk, self.statics, self.reads = walk, statics, walk.reads
        if self.guard is not None:
            self.make_guard()

    def make_guard(self) -> Guard:
        """Generate the guard, for calls that are to ask nothing else."""
        self.guard = Guard(self.reads)
        self.check = self.guard.function()
        return self.guard

    def is_unchanged(self) -> bool:
        """Return whether everything that was read is as it was."""
        if self.check is not None:
            return self.check()
        unchanged = all(read.is_unchanged() for read in self.reads)
        if unchanged:  # and it will be asked again
            self.make_guard()
        return unchanged


def ended_value(walk: Walk) -> str | None:
    """Return the path of a value whose recording has ended, if a walk met one."""
    return next((path for path, v in walk.traced if not is_active(v.owner.number)), None)


def _refuse_ended_values(walk: Walk) -> None:
    path = ended_value(walk)
    if path is not None:
        raise TraceError(
            f"{path} holds a value of a recording that has ended. Return such values from the "
            "function, or pass them as arguments, instead of storing them."
        )


def _are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


class Dependencies:
    """The states of what one function reads; ``frozen``: it is taken as it was first found."""

    def __init__(
        self, roots: Sequence[Any], frozen: bool = False, *, reads_in_place: bool = False
    ) -> None:
        self.roots, self.frozen = tuple(roots), frozen
        #: Whether recordings may read large arrays where they lie. Then there are two kinds of
        #: states: those of all that is read by content, and, in another object, those in which
        #: such arrays are known by where they lie.
        self.reads_in_place = reads_in_place and not frozen
        self.in_place: Dependencies | None = None
        self._is_in_place = False
        #: Code that recordings call back at run time: what it reads is not followed.
        self.callbacks: frozenset[CodeType] = frozenset()
        self.states: OrderedDict[Any, State] = OrderedDict()
        #: The same, newest first, for threads that only look.
        self.recent: tuple[State, ...] = ()
        self._lock = threading.Lock()

    def walk(self, statics: tuple[Any, ...] = ()) -> Walk:
        """Look at everything that is watched."""
        if self.frozen:
            return Walk((), follows_all=True, statics=statics)
        return self.walk_all(statics)

    def walk_all(self, statics: tuple[Any, ...] = ()) -> Walk:
        """Look at everything that is read, frozen or not."""
        return Walk(
            self.roots, callbacks=self.callbacks, statics=statics, in_place=self._is_in_place
        )

    def current_in_place(self, statics: tuple[Any, ...] = ()) -> State:
        """Return the state that holds now, with large arrays where they lie if there are any."""
        if not self.reads_in_place:
            return self.current(statics)
        if self.in_place is None:
            state = self.current(statics)
            if not state.walk.has_large:
                return state
            self.in_place = Dependencies(self.roots)
            self.in_place._is_in_place = True
            self.in_place.callbacks = self.callbacks
        state = self.in_place.current(statics)
        if state.live:
            return state
        self.reads_in_place = False
        return self.current(statics)

    def learn_callbacks(self, callbacks: set[CodeType]) -> bool:
        """Take note of code that is called back; return whether some is new."""
        is_new = not callbacks <= self.callbacks
        if is_new:
            self.callbacks = self.callbacks | callbacks
            self.forget()
            _remember_callbacks(self.roots, callbacks)
            if self.in_place is not None:
                self.in_place.learn_callbacks(callbacks)
        return is_new

    def forget(self) -> None:
        """Let go of all states."""
        with self._lock:
            self.states.clear()
            self.recent = ()
        if self.in_place is not None:
            self.in_place.forget()

    def current(self, statics: tuple[Any, ...] = ()) -> State:
        """Return the state that holds now; ``statics`` are arguments that count as well."""
        for state in self.recent:
            if _are_same(state.statics, statics) and state.is_unchanged():
                return state
        walk = self.walk(statics)
        if not is_tracing():
            _refuse_ended_values(walk)
        # Static arguments are told apart by identity: a state watches those it was made for.
        slot = (walk.fingerprint, tuple(map(Same, statics)))
        reason = self._difference(statics)
        with self._lock:
            if slot not in self.states:
                self.states[slot] = State(slot[0], reason)
            state = self.states[slot]
            state.renew(walk, statics)
            self.states.move_to_end(slot)
            while len(self.states) > STATES:
                self.states.popitem(last=False)
            self.recent = tuple(reversed(self.states.values()))
        return state

    def _difference(self, statics: tuple[Any, ...]) -> str:
        """Say what is not as it was in the last state."""
        last = next(iter(self.recent), None)
        if last is None or not _are_same(last.statics, statics):
            return ""
        changes = (c.what for r in last.reads if not r.is_unchanged() for c in r.changes())
        return next(changes, "")


# ---- recordings that read arrays where they lie ------------------------------------------------


class _Stacks(threading.local):
    """What belongs to the recordings under way in this thread, the innermost last."""

    def __init__(self) -> None:
        #: The functions, with their states, that read arrays where they lie.
        self.in_place: list[tuple[Dependencies, State]] = []
        #: The code that is called back.
        self.callbacks: list[set[CodeType]] = []


_stacks = _Stacks()


@contextmanager
def reading_in_place(dependencies: Dependencies, state: State) -> Iterator[None]:
    """Have recordings made inside read the arrays of a state where they lie."""
    _stacks.in_place.append((dependencies, state))
    try:
        yield
    finally:
        _stacks.in_place.pop()


def is_reading_in_place(dependencies: Dependencies) -> bool:
    """Return whether a recording is under way that reads arrays of a function in place."""
    return any(mine is dependencies for mine, _ in _stacks.in_place)


def function_to_record(
    dependencies: Dependencies, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what to call to record a function: itself, or with arrays where they lie."""
    for mine, state in reversed(_stacks.in_place):
        if mine is dependencies and function is dependencies.roots[0]:
            return with_live_arrays(function, state.live, state.walk.holders, state.tables)
    return function


# ---- callbacks ---------------------------------------------------------------------------------
# Functions that recorded ones call back at run time (``arc.callback``) run as plain Python each
# time, so that what they read and change is no part of a recording. Which ones they are is known
# once a function has been recorded.


@contextmanager
def collect_callbacks() -> Iterator[set[CodeType]]:
    """Collect the code of callbacks that are met inside."""
    mine: set[CodeType] = set()
    _stacks.callbacks.append(mine)
    try:
        yield mine
    finally:
        _stacks.callbacks.pop()
        note_callbacks(mine)


def note_callbacks(codes: Iterable[CodeType]) -> None:
    """Take note of code that is called back."""
    if _stacks.callbacks:
        _stacks.callbacks[-1].update(codes)


def callback_code(function: Callable[..., Any]) -> list[CodeType]:
    """Return the code that runs when a function is called, where it is written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inside(getattr(function, "__func__", function))
    callers: tuple[Any, ...] = (function, type(function).__call__)
    codes = [caller.__code__ for caller in callers if hasattr(caller, "__code__")]
    return codes[:1]


# ---- keys --------------------------------------------------------------------------------------


def changing_statics(
    values: dict[str, Any], static: set[str], specs: Sequence[LeafSpec], treedef: TreeDef
) -> tuple[Any, ...]:
    """Return the static arguments that can change: arguments, leaves, fields of structs."""
    statics = [values[name] for name in values if name in static] if static else []
    statics += [spec.value for spec in specs if spec.code == STATIC]
    if treedef.num_leaves or treedef.children:
        statics += _static_fields(treedef)
    return tuple(part for value in statics for part in _parts(value) if not is_atom(part))


@functools.lru_cache(maxsize=1024)
def _static_fields(treedef: TreeDef) -> list[Any]:
    own = [] if is_atom(treedef.aux) else [treedef.aux]
    return [*own, *(value for child in treedef.children for value in _static_fields(child))]


def _parts(value: Any) -> Iterable[Any]:
    """Return what an object declares as its content, or the object itself."""
    declared = declared_content(value)
    return (value,) if declared is None else declared


def content_of(value: Any) -> Fingerprint:
    """Return a key that is equal for static values of the same content, of any kind.

    >>> content_of([1.0]) == content_of([1.0]), content_of(1) == content_of(True)
    (True, False)
    """
    return Walk((value,), follows_all=True).fingerprint


_remembered: OrderedDict[Any, Dependencies | None] = OrderedDict()
_lock = threading.Lock()


def fingerprint(func: Callable[..., Any]) -> Fingerprint:
    """Return a key that is equal for functions that record the same.

    >>> def make(k):
    ...     return lambda t, x: k * x
    >>> fingerprint(make(2.0)) == fingerprint(make(2.0))
    True
    >>> fingerprint(make(2.0)) == fingerprint(make(3.0))
    False
    """
    if _is_by_identity(func) and not is_tracing():
        state = state_of(func)
        if state is not None:
            return state.key
    walk = Walk((func,))
    if not is_tracing():
        _refuse_ended_values(walk)
    return walk.fingerprint


def whole_fingerprint(func: Callable[..., Any]) -> Fingerprint:
    """Return a key that changes with everything a function reads, its callbacks included."""
    return Walk((func,)).fingerprint


def state_of(func: Callable[..., Any]) -> State | None:
    """Return the current state of what a function reads, or None at its first call."""
    dependencies = _remembered_dependencies(func)
    return None if dependencies is None else dependencies.current()


def reads_traced(func: Callable[..., Any] | None) -> bool:
    """Return whether a function reads values of a recording."""
    return func is not None and bool(Walk((func,)).traced)


def _is_by_identity(func: Any) -> bool:
    """Return whether equal objects are the same one: others may change and stay equal."""
    return type(func) is MethodType or type(func).__hash__ is object.__hash__


def _remember_callbacks(roots: Iterable[Any], callbacks: set[CodeType]) -> None:
    """Leave out what callbacks read of the fingerprints of functions that use them."""
    with _lock:
        for func in (part for root in roots for part in _parts(root)):
            if _is_by_identity(func) and func in _remembered:
                known = _remembered[func] or Dependencies((func,))
                known.callbacks = known.callbacks | callbacks
                known.forget()
                _remembered[func] = known


def _remembered_dependencies(func: Any) -> Dependencies | None:
    """Return those of a function that was met before: many are written for one call."""
    with _lock:
        if func not in _remembered:
            _remembered[func] = None
            if len(_remembered) > REMEMBERED:
                _remembered.popitem(last=False)
        elif _remembered[func] is None:
            _remembered[func] = Dependencies((func,))
        return _remembered[func]
