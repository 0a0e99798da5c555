"""Runs of values in memory, moved by loops."""

from __future__ import annotations

from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.spelling import ITEM_BYTES, ITEM_MEMORY
from archimedes.backends.lowering.values import Place
from archimedes.graph.dtypes import B8

__all__ = ["copy_run", "fill_run"]

#: Items of scalar code that are moved at once.
TOGETHER = 8


def copy_run(f: Function, to: Place, start: Place, count: int) -> None:
    """Copy ``count`` values from array to array."""
    done = 0
    if f.spelling.lanes == 1:
        # Items lie one after the other: several at once, as they are in memory.
        done = count - count % TOGETHER
        kind, align = f"<{TOGETHER} x {ITEM_MEMORY[to.dtype]}>", ITEM_BYTES[to.dtype]
        with f.loop(0, done, step=TOGETHER) as loop:
            here, there = (f.address(f.moving(x, loop.counter, 1)) for x in (start, to))
            value = f.value(f"load {kind}, ptr {here}, align {align}")
            f.line(f"store {kind} {value}, ptr {there}, align {align}")
    if done < count:
        with f.loop(done, count) as loop:
            value = f.load(f.moving(start, loop.counter, 1))
            f.store(f.moving(to, loop.counter, 1), value)


def fill_run(f: Function, to: Place, operand: str, count: int) -> None:
    """Put one constant into ``count`` places."""
    done, item = 0, ITEM_MEMORY[to.dtype]
    if f.spelling.lanes == 1:
        done = count - count % TOGETHER
        kind, align = f"<{TOGETHER} x {item}>", ITEM_BYTES[to.dtype]
        if to.dtype == B8:
            stored = {"true": "1", "false": "0"}[operand]
        else:
            stored = operand
        with f.loop(0, done, step=TOGETHER) as loop:
            there = f.address(f.moving(to, loop.counter, 1))
            f.line(f"store {kind} splat ({item} {stored}), ptr {there}, align {align}")
    if done < count:
        with f.loop(done, count) as loop:
            f.store(f.moving(to, loop.counter, 1), operand)
