"""What is known of a graph's nodes while it is being written as C."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.c.memory import Binding, Place
from archimedes.backends.c.writer import Function
from archimedes.backends.node_bindings import NodeBindings
from archimedes.graph.program import Graph

__all__ = ["Scope"]


class Scope(NodeBindings):
    """A graph being written in a function; ``waiting`` are places that want a node's value."""

    kind = Binding

    def __init__(
        self,
        f: Function,
        graph: Graph,
        given: Sequence[Binding],
        outs: dict[int, list[int]],
        bound: dict[int, Binding],
        waiting: dict[int, list[Place]],
    ) -> None:
        super().__init__(f, graph, given, outs, bound)
        self.waiting = waiting

    def operand(self, i: int) -> str:
        """Write the value of a node as an operand."""
        return self.binding(i).text()
