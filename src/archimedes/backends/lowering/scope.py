"""What is known of a graph's nodes while it is being written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archimedes.backends.lowering.homes import Home
from archimedes.backends.lowering.lifetimes import Lifetimes
from archimedes.backends.lowering.values import Binding, Place
from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import CONST, INPUT
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.lowering.dialect import Dialect

__all__ = ["Scope"]

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
        waiting: dict[int, list[Place]],
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
            if binding.place is not None:
                if length_of(self.graph.dtype[i]):
                    self.lifetimes.hold(i, binding.place)
                else:
                    self.lifetimes.pin(binding.place)

    def block(self, i: int) -> Place:
        """Return where a node is that is a block."""
        place = self.binding(i).place
        assert place is not None
        return place

    def stride(self, i: int) -> int:
        """Return how far apart the elements of a block are that is being made."""
        home = self.homes.get(i)
        return 1 if home is None else home.stride

    def destination(self, i: int) -> Place | None:
        """Return a place that waits for a block, which then waits no more."""
        places = self.waiting.get(i, []) if length_of(self.graph.dtype[i]) else []
        for place in places:
            if self.dialect.takes_columns([place]):
                places.remove(place)
                if not places:
                    del self.waiting[i]
                return place
        return None

    def new_block(self, i: int) -> Place:
        """Bind a node that is a block to an array: where it is wanted, or its own."""
        home = self.homes.get(i)
        if home is not None:
            known = home.whole in self.bound
            whole = self.block(home.whole) if known else self.new_block(home.whole)
            self.bound[i] = Binding(place=whole.at(home.offset))
            return whole.at(home.offset)
        kind, place = self.graph.dtype[i], self.destination(i)
        if place is None:
            place = self.dialect.block(self.f, item_type(kind), length_of(kind))
            self.bind(i, Binding(place=place))
        else:
            self.bound[i] = Binding(place=place)
        return place
