"""``f.report(...)``, what a compiled function costs, and ``f.check(...)``, its checks of values.

A recording cannot contain checks of values (a negative mass, a matrix that is not a rotation, a
division by zero). ``check`` runs the function as plain Python on the numbers themselves, and
compares its result with the recorded one's.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function.execution.tiers import Tiers, canonical
from archimedes.function.region_bodies import copy_arrays
from archimedes.graph.text import statistics
from archimedes.symbolic.core.user_frames import user_line


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
    inputs = [arrays.take(x, s.code, s.shape) for x, s in zip(leaves, traced) if s.traced]
    batch = kernel.batch_notes(inputs)
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


#: How far the results may be apart, relative to the largest entry of a leaf.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Finding:
    """One thing that a check found: ``kind`` is "error", "warning" or "difference".

    ``instance`` is the number of the row it was found in, of a function made by ``vmap``.
    """

    kind: str
    text: str
    instance: int | None = None
    error: Exception | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        where = "" if self.instance is None else f"[{self.instance}] "
        return f"{where}{self.kind}: {self.text}"


@dataclass(frozen=True)
class Check:
    """What ``f.check(...)`` found: ``ok``, the ``findings``, and the ``result`` as plain Python."""

    name: str
    findings: tuple[Finding, ...]
    result: Any = None

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            return f"{self.name}: checked, nothing found"
        return "\n".join([f"{self.name}: {len(self.findings)} found", *map(str, self.findings)])

    def __repr__(self) -> str:
        return f"<check of {self}>"

    def raise_errors(self) -> None:
        """Raise the first error that the function raised, if it raised one."""
        for finding in self.findings:
            if finding.error is not None:
                raise finding.error


def check(
    name: str,
    function: Callable[..., Any],
    recorded: Callable[..., Any],
    args: Any,
    kwargs: Any,
    instance: int | None = None,
) -> Check:
    """Run a function on numbers, then as recorded, and say what came up."""
    findings: list[Finding] = []
    result = None
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            # On copies: what it writes to its arguments is its own, as in a recording.
            result = function(*copy_arrays(tuple(args)), **copy_arrays(dict(kwargs)))
        except Exception as error:
            findings.append(Finding("error", _describe(error), instance, error))
    findings += [
        Finding("warning", f"{w.message}, at\n  {w.filename}:{w.lineno}", instance) for w in caught
    ]
    if not any(finding.kind == "error" for finding in findings):
        difference = _difference(result, recorded(*args, **kwargs))
        if difference is not None:
            findings.append(Finding("difference", difference, instance))
    return Check(name, tuple(findings), result)


def _describe(error: Exception) -> str:
    last = traceback.walk_tb(error.__traceback__)
    where = user_line(error.__traceback__) if any(True for _ in last) else "an unknown line"
    return f"{type(error).__name__}: {error}, at\n  {where}"


def _difference(plain: Any, recorded: Any) -> str | None:
    """Say where the results of plain Python and of the recording are not the same."""
    plain_leaves, structure = tree.flatten(plain)
    recorded_leaves, other = tree.flatten(recorded)
    if not structure.matches(other):
        return f"as plain Python it returns {structure!r}, recorded {other!r}"
    for a, b, path in zip(plain_leaves, recorded_leaves, structure.paths("result")):
        if isinstance(a, (int, float, np.ndarray, np.generic)) and not _close(a, b):
            return f"{path} is {a!r} as plain Python, {b!r} recorded"
    return None


def _close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype.kind not in "fiub":
        return a.shape == b.shape
    finite = np.abs(a[np.isfinite(a)])
    size = max(1.0, float(finite.max())) if finite.size else 1.0
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * size, equal_nan=True))
