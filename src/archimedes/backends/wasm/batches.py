"""Batches: a loop over instances around an exported function, which copies their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archimedes.backends.wasm.binary import MEMORY_COPY
from archimedes.backends.wasm.functions import Frame, Function
from archimedes.graph.dtypes import B8, F32

if TYPE_CHECKING:
    from archimedes.backends.wasm.module import Leaf, Module

#: Bytes of a row of the table: three numbers.
ROW = 12


def write_batch(
    module: Module, f: Function, inputs: Sequence[Leaf], outputs: Sequence[Leaf]
) -> Function:
    """Write the function of a number of instances and the address of the table of their arrays."""
    b = Function(module, Frame())
    count, table = b.parameter("i32"), b.parameter("i32")
    leaves = [leaf for leaf in (*inputs, *outputs) if leaf.array.size]
    kept = [(leaf, b.frame.reserve(leaf.segment.size)) for leaf in leaves]

    def move(pairs: Sequence[tuple]) -> None:
        for (a, to), size in pairs:
            b.act(MEMORY_COPY, b.address(to, 0), b.address(a, 0), b.constant("i32", size))

    # What the arrays of single calls hold is kept.
    move([((leaf.segment, own), own.size) for leaf, own in kept])
    with b.count(b.constant("i32", 0), count) as i:
        for k, leaf in enumerate(inputs):
            _copy_leaf(module, b, table, k, i, leaf, outward=False)
        b.call(f, [])
        for k, leaf in enumerate(outputs, len(inputs)):
            _copy_leaf(module, b, table, k, i, leaf, outward=True)
    move([((own, leaf.segment), own.size) for leaf, own in kept])
    module.finish(b)
    return b


def _copy_leaf(
    module: Module, b: Function, table: str, k: int, i: str, leaf: Leaf, outward: bool
) -> None:
    """Copy the array of an instance; one that all share, for the first instance only."""
    if not leaf.array.size:
        return

    def entry(number: int) -> str:
        return b.load("i32.load", "i32", (None, ROW * k + 4 * number, table), False)

    size = {F32: 4, B8: 1}.get(leaf.array.code, 8)
    name, kind = {8: ("i64", "i64"), 4: ("i32", "i32"), 1: ("i32", "i32")}[size]
    load, store = (f"{name}.load", f"{name}.store")
    if size == 1:
        load, store = "i32.load8_u", "i32.store8"

    def copy() -> None:
        there = b.op("i32.add", entry(0), b.op("i32.mul", i, entry(1)))
        step = entry(2)
        at = b.variable("i32")
        b.assign([at], [there])
        end = b.constant("i32", leaf.array.size * size)
        with b.count(b.constant("i32", 0), end, size) as c:
            if outward:
                value = b.load(load, kind, (leaf.segment, 0, c), False)
                b.store(store, (None, 0, at), value)
            else:
                value = b.load(load, kind, (None, 0, at), False)
                b.store(store, (leaf.segment, 0, c), value)
            b.assign([at], [b.op("i32.add", at, step)])

    if outward:
        copy()
        return
    first = b.op("i32.eqz", i)
    own = b.op("i32.ne", entry(1), b.constant("i32", 0))
    with b.when(b.op("i32.or", first, own)):
        copy()
