"""Walking over objects: each is numbered once, what it is goes into a key, where it lies is noted.

How to look into an object is not here: ``reads.py`` has the table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import numpy as np

from archimedes.errors import TraceError
from archimedes.function.identity.data_places import MovingPlace
from archimedes.function.identity.installed import is_transparent
from archimedes.function.identity.places import Place
from archimedes.function.identity.spaces import NameSpace, Space
from archimedes.symbolic import SymbolicArray
from archimedes.symbolic.recorded.nondeterminism import is_clock, is_random_source
from archimedes.symbolic.recorded.numpy_patching import original_of
from archimedes.tree.content import content_key

__all__ = ["Same", "Traversal", "is_atom"]

#: Objects that are looked into before the walk gives up.
LIMIT = 50_000
#: Longest path in letters: what lies deep in a chain of objects is named by its two ends.
_LONGEST = 200
_ATOMS = {
    *(bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented), CodeType, range),
    *(float, complex, BuiltinFunctionType),
}


class Same:
    """A key that is equal for the same object only."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"Same({type(self.value).__name__})"


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[: _LONGEST // 4]}...{path[-_LONGEST // 2 :]}"


def _is_bound(value: Any) -> bool:
    """Tell whether a value is a method, written in C, of an object: ``items.append``."""
    if type(value) is not BuiltinFunctionType:
        return False
    return not isinstance(value.__self__, (ModuleType, type, type(None)))


def is_atom(value: Any) -> bool:
    """Tell whether a value can never change: a number, a string, a builtin, a tuple of those."""
    cls = type(value)
    if cls is tuple or cls is frozenset:
        return all(map(is_atom, value))
    return (cls in _ATOMS and not _is_bound(value)) or isinstance(value, (np.generic, np.dtype))


class Traversal:
    """Follows what some objects read, without what functions of the code ``hosts`` read.

    ``opener`` says how to look into an object: ``reads.Walk`` knows that.
    """

    __slots__ = (
        *("_again", "_known", "_queue", "clocks", "draws", "every", "found", "globals", "hosts"),
        *("has_large", "holders", "live", "names", "numbers", "references"),
        *("objects", "positions", "spaces", "tokens", "traced", "waiting"),
    )

    def __init__(
        self,
        roots: Iterable[Any],
        every: bool = False,
        hosts: frozenset[CodeType] = frozenset(),
        statics: Iterable[Any] = (),
        live: bool = False,
    ) -> None:
        self.hosts = hosts
        #: How often each object was met, by id, where arrays may be read where they lie; else None.
        self.references: dict[int, int] | None = {} if live else None
        #: Whether there are arrays large enough to be read where they lie.
        self.has_large = False
        #: These, and then those of them that are; the functions and structs on the way to them.
        self.live: list[tuple[np.ndarray, str]] = []
        self.holders: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []
        self.tokens: list[Hashable] = []
        self.found: list[Place] = []
        #: Iterators: reading from one moves it, so that no recording may.
        self.positions: list[MovingPlace] = []
        self.traced: list[tuple[str, SymbolicArray]] = []
        #: Attribute names in the code met so far, and whether there may be others.
        self.names: list[str] = []
        self._known: set[str] = set()
        self.every = every
        #: Whether the code can reach a clock, or something that draws random numbers.
        self.clocks = self.draws = False
        self.spaces: list[Space] = []
        #: Spaces to look at next; or ``_again`` all of them, as names became known.
        self.waiting: list[Space] = []
        self._again = False
        self.globals: dict[int, NameSpace] = {}
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
    def places(self) -> list[Place]:
        """The places that were read."""
        return self.found + [place for space in self.spaces for place in space.places()]

    def _run(self) -> None:
        """Follow what is queued, then the names that became known, until nothing is new."""
        while self._queue or self.waiting or self._again:
            while self._queue:
                value, path = self._queue.popleft()
                self.note_source(value)
                self.opener(value)(self, value, path)
            spaces = self.spaces if self._again else self.waiting
            self.waiting, self._again = [], False
            for space in spaces:
                space.expand(self)
            if self.live and not (self._queue or self.waiting or self._again):
                self.settle()

    def settle(self) -> None:
        """Decide which large arrays are read where they lie, now that all references are known."""
        raise NotImplementedError

    def follow(self, space: Space) -> None:
        """Take the names that count of an object with named parts."""
        self.spaces.append(space)
        self.waiting.append(space)

    def token(self, value: Any, path: str) -> Hashable:
        """Return what stands for a value in the key, and queue what has to be looked into."""
        cls = type(value)
        if cls in _ATOMS and not _is_bound(value):
            if cls is BuiltinFunctionType:
                self.note_source(value)
            return (cls, value) if cls is not float and cls is not complex else content_key(value)
        if cls is tuple:
            return (tuple, *[self.token(v, f"{path}[{k}]") for k, v in enumerate(value)])
        found = original_of(value)
        if found is not value:
            return self.token(found, path)
        if self.references is not None:
            self.references[id(value)] = self.references.get(id(value), 0) + 1
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
            self._queue.append((value, _shortened(path)))
            if number > LIMIT:
                raise TraceError(
                    f"{path}: the function reads more than {LIMIT} objects, too many to watch for "
                    "changes. Keep numbers in arrays, or write arc.compile(f, freeze=True) to "
                    "take what it reads as it is when it is recorded."
                )
        return ("#", number)

    def note_source(self, value: Any) -> None:
        """Take note of a clock, or of something that draws random numbers."""
        self.clocks = self.clocks or is_clock(value)
        self.draws = self.draws or is_random_source(value)

    def add(self, value: Any, *content: Hashable) -> None:
        """Add to the key what an object is."""
        self.tokens.append((self.numbers[id(value)], *content))

    #: Bases whose content counts besides the attributes of their subclasses.
    bases: ClassVar[dict[type, Callable[[Any, Any, str], None]]] = {}

    def opener(self, value: Any) -> Callable[[Any, Any, str], None]:
        """Return what looks into a value: it adds to the key and the places, and queues parts."""
        raise NotImplementedError

    @staticmethod
    def pickled(value: Any) -> Hashable:
        """Return the content of an object written in C; raise where it has none."""
        raise NotImplementedError

    def mention(self, names: Iterable[str]) -> None:
        """Take note of attribute names in code."""
        if not self.every:
            fresh = set(names) - self._known
            self._known |= fresh
            self.names.extend(fresh)
            self._again |= bool(fresh)

    def mention_all(self) -> None:
        """Take note of code that may read any attribute."""
        self._again |= not self.every
        self.every = True

    def foreign(self, module: str | None) -> None:
        """Take note of installed code that is used: it may read any attribute."""
        if not is_transparent(module):
            self.mention_all()
