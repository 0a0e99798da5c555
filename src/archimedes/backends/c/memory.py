"""Where values live: in a variable, in an element of an array, in the text as a constant."""

from __future__ import annotations

from typing import Any, NamedTuple

from archimedes.backends.c.spelling import BYTES, CTYPES, literal

__all__ = ["Binding", "Frame", "Place"]


class Place(NamedTuple):
    """An element of an array: ``base[steps + offset]``, ``steps`` an expression of loop counters.

    ``narrow`` arrays are of int32_t, for values that are int64_t everywhere else.
    """

    base: str
    offset: int
    dtype: int
    steps: str = ""
    narrow: bool = False

    def at(self, k: int) -> Place:
        """Return the place ``k`` elements further."""
        return self._replace(offset=self.offset + k)

    def moving(self, counter: str, stride: int) -> Place:
        """Return the place ``counter * stride`` elements further."""
        term = counter if stride == 1 else f"{stride} * {counter}"
        return self._replace(steps=f"{self.steps} + {term}" if self.steps else term)

    @property
    def position(self) -> str:
        """The index as an expression."""
        if not self.steps:
            return str(self.offset)
        if not self.offset:
            return self.steps
        sign = "+" if self.offset > 0 else "-"
        return f"{self.steps} {sign} {abs(self.offset)}"

    @property
    def element(self) -> str:
        """The element as the left side of an assignment."""
        return f"{self.base}[{self.position}]"

    @property
    def address(self) -> str:
        """A pointer to the element."""
        return self.base if self.position == "0" else f"&{self.element}"

    def read(self) -> str:
        """Write the element as an operand."""
        return f"((int64_t){self.element})" if self.narrow else self.element

    def write(self, value: str) -> str:
        """Write an assignment to the element."""
        if self.narrow:
            return f"{self.element} = (int32_t){value};"
        return f"{self.element} = {value};"


class Binding(NamedTuple):
    """What is known of a value: an operand, its place in memory, its constant; one of them."""

    operand: str | None = None
    place: Place | None = None
    constant: tuple[Any, int] | None = None

    def text(self) -> str:
        """Write the value as an operand."""
        if self.operand is not None:
            return self.operand
        if self.place is not None:
            return self.place.read()
        assert self.constant is not None
        return literal(*self.constant)


class Frame:
    """The arrays of a function, and those of the functions it calls.

    They are local variables, or members of a struct that ``pointer`` points to. The struct ends
    in a union of the callees' structs, of which one is in use at a time.
    """

    def __init__(self, name: str, in_struct: bool, pointer: str = "work", gap: str = "") -> None:
        self.type = f"{name}_work"
        self.in_struct = in_struct
        self.pointer = pointer
        self.calls: dict[str, Frame] = {}
        self._gap = gap
        self._members: list[tuple[int, str, int]] = []
        self._buffers: dict[tuple[str, int], Place] = {}

    def array(self, dtype: int, count: int) -> Place:
        """Reserve an array and return its first element."""
        name = f"s{self._gap}{len(self._members) + 1}"
        self._members.append((dtype, name, count))
        return Place(f"{self.pointer}->{name}" if self.in_struct else name, 0, dtype)

    def buffer(self, owner: str, dtype: int, count: int) -> Place:
        """Return an array for the arguments or results of a function, the same for all calls."""
        key = (owner, dtype)
        if key not in self._buffers:
            self._buffers[key] = self.array(dtype, count)
        return self._buffers[key]

    @property
    def is_empty(self) -> bool:
        """Whether neither the function nor any callee has arrays."""
        return not self._members and not self.calls

    @property
    def size(self) -> tuple[int, int]:
        """Bytes and alignment of the struct, each type aligned to its size."""
        at, alignment = 0, 1
        parts = [(BYTES[d], BYTES[d] * count) for d, _, count in self._ordered()]
        sizes = [frame.size for frame in self.calls.values()]
        if sizes:
            parts.append((max(a for _, a in sizes), max(n for n, _ in sizes)))
        for align, count in parts:
            at = -(-at // align) * align + count
            alignment = max(alignment, align)
        return -(-at // alignment) * alignment, alignment

    def _ordered(self) -> list[tuple[int, str, int]]:
        """Members by size of their type, so that no bytes are lost between them."""
        return sorted(self._members, key=lambda member: -BYTES[member[0]])

    def declarations(self) -> list[str]:
        """Declare the arrays."""
        return [f"{CTYPES[d]} {name}[{count}];" for d, name, count in self._ordered()]

    def typedef(self) -> str:
        """Write the struct."""
        lines = self.declarations()
        if self.calls:
            inner = [f"    {frame.type} {name};" for name, frame in self.calls.items()]
            lines += ["union {", *inner, "} calls;"]
        return "\n".join(["typedef struct {", *(f"    {x}" for x in lines), f"}} {self.type};\n"])
