"""``f.report(...)``: what a compiled function costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from archimedes.function.execution import Executor, canonical
from archimedes.graph.text import statistics

__all__ = ["Report", "measure"]

#: Operations that count as floating-point work.
_FLOPS = ("add", "sub", "mul", "div", "neg", "sqrt", "min", "max", "abs")


@dataclass(frozen=True)
class Report:
    """Figures about one recording and its native code; times are medians."""

    name: str
    operations: int
    native_operations: int
    flops: int
    code_bytes: int
    compile_seconds: float
    from_disk: bool
    lanes: int
    call_seconds: float

    def __str__(self) -> str:
        origin = "read from disk" if self.from_disk else "compiled"
        return "\n".join(
            (
                f"{self.name}",
                f"  operations     {self.operations} recorded, {self.native_operations} after "
                f"expansion, about {self.flops} flops",
                f"  native code    {self.code_bytes} bytes, {origin} in "
                f"{1e3 * self.compile_seconds:.1f} ms, {self.lanes} lanes",
                f"  one call       {1e9 * self.call_seconds:.0f} ns from Python, result included",
            )
        )

    __repr__ = __str__


def measure(name: str, executor: Executor, leaves: Sequence[Any]) -> Report:
    """Compile an executor's recording if needed and time calls of it."""
    kernel, entry = executor.kernel(), executor.entry()
    ready = list(map(canonical, leaves, executor.recording.leaves))

    def call() -> Any:
        return executor(leaves) if entry is None else executor.from_entry(entry(*ready))

    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(200):
            call()
        times.append((time.perf_counter() - start) / 200)
    stats = kernel.stats
    expanded = statistics(kernel.graph)
    return Report(
        name=name,
        operations=statistics(executor.recording.graph).total,
        native_operations=stats.nodes,
        flops=sum(expanded.by_op.get(op, 0) for op in _FLOPS),
        code_bytes=stats.code_bytes,
        compile_seconds=stats.compile_seconds,
        from_disk=stats.cached > 0,
        lanes=stats.lanes,
        call_seconds=median(times),
    )
