"""``f.report(...)``: what a compiled function costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from archimedes.function.execution.kernel_calls import canonical
from archimedes.function.execution.tiers import Tiers
from archimedes.graph.text import statistics

__all__ = ["Report", "measure"]


@dataclass(frozen=True)
class Report:
    """Figures about one recording and the code that its backend runs; times are medians."""

    name: str
    operations: int
    native_operations: int
    flops: int
    code_bytes: int
    compile_seconds: float
    from_disk: bool
    lanes: int
    call_seconds: float
    backend: str
    notes: tuple[str, ...] = ()

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
                *(f"  {note}" for note in self.notes),
            )
        )

    __repr__ = __str__


def measure(name: str, tiers: Tiers, leaves: Sequence[Any]) -> Report:
    """Compile a recording if needed and time calls of it."""
    kernel, entry = tiers.kernel(), tiers.entry()
    ready = [] if entry is None else list(map(canonical, leaves, tiers.recording.leaves))

    def call() -> Any:
        return tiers(leaves) if entry is None else tiers.from_entry(entry(*ready))

    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(200):
            call()
        times.append((time.perf_counter() - start) / 200)
    arrays, traced = tiers.backend.arrays, tiers.recording.leaves
    given = [arrays.take(x, s.code, s.shape) for x, s in zip(leaves, traced) if s.traced]
    batch = kernel.batch_notes(given)
    figures = kernel.figures()
    return Report(
        name=name,
        operations=statistics(tiers.recording.graph).total,
        native_operations=figures.operations,
        flops=figures.flops,
        code_bytes=figures.code_bytes,
        compile_seconds=figures.compile_seconds,
        from_disk=figures.from_disk,
        lanes=figures.lanes,
        call_seconds=median(times),
        backend=tiers.backend.name,
        notes=(*figures.notes, *batch),
    )
