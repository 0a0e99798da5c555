"""Functions being written: values, instructions in nested blocks, and the memory they use.

A value is named by text and defined once, by a parameter, a constant or an instruction; variables,
which loops and branches need, are assigned. Arrays lie at fixed addresses, which are known when
all functions are written: graphs do not call themselves, so that nothing needs a stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from archimedes.backends.wasm.binary import (
    CALL,
    CONST,
    MEMORY_ACCESS,
    OPERATIONS,
    SELECT,
    signed,
    unsigned,
)

if TYPE_CHECKING:
    from archimedes.backends.wasm.module import Module

#: What an instruction does to memory: nothing that matters, it reads it, it may write to it.
PURE, READS, WRITES = range(3)


# ---- memory --------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Segment:
    """A piece of memory: its size in bytes, and its address once that is known."""

    size: int
    align: int = 8
    data: bytes = b""
    address: int = 0


class Frame:
    """The memory of a function and of the pieces it is cut into."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        #: The frames of functions that are called while this one is in use.
        self.callees: list[Frame] = []
        #: Arrays that are used again, by what for.
        self.buffers: dict[Any, Any] = {}
        self._free: list[Segment] = []

    def reserve(self, size: int, align: int = 8) -> Segment:
        """Reserve bytes."""
        self.segments.append(Segment(size, align))
        return self.segments[-1]

    def borrow(self, size: int, align: int = 8) -> Segment:
        """Return bytes that were released, the least that are enough, or new ones."""
        enough = [s for s in self._free if s.size >= size and s.align >= align]
        if not enough:
            return self.reserve(size, align)
        chosen = min(enough, key=lambda s: s.size)
        self._free.remove(chosen)
        return chosen

    def release(self, segment: Segment) -> None:
        """Let others use bytes of this frame."""
        if segment in self.segments and segment not in self._free:
            self._free.append(segment)

    def place(self, start: int) -> int:
        """Give the segments addresses from ``start`` on, and return their end."""
        for segment in sorted(self.segments, key=lambda s: -s.align):
            start = -(-start // segment.align) * segment.align
            segment.address, start = start, start + segment.size
        return start


class Code(Protocol):
    """Code that depends on addresses and numbers of functions."""

    def encode(self) -> bytes:
        """Return the code, once these are known."""


class Access(NamedTuple):
    """A load or store of a segment (or from address 0), so many bytes from its start."""

    name: str
    segment: Segment | None
    offset: int

    def encode(self) -> bytes:
        """Return the instruction with its alignment and offset."""
        code, align = MEMORY_ACCESS[self.name]
        address = self.offset + (self.segment.address if self.segment else 0)
        return code + unsigned(align) + unsigned(address)


class Address(NamedTuple):
    """The address of a byte of a segment, as a constant."""

    segment: Segment
    offset: int

    def encode(self) -> bytes:
        """Return the instruction."""
        return CONST["i32"] + signed(self.segment.address + self.offset)


class CallOf(NamedTuple):
    """The call of a function."""

    function: Function

    def encode(self) -> bytes:
        """Return the instruction."""
        return CALL + unsigned(self.function.number)


# ---- instructions --------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Instruction:
    """Computes ``results`` from ``args``."""

    code: bytes | Code
    args: Sequence[str]
    results: Sequence[str]
    effect: int


@dataclass(eq=False, repr=False)
class Assignment:
    """Gives variables new values, all at once."""

    targets: Sequence[str]
    args: Sequence[str]


@dataclass(eq=False, repr=False)
class Block:
    """Instructions to be skipped (``kind`` b"if" with a test), repeated, or left by a jump."""

    kind: bytes
    test: str = ""
    body: list[Any] = field(default_factory=list)
    other: list[Any] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class Jump:
    """Goes to the end of a block, or to the start of a loop; with a test only where it holds."""

    block: Block
    test: str = ""


@dataclass(eq=False, repr=False)
class Give:
    """Ends a function with its results."""

    args: Sequence[str]


class Function:
    """A function being written; with ``outer`` a piece of it, which knows its values."""

    def __init__(self, module: Module, frame: Frame, outer: Function | None = None) -> None:
        self.module, self.frame = module, frame
        #: Types of values and code of constants, by name, of all functions.
        self.kinds, self.constants = module.kinds, module.constants
        self.variables: set[str] = set()
        self.parameters: list[str] = list(outer.parameters) if outer else []
        self.results: Sequence[str] = ()
        self.body: list[Any] = []
        self.number = 0
        #: What a call does to memory, once the function is written.
        self.effect = WRITES
        #: Bools that integers were made of.
        self.conditions: dict[str, str] = {}
        self._bodies = [self.body]
        self._known: list[dict[Any, str]] = [{}]
        self._loaded: dict[Any, str] = {}

    # ---- values --------------------------------------------------------------------------

    def name(self, kind: str) -> str:
        """Return the name of a new value."""
        text = f"v{len(self.kinds)}"
        self.kinds[text] = kind
        return text

    def parameter(self, kind: str) -> str:
        """Return a new parameter."""
        self.parameters.append(self.name(kind))
        return self.parameters[-1]

    def variable(self, kind: str) -> str:
        """Return a new variable."""
        text = self.name(kind)
        self.variables.add(text)
        return text

    def constant(self, kind: str, value: Any) -> str:
        """Return a constant."""
        return self.module.constant(kind, value)

    def address(self, segment: Segment, offset: int) -> str:
        """Return an address as a constant."""
        key = (id(segment), offset)
        known = self._known[0]
        if key not in known:
            known[key] = self.name("i32")
            self.constants[known[key]] = Address(segment, offset)
        return known[key]

    def value_of(self, operand: str) -> Any:
        """Return the number of a constant, None for other values."""
        return self.module.numbers.get(operand)

    # ---- instructions --------------------------------------------------------------------

    def append(self, item: Any) -> None:
        """Append to the block being written."""
        self._bodies[-1].append(item)

    def op(self, name: str, *args: str, immediate: bytes = b"") -> str:
        """Compute by an instruction, unless its result is known."""
        code, kind = OPERATIONS[name]
        return self.compute(code + immediate, kind, *args)

    def select(self, test: str, a: str, b: str) -> str:
        """Return ``a`` where a test holds, else ``b``."""
        return self.compute(SELECT, self.kinds[a], a, b, test)

    def compute(self, code: bytes, kind: str, *args: str) -> str:
        """Compute a value that depends on nothing but the arguments."""
        key = (code, args)
        for known in reversed(self._known):
            if key in known:
                return known[key]
        # What reads variables is not known for longer than they keep their values.
        result = self._known[-1][key] = self.name(kind)
        self.append(Instruction(code, args, (result,), PURE))
        return result

    def load(
        self, name: str, kind: str, place: tuple[Segment | None, int, str], fixed: bool
    ) -> str:
        """Load from a segment (or address 0), so many bytes from its start and from a pointer."""
        segment, offset, pointer = place
        key = (name, segment and id(segment), offset, pointer)
        for known in (self._loaded, *reversed(self._known)):
            if key in known:
                return known[key]
        result = self.name(kind)
        (self._known[-1] if fixed else self._loaded)[key] = result
        access = Access(name, segment, offset)
        arg = pointer or self.constant("i32", 0)
        self.append(Instruction(access, (arg,), (result,), PURE if fixed else READS))
        return result

    def store(self, name: str, place: tuple[Segment | None, int, str], value: str) -> None:
        """Store a value there."""
        segment, offset, pointer = place
        access = Access(name, segment, offset)
        self.append(Instruction(access, (pointer or self.constant("i32", 0), value), (), WRITES))
        if pointer or segment is None:
            self.forget(segment)
        else:
            same = [k for k in self._loaded if k[1] == id(segment) and (k[3] or k[2] == offset)]
            for key in same:
                del self._loaded[key]

    def forget(self, segment: Segment | None = None) -> None:
        """Forget what was loaded from a segment, or (without one) from any."""
        if segment is None:
            self._loaded.clear()
        else:
            mine = (id(segment), None)
            self._loaded = {k: v for k, v in self._loaded.items() if k[1] not in mine}

    def act(self, code: bytes, *args: str) -> None:
        """Append an instruction that writes memory and returns nothing."""
        self.append(Instruction(code, args, (), WRITES))
        self.forget()

    def call(self, function: Function, args: Sequence[str]) -> list[str]:
        """Call a function and return its results."""
        results = [self.name(kind) for kind in function.results]
        self.append(Instruction(CallOf(function), args, results, function.effect))
        if function.effect == WRITES:
            self.forget()
            if function.frame is not self.frame and function.frame not in self.frame.callees:
                self.frame.callees.append(function.frame)
        return results

    def assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        """Give variables new values, all at once."""
        pairs = [(x, y) for x, y in zip(targets, values) if x != y]
        if pairs:
            self.append(Assignment([x for x, _ in pairs], [y for _, y in pairs]))

    def give(self, values: Sequence[str]) -> None:
        """End the function with these results."""
        self.results = [self.kinds[x] for x in values]
        self.append(Give(values))

    # ---- blocks --------------------------------------------------------------------------

    @contextmanager
    def inside(self, body: list[Any], repeated: bool = False) -> Iterator[None]:
        """Write what follows into the body of a block."""
        self._bodies.append(body)
        self._known.append({})
        self._loaded = {} if repeated else dict(self._loaded)
        yield
        self._bodies.pop()
        self._known.pop()
        self._loaded = {}

    @contextmanager
    def when(self, test: str) -> Iterator[None]:
        """Write what runs only where a test holds."""
        block = Block(b"if", test)
        with self.inside(block.body):
            yield
        self.append(block)

    @contextmanager
    def repeat(self) -> Iterator[tuple[Block, Block]]:
        """Write a loop that goes on for ever; yield its block, and one around it to jump out of."""
        whole, loop = Block(b"block"), Block(b"loop")
        whole.body.append(loop)
        with self.inside(loop.body, repeated=True):
            yield loop, whole
        self.append(whole)

    @contextmanager
    def count(self, start: str, stop: str, step: int = 1) -> Iterator[str]:
        """Write a loop with a counter from ``start`` on while it is below ``stop``; both i32."""
        counter = self.variable("i32")
        self.assign([counter], [start])
        with self.repeat() as (loop, whole):
            self.append(Jump(whole, self.op("i32.ge_s", counter, stop)))
            yield counter
            self.assign([counter], [self.op("i32.add", counter, self.constant("i32", step))])
            self.append(Jump(loop))

    @contextmanager
    def below(self, at: str, end: str, step: str) -> Iterator[None]:
        """Write a loop in which a variable takes steps while it is below an end."""
        with self.repeat() as (loop, whole):
            self.append(Jump(whole, self.op("i32.ge_u", at, end)))
            yield
            self.assign([at], [self.op("i32.add", at, step)])
            self.append(Jump(loop))
