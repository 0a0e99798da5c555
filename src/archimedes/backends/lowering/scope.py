"""What is known of a graph's nodes while it is being written: locations, bindings, lifetimes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.graph.dtypes import item_type, length_of
from archimedes.graph.ops import CONST, ELEMENT, INPUT, OPERANDS, OUT, REGION
from archimedes.graph.program import Graph
from archimedes.graph.regions import Move, Nest, Pack
from archimedes.graph.regions.block_regions import Affine, positions

if TYPE_CHECKING:
    from archimedes.backends.lowering.dialect import Dialect


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
        """Return the location ``k`` elements further."""
        return self._replace(offset=self.offset + k)


class Binding(NamedTuple):
    """What is known of a value: its operand, its location in memory or its constant; one of them.

    A constant is a Python number and its dtype.
    """

    operand: str | None = None
    location: Location | None = None
    constant: tuple[Any, int] | None = None

    def is_like(self, other: Binding) -> bool:
        """Return whether both bind the same value; as text, since 0.0 and -0.0 are equal."""
        if self.constant is not None:
            return repr(self.constant) == repr(other.constant)
        return self == other

    @property
    def memory(self) -> Location:
        """Its location, of a value that is known to lie in memory."""
        assert self.location is not None
        return self.location


class Instances(NamedTuple):
    """A body that runs for each of ``length`` instances.

    Its arguments are rows of the blocks ``rows``, then ``shared`` values: ids of nodes. The
    results of the instances are rows of blocks too.
    """

    body: Graph
    length: int
    rows: Sequence[int]
    shared: Sequence[int]


class SubBlock(NamedTuple):
    """The block that another one is part of, its offset there, and the stride of its elements."""

    whole: int
    offset: int
    stride: int


#: An output of a graph by number, and where it goes.
Store = tuple[int, Location]


def locations_by_node(g: Graph, stores: Sequence[Store]) -> dict[int, list[Location]]:
    """Return the locations that want the value of each node."""
    waiting: dict[int, list[Location]] = {}
    for k, to in stores:
        waiting.setdefault(g.outputs[k], []).append(to)
    return waiting


def _array_node(g: Graph, i: int) -> int | None:
    """Return the block whose array a node is read from, if it is."""
    if length_of(g.dtype[i]):
        return i
    return g.a[i] if g.op[i] == ELEMENT and g.b[i] in g.value else None


def stays_in_place(g: Graph, i: int) -> bool:
    """Return whether a node is read where its block is: a block, or an element at a known index."""
    return _array_node(g, i) is not None


class Lifetimes:
    """How long the arrays of a graph's blocks are needed: memory is reused after the last reader.

    ``order`` are the nodes as they are written, ``outputs`` the nodes that are needed to the end.
    The ``foreign`` locations, those of the graph's arguments, are not released.
    """

    def __init__(
        self, g: Graph, order: Sequence[int], outputs: Iterable[int], foreign: Iterable[Location]
    ) -> None:
        self.graph = g
        self._readers: Counter[int] = Counter()
        self._outputs = {_array_node(g, i) for i in outputs}
        self._foreign = {location.array for location in foreign}
        self._holders: dict[Location, set[int]] = {}
        #: Whether there are any blocks.
        self.active = any(map(length_of, g.dtype))
        if self.active:
            for i in order:
                self._readers.update(self._blocks_read(i))

    def _blocks_read(self, i: int) -> set[int]:
        g = self.graph
        blocks = {_array_node(g, j) for j in g.operands(i)} if g.op[i] != OUT else set()
        return {block for block in blocks if block is not None}

    def hold(self, i: int, location: Location) -> None:
        """Note that a node's block lies at a location."""
        if location.array not in self._foreign:
            self._holders.setdefault(location, set()).add(i)

    def pin(self, location: Location) -> None:
        """Keep the block that a value lies in to the end: other nodes read from it too."""
        self._foreign.add(location.array)
        for held in [held for held in self._holders if held.array == location.array]:
            del self._holders[held]

    def end_node(self, i: int) -> list[Location]:
        """Note that a node is written; return the locations that it read last."""
        free: list[Location] = []
        for block in self._blocks_read(i) if self._readers else ():
            self._readers[block] -= 1
            if self._readers[block] or block in self._outputs:
                continue
            for location in [x for x, holders in self._holders.items() if block in holders]:
                self._holders[location].discard(block)
                if not self._holders[location]:
                    del self._holders[location]
                    free.append(location)
        return free


