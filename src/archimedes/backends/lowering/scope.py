"""What is known of a graph's nodes while it is being written: locations, bindings, lifetimes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from archimedes.backends.lowering.copy_elision import Home
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import CONST, ELEMENT, INPUT, OUT
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.lowering.dialect import Dialect

__all__ = [
    "Binding",
    "Instances",
    "Lifetimes",
    "Location",
    "Scope",
    "Store",
    "places_by_id",
    "stays_in_place",
]


class Location(NamedTuple):
    """Element ``offset`` of an array of values of one dtype.

    ``array`` is what the dialect calls the array: something that can be compared and hashed.

    >>> Location("s1", 2, 0).at(3)
    Location(array='s1', offset=5, dtype=0)
    """

    array: Any
    offset: int
    dtype: int

    def at(self, k: int) -> Location:
        """Return the place ``k`` elements further."""
        return self._replace(offset=self.offset + k)


class Binding(NamedTuple):
    """What is known of a value: an operand, its place in memory, its constant; one of them.

    A constant is a Python number and its dtype.
    """

    operand: str | None = None
    location: Location | None = None
    constant: tuple[Any, int] | None = None

    def is_like(self, other: Binding) -> bool:
        """Tell whether two bindings are of one value; as text, since 0.0 and -0.0 are equal."""
        if self.constant is not None:
            return repr(self.constant) == repr(other.constant)
        return self == other


class Instances(NamedTuple):
    """A body run for each of ``length`` instances: rows of the blocks ``rows``, then ``shared``.

    Both are ids of nodes; what instances give are rows of blocks too.
    """

    body: Graph
    length: int
    rows: Sequence[int]
    shared: Sequence[int]


#: An output of a graph by number, and where it goes.
Store = tuple[int, Location]


def places_by_id(g: Graph, stores: Sequence[Store]) -> dict[int, list[Location]]:
    """Return the places that want the value of each node."""
    waiting: dict[int, list[Location]] = {}
    for k, to in stores:
        waiting.setdefault(g.outputs[k], []).append(to)
    return waiting


def stays_in_place(g: Graph, i: int) -> bool:
    """Tell whether a node is read where its block is: a block, or an element at a known index."""
    return bool(length_of(g.dtype[i])) or (g.op[i] == ELEMENT and g.b[i] in g.value)


class Lifetimes:
    """The blocks of a graph being written, in order.

    ``kept`` are nodes that are needed to the end. Places that the graph is given are not its own.
    """

    def __init__(
        self, g: Graph, order: Sequence[int], kept: Iterable[int], given: Iterable[Location]
    ) -> None:
        self.graph = g
        self._left: Counter[int] = Counter()
        self._kept = {self._root(i) for i in kept}
        self._foreign = {location.array for location in given}
        self._holders: dict[Location, set[int]] = {}
        #: Whether there are any blocks.
        self.active = any(map(length_of, g.dtype))
        if self.active:
            for i in order:
                self._left.update(self._roots(i))

    def _root(self, i: int) -> int | None:
        """Return the block whose array a node is read from."""
        g = self.graph
        if length_of(g.dtype[i]):
            return i
        return g.a[i] if g.op[i] == ELEMENT and g.b[i] in g.value else None

    def _roots(self, i: int) -> set[int]:
        if self.graph.op[i] == OUT:
            return set()
        roots = {self._root(j) for j in self.graph.operands(i)}
        return {root for root in roots if root is not None}

    def hold(self, i: int, location: Location) -> None:
        """Note that a node's block lies at a place."""
        if location.array not in self._foreign:
            self._holders.setdefault(location, set()).add(i)

    def pin(self, location: Location) -> None:
        """Keep the block that a value lies in to the end: it has readers of another name."""
        self._foreign.add(location.array)
        for held in [held for held in self._holders if held.array == location.array]:
            del self._holders[held]

    def passed(self, i: int) -> list[tuple[Location, int]]:
        """Note that a node is written: return places, and lengths, that nobody reads any more."""
        free: list[tuple[Location, int]] = []
        if not self._left:
            return free
        for root in self._roots(i):
            self._left[root] -= 1
            if self._left[root] or root in self._kept:
                continue
            for location, holders in list(self._holders.items()):
                if root in holders:
                    holders.discard(root)
                    if not holders:
                        del self._holders[location]
                        free.append((location, length_of(self.graph.dtype[root])))
        return free


