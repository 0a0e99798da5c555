"""Objects with named parts, of which a walk follows the names that the code it meets mentions."""

# ruff: noqa: D102  (what the methods do is said once, in ``TrackedRead`` and ``Namespace``)
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from archimedes.function.dependencies.tracked_reads import MISSING, Change, Guard, PartsRead

if TYPE_CHECKING:
    from archimedes.function.dependencies.walk import Walk


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
