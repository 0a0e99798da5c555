"""What is known of a graph's nodes while a backend writes it, whatever it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.graph.program import CONST, INPUT, Graph

__all__ = ["NodeBindings"]


class NodeBindings:
    """A graph being written in a function ``f``.

    ``given`` binds its inputs, ``outs`` lists the used outputs of each region, ``bound`` is what
    is known of nodes computed so far (wherever that was), ``names`` are the operands that only
    this function can use. Backends say what a binding is (``kind``): something made of an
    ``operand=`` or of a ``constant=(value, dtype)``, with places of their own besides.
    """

    kind: Any

    def __init__(
        self,
        f: Any,
        graph: Graph,
        given: Sequence[Any],
        outs: dict[int, list[int]],
        bound: dict[int, Any],
    ) -> None:
        self.f = f
        self.graph = graph
        self.given = given
        self.outs = outs
        self.bound = bound
        self.names: dict[int, str] = {}

    def binding(self, i: int) -> Any:
        """Return what is known of a node."""
        name = self.names.get(i)
        if name is not None:
            return self.kind(operand=name)
        code = self.graph.op[i]
        if code == CONST:
            return self.kind(constant=(self.graph.value[i], self.graph.dtype[i]))
        if code == INPUT:
            return self.given[self.graph.a[i]]
        return self.bound[i]

    def bindings(self, ids: Sequence[int]) -> list[Any]:
        """Return what is known of several nodes."""
        return [self.binding(i) for i in ids]

    def numbers(self, outs: Sequence[int]) -> list[int]:
        """Return which outputs of their region ``out`` nodes stand for."""
        return [self.graph.b[i] for i in outs]

    def bind(self, i: int, binding: Any) -> None:
        """Record where a node's value is."""
        if binding.operand is not None:
            self.names[i] = binding.operand
        else:
            self.bound[i] = binding
