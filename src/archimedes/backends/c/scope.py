"""What is known of a graph's nodes while it is being written as C."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.c.memory import Binding, Place, constant
from archimedes.backends.c.writer import Function
from archimedes.graph.program import CONST, INPUT, Graph

__all__ = ["Scope"]


class Scope:
    """A graph being written in a function.

    ``given`` binds its inputs, ``outs`` lists the used outputs of each region, ``waiting`` the
    places that want the value of a node, ``bound`` what is known of nodes computed so far
    (wherever it was computed), ``names`` the operands that only this function can use.
    """

    def __init__(
        self,
        f: Function,
        graph: Graph,
        given: Sequence[Binding],
        outs: dict[int, list[int]],
        bound: dict[int, Binding],
        waiting: dict[int, list[Place]],
    ) -> None:
        self.f = f
        self.graph = graph
        self.given = given
        self.outs = outs
        self.bound = bound
        self.waiting = waiting
        self.names: dict[int, str] = {}

    def binding(self, i: int) -> Binding:
        """Return what is known of a node."""
        name = self.names.get(i)
        if name is not None:
            return Binding(operand=name)
        code = self.graph.op[i]
        if code == CONST:
            return constant(self.graph.value[i], self.graph.dtype[i])
        if code == INPUT:
            return self.given[self.graph.a[i]]
        return self.bound[i]

    def bindings(self, ids: Sequence[int]) -> list[Binding]:
        """Return what is known of several nodes."""
        return [self.binding(i) for i in ids]

    def operand(self, i: int) -> str:
        """Write the value of a node as an operand."""
        return self.binding(i).text()

    def numbers(self, outs: Sequence[int]) -> list[int]:
        """Return which outputs of their region ``out`` nodes stand for."""
        return [self.graph.b[i] for i in outs]

    def bind(self, i: int, binding: Binding) -> None:
        """Record where a node's value is."""
        if binding.operand is not None:
            self.names[i] = binding.operand
        else:
            self.bound[i] = binding
