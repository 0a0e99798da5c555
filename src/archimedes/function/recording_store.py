"""The store of recordings: what was made of users' functions, kept between calls.

Everything that takes a user's function (``solve_ode``, ``minimize``, ``root``, ``trim``, ...)
records and compiles something of it. ``prepared`` keeps that under the content of the function:
its code and all that it reads. A second call with the same function, or with another one of the
same content, such as a lambda that is written anew, finds it; a function that reads something
else than before (another global, closure value or captured array) does not.

What is kept is recorded with ``freeze=True``: it need not be compared again at each call, because
it is looked up by content.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from archimedes import tree
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies.states import (
    changing_statics,
    content_of,
    fingerprint,
    reads_traced,
)
from archimedes.function.leaf_specs import describe_leaves
from archimedes.symbolic import is_tracing

__all__ = ["Current", "PerThread", "Store", "form_of", "prepared", "prepared_function", "store"]

T = TypeVar("T")

#: What is kept of this many functions; what was used longest ago is forgotten.
KEPT = 128


class PerThread(Generic[T]):
    """A value that each thread sets for itself; a thread that has set none reads the latest."""

    __slots__ = ("_latest", "_own")

    def __init__(self, value: T) -> None:
        self._own = threading.local()
        self.value = value

    @property
    def value(self) -> T:
        """What this thread has set last."""
        return getattr(self._own, "value", self._latest)

    @value.setter
    def value(self, value: T) -> None:
        self._own.value = self._latest = value

    @property
    def own(self) -> T | None:
        """The same, but None where this thread has set nothing."""
        return getattr(self._own, "value", None)


class Current:
    """The functions to record now: of all those with the same content, the latest of this thread.

    An older one may read something else by now, so that it must not be recorded later; so may one
    of another thread, which goes on meanwhile.
    """

    __slots__ = ("_own",)

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self._own = PerThread(functions)

    @property
    def functions(self) -> tuple[Any, ...]:
        """What this thread has given last."""
        return self._own.value

    @functions.setter
    def functions(self, functions: tuple[Any, ...]) -> None:
        self._own.value = functions

    def __content__(self) -> tuple[Any, ...]:
        return self.functions


class _Entry(Generic[T]):
    """What is kept: ``key`` is the object that it is found by without comparing content."""

    __slots__ = ("again", "key", "sources", "value")

    def __init__(self, key: Hashable, sources: Any, value: T) -> None:
        self.key, self.value = key, value
        #: The functions that each thread has given last.
        self.sources = PerThread(sources)
        #: Whether it was asked for a second time.
        self.again = False


class Store:
    """What was made of functions, by their content."""

    def __init__(self, size: int = KEPT) -> None:
        self.size = size
        self._entries: OrderedDict[Hashable, _Entry[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Any]:
        """Return all that is kept, what was used last at the end."""
        with self._lock:
            return [entry.value for entry in self._entries.values()]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def find(
        self,
        key: Hashable,
        sources: Any,
        make: Callable[[], T],
        renew: Callable[[T], None] | None = None,
        again: Callable[[T], None] | None = None,
    ) -> T:
        """Return what is kept under a key, or what ``make`` returns, which is kept from now on.

        ``sources`` are the functions it is made of. Where others of the same content come,
        ``renew`` is told: what this thread records from then on must not read the old ones.
        ``again`` is told once, when something is asked for a second time.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(entry.key)
        if entry is None:
            # No lock is held meanwhile: two threads may make the same, one of which is kept.
            made = _Entry(key, sources, make())
            with self._lock:
                entry = self._entries.setdefault(key, made)
                while len(self._entries) > self.size:
                    self._entries.popitem(last=False)
        elif again is not None and not entry.again:
            entry.again = True
            again(entry.value)
        if renew is not None and entry.sources.own != sources:
            entry.sources.value = sources
            renew(entry.value)
        return entry.value


#: The one for all.
store = Store()


def prepared(
    kind: str,
    functions: tuple[Any, ...],
    settings: Hashable,
    make: Callable[[Current], T],
    again: Callable[[T], None] | None = None,
) -> T:
    """Return what ``make`` made of these functions and settings, in an earlier call if possible.

    ``make`` is given the :class:`Current` functions, which it reads when something is recorded,
    and returns recorded functions, or something that holds them. A function may be None.
    ``again`` is told once, when something is asked for a second time: it will be asked for often.
    Functions that read values of a recording under way belong to that one: nothing is kept.
    """
    if is_tracing() and any(map(reads_traced, functions)):
        return make(Current(functions))
    key = (kind, tuple(None if f is None else fingerprint(f) for f in functions), settings)
    kept = store.find(
        key,
        functions,
        lambda: _Kept(functions, make),
        lambda kept: kept.renew(functions),
        None if again is None else lambda kept: again(kept.value),
    )
    return kept.value


class _Kept(Generic[T]):
    """What ``make`` made, with the functions it reads."""

    __slots__ = ("current", "value")

    def __init__(self, functions: tuple[Any, ...], make: Callable[[Current], T]) -> None:
        self.current = Current(functions)
        self.value = make(self.current)

    def renew(self, functions: tuple[Any, ...]) -> None:
        self.current.functions = functions


def form_of(value: Any) -> Hashable:
    """Return what is equal for trees of arguments that need the same recording.

    That is their structure, the shape and dtype of their numbers, and the content of all else.

    >>> form_of((1.0, "fast")) == form_of((2.0, "fast")), form_of(1.0) == form_of("fast")
    (True, False)
    """
    leaves, treedef = tree.flatten(value)
    specs = describe_leaves(leaves, treedef, [""])
    statics = changing_statics({}, set(), specs, treedef)
    return treedef, specs, tuple(map(content_of, statics))


def prepared_function(
    function: Callable[..., Any],
    watch: Sequence[Any] = (),
    name: str | None = None,
    backend: str | None = None,
    loops_from: int | None = None,
) -> Compiled:
    """Compile what is kept in the store of recordings (``identity/store.py``).

    Whoever keeps it knows by the content of the user's functions when it is out of date, so that
    nothing is compared at each call. ``watch`` are functions of users that it calls itself, or
    the ``Current`` that holds them: they must not change state while they are recorded.
    """
    made = Compiled(
        function, name=name, backend=backend, loops_from=loops_from, freeze=True, watch=watch
    )
    made.lenient = False
    return made
