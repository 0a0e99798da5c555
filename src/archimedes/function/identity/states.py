"""What a function is: its code and all that it reads. One rule for all that records functions.

A recording belongs to a *state* of what its function reads. ``Identity.current`` returns the
state that holds now: the one of the last call if nothing has changed, one met before if the
content is the same again, or a new one, for which the function is recorded anew. See ``reads``
for what is followed; ``freeze=True`` follows nothing.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, MethodType
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.identity.checks import CheckWriter
from archimedes.function.identity.data_places import MovingPlace
from archimedes.function.identity.live_arrays import with_live_arrays
from archimedes.function.identity.places import Place
from archimedes.function.identity.reads import Walk
from archimedes.function.identity.traversal import Same, is_atom
from archimedes.graph.dtypes import STATIC
from archimedes.symbolic import is_tracing
from archimedes.tree.content import declared_content

__all__ = [
    "Fingerprint",
    "Identity",
    "State",
    "changing_statics",
    "content_of",
    "fingerprint",
    "is_read_in_place",
    "reading_in_place",
    "reads_traced",
    "state_of",
    "to_record",
    "whole_fingerprint",
]

#: States that a function keeps, and functions whose states are kept for ``fingerprint``.
STATES, REMEMBERED = 16, 64


class Fingerprint:
    """A key that knows its hash."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Fingerprint) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


class State:
    """What a function reads, as it was found: ``key`` by content, ``places`` to look again."""

    __slots__ = (
        *("check", "clocks", "draws", "has_large", "holders", "key", "live", "objects", "places"),
        *("positions", "reason", "statics", "tables", "test"),
    )

    def __init__(self, key: Fingerprint, reason: str = "") -> None:
        self.key = key
        #: What differed from the state before it.
        self.reason = reason
        self.places: list[Place] = []
        self.positions: list[MovingPlace] = []
        self.objects: list[Any] = []
        self.statics: tuple[Any, ...] = ()
        #: Whether the function can reach a clock, or something that draws random numbers.
        self.clocks = self.draws = False
        #: Whether it reads large arrays; those that are read where they lie, what is on the way to
        #: them, and their tables in programs.
        self.has_large = False
        self.live: list[np.ndarray] = []
        self.holders: list[Any] = []
        self.tables: dict[int, np.ndarray] = {}
        #: The generated test that all places hold what they held, once it is worth its making:
        #: its terms, and as a function.
        self.test: CheckWriter | None = None
        self.check: Callable[[], bool] | None = None

    def renew(self, walk: Walk, statics: tuple[Any, ...]) -> None:
        """Take over where the same content was found now."""
        self.places, self.objects, self.statics = walk.places, walk.objects, statics
        self.positions = walk.positions
        self.clocks, self.draws = walk.clocks, walk.draws
        self.has_large, self.holders = walk.has_large, walk.holders
        self.live = [array for array, _ in walk.live]
        if self.check is not None:
            self.watch()

    def watch(self) -> CheckWriter:
        """Generate ``test`` and ``check``, for calls that are to ask nothing else."""
        test = CheckWriter()
        for place in self.places:
            place.check(test)
        self.test, self.check = test, test.function()
        return test

    def unchanged(self) -> bool:
        """Return whether all places hold what they held."""
        if self.check is not None:
            return self.check()
        same = all(place.same() for place in self.places)
        if same:  # and it will be asked again
            self.watch()
        return same


def _check_traced(walk: Walk) -> None:
    """Refuse values of recordings that have ended."""
    if not walk.traced:
        return
    from archimedes.function.identity.hidden_state import leftover

    found = leftover(walk)
    if found is not None:
        raise TraceError(
            f"{found} holds a value of a recording that has ended. Return such values from the "
            "function, or pass them as arguments, instead of storing them."
        )


def _are_same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


class Identity:
    """The states of what one function reads; ``frozen``: it is taken as it was first found."""

    __slots__ = (
        *("_lock", "frozen", "hosts", "in_place", "reads_in_place", "recent", "roots"),
        "states",
    )

    def __init__(
        self, roots: Sequence[Any], frozen: bool = False, *, reads_in_place: bool = False
    ) -> None:
        self.roots, self.frozen = tuple(roots), frozen
        #: Whether recordings may read large arrays where they lie. Then there are two kinds of
        #: states: those of all that is read by content, and, in another identity, those in which
        #: such arrays are known by where they lie.
        self.reads_in_place = reads_in_place and not frozen
        self.in_place: Identity | None = None
        #: Code that recordings call back at run time: what it reads is not followed.
        self.hosts: frozenset[CodeType] = frozenset()
        self.states: OrderedDict[Any, State] = OrderedDict()
        #: The same, newest first, for threads that only look.
        self.recent: tuple[State, ...] = ()
        self._lock = threading.Lock()

    def walk(self, statics: tuple[Any, ...] = ()) -> Walk:
        """Look at everything that is watched."""
        if self.frozen:
            return Walk((), every=True, statics=statics)
        return self.reads(statics)

    def reads(self, statics: tuple[Any, ...] = ()) -> Walk:
        """Look at everything that is read, frozen or not."""
        return Walk(self.roots, hosts=self.hosts, statics=statics)

    def current_in_place(self, statics: tuple[Any, ...] = ()) -> State:
        """Return the state that holds now, with large arrays where they lie if there are any."""
        if not self.reads_in_place:
            return self.current(statics)
        if self.in_place is None:
            state = self.current(statics)
            if not state.has_large:
                return state
            self.in_place = _InPlace(self.roots)
            self.in_place.hosts = self.hosts
        state = self.in_place.current(statics)
        if state.live:
            return state
        self.reads_in_place = False
        return self.current(statics)

    def learn(self, hosts: set[CodeType]) -> bool:
        """Take note of host functions; tell whether some are new."""
        fresh = not hosts <= self.hosts
        if fresh:
            self.hosts = self.hosts | hosts
            self.forget()
            _remember_hosts(self.roots, hosts)
            if self.in_place is not None:
                self.in_place.learn(hosts)
        return fresh

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
            if _are_same(state.statics, statics) and state.unchanged():
                return state
        walk = self.walk(statics)
        if not is_tracing():
            _check_traced(walk)
        key = Fingerprint(walk.key)
        # Static arguments are told apart by identity: a state watches those it was made for.
        slot = (key, tuple(map(Same, statics)))
        reason = self._difference(statics)
        with self._lock:
            if slot not in self.states:
                self.states[slot] = State(key, reason)
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
        if last is None:
            return ""
        if len(last.statics) != len(statics) or any(
            a is not b for a, b in zip(last.statics, statics)
        ):
            return ""
        changes = (c.what for p in last.places if not p.same() for c in p.changes())
        return next(changes, "")