NOWHERE: Mapping[int, Home] = MappingProxyType({})


class Scope:
    """A graph being written in a function ``f``.

    ``given`` binds its inputs, ``outs`` lists the used outputs of each region, ``bound`` is what
    is known of nodes computed so far (wherever that was), ``waiting`` are the places that want a
    node's value, ``lifetimes`` tells when blocks are done with, ``homes`` which blocks are made
    inside another, ``names`` are the operands that only this function can use, ``awaited`` are
    blocks with numbers that go into them as they are computed.
    """

    def __init__(
        self,
        dialect: Dialect,
        f: Any,
        graph: Graph,
        given: Sequence[Binding],
        outs: dict[int, list[int]],
        bound: dict[int, Binding],
        waiting: dict[int, list[Location]],
        lifetimes: Lifetimes,
        homes: Mapping[int, Home] = NOWHERE,
    ) -> None:
        self.dialect = dialect
        self.f = f
        self.graph = graph
        self.given = given
        self.outs = outs
        self.bound = bound
        self.waiting = waiting
        self.lifetimes = lifetimes
        self.homes = homes
        self.names: dict[int, str] = {}
        self.awaited: set[tuple[int, int]] = set()

    def operand(self, i: int) -> str:
        """Return an operand with the value of a node."""
        return self.dialect.operand(self.f, self.binding(i))

    def binding(self, i: int) -> Binding:
        """Return what is known of a node."""
        name = self.names.get(i)
        if name is not None:
            return Binding(operand=name)
        code = self.graph.op[i]
        if code == CONST:
            return Binding(constant=(self.graph.value[i], self.graph.dtype[i]))
        if code == INPUT:
            return self.given[self.graph.a[i]]
        return self.bound[i]

    def bindings(self, ids: Sequence[int]) -> list[Binding]:
        """Return what is known of several nodes."""
        return [self.binding(i) for i in ids]

    def numbers(self, outs: Sequence[int]) -> list[int]:
        """Return which outputs of their region ``out`` nodes stand for."""
        return [self.graph.b[i] for i in outs]

    def bind(self, i: int, binding: Binding) -> None:
        """Record where a node's value is."""
        if binding.operand is not None:
            self.names[i] = binding.operand
        else:
            self.bound[i] = binding
            if binding.location is not None:
                if length_of(self.graph.dtype[i]):
                    self.lifetimes.hold(i, binding.location)
                else:
                    self.lifetimes.pin(binding.location)

    def block(self, i: int) -> Location:
        """Return where a node is that is a block."""
        location = self.binding(i).location
        assert location is not None
        return location

    def stride(self, i: int) -> int:
        """Return how far apart the elements of a block are that is being made."""
        home = self.homes.get(i)
        return 1 if home is None else home.stride

    def destination(self, i: int) -> Location | None:
        """Return a place that waits for a block, which then waits no more."""
        locations = self.waiting.get(i, []) if length_of(self.graph.dtype[i]) else []
        for location in locations:
            if self.dialect.takes_columns([location]):
                locations.remove(location)
                if not locations:
                    del self.waiting[i]
                return location
        return None

    def new_block(self, i: int) -> Location:
        """Bind a node that is a block to an array: where it is wanted, or its own."""
        home = self.homes.get(i)
        if home is not None:
            known = home.whole in self.bound
            whole = self.block(home.whole) if known else self.new_block(home.whole)
            self.bound[i] = Binding(location=whole.at(home.offset))
            return whole.at(home.offset)
        kind, location = self.graph.dtype[i], self.destination(i)
        if location is None:
            location = self.dialect.block(self.f, item_type(kind), length_of(kind))
            self.bind(i, Binding(location=location))
        else:
            self.bound[i] = Binding(location=location)
        return location
