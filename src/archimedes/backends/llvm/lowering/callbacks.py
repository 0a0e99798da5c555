"""Calls of Python (``runtime/hosting.py``): one slot of 8 bytes per value."""

from __future__ import annotations

from collections.abc import Sequence

from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.backends.llvm.lowering.assembler import Function
from archimedes.backends.llvm.lowering.memory import Pointer
from archimedes.backends.llvm.runtime.hosting import HostCall
from archimedes.backends.lowering.scope import Scope
from archimedes.backends.lowering.values import Binding, Place
from archimedes.graph.regions import Host

__all__ = ["call_host", "still_fine"]


def still_fine(f: Function) -> str:
    """Return an i1 that tells whether no callback has failed so far."""
    failed = f.value("load i32, ptr %frame, align 4")
    return f.value(f"icmp eq i32 {failed}, 0")


def call_host(scope: Scope, region: Host, outs: Sequence[int], number: int) -> HostCall:
    """Call a function of Python, by its number in the module, and bind its used outputs.

    Once a callback has failed (the status word is not zero) no other is called.
    """
    f: Function = scope.f
    dtypes = [scope.graph.dtype[i] for i in region.inputs.tolist()]
    frame = f.module.frame
    arguments = frame.bytes(8 * len(region.inputs) + 8)
    results = frame.bytes(8 * len(region.dtypes) + 8)

    def slot(base: int, k: int, dtype: int) -> Place:
        return Place(Pointer("frame", base + 8 * k, uniform=True), 0, dtype)

    for k, i in enumerate(region.inputs.tolist()):
        f.store(slot(arguments, k, dtypes[k]), scope.operand(i))
    fine = still_fine(f)
    this, end = f.label(), f.label()
    f.fork(fine, this, end)
    f.start(this)
    f.module.declare("@arc_host", "void", "i64, ptr, ptr")
    at = f.value(f"getelementptr i8, ptr %frame, i64 {arguments}")
    to = f.value(f"getelementptr i8, ptr %frame, i64 {results}")
    done = f.value(f"getelementptr i8, ptr {to}, i64 {8 * len(region.dtypes)}")
    f.line(f"store i64 0, ptr {done}, align 8")
    f.line(f"call void @arc_host(i64 {number}, ptr {at}, ptr {to})")
    raised = f.value(f"icmp eq i64 {f.value(f'load i64, ptr {done}, align 8')}, 0")
    status = f.value(f"select i1 {raised}, i32 {RAISED}, i32 0")
    f.line(f"store i32 {status}, ptr %frame, align 4")
    f.jump(end)
    for i in outs:
        k = scope.graph.b[i]
        scope.bind(i, Binding(operand=f.load(slot(results, k, region.dtypes[k]))))
    return HostCall(region, dtypes)
