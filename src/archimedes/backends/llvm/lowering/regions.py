"""Lowering of regions: a table keyed by region class.

``lower(low, scope, region, outs)`` computes a region and binds its used outputs ``outs`` (ids of
``out`` nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from archimedes.backends.llvm.lowering.branches import lower_switch
from archimedes.backends.llvm.lowering.copies import copy_all
from archimedes.backends.llvm.lowering.graph_lowering import Lowering
from archimedes.backends.llvm.lowering.loops import lower_map, lower_scan, lower_while
from archimedes.backends.llvm.lowering.memory import Binding, Location, Pointer
from archimedes.backends.llvm.lowering.scope import Scope
from archimedes.backends.llvm.lowering.solving import solver
from archimedes.backends.llvm.runtime.hosting import HostCall
from archimedes.graph.regions import Call, Host, Map, Region, Scan, Solve, Switch, While

__all__ = ["REGIONS"]


def _call(low: Lowering, scope: Scope, region: Call, outs: Sequence[int]) -> None:
    given = scope.bindings(region.inputs.tolist())
    for i, binding in zip(outs, low.call(scope.f, region.body, given, scope.numbers(outs))):
        scope.bind(i, binding)


def _solve(low: Lowering, scope: Scope, region: Solve, outs: Sequence[int]) -> None:
    f, n, m = scope.f, region.size, region.columns
    width = n + m
    work = f.module.frame.array(region.dtype, n * width)
    given = scope.bindings(region.inputs.tolist())
    rows = [
        given[r * n : (r + 1) * n] + given[n * n + r * m : n * n + (r + 1) * m] for r in range(n)
    ]
    copy_all(
        f, [(work.at(r * width + c), b) for r, row in enumerate(rows) for c, b in enumerate(row)]
    )
    f.line(f"call void {solver(f.module, n, m, region.dtype)}(ptr {f.address(work)})")
    for i in outs:
        r, c = divmod(scope.graph.b[i], m)
        scope.bind(i, Binding(location=work.at(r * width + n + c)))


def _host(low: Lowering, scope: Scope, region: Host, outs: Sequence[int]) -> None:
    """Call Python: ``i32 callback(number, arguments, results)``, one slot of 8 bytes a value.

    Once a callback has failed (the status word is not zero) no other is called.
    """
    f = scope.f
    number = len(low.hosts)
    dtypes = [scope.graph.dtype[i] for i in region.inputs.tolist()]
    low.hosts.append(HostCall(region, dtypes))
    frame = f.module.frame
    arguments = frame.bytes(8 * len(region.inputs) + 8)
    results = frame.bytes(8 * len(region.dtypes) + 8)

    def slot(base: int, k: int, dtype: int) -> Location:
        return Location(Pointer("frame", base + 8 * k, uniform=True), 0, dtype)

    for k, i in enumerate(region.inputs.tolist()):
        f.store(slot(arguments, k, scope.graph.dtype[i]), scope.operand(i))
    failed = f.value("load i32, ptr %frame, align 4")
    fine = f.value(f"icmp eq i32 {failed}, 0")
    this, end = f.label(), f.label()
    f.fork(fine, this, end)
    f.start(this)
    f.module.declare("@arc_host", "i32", "i64, ptr, ptr")
    at = f.value(f"getelementptr i8, ptr %frame, i64 {arguments}")
    to = f.value(f"getelementptr i8, ptr %frame, i64 {results}")
    status = f.value(f"call i32 @arc_host(i64 {number}, ptr {at}, ptr {to})")
    f.line(f"store i32 {status}, ptr %frame, align 4")
    f.jump(end)
    for i in outs:
        k = scope.graph.b[i]
        scope.bind(i, Binding(operand=f.load(slot(results, k, region.dtypes[k]))))


#: Lowering of every region.
REGIONS: dict[type[Region], Callable[..., None]] = {
    Call: _call,
    Scan: lower_scan,
    While: lower_while,
    Switch: lower_switch,
    Map: lower_map,
    Solve: _solve,
    Host: _host,
}
