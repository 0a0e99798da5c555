"""Arrays: how their elements are written, and where they are declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archimedes.backends.c.spelling import BYTES, CTYPES
from archimedes.backends.lowering.scope import Binding, Location

__all__ = ["Array", "Frame", "address", "are_neighbours", "assignment", "moving", "read"]


class Array(NamedTuple):
    """An array, or one seen from a step of a loop: element ``k`` is ``base[steps + k]``.

    ``steps`` is an expression of loop counters. ``narrow`` arrays are of int32_t, for values that
    are int64_t everywhere else.
    """

    base: str
    steps: str = ""
    narrow: bool = False


def _position(place: Location) -> str:
    """Write the index of an element."""
    steps, offset = place.array.steps, place.offset
    if not steps:
        return str(offset)
    if not offset:
        return str(steps)
    return f"{steps} {'+' if offset > 0 else '-'} {abs(offset)}"


def _element(place: Location) -> str:
    return f"{place.array.base}[{_position(place)}]"


def address(place: Location) -> str:
    """Write a pointer to an element."""
    return place.array.base if _position(place) == "0" else f"&{_element(place)}"


def read(place: Location) -> str:
    """Write an element as an operand."""
    return f"((int64_t){_element(place)})" if place.array.narrow else _element(place)


def assignment(place: Location, value: str) -> str:
    """Write an assignment to an element."""
    return f"{_element(place)} = {'(int32_t)' if place.array.narrow else ''}{value};"


def moving(place: Location, counter: str, stride: int) -> Location:
    """Return the place ``counter * stride`` elements further.

    >>> read(moving(Location(Array("s1"), 3, 0), "i1", 2))
    's1[2 * i1 + 3]'
    """
    term, steps = counter if stride == 1 else f"{stride} * {counter}", place.array.steps
    return place._replace(array=place.array._replace(steps=f"{steps} + {term}" if steps else term))


def are_neighbours(bindings: Sequence[Binding]) -> bool:
    """Tell whether values lie one after the other in an array of their own type."""
    first = bindings[0].location
    if first is None or first.array.narrow:
        return False
    return all(b.location == first.at(k) for k, b in enumerate(bindings))


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
        #: Arrays of blocks by name, and those that are not in use: numbers of members.
        self._blocks: dict[str, int] = {}
        self._free: list[int] = []
        self._buffers: dict[tuple[str, int], Location] = {}

    def array(self, dtype: int, count: int) -> Location:
        """Reserve an array and return its first element."""
        name = f"s{self._gap}{len(self._members) + 1}"
        self._members.append((dtype, name, count))
        return Location(Array(f"{self.pointer}->{name}" if self.in_struct else name), 0, dtype)

    def block(self, dtype: int, count: int) -> Location:
        """Return the array of a block: one that was released, made longer if need be, or a new one.

        Of those there are, it is the shortest that is long enough, or else the longest.
        """
        mine = [k for k in self._free if self._members[k][0] == dtype]
        if not mine:
            place = self.array(dtype, count)
            self._blocks[place.array.base] = len(self._members) - 1
            return place
        lengths = {k: self._members[k][2] for k in mine}
        enough = [k for k in mine if lengths[k] >= count]
        length = lengths.__getitem__
        chosen = min(enough, key=length) if enough else max(mine, key=length)
        self._free.remove(chosen)
        name = self._members[chosen][1]
        self._members[chosen] = (dtype, name, max(lengths[chosen], count))
        return Location(Array(f"{self.pointer}->{name}" if self.in_struct else name), 0, dtype)

    def release(self, place: Location) -> None:
        """Take back the array of a block; others stay as they are."""
        number = self._blocks.get(place.array.base)
        if number is not None and number not in self._free and not place.array.steps:
            self._free.append(number)

    def buffer(self, owner: str, dtype: int, count: int) -> Location:
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
