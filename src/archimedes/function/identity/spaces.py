"""Objects with named parts, of which a walk takes those that the code it meets mentions."""

# ruff: noqa: D102  (what the methods do is said once, in ``Space``)
from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from archimedes.function.identity.places import MISSING, NamesPlace, Place, SlotsPlace

if TYPE_CHECKING:
    from archimedes.function.identity.traversal import Traversal

__all__ = ["IMPORTING", "NameSpace", "SlotSpace", "Space"]
#: Names in modules that lead to how Python imports, and so to all that is loaded.
IMPORTING = {"__builtins__", "__loader__", "__spec__"}


class Space:
    """Named parts of an ``owner``; more of them are followed as more names are known.

    ``known``: how many of the names in code were looked at, so that each is once.
    """

    __slots__ = ("every", "found", "known", "owner", "path")

    def __init__(self, owner: Any, path: str, every: bool = False) -> None:
        self.owner, self.path, self.every = owner, path, every
        self.found: dict[str, Any] = {}
        self.known = 0

    def names(self, walk: Traversal) -> list[str]:
        """Return the names in code that are new here."""
        fresh = walk.names[self.known :]
        self.known = len(walk.names)
        return fresh

    def wanted(self, walk: Traversal) -> AbstractSet[str]:
        """Return the names to follow, of those that became known."""
        raise NotImplementedError

    def read(self, name: str) -> Any:
        """Return what is there under a name, or MISSING."""
        raise NotImplementedError

    def places(self) -> list[Place]:
        """Return the places that were read."""
        raise NotImplementedError

    def expand(self, walk: Traversal) -> None:
        """Follow names that became known since."""
        fresh = sorted(self.wanted(walk) - self.found.keys())
        for name in fresh:
            value = self.found[name] = self.read(name)
            if value is not MISSING:
                path = f"{self.path}.{name}" if self.path else name
                walk.add(self.owner, name, walk.token(value, path))


class NameSpace(Space):
    """A dict of names, or a class's view of its own.

    ``own``: only names asked for by ``want`` count, as of globals.
    """

    __slots__ = ("all", "aside", "asked", "held", "label", "own")

    def __init__(
        self,
        owner: Any,
        path: str,
        held: Mapping[str, Any],
        *,
        every: bool = False,
        label: str | None = None,
        own: bool = False,
    ) -> None:
        super().__init__(owner, path, every)
        self.held, self.own = held, own
        self.label = label or f"the attribute {path}.{{}}"
        self.asked: set[str] = set()
        self.aside: set[str] = set()
        self.all = False

    def want(self, names: Iterable[str]) -> None:
        """Follow these names."""
        self.asked.update(names)

    def wanted(self, walk: Traversal) -> AbstractSet[str]:
        if self.every or (walk.every and not self.own):
            # Names that are not there need no watching: they would make it larger.
            self.all = True
            return {name for name in self.held if isinstance(name, str)} - self.aside
        return self.asked if self.own else self.asked.union(self.names(walk)) - self.aside

    def read(self, name: str) -> Any:
        return self.held.get(name, MISSING)

    def places(self) -> list[Place]:
        size = len(self.held) if self.all else None
        place = NamesPlace(self.label.format, self.held, self.found, size, self.write)
        place.aside = self.aside
        return [place]

    def write(self, name: str, value: Any) -> None:
        """Put back what was there: classes have caches that must know."""
        held: Any = self.held
        if isinstance(self.owner, type):
            if value is MISSING:
                delattr(self.owner, name)
            else:
                setattr(self.owner, name, value)
        elif value is MISSING:
            del held[name]
        else:
            held[name] = value


class SlotSpace(Space):
    """The slots of an object."""

    __slots__ = ("members",)

    def __init__(
        self, owner: Any, path: str, members: dict[str, MemberDescriptorType], every: bool
    ) -> None:
        super().__init__(owner, path, every)
        self.members = members

    def wanted(self, walk: Traversal) -> AbstractSet[str]:
        if self.every or walk.every:
            return self.members.keys()
        return self.members.keys() & self.names(walk)

    def read(self, name: str) -> Any:
        try:
            return self.members[name].__get__(self.owner)
        except AttributeError:
            return MISSING

    def places(self) -> list[Place]:
        mine = {name: self.members[name] for name in self.found}
        return [SlotsPlace(self.path, self.owner, mine)] if mine else []
