"""Batches: a loop over instances, or pairs of them, around an exported function.

The arrays of an instance are copied to where the function has its own. In SIMD lanes, the last
instance of an odd number is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from archimedes.backends.protocol import ArrayType
from archimedes.backends.wasm.binary import MEMORY_COPY
from archimedes.backends.wasm.functions import Frame, Function, Segment
from archimedes.graph.dtypes import B8, F32, F64, I64

if TYPE_CHECKING:
    from archimedes.backends.wasm.module import Module

#: Bytes of a row of the table: three numbers.
ROW = 12
_BYTES = {F64: 8, F32: 4, I64: 8, B8: 1}


@dataclass(frozen=True)
class Leaf:
    """An array of an exported function, and where it lies."""

    array: ArrayType
    segment: Segment

    @property
    def address(self) -> int:
        """Bytes from the start of the memory."""
        return self.segment.address


class Lanes(NamedTuple):
    """A function of two instances, and its arrays."""

    function: Function
    inputs: Sequence[Leaf]
    outputs: Sequence[Leaf]


def write_batch(
    module: Module,
    f: Function,
    inputs: Sequence[Leaf],
    outputs: Sequence[Leaf],
    lanes: Lanes | None,
) -> Function:
    """Write the function of a number of instances and the address of the table of their arrays."""
    b = Function(module, Frame())
    count, table = b.parameter("i32"), b.parameter("i32")
    zero, one = b.constant("i32", 0), b.constant("i32", 1)
    if lanes is not None:
        b.frame.segments += [x.segment for x in (*lanes.inputs, *lanes.outputs)]
        with b.count(zero, count, 2) as i:
            following = b.op("i32.add", i, one)
            last = b.op("i32.eq", following, count)
            both = [i, b.select(last, i, following)]
            _copy_all(b, table, i, both, lanes.inputs, 0)
            b.call(lanes.function, [])
            _copy_all(b, table, i, both, lanes.outputs, len(inputs), outward=True)
    else:
        # What the arrays of single calls hold is kept.
        leaves = [leaf for leaf in (*inputs, *outputs) if leaf.array.size]
        kept = [(leaf.segment, b.frame.reserve(leaf.segment.size)) for leaf in leaves]
        _move(b, kept)
        with b.count(zero, count) as i:
            _copy_all(b, table, i, [i], inputs, 0)
            b.call(f, [])
            _copy_all(b, table, i, [i], outputs, len(inputs), outward=True)
        _move(b, [(own, segment) for segment, own in kept])
    module.finish(b)
    return b


def _move(b: Function, pairs: Sequence[tuple[Segment, Segment]]) -> None:
    for source, to in pairs:
        size = b.constant("i32", to.size)
        b.act(MEMORY_COPY, b.address(to, 0), b.address(source, 0), size)


def _copy_all(
    b: Function,
    table: str,
    i: str,
    instances: Sequence[str],
    leaves: Sequence[Leaf],
    first: int,
    outward: bool = False,
) -> None:
    """Copy the arrays of instances; one that all share, for the first instance only."""
    for k, leaf in enumerate(leaves, first):
        if not leaf.array.size:
            continue
        start, stride, step = (
            b.load("i32.load", "i32", (None, ROW * k + 4 * number, table), True)
            for number in range(3)
        )
        if outward:
            _copy(b, leaf, instances, (start, stride, step), outward)
            continue
        own = b.op("i32.or", b.op("i32.eqz", i), stride)
        with b.when(own):
            _copy(b, leaf, instances, (start, stride, step), outward)


def _copy(
    b: Function,
    leaf: Leaf,
    instances: Sequence[str],
    row: tuple[str, str, str],
    outward: bool,
) -> None:
    code = leaf.array.code
    start, stride, step = row
    pairs = len(instances) == 2
    size = 8 if pairs and code == B8 else _BYTES[code]
    number = b.constant("i32", leaf.array.size)
    for lane, i in enumerate(instances):
        there = b.op("i32.add", start, b.op("i32.mul", i, stride))
        here = b.address(leaf.segment, lane * size)
        apart = b.constant("i32", 16 if pairs else size)
        sides = [(here, apart), (there, step)]
        (source, a), (to, c) = sides if outward else sides[::-1]
        write = partial(_write_copier, code, pairs, outward)
        copier = b.module.helper(f"copy {code} {pairs} {outward}", write)
        b.call(copier, [to, c, source, a, number])


def _write_copier(code: int, pairs: bool, outward: bool, f: Function) -> None:
    """Write a function that copies elements: where to, how far apart, from where, and how many.

    Bools of SIMD lanes are int64 of all ones.
    """
    to, apart, source, step, count = (f.parameter("i32") for _ in range(5))
    narrow = {F32: ("i32.load", "i32.store", "i32"), B8: ("i32.load8_u", "i32.store8", "i32")}
    load, store, kind = narrow.get(code, ("i64.load", "i64.store", "i64"))
    mask = pairs and code == B8
    a, b = f.variable("i32"), f.variable("i32")
    f.assign([a, b], [to, source])
    with f.count(f.constant("i32", 0), count):
        if mask and outward:
            value = f.op("i32.wrap_i64", f.load("i64.load", "i64", (None, 0, b), False))
            value = f.op("i32.and", value, f.constant("i32", 1))
            f.store("i32.store8", (None, 0, a), value)
        elif mask:
            value = f.op("i64.extend_i32_u", f.load(load, kind, (None, 0, b), False))
            value = f.op("i64.sub", f.constant("i64", 0), value)
            f.store("i64.store", (None, 0, a), value)
        else:
            f.store(store, (None, 0, a), f.load(load, kind, (None, 0, b), False))
        f.assign([a, b], [f.op("i32.add", a, apart), f.op("i32.add", b, step)])
