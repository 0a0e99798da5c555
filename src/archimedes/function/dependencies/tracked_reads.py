"""What a function has read: where, and what was there.

A :class:`TrackedRead` knows whether what it read has changed (``is_unchanged``), what the
``changes`` are in words, and how to ``restore`` what was there. To ask each in turn takes about a
microsecond a read. For repeated calls a *guard* is therefore generated: one expression that names
everything, at twenty nanoseconds a name. For a function that reads a global ``mass`` and a closure
variable ``g`` it is::

    def guard():
        try:
            return v0['mass'] is v1 and v2.cell_contents is v3
        except Exception:
            return False
"""

# ruff: noqa: D102  (what the methods do is said once, in the base classes)
from __future__ import annotations

import gc
import io
import itertools
import operator
import pickle
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from types import CellType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.symbolic.recorded.nondeterminism import generator_state, set_generator_state
from archimedes.tree.content import is_read_only
from archimedes.tree.nodes import define

if TYPE_CHECKING:
    from archimedes.function.dependencies.walk import Walk

#: Stands for a name that has no value.
MISSING: Any = object()
#: Lists of so many items are compared item by item in a guard.
FEW = 16


class Guard:
    """A generated test that all that a function read is as it was: its terms and their objects."""

    def __init__(self, reads: Iterable[TrackedRead] = ()) -> None:
        self.terms: list[str] = []
        self.objects: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        for read in reads:
            read.write_guard(self)

    def name(self, value: Any) -> str:
        """Return the name by which the guard knows an object."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"v{len(self._names)}"
            self.objects[name] = value
        return name

    def require(self, term: str) -> None:
        """Add an expression that is true while nothing has changed."""
        self.terms.append(term)

    def require_same(self, expression: str, value: Any) -> None:
        """Require that an expression gives this very object."""
        known = "None" if value is None else self.name(value)
        self.require(f"{expression} is {known}")

    @property
    def expression(self) -> str:
        """The guard as one expression."""
        return " and ".join(self.terms) or "True"

    def function(self) -> Callable[[], bool]:
        """Return the guard as a function."""
        # Whatever goes wrong while looking (a name is gone, a variable has no value, an object's
        # own method raises): it is not as it was, and the walk that follows finds out or raises.
        source = (
            f"def guard():\n    try:\n        return {self.expression}\n"
            "    except Exception:\n        return False\n"
        )
        return define(source, "guard", self.objects, "guard")


class Change(NamedTuple):
    """What differs: in words, and the objects before and after (MISSING: none)."""

    what: str
    old: Any
    new: Any


class TrackedRead:
    """Something that a function has read; ``path`` names it in messages."""

    path: str

    def changes(self) -> Iterator[Change]:
        """Yield what is different now."""
        raise NotImplementedError

    def is_unchanged(self) -> bool:
        """Return whether a walk would find what it found."""
        return next(self.changes(), None) is None

    def write_guard(self, guard: Guard) -> None:
        """Add terms that are true only while the read is unchanged."""
        guard.require(f"{guard.name(self.is_unchanged)}()")

    def restore(self) -> None:
        """Put back what was there."""
        raise NotImplementedError


# ---- names, attributes, variables --------------------------------------------------------------


class PartsRead(TrackedRead):
    """Named parts of an owner. Subclasses say how one is read, written, named and spelled."""

    def __init__(self, path: str, owner: Any, names: Iterable[str] = ()) -> None:
        self.path, self.owner = path, owner
        self.old = {name: self.read(name) for name in names}

    def read(self, name: str) -> Any:
        """Return what a part is now, or MISSING."""
        return getattr(self.owner, name)

    def write(self, name: str, value: Any) -> None:
        """Set a part, or delete it (MISSING)."""
        if value is MISSING:
            delattr(self.owner, name)
        else:
            setattr(self.owner, name, value)

    def label(self, name: str) -> str:
        """Return what a message calls a part."""
        raise NotImplementedError

    def spell(self, guard: Guard, name: str) -> str:
        """Return an expression that reads a part."""
        return f"{guard.name(self.owner)}.{name}"

    def changes(self) -> Iterator[Change]:
        for name, old in self.old.items():
            new = self.read(name)
            if new is not old:
                yield Change(self.label(name), old, new)

    def write_guard(self, guard: Guard) -> None:
        if any(old is MISSING for old in self.old.values()):
            super().write_guard(guard)
            return
        for name, old in self.old.items():
            guard.require_same(self.spell(guard, name), old)

    def restore(self) -> None:
        for name, old in self.old.items():
            if self.read(name) is not old:
                self.write(name, old)


class FunctionRead(PartsRead):
    """The code of a function, and the defaults of the parameters that it has."""

    def __init__(self, path: str, function: FunctionType) -> None:
        # Each attribute costs every call 20 ns; defaults of no parameter mean nothing.
        code = function.__code__
        names = ["__code__", *["__defaults__"] * bool(code.co_argcount)]
        names += ["__kwdefaults__"] * bool(code.co_kwonlyargcount)
        super().__init__(path, function, names)

    def label(self, name: str) -> str:
        return f"{name} of {self.path}"


class ClosureRead(PartsRead):
    """A variable of an enclosing function."""

    def __init__(self, path: str, cell: CellType) -> None:
        super().__init__(path, cell, ("cell_contents",))

    @property
    def value(self) -> Any:
        """What the variable held, or MISSING."""
        return self.old["cell_contents"]

    def read(self, name: str) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:  # it has no value (yet, or any more)
            return MISSING

    def label(self, name: str) -> str:
        return f"the variable {self.path} of an enclosing function"


class ObjectRead(PartsRead):
    """The class of an object, and which dict its attributes are in."""

    def __init__(self, path: str, value: Any, has_dict: bool) -> None:
        super().__init__(path, value, ("__class__", "__dict__") if has_dict else ("__class__",))

    def read(self, name: str) -> Any:
        # Past what the object itself may make of these names.
        if name == "__class__":
            return type(self.owner)
        return object.__getattribute__(self.owner, "__dict__")

    def label(self, name: str) -> str:
        return f"the class of {self.path}" if name == "__class__" else f"{self.path}.__dict__"

    def spell(self, guard: Guard, name: str) -> str:
        owner = guard.name(self.owner)
        if name == "__class__":
            return f"type({owner})"
        return f"{guard.name(object.__getattribute__)}({owner}, '__dict__')"


class BasesRead(PartsRead):
    """The bases of a class, where it looks for its attributes."""

    def __init__(self, path: str, cls: type) -> None:
        super().__init__(path, cls, ("__bases__",))

    def label(self, name: str) -> str:
        return f"the bases of {self.path}"


# ---- data --------------------------------------------------------------------------------------


class DictRead(TrackedRead):
    """All that a dict, or a read-only view of a mapping, holds, in its order."""

    def __init__(self, path: str, value: Any) -> None:
        self.path, self.value, self.copy = path, value, dict(value)

    def is_unchanged(self) -> bool:
        # Of a dict all of its values, whatever a subclass makes of them.
        cls: Any = dict if isinstance(self.value, dict) else type(self.value)
        return _hold_same(self.value, self.copy) and all(
            map(operator.is_, cls.values(self.value), self.copy.values())
        )

    def changes(self) -> Iterator[Change]:
        if self.is_unchanged():
            return
        for key, old in self.copy.items():
            new = self.value.get(key, MISSING)
            if new is not old:
                yield Change(f"{self.path}[{key!r}]", old, new)
        for key, new in self.value.items():
            if key not in self.copy:
                yield Change(f"{self.path}[{key!r}]", MISSING, new)

    def restore(self) -> None:
        if isinstance(self.value, dict):  # what a view shows is put back by another read
            dict.clear(self.value)
            dict.update(self.value, self.copy)


def _hold_same(a: Any, b: Any) -> bool:
    """Return whether two sequences hold the same objects."""
    return len(a) == len(b) and all(map(operator.is_, a, b))


def _form(value: np.ndarray) -> tuple[np.dtype, tuple[int, ...], tuple[int, ...]]:
    return value.dtype, value.shape, value.strides


class ArrayRead(TrackedRead):
    """The numbers of an array. One that nobody can write to is not compared again.

    Without ``content``, programs read the numbers where they lie: only the form of the array must
    stay. (So does its address: NumPy refuses to move memory that another array, our table, views.)
    """

    def __init__(self, path: str, value: np.ndarray, content: bytes | None) -> None:
        self.path, self.value, self.content = path, value, content
        self.form, self.fixed = _form(value), is_read_only(value)

    def is_unchanged(self) -> bool:
        if _form(self.value) != self.form:
            return False
        if self.fixed:
            return is_read_only(self.value)
        return self.content is None or self.value.tobytes() == self.content

    def write_guard(self, guard: Guard) -> None:
        if self.fixed or type(self.value) is not np.ndarray:
            super().write_guard(guard)
            return
        name, (dtype, shape, strides) = guard.name(self.value), self.form
        guard.require_same(f"{name}.dtype", dtype)
        guard.require(f"{name}.shape == {shape!r} and {name}.strides == {strides!r}")
        if self.content is not None:
            guard.require(f"{name}.tobytes() == {guard.name(self.content)}")

    def changes(self) -> Iterator[Change]:
        if not self.is_unchanged():
            yield Change(f"the array {self.path}", self.old(), self.value)

    def old(self) -> np.ndarray:
        """Return the array as it was, or MISSING."""
        dtype, shape, _ = self.form
        if self.content is None or dtype.hasobject:
            return MISSING
        return np.frombuffer(self.content, dtype).reshape(shape)

    def restore(self) -> None:
        old = self.old()
        if old is not MISSING and self.value.shape == old.shape and self.value.dtype == old.dtype:
            self.value[...] = old


class ContentRead(TrackedRead):
    """What an object of another kind holds, by a function that tells."""

    def __init__(self, path: str, value: Any, read: Callable[[Any], Hashable]) -> None:
        self.path, self.value, self.read = path, value, read
        self.content: Any = read(value)

    def is_unchanged(self) -> bool:
        old, new = self.content, self.read(self.value)
        if isinstance(old, tuple) and isinstance(new, tuple):  # of objects
            return _hold_same(old, new)
        return bool(new == old)

    def changes(self) -> Iterator[Change]:
        if not self.is_unchanged():
            new: Any = self.read(self.value)
            only_grown = type(self.value) is set and self.content <= new
            old = MISSING if only_grown else self.content
            yield Change(f"the {type(self.value).__name__} {self.path}", old, new)

    def restore(self) -> None:
        value: Any = self.value
        if isinstance(value, list):
            list.__setitem__(value, slice(None), self.content)
        elif isinstance(value, (set, deque)):
            value.clear()
            (value.update if isinstance(value, set) else value.extend)(self.content)
        elif isinstance(value, bytearray):
            value[:] = bytes(self.content)
        elif isinstance(value, OrderedDict):
            value.clear()
            value.update(zip(self.content[::2], self.content[1::2]))
        elif isinstance(value, ContextVar):
            value.set(self.content[0])


class ListRead(ContentRead):
    """Which objects a list holds."""

    def __init__(self, path: str, value: list[Any]) -> None:
        super().__init__(path, value, _list_items)

    def write_guard(self, guard: Guard) -> None:
        if len(self.content) > FEW or type(self.value) is not list:
            super().write_guard(guard)
            return
        value = guard.name(self.value)
        guard.require(f"len({value}) == {len(self.content)}")
        for k, item in enumerate(self.content):
            guard.require_same(f"{value}[{k}]", item)


def _list_items(value: list[Any]) -> tuple[Any, ...]:
    """Return the items of a list, whatever a subclass makes of them."""
    return tuple(list.__iter__(value))


# ---- what moves as it is read ------------------------------------------------------------------


class MovingRead(TrackedRead):
    """Something that moves on as it is used, and may move between recordings."""

    def __init__(self, path: str, value: Any) -> None:
        self.path, self.value, self.at = path, value, self.position(value)

    @staticmethod
    def position(value: Any) -> Any:
        """Return where it is."""
        raise NotImplementedError

    def renew(self) -> MovingRead:
        """Return the read as it is now."""
        return type(self)(self.path, self.value)

    def changes(self) -> Iterator[Change]:
        now = self.position(self.value)
        if now != self.at:
            yield Change(
                f"the position of the {type(self.value).__name__} {self.path}", self.at, now
            )


class IteratorRead(MovingRead):
    """How far an iterator has come, as far as it can be told."""

    @staticmethod
    def position(value: Any) -> Hashable:
        if isinstance(value, io.IOBase):  # asking one to reduce itself may close it
            return _file_position(value)
        frame = getattr(value, "gi_frame", MISSING)
        if frame is not MISSING:  # a generator
            return None if frame is None else frame.f_lasti
        if isinstance(value, (itertools.count, itertools.repeat)):
            return repr(value)
        try:
            with warnings.catch_warnings():  # iterators of itertools warn that they will not say
                warnings.simplefilter("ignore", DeprecationWarning)
                parts = value.__reduce__()
        except TypeError:  # those of itertools from Python 3.14 on
            parts = gc.get_referents(value)
        return tuple(map(_part_position, parts))

    def restore(self) -> None:
        pass  # iterators do not go back


def _file_position(file: io.IOBase) -> int | None:
    """Return where reading has come to in a file that is only read; None if that is not known."""
    try:
        return file.tell() if file.seekable() and not file.writable() else None
    except (OSError, ValueError):  # it is being iterated over, or closed
        return None


def _part_position(part: Any) -> Hashable:
    if isinstance(part, tuple):
        return tuple(map(_part_position, part))
    if hasattr(type(part), "__next__"):
        return IteratorRead.position(part)
    return part if isinstance(part, (int, float, str, range, type(None))) else id(part)


class GeneratorRead(MovingRead):
    """The state of a generator of random numbers."""

    @staticmethod
    def position(value: Any) -> bytes:
        return pickle.dumps(generator_state(value))

    def restore(self) -> None:
        set_generator_state(self.value, pickle.loads(self.at))


# ---- namespaces --------------------------------------------------------------------------------
# Objects with named parts, of which a walk follows the names that the code it meets mentions.


#: Names in modules that lead to how Python imports, and so to all that is loaded.
IMPORTING = {"__builtins__", "__loader__", "__spec__"}


class Namespace(PartsRead):
    """Named parts of an ``owner``; more of them are followed as more names become known.

    ``follows_all``: code may read any of them. ``old`` are those followed so far, ``known`` is
    how many of the names in code were looked at, so that each is looked at once.
    """

    def __init__(self, owner: Any, path: str, follows_all: bool = False) -> None:
        super().__init__(path, owner)
        self.follows_all, self.known = follows_all, 0

    def new_names(self, walk: Walk) -> list[str]:
        """Return the names in code that are new here."""
        names = walk.names[self.known :]
        self.known = len(walk.names)
        return names

    def names_to_follow(self, walk: Walk) -> AbstractSet[str]:
        """Return the names to follow, of those that became known."""
        raise NotImplementedError

    def expand(self, walk: Walk) -> None:
        """Follow names that became known since."""
        for name in sorted(self.names_to_follow(walk) - self.old.keys()):
            value = self.old[name] = self.read(name)
            if value is not MISSING:
                path = f"{self.path}.{name}" if self.path else name
                walk.add(self.owner, name, walk.token(value, path))


class DictNamespace(Namespace):
    """A dict of names: globals, a module, attributes of an object, or a class's view of its own.

    ``text`` is what messages call a part, with ``{}`` for its name. ``only_requested``: names that
    code mentions do not count, as of globals. ``size`` is the length of the dict where all of it
    counts but ``ignored`` names, else None.
    """

    def __init__(
        self,
        owner: Any,
        path: str,
        mapping: Mapping[str, Any],
        *,
        follows_all: bool = False,
        text: str | None = None,
        only_requested: bool = False,
        ignored: AbstractSet[str] = frozenset(),
    ) -> None:
        super().__init__(owner, path, follows_all)
        self.mapping: Any = mapping
        self.only_requested, self.ignored = only_requested, ignored
        self.text = text or f"the attribute {path}.{{}}"
        self.requested: set[str] = set()
        self.size: int | None = None

    def request(self, names: Iterable[str]) -> None:
        """Follow these names."""
        self.requested.update(names)

    def names_to_follow(self, walk: Walk) -> AbstractSet[str]:
        if self.follows_all or (walk.follows_all and not self.only_requested):
            # Names that are not there need no watching: they would make it larger.
            self.size = len(self.mapping)
            return {name for name in self.mapping if isinstance(name, str)} - self.ignored
        if self.only_requested:
            return self.requested
        return self.requested.union(self.new_names(walk)) - self.ignored

    def read(self, name: str) -> Any:
        return self.mapping.get(name, MISSING)

    def write(self, name: str, value: Any) -> None:
        if isinstance(self.owner, type):  # classes have caches that must know
            super().write(name, value)
        elif value is MISSING:
            del self.mapping[name]
        else:
            self.mapping[name] = value

    def label(self, name: str) -> str:
        return self.text.replace("{}", name)

    def write_guard(self, guard: Guard) -> None:
        mapping = guard.name(self.mapping)
        for name, old in self.old.items():
            if old is MISSING:
                guard.require(f"{name!r} not in {mapping}")
            else:
                guard.require_same(f"{mapping}[{name!r}]", old)
        if self.size is not None:
            guard.require(f"len({mapping}) == {self.size}")

    def _new_parts(self) -> list[str]:
        """Return the names that have appeared, where all of them count."""
        if self.size is None or self.size == len(self.mapping):
            return []
        known = self.old.keys() | self.ignored
        return [name for name in self.mapping if isinstance(name, str) and name not in known]

    def changes(self) -> Iterator[Change]:
        yield from super().changes()
        for name in self._new_parts():
            yield Change(self.label(name), MISSING, self.mapping[name])

    def restore(self) -> None:
        super().restore()
        for name in self._new_parts():
            self.write(name, MISSING)


class SlotNamespace(Namespace):
    """The slots of an object."""

    def __init__(
        self, owner: Any, path: str, members: dict[str, MemberDescriptorType], follows_all: bool
    ) -> None:
        super().__init__(owner, path, follows_all)
        self.members = members

    def names_to_follow(self, walk: Walk) -> AbstractSet[str]:
        if self.follows_all or walk.follows_all:
            return self.members.keys()
        return self.members.keys() & self.new_names(walk)

    def read(self, name: str) -> Any:
        try:
            return self.members[name].__get__(self.owner)
        except AttributeError:
            return MISSING

    def write(self, name: str, value: Any) -> None:
        if value is MISSING:
            self.members[name].__delete__(self.owner)
        else:
            self.members[name].__set__(self.owner, value)

    def label(self, name: str) -> str:
        return f"the attribute {self.path}.{name}"

    def spell(self, guard: Guard, name: str) -> str:
        return f"{guard.name(self.members[name].__get__)}({guard.name(self.owner)})"
