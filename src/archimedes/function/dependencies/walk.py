"""The walk over all that a function reads: the one rule of what a function depends on.

Starting from a function (and from static arguments) the walk follows what plain Python can reach:
code, defaults, closure variables, globals, ``module.name``, attributes of objects in ``__dict__``
and ``__slots__``, class attributes and methods along the inheritance, properties, partials,
containers and what they hold, arrays, other recorded functions. Of objects, classes and modules it
takes the names that the code mentions; all of them where code could read others (``getattr``,
``vars``, dataclasses, code of installed packages).

Each object is numbered once. What it is goes into a ``key``, which is equal for functions that
record the same; where that was read is noted in ``reads``. How to look into an object is said in
``openers.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.dependencies import tracked_reads
from archimedes.function.dependencies.introspection import is_transparent
from archimedes.function.dependencies.live_arrays import reachable_by_name
from archimedes.function.dependencies.openers import open_array_content, open_live_array, opener_of
from archimedes.symbolic import SymbolicArray
from archimedes.symbolic.recorded.nondeterminism import is_clock, is_random_source
from archimedes.symbolic.recorded.numpy_patching import original_of
from archimedes.tracebacks import inside
from archimedes.tree.content import content_key

#: Objects that are looked into before the walk gives up.
LIMIT = 50_000
#: Longest path in letters: what lies deep in a chain of objects is named by its two ends.
_LONGEST = 200
_ATOMS = {
    *(bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), CodeType, range),
    *(float, complex, BuiltinFunctionType),
}


class Fingerprint:
    """A key that knows its hash."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


def _is_bound(value: Any) -> bool:
    """Return whether a value is a method, written in C, of an object: ``items.append``."""
    if type(value) is not BuiltinFunctionType:
        return False
    return not isinstance(value.__self__, (ModuleType, type, type(None)))


def is_atom(value: Any) -> bool:
    """Return whether a value can never change: a number, a string, a builtin, a tuple of those."""
    cls = type(value)
    if cls is tuple or cls is frozenset:
        return all(map(is_atom, value))
    return (cls in _ATOMS and not _is_bound(value)) or isinstance(value, (np.generic, np.dtype))


