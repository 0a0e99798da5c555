"""Objects with named parts, of which a walk follows the names that the code it meets mentions."""

# ruff: noqa: D102  (what the methods do is said once, in ``Namespace``)
from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from archimedes.function.dependencies.tracked_reads import (
    MISSING,
    NamesRead,
    SlotsRead,
    TrackedRead,
)

if TYPE_CHECKING:
    from archimedes.function.dependencies.walk import Walk


#: Names in modules that lead to how Python imports, and so to all that is loaded.
IMPORTING = {"__builtins__", "__loader__", "__spec__"}


class Namespace:
    """Named parts of an ``owner``; more of them are followed as more names become known.

    ``follows_all``: code may read any of them. ``values`` are those followed so far, ``known`` is
    how many of the names in code were looked at, so that each is looked at once.
    """

    __slots__ = ("follows_all", "known", "owner", "path", "values")

    def __init__(self, owner: Any, path: str, follows_all: bool = False) -> None:
        self.owner, self.path, self.follows_all = owner, path, follows_all
        self.values: dict[str, Any] = {}
        self.known = 0

    def new_names(self, walk: Walk) -> list[str]:
        """Return the names in code that are new here."""
        names = walk.names[self.known :]
        self.known = len(walk.names)
        return names

    def names_to_follow(self, walk: Walk) -> AbstractSet[str]:
        """Return the names to follow, of those that became known."""
        raise NotImplementedError

    def read(self, name: str) -> Any:
        """Return what is there under a name, or MISSING."""
        raise NotImplementedError

    def reads(self) -> list[TrackedRead]:
        """Return what was read."""
        raise NotImplementedError

    def expand(self, walk: Walk) -> None:
        """Follow names that became known since."""
        for name in sorted(self.names_to_follow(walk) - self.values.keys()):
            value = self.values[name] = self.read(name)
            if value is not MISSING:
                path = f"{self.path}.{name}" if self.path else name
                walk.add(self.owner, name, walk.token(value, path))


class DictNamespace(Namespace):
    """A dict of names, or a class's view of its own.

    ``only_requested``: names that code mentions do not count, as of globals.
    """

    __slots__ = ("ignored", "label", "mapping", "only_requested", "requested", "took_all")

    def __init__(
        self,
        owner: Any,
        path: str,
        mapping: Mapping[str, Any],
        *,
        follows_all: bool = False,
        label: str | None = None,
        only_requested: bool = False,
        ignored: set[str] | None = None,
    ) -> None:
        super().__init__(owner, path, follows_all)
        self.mapping, self.only_requested = mapping, only_requested
        self.label = label or f"the attribute {path}.{{}}"
        self.requested: set[str] = set()
        self.ignored = ignored or set()
        self.took_all = False

    def request(self, names: Iterable[str]) -> None:
        """Follow these names."""
        self.requested.update(names)

    def names_to_follow(self, walk: Walk) -> AbstractSet[str]:
        if self.follows_all or (walk.follows_all and not self.only_requested):
            # Names that are not there need no watching: they would make it larger.
            self.took_all = True
            return {name for name in self.mapping if isinstance(name, str)} - self.ignored
        if self.only_requested:
            return self.requested
        return self.requested.union(self.new_names(walk)) - self.ignored

    def read(self, name: str) -> Any:
        return self.mapping.get(name, MISSING)

    def reads(self) -> list[TrackedRead]:
        size = len(self.mapping) if self.took_all else None
        label = self.label.format
        return [NamesRead(label, self.mapping, self.values, size, self.write, self.ignored)]

    def write(self, name: str, value: Any) -> None:
        """Put back what was there: classes have caches that must know."""
        mapping: Any = self.mapping
        if isinstance(self.owner, type):
            if value is MISSING:
                delattr(self.owner, name)
            else:
                setattr(self.owner, name, value)
        elif value is MISSING:
            del mapping[name]
        else:
            mapping[name] = value


class SlotNamespace(Namespace):
    """The slots of an object."""

    __slots__ = ("members",)

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

    def reads(self) -> list[TrackedRead]:
        members = {name: self.members[name] for name in self.values}
        return [SlotsRead(self.path, self.owner, members)] if members else []
