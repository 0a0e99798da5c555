"""What is known of a graph's nodes while it is being lowered."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import Binding, Location, Pointer
from archimedes.backends.node_bindings import NodeBindings
from archimedes.graph.program import Graph

__all__ = ["Reach", "Scope"]

#: A value in memory is loaded again rather than kept for longer than this many lines.
STALE = 64


class Scope(NodeBindings):
    """A graph being lowered in a function; ``loaded`` are values read from memory, and where."""

    kind = Binding

    def __init__(
        self,
        f: Function,
        graph: Graph,
        given: Sequence[Binding],
        outs: dict[int, list[int]],
        known: dict[int, Binding],
    ) -> None:
        super().__init__(f, graph, given, outs, known)
        self.loaded: dict[int, tuple[int, str]] = {}

    def operand(self, i: int) -> str:
        """Return a register or literal with the value of a node."""
        name = self.names.get(i)
        if name is not None:
            return name
        at, name = self.loaded.get(i, (-STALE - 1, ""))
        if self.f.count - at <= STALE:
            return name
        binding = self.binding(i)
        name = self.f.operand(binding)
        if binding.operand is None and binding.location is not None:
            self.loaded[i] = self.f.count, name
        else:
            self.names[i] = name
        return name


class Reach:
    """Makes what only the current function can name known to others, through the frame."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.slots: dict[Pointer, Pointer] = {}

    def location(self, place: Location) -> Location:
        """Return the location by a pointer that any function can get."""
        pointer, f = place.pointer, self.f
        if pointer.kind != "local":
            return place
        if pointer not in self.slots:
            offset = f.module.frame.bytes(8)
            self.slots[pointer] = Pointer("slot", offset, pointer.uniform)
            at = f.value(f"getelementptr i8, ptr %frame, i64 {offset}")
            f.line(f"store ptr {pointer.value}, ptr {at}, align 8")
        return place._replace(pointer=self.slots[pointer])

    def binding(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a value that any function can get."""
        if binding.constant is not None:
            return binding
        place = binding.location
        if place is None:
            place = self.f.module.frame.array(dtype)
            self.f.store(place, self.f.operand(binding))
        return Binding(location=self.location(place))
