"""The scratch memory of a call: taken when it begins, given back when it ends."""

from __future__ import annotations

from archimedes.backends.llvm.calling_convention import NO_MEMORY
from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import ALIGNMENT
from archimedes.backends.llvm.lowering.safepoints import has_safepoints, open_budget, status_of

__all__ = ["STACK", "close_frame", "open_frame"]

#: Larger frames come from the heap.
STACK = 32768


def open_frame(f: Function, size: int, tiles: int = 1, own: int = 0) -> None:
    """Get the frame and clear its status word.

    ``tiles``: how many frames of ``own`` bytes are in it, one after the other.
    """
    if size <= STACK:
        f.line(f"%frame = alloca [{size} x i8], align {ALIGNMENT}")
    else:
        f.module.declare("@arc_malloc", "ptr", "i64")
        f.line(f"%raw = call ptr @arc_malloc(i64 {size + ALIGNMENT})")
        missing = f.value("icmp eq ptr %raw, null")
        fail, go = f.label(), f.label()
        f.fork(missing, fail, go, rare=True)
        f.start(fail)
        f.line(f"ret i32 {NO_MEMORY}")
        f.start(go)
        f.line("%raw.int = ptrtoint ptr %raw to i64")
        above = f.value(f"add i64 %raw.int, {ALIGNMENT - 1}")
        aligned = f.value(f"and i64 {above}, {-ALIGNMENT}")
        f.line(f"%frame = inttoptr i64 {aligned} to ptr")
    f.line("store i32 0, ptr %frame, align 4")
    if has_safepoints(f):
        others = [f.value(f"getelementptr i8, ptr %frame, i64 {k * own}") for k in range(1, tiles)]
        open_budget(f, ["%frame", *others])


def close_frame(f: Function, size: int) -> None:
    """Give the frame back and return the status."""
    status = f.value("load i32, ptr %frame, align 4")
    if f.budget:
        status = f.value(f"or i32 {status}, {status_of(f)}")
    if size > STACK:
        f.module.declare("@arc_free", "void", "ptr")
        f.line("call void @arc_free(ptr %raw)")
    f.finish(f"ret i32 {status}")