class _InPlace(Identity):
    """States in which large arrays are known by where they lie."""

    __slots__ = ()

    def reads(self, statics: tuple[Any, ...] = ()) -> Walk:
        return Walk(self.roots, hosts=self.hosts, statics=statics, live=True)


class _Under(threading.local):
    """The identities whose arrays are read where they lie in the recordings of this thread."""

    def __init__(self) -> None:
        self.way: list[tuple[Identity, State]] = []


_under = _Under()


@contextmanager
def reading_in_place(identity: Identity, state: State) -> Iterator[None]:
    """Have recordings made inside read the arrays of a state where they lie."""
    _under.way.append((identity, state))
    try:
        yield
    finally:
        _under.way.pop()


def is_read_in_place(identity: Identity) -> bool:
    """Return whether a recording is under way that reads arrays of this identity in place."""
    return any(mine is identity for mine, _ in _under.way)


def to_record(identity: Identity, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what to call to record a function: itself, or with arrays where they lie."""
    for mine, state in reversed(_under.way):
        if mine is identity and function is identity.roots[0]:
            return with_live_arrays(function, state.live, state.holders, state.tables)
    return function


def changing_statics(
    values: dict[str, Any], static: set[str], specs: Any, treedef: Any
) -> tuple[Any, ...]:
    """Return the static arguments that can change: arguments, leaves, fields of structs."""
    found = [values[name] for name in values if name in static] if static else []
    found += [spec.value for spec in specs if spec.code == STATIC]
    if treedef.num_leaves or treedef.children:
        found += _fields(treedef)
    return tuple(part for value in found for part in _parts(value) if not is_atom(part))


def _parts(value: Any) -> Iterable[Any]:
    """Return what an object declares as its content, or the object itself."""
    declared = declared_content(value)
    return (value,) if declared is None else declared


@functools.lru_cache(maxsize=1024)
def _fields(treedef: Any) -> list[Any]:
    own = [] if is_atom(treedef.aux) else [treedef.aux]
    return [*own, *(value for child in treedef.children for value in _fields(child))]


def content_of(value: Any) -> Hashable:
    """Return a key that is equal for static values of the same content, of any kind.

    >>> content_of([1.0]) == content_of([1.0]), content_of(1) == content_of(True)
    (True, False)
    """
    return Fingerprint(Walk((value,), every=True).key)


_remembered: OrderedDict[Any, Identity | None] = OrderedDict()
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
        found = _remembered_identity(func)
        if found is not None:
            return found.current().key
    walk = Walk((func,))
    if not is_tracing():
        _check_traced(walk)
    return Fingerprint(walk.key)


def whole_fingerprint(func: Callable[..., Any]) -> Fingerprint:
    """Return a key that changes with everything a function reads, its callbacks included."""
    return Fingerprint(Walk((func,)).key)


def state_of(func: Callable[..., Any]) -> State | None:
    """Return the current state of what a function reads, or None at its first call."""
    found = _remembered_identity(func)
    return None if found is None else found.current()


def reads_traced(func: Callable[..., Any] | None) -> bool:
    """Return whether a function reads values of a recording."""
    return func is not None and bool(Walk((func,)).traced)


def _is_by_identity(func: Any) -> bool:
    """Return whether equal objects are the same one: others may change and stay equal."""
    return type(func) is MethodType or type(func).__hash__ is object.__hash__


def _remember_hosts(roots: Iterable[Any], hosts: set[CodeType]) -> None:
    """Leave out what hosts read of the fingerprints of functions that call them back."""
    with _lock:
        for func in (part for root in roots for part in _parts(root)):
            if _is_by_identity(func) and func in _remembered:
                known = _remembered[func] or Identity((func,))
                known.hosts = known.hosts | hosts
                known.forget()
                _remembered[func] = known


def _remembered_identity(func: Any) -> Identity | None:
    """Return the identity of a function that was met before: many are written for one call."""
    with _lock:
        met = func in _remembered
        found = _remembered.get(func)
        if met and found is None:
            found = _remembered[func] = Identity((func,))
        elif not met:
            _remembered[func] = None
            if len(_remembered) > REMEMBERED:
                _remembered.popitem(last=False)
        return found