class Walk:
    """What some objects read.

    Parameters
    ----------
    roots, statics
        Objects to start from: functions, and static arguments.
    follows_all
        Whether code may read any attribute; else only names that the code met so far mentions.
    callbacks
        Code of functions that are called back at run time: what these read is left out.
    in_place
        Whether large arrays may be read where they lie.
    """

    def __init__(
        self,
        roots: Iterable[Any],
        follows_all: bool = False,
        callbacks: frozenset[CodeType] = frozenset(),
        statics: Iterable[Any] = (),
        in_place: bool = False,
    ) -> None:
        self.callbacks = callbacks
        #: How often each object was met, by id, where arrays may be read where they lie; else None.
        self.references: dict[int, int] | None = {} if in_place else None
        #: Whether there are arrays large enough to be read where they lie.
        self.has_large = False
        #: These, and then those of them that are; the functions and structs on the way to them.
        self.live: list[tuple[np.ndarray, str]] = []
        self.holders: list[Any] = []
        #: The number of each object by its id, the objects, and what they are.
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []
        self.tokens: list[Hashable] = []
        self.found: list[tracked_reads.TrackedRead] = []
        #: Iterators and generators: reading from one moves it, so that no recording may.
        self.moving: list[tracked_reads.MovingRead] = []
        self.traced: list[tuple[str, SymbolicArray]] = []
        #: Attribute names in the code met so far, and whether there may be others.
        self.names: list[str] = []
        self._known: set[str] = set()
        self.follows_all = follows_all
        #: Whether the code can read a clock, or draw random numbers.
        self.reads_clock = self.draws = False
        self.namespaces: list[tracked_reads.Namespace] = []
        #: Namespaces to expand next; or all of them, if more names became known.
        self.pending: list[tracked_reads.Namespace] = []
        self._names_grew = False
        self.globals: dict[int, tracked_reads.DictNamespace] = {}
        self._queue: deque[tuple[Any, str]] = deque()
        for root in roots:
            named = isinstance(root, (FunctionType, MethodType, type))
            self.tokens.append(self.token(root, root.__name__ if named else type(root).__name__))
        for value in statics:
            self.tokens.append(self.token(value, "that is a static argument"))
        self._run()

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What is equal for the same content."""
        return tuple(self.tokens)

    @property
    def fingerprint(self) -> Fingerprint:
        """The key, with its hash."""
        return Fingerprint(self.key)

    @property
    def reads(self) -> list[tracked_reads.TrackedRead]:
        """What was read, and where."""
        return [*self.found, *self.namespaces]

    def _run(self) -> None:
        """Follow what is queued, then the names that became known, until nothing is new."""
        while self._queue or self.pending or self._names_grew:
            while self._queue:
                value, path = self._queue.popleft()
                self.note_source(value)
                opener_of(value)(self, value, path)
            namespaces = self.namespaces if self._names_grew else self.pending
            self.pending, self._names_grew = [], False
            for space in namespaces:
                space.expand(self)
            if self.live and not (self._queue or self.pending or self._names_grew):
                self._settle_live_arrays()

    def _settle_live_arrays(self) -> None:
        """Read arrays where they lie if every way to them can lead elsewhere while recording."""
        candidates, self.live = self.live, []
        arrays, self.holders = reachable_by_name(self, [a for a, _ in candidates])
        for value, path in candidates:
            if any(value is a for a in arrays):
                open_live_array(self, value, path)
                self.live.append((value, path))
            else:
                open_array_content(self, value, path)
        self.references = None

    def token(self, value: Any, path: str) -> Hashable:
        """Return what stands for a value in the key, and queue what has to be looked into."""
        cls = type(value)
        if cls in _ATOMS and not _is_bound(value):
            if cls is BuiltinFunctionType:
                self.note_source(value)
            return (cls, value) if cls is not float and cls is not complex else content_key(value)
        if cls is tuple:
            return (tuple, *[self.token(v, f"{path}[{k}]") for k, v in enumerate(value)])
        original = inside(original_of(value))
        if original is not value:
            return self.token(original, path)
        if self.references is not None:
            self.references[id(value)] = self.references.get(id(value), 0) + 1
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
            if len(path) > _LONGEST:
                path = f"{path[: _LONGEST // 4]}...{path[-_LONGEST // 2 :]}"
            self._queue.append((value, path))
            if number > LIMIT:
                raise TraceError(
                    f"{path}: the function reads more than {LIMIT} objects, too many to watch for "
                    "changes. Keep numbers in arrays, or write arc.compile(f, freeze=True) to "
                    "take what it reads as it is when it is recorded."
                )
        return ("#", number)

    def add(self, value: Any, *content: Hashable) -> None:
        """Add to the key what an object is."""
        self.tokens.append((self.numbers[id(value)], *content))

    def follow(self, space: tracked_reads.Namespace) -> None:
        """Follow the names that count of an object with named parts."""
        self.namespaces.append(space)
        self.pending.append(space)

    def note_source(self, value: Any) -> None:
        """Take note of a clock, or of something that draws random numbers."""
        self.reads_clock = self.reads_clock or is_clock(value)
        self.draws = self.draws or is_random_source(value)

    def note_installed(self, module: str | None) -> None:
        """Take note of installed code that is used: it may read any attribute."""
        if not is_transparent(module):
            self.mention_all()

    def mention(self, names: Iterable[str]) -> None:
        """Take note of attribute names in code."""
        if not self.follows_all:
            fresh = set(names) - self._known
            self._known |= fresh
            self.names.extend(fresh)
            self._names_grew |= bool(fresh)

    def mention_all(self) -> None:
        """Take note of code that may read any attribute."""
        self._names_grew |= not self.follows_all
        self.follows_all = True

    @staticmethod
    def content_by_pickling(value: Any) -> Hashable:
        """Return what an object written in C would be pickled as; raise where it has no content."""
        reduced = value.__reduce_ex__(2)
        if isinstance(reduced, str) or not any(reduced[2:]):
            raise TypeError  # known by its name, or without content
        return Walk((reduced[1:],), follows_all=True).key