@dataclass(eq=False, repr=False)
class Scope:
    """A graph being written in a function ``f``.

    ``arguments`` binds its inputs, ``outs`` lists the used outputs of each region, ``bound`` is
    what is known of nodes computed so far (by whichever function), ``waiting`` are the locations
    that want a node's value, ``lifetimes`` tells when blocks can be released, ``sub_blocks`` which
    blocks are made inside another, ``names`` are the operands that only this function can use,
    ``elided`` are pairs of a block and a scalar that is stored into it as soon as it is computed.
    """

    dialect: Dialect
    f: Any
    graph: Graph
    arguments: Sequence[Binding]
    outs: dict[int, list[int]]
    bound: dict[int, Binding]
    waiting: dict[int, list[Location]]
    lifetimes: Lifetimes
    sub_blocks: Mapping[int, SubBlock] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    elided: set[tuple[int, int]] = field(default_factory=set)

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
        return self.arguments[self.graph.a[i]] if code == INPUT else self.bound[i]

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
            return
        self.bound[i] = binding
        if binding.location is not None:
            if length_of(self.graph.dtype[i]):
                self.lifetimes.hold(i, binding.location)
            else:
                self.lifetimes.pin(binding.location)

    def block(self, i: int) -> Location:
        """Return where a node is that is a block."""
        return self.binding(i).memory

    def stride(self, i: int) -> int:
        """Return how far apart the elements of a block are that is being made."""
        return self.sub_blocks[i].stride if i in self.sub_blocks else 1

    def destination(self, i: int) -> Location | None:
        """Return a location that waits for a block, and take it off the list."""
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
        if i in self.sub_blocks:
            whole, offset, _ = self.sub_blocks[i]
            location = (self.block if whole in self.bound else self.new_block)(whole).at(offset)
        elif (wanted := self.destination(i)) is not None:
            location = wanted
        else:
            kind = self.graph.dtype[i]
            location = self.dialect.block(self.f, item_type(kind), length_of(kind))
            self.lifetimes.hold(i, location)
        self.bound[i] = Binding(location=location)
        return location


# ---- copy elision: values that a ``Pack`` would copy into its block are computed inside it -----


def _packs(g: Graph, order: Sequence[int]) -> dict[int, Pack]:
    regions = ((i, g.regions[i]) for i in order if g.op[i] == REGION)
    return {i: region for i, region in regions if isinstance(region, Pack)}


def _times_written(region: Pack) -> np.ndarray:
    """Return how many boxes cover each element of a block."""
    count = np.zeros(region.length, dtype=np.int64)
    for move in region.moves:
        count[positions(move.to, move.shape)] += 1
    return count


def covers(region: Pack) -> bool:
    """Return whether the boxes cover the whole block."""
    enough = sum(math.prod(move.shape) for move in region.moves) >= region.length
    return enough and bool(_times_written(region).all())


def is_scalar(move: Move) -> bool:
    """Return whether a move copies a scalar into a block."""
    return move.start is None and math.prod(move.shape) == 1


def find_sub_blocks(
    g: Graph, order: Sequence[int], outputs: Iterable[int], apart: bool = False
) -> dict[int, SubBlock]:
    """Return which results of nests can be computed inside the ``Pack`` that alone reads them.

    ``order`` are the nodes of a function, ``outputs`` those that are needed for something else.
    ``apart`` tells that the elements may be made with others between them.
    """
    packs = _packs(g, order)
    if not packs:
        return {}
    reads = Counter(outputs)
    outs = {}
    for i in order:
        if g.op[i] == OUT:
            outs[g.a[i]] = i
        else:
            reads.update(set(g.operands(i)))
    sub_blocks: dict[int, SubBlock] = {}
    for i, region in packs.items():
        if i in outs:
            sub_blocks |= _sub_blocks_of(g, region, outs[i], reads, apart)
    return sub_blocks


def _sub_blocks_of(
    g: Graph, region: Pack, whole: int, reads: Counter[int], apart: bool
) -> dict[int, SubBlock]:
    """Return the blocks that are copied into the pack's as a whole and not overwritten later."""
    sub_blocks = {}
    written = _times_written(region)
    if not written.all():
        return {}
    sources = Counter(move.source for move in region.moves)
    for source, shape, to, start in region.moves:
        i = int(region.inputs[source])
        if g.op[i] != OUT or not isinstance(g.regions[g.a[i]], Nest):
            continue
        (length,) = shape if len(shape) == 1 else (0,)
        straight = start == Affine(0, (1,)) and (to.strides == (1,) or apart)
        if not straight or length != length_of(g.dtype[i]) or reads[i] != 1 or sources[source] != 1:
            continue
        if (written[positions(to, shape)] == 1).all():
            sub_blocks[i] = SubBlock(whole, to.offset, to.strides[0])
    return sub_blocks


def elide_scalar_copies(scope: Scope, order: Sequence[int]) -> None:
    """Store scalars that are packed into a block there as soon as they are computed."""
    g = scope.graph
    computed = {i for i in order if OPERANDS[g.op[i]]}
    for i, region in _packs(g, order).items():
        if not scope.outs.get(i) or not covers(region):
            continue
        ids = region.inputs.tolist()
        scalars = [(ids[m.source], m.to.offset) for m in region.moves if is_scalar(m)]
        mine = [(j, at) for j, at in scalars if j in computed]
        # Boxes that overlap are copied in their order.
        if not mine or sum(math.prod(m.shape) for m in region.moves) != region.length:
            continue
        (out, *_) = scope.outs[i]
        to = scope.new_block(out)
        for j, at in mine:
            scope.waiting.setdefault(j, []).append(to.at(at))
            scope.elided.add((out, j))
