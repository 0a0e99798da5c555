"""A kernel called again and again by native code: its state goes from call to call.

What ``Kernel.repeating`` of ``backends/protocol.py`` says, in one call from Python. Buffers of the
state change places after each call of the kernel, so that nothing is copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.guards import add_guarded
from archimedes.backends.llvm.lowering.spelling import Spelling
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import data_pointer

if TYPE_CHECKING:
    from archimedes.backends.llvm.runtime.kernel import Kernel

__all__ = ["loop_text", "repeating"]

NAME = "arc_repeat"
PARAMETERS = "ptr %kernel, ptr %in, ptr %out, ptr %counts, i64 %carry, i64 %most, i64 %row_bytes"


def _slot(f: Function, table: str, number: str) -> str:
    """Return the address of an entry in a table of pointers."""
    return f.value(f"getelementptr ptr, ptr {table}, i64 {number}")


def _flag(f: Function, behind: int) -> str:
    """Read the truth value whose address lies so far behind the state's in the outputs."""
    number = f.value(f"add i64 %carry, {behind}")
    where = f.value(f"load ptr, ptr {_slot(f, '%out', number)}, align 8")
    return f.value(f"load i8, ptr {where}, align 1")


def _swap(f: Function) -> None:
    """Make the state that was put out the one that is read."""
    with f.loop(0, "%carry") as loop:
        a, b = _slot(f, "%in", loop.counter), _slot(f, "%out", loop.counter)
        x, y = (f.value(f"load ptr, ptr {at}, align 8") for at in (a, b))
        f.line(f"store ptr {y}, ptr {a}, align 8")
        f.line(f"store ptr {x}, ptr {b}, align 8")


def _written(f: Function) -> None:
    """Write the loop; it ends where the kernel fails, does not go on, or has filled all rows."""
    head, fine, more, fail = (f.label() for _ in range(4))
    before = f.block
    f.jump(head)
    at = len(f.lines)
    calls, filled = f.value(""), f.value("")
    status = f.value("call i32 %kernel(ptr %in, ptr %out)")
    f.fork(f.value(f"icmp eq i32 {status}, 0"), fine, fail)
    f.start(fine)
    _swap(f)
    made = f.value(f"zext i8 {_flag(f, 1)} to i64")
    row = _slot(f, "%out", "%carry")
    place = f.value(f"load ptr, ptr {row}, align 8")
    moved = f.value(f"mul i64 {made}, %row_bytes")
    further = f.value(f"getelementptr i8, ptr {place}, i64 {moved}")
    f.line(f"store ptr {further}, ptr {row}, align 8")
    called, full = f.value(f"add i64 {calls}, 1"), f.value(f"add i64 {filled}, {made}")
    going = f.value(f"icmp ne i8 {_flag(f, 2)}, 0")
    room = f.value(f"icmp slt i64 {full}, %most")
    last = f.block
    f.fork(f.value(f"and i1 {going}, {room}"), head, more)
    for k, (name, new) in enumerate(((calls, called), (filled, full))):
        f.lines[at + k] = f"  {name} = phi i64 [0, %{before}], [{new}, %{last}]"
    f.start(more)
    second = f.value("getelementptr i64, ptr %counts, i64 1")
    f.line(f"store i64 {called}, ptr %counts, align 8")
    f.line(f"store i64 {full}, ptr {second}, align 8")
    f.line("ret i32 0")
    f.start(fail)
    f.finish(f"ret i32 {status}")


def loop_text(target: Target) -> str:
    """Write the loop, for all kernels."""
    module = Module(Spelling(1), target)
    f = Function(module, f"define internal i32 @run({PARAMETERS}) noinline")
    _written(f)
    add_guarded(module, NAME, PARAMETERS, "run")
    return module.text()


@lru_cache(maxsize=1)
def _native() -> Any:
    target = host_target(None)
    code = NativeCode(target.compile(loop_text(target)), NAME)
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    return code.function(*kinds)


def repeating(
    kernel: Kernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], carry: int
) -> Callable[[np.ndarray], tuple[int, int]]:
    """Return ``f(rows)``: how often the kernel was called, and how many rows it has filled."""
    function = _native()
    read = np.array([*map(data_pointer, inputs)], np.uint64)
    state, flags = ([*map(data_pointer, some)] for some in (outputs[:carry], outputs[carry:]))
    written = np.array([*state, 0, *flags], np.uint64)
    # Those that native code changes.
    reads, writes, counts = read.copy(), written.copy(), np.zeros(2, np.int64)
    tables = [*map(data_pointer, (reads, writes, counts))]
    # Held: the memory that pointers lead to.
    held = (kernel, inputs, outputs)

    def run(rows: np.ndarray, _: object = held) -> tuple[int, int]:
        reads[:], writes[:] = read, written
        writes[carry] = data_pointer(rows)
        status = function(kernel.address, *tables, carry, len(rows), rows.strides[0])
        if status:
            kernel._finish(status)
        calls, filled = counts.tolist()
        return calls, filled

    return run
