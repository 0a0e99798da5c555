"""The store of recordings: what was made of users' functions, kept between calls.

Everything that takes a user's function (``solve_ode``, ``minimize``, ``root``, ``trim``, ...)
records and compiles something of it. :func:`find_or_make` keeps that under the content of the
function: its code and all that it reads. A second call with the same function, or with another one
of the same content, such as a lambda that is written anew, finds it; a function that reads
something else than before (another global, closure value or captured array) does not. See
docs/decisions/067-one-store-of-recordings.md.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from archimedes import tree
from archimedes.function.compiled import Compiled
from archimedes.function.dependencies import states
from archimedes.function.leaf_specs import describe_leaves
from archimedes.symbolic import is_tracing

if TYPE_CHECKING:
    from archimedes.typing import Tree


T = TypeVar("T")

#: What is kept of this many functions; what was used longest ago is forgotten.
SIZE = 128


class Current:
    """The functions to record now: of all those with the same content, the latest of this thread.

    An older one may read something else by now, so that it must not be recorded later; so may one
    of another thread, which goes on meanwhile.
    """

    __slots__ = ("_latest", "_own")

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self._own = threading.local()
        self.functions = functions

    @property
    def functions(self) -> tuple[Any, ...]:
        """What this thread has given last; the latest of all if it has given none."""
        return getattr(self._own, "functions", self._latest)

    @functions.setter
    def functions(self, functions: tuple[Any, ...]) -> None:
        self._own.functions = self._latest = functions

    def __content__(self) -> tuple[Any, ...]:
        return self.functions


class _Entry(Generic[T]):
    """What is kept: ``key`` is the object that it is found by without comparing content."""

    __slots__ = ("current", "is_reused", "key", "value")

    def __init__(self, key: Hashable, functions: tuple[Any, ...], make: Callable[[Current], T]):
        self.key, self.current, self.is_reused = key, Current(functions), False
        self.value = make(self.current)


class Store:
    """What was made of functions, by their content."""

    def __init__(self, size: int = SIZE) -> None:
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
        functions: tuple[Any, ...],
        make: Callable[[Current], T],
        on_reuse: Callable[[T], None] | None = None,
    ) -> T:
        """Return what is kept under a key, or what ``make`` returns, which is kept from now on.

        Parameters
        ----------
        key
            The content of the functions, and all else that it depends on.
        functions
            What it is made of. What this thread records from now on reads these.
        make
            Called with the :class:`Current` functions, to be read when something is recorded.
        on_reuse
            Called once, when something is asked for a second time: it will be asked for often.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(entry.key)
        if entry is None:
            # No lock is held meanwhile: two threads may make the same, one of which is kept.
            fresh = _Entry(key, functions, make)
            with self._lock:
                entry = self._entries.setdefault(key, fresh)
                while len(self._entries) > self.size:
                    self._entries.popitem(last=False)
        elif on_reuse is not None and not entry.is_reused:
            entry.is_reused = True
            on_reuse(entry.value)
        entry.current.functions = functions
        return entry.value


#: The one for all.
store = Store()


def find_or_make(
    kind: str,
    functions: tuple[Any, ...],
    settings: Hashable,
    make: Callable[[Current], T],
    on_reuse: Callable[[T], None] | None = None,
) -> T:
    """Return what ``make`` made of these functions and settings, in an earlier call if possible.

    ``make`` is given the :class:`Current` functions and returns recorded functions
    (:func:`compile_frozen`), or something that holds them. A function may be None. Functions that
    read values of a recording under way belong to that one: nothing is kept.
    """
    if is_tracing() and any(map(states.reads_traced, functions)):
        return make(Current(functions))
    content = tuple(None if f is None else states.fingerprint(f) for f in functions)
    return store.find((kind, content, settings), functions, make, on_reuse)


def form_of(value: Tree) -> Hashable:
    """Return what is equal for trees of arguments that need the same recording.

    That is their structure, the shape and dtype of their numbers, and the content of all else.

    >>> form_of((1.0, "fast")) == form_of((2.0, "fast")), form_of(1.0) == form_of("fast")
    (True, False)
    """
    leaves, treedef = tree.flatten((value,))
    specs = describe_leaves(leaves, treedef, [""])
    statics = states.changing_statics({}, set(), specs, treedef)
    return treedef, specs, tuple(map(states.content_of, statics))


def compile_frozen(
    function: Callable[..., Any],
    watch: Sequence[Any] = (),
    name: str | None = None,
    backend: str | None = None,
    loops_from: int | None = None,
) -> Compiled:
    """Compile what is kept in the store: nothing is compared at each call.

    Whoever keeps it knows by the content of the user's functions when it is out of date. ``watch``
    are functions of users that it calls itself, or the :class:`Current` that holds them: they must
    not change state while they are recorded.
    """
    compiled = Compiled(
        function, name=name, backend=backend, loops_from=loops_from, freeze=True, watch=watch
    )
    compiled.lenient = False
    return compiled
