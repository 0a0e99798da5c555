"""Values between registers and memory: what is loaded, and what other functions can reach."""

from __future__ import annotations

from typing import Any

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.lowering.dialect import Reach
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place

__all__ = ["FrameReach", "LoadingScope"]

#: A value in memory is loaded again rather than kept for longer than this many lines.
STALE = 64


class LoadingScope(Scope):
    """A graph being lowered in a function; ``loaded`` are values read from memory, and where.

    In a draft, all of whose values lie in memory, none is loaded again in its block of code.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.loaded: dict[int, tuple[int, str, str]] = {}
        self.draft = not self.f.module.target.effort

    def operand(self, i: int) -> str:
        """Return a register or literal with the value of a node."""
        name = self.names.get(i)
        if name is not None:
            return name
        f = self.f
        at, block, name = self.loaded.get(i, (-STALE - 1, "", ""))
        if f.count - at <= STALE or (self.draft and block == f.block):
            return name
        binding = self.binding(i)
        name = f.operand(binding)
        if binding.operand is None and binding.place is not None:
            self.loaded[i] = f.count, f.block, name
        else:
            self.names[i] = name
        return name


class FrameReach(Reach):
    """Makes what only the current function can name known to others, through the frame."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.slots: dict[Pointer, Pointer] = {}

    def place(self, place: Place) -> Place:
        """Return the place by a pointer that any function can get."""
        pointer, f = place.array, self.f
        if pointer.kind != "local":
            return place
        if pointer not in self.slots:
            offset = f.module.frame.bytes(8)
            self.slots[pointer] = pointer._replace(kind="slot", value=offset)
            at = f.value(f"getelementptr i8, ptr %frame, i64 {offset}")
            f.line(f"store ptr {pointer.value}, ptr {at}, align 8")
        return place._replace(array=self.slots[pointer])

    def binding(self, binding: Binding, dtype: int) -> Binding:
        """Return the binding of a value that any function can get."""
        if binding.constant is not None:
            return binding
        place = binding.place
        if place is None:
            place = self.f.module.frame.array(dtype)
            self.f.store(place, self.f.operand(binding))
        return Binding(place=self.place(place))
