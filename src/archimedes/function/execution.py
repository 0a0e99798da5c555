"""Running a recording on numbers: the interpreter at first, native code when it is worth it.

Both give the same bits, so which one runs is a matter of time only. Compiling costs tens of
milliseconds; a recording is interpreted until the work done exceeds ``WARM_UP`` operations.
``ARCHIMEDES_BACKEND=llvm`` compiles at the first call, ``=interpreter`` never does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends import interpreter
from archimedes.function.recording import LeafSpec, OutLeaf, Recording
from archimedes.graph.dtypes import DTYPES, I64
from archimedes.graph.program import Graph

if TYPE_CHECKING:
    from archimedes.backends.llvm import Kernel

__all__ = ["BACKENDS", "Executor", "canonical", "default_backend"]

#: Operations that are interpreted before a recording is compiled.
WARM_UP = 20_000
#: Batches below this many operations run in one thread: starting others costs more.
THREADING = 2_000_000
BACKENDS = ("auto", "llvm", "interpreter")


def default_backend() -> str:
    """Return the backend named by the environment, or "auto"."""
    name = os.environ.get("ARCHIMEDES_BACKEND", "auto")
    if name not in BACKENDS:
        raise ValueError(f"ARCHIMEDES_BACKEND={name!r} is not one of {BACKENDS}")
    return name


class Executor:
    """Runs one recording: on single arguments, or on a batch along leading axes."""

    __slots__ = (
        "_kernel",
        "_lock",
        "_operations",
        "_work",
        "backend",
        "has_shortcut",
        "native",
        "recording",
    )

    def __init__(self, recording: Recording, backend: str) -> None:
        self.recording = recording
        self.backend = backend
        #: Whether a call path was generated for it already.
        self.has_shortcut = False
        self._operations = _operations(recording.graph)
        self._work = 0
        self._lock = threading.Lock()
        self._kernel: Kernel | None = None
        #: The builtin that ``entry`` makes; None until then.
        self.native: Any = None

    # ---- native code -------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the compiled kernel, making it if needed."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self._kernel = self._build()
        return self._kernel

    def _build(self) -> Kernel:
        from archimedes.backends import llvm

        r = self.recording
        return llvm.build(
            r.graph,
            [(s.size, s.code) for s in r.leaves if s.code >= 0],
            [(o.spec.size, o.spec.code) for o in r.outs if o.spec.code >= 0],
        )

    def entry(self) -> Callable[..., Any] | None:
        """Return the builtin that takes leaves and returns traced result leaves.

        None where this interpreter's objects are not laid out as it assumes.
        """
        if self.native is None:
            kernel = self.kernel()
            with self._lock:
                # Made once: another thread may be running the one that is there.
                if self.native is None:
                    self._make_entry(kernel)
        return self.native

    def _make_entry(self, kernel: Kernel) -> None:
        from archimedes.backends.llvm import calling

        # Callbacks may have effects: a kernel that has them is never run twice to find an error.
        if calling.supported() and not kernel.has_host:
            r = self.recording
            self.native = calling.make_entry(
                kernel.address,
                [calling.Argument(s.code, s.shape, s.weak, s.value) for s in r.leaves],
                [calling.Result(o.spec.code, o.spec.shape) for o in r.outs if o.spec.code >= 0],
                keep=kernel,
            )

    def _warm(self, instances: int) -> bool:
        """Count work about to be done and tell whether native code should do it."""
        if self.backend != "auto":
            return self.backend == "llvm"
        self._work += instances * self._operations
        return self._work > WARM_UP

    # ---- single calls ------------------------------------------------------------------

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Evaluate on leaves that match the recording and rebuild the result tree."""
        if not self._warm(1):
            return self._interpret(leaves)
        entry = self.entry()
        if entry is not None:
            values = entry(*map(canonical, leaves, self.recording.leaves))
            if values is not NotImplemented:
                return self.finish(values)
        return self._call_kernel(leaves)

    def finish(self, values: tuple[Any, ...]) -> Any:
        """Build the result tree from the traced leaves in order."""
        r = self.recording
        if len(values) == len(r.outs):
            return r.out_tree.unflatten(values)
        ready = iter(values)
        return r.rebuild(lambda out: next(ready))

    def _call_kernel(self, leaves: Sequence[Any]) -> Any:
        r = self.recording
        given = [_array(x, s) for x, s in zip(leaves, r.leaves) if s.code >= 0]
        outs = [np.empty(o.spec.shape, DTYPES[o.spec.code]) for o in r.outs if o.spec.code >= 0]
        self.kernel().call(given, outs)
        return self.finish(tuple(out[()] for out in outs))

    def _interpret(self, leaves: Sequence[Any]) -> Any:
        values: list[Any] = []
        for leaf, spec in zip(leaves, self.recording.leaves):
            if spec.code >= 0:
                values.extend(np.asarray(leaf, dtype=DTYPES[spec.code]).ravel())
        results = interpreter.run(self.recording.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.array(results[out.start : out.stop], dtype=DTYPES[out.spec.code])
            return block.reshape(out.spec.shape)[()]

        return self.recording.rebuild(take)

    # ---- batches -----------------------------------------------------------------------

    def batch(
        self, leaves: Sequence[Any], batched: Sequence[bool], count: int, threads: int | None = None
    ) -> Any:
        """Evaluate ``count`` instances; batched leaves have a leading axis of that length.

        Returns the result tree with a leading axis on every traced leaf. ``threads`` defaults to
        all cores where the batch is large enough.
        """
        if not self._warm(count):
            return self._interpret_batch(leaves, batched, count)
        r = self.recording
        given, flags = [], []
        for leaf, spec, many in zip(leaves, r.leaves, batched):
            if spec.code >= 0:
                shape = (count, *spec.shape) if many else spec.shape
                given.append(_array(leaf, LeafSpec(spec.code, shape)))
                flags.append(many)
        outs = [
            np.empty((count, *o.spec.shape), DTYPES[o.spec.code])
            for o in r.outs
            if o.spec.code >= 0
        ]
        if threads is None:
            large = count * self._operations >= THREADING
            threads = (os.cpu_count() or 1) if large else 1
        self.kernel().call_batch(given, flags, outs, count, threads)
        return self.finish(tuple(outs))

    def _interpret_batch(self, leaves: Sequence[Any], batched: Sequence[bool], count: int) -> Any:
        values: list[Any] = []
        for leaf, spec, many in zip(leaves, self.recording.leaves, batched):
            if spec.code < 0:
                continue
            array = np.asarray(leaf, dtype=DTYPES[spec.code])
            if many:
                values.extend(array.reshape(count, spec.size).T)
            else:
                values.extend(array.ravel())
        results = interpreter.run(self.recording.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.empty((out.spec.size, count), dtype=DTYPES[out.spec.code])
            for row, value in zip(block, results[out.start : out.stop]):
                row[...] = value
            return np.ascontiguousarray(block.T).reshape(count, *out.spec.shape)

        return self.recording.rebuild(take)


def _operations(graph: Graph) -> int:
    """Count the nodes of a graph and of the bodies in it: roughly what one run costs."""
    bodies = (body for region in graph.regions.values() for body in region.bodies)
    return len(graph) + sum(_operations(body) for body in bodies)


def _array(leaf: Any, spec: LeafSpec) -> np.ndarray:
    """Return a leaf as a contiguous array of the recording's dtype."""
    return np.ascontiguousarray(leaf, dtype=DTYPES[spec.code]).reshape(spec.shape)


def canonical(leaf: Any, spec: LeafSpec) -> Any:
    """Return a leaf in the one form the native entry takes."""
    if spec.code < 0:
        return spec.value
    if spec.shape:
        return _array(leaf, spec)
    if spec.weak:
        return int(leaf) if spec.code == I64 else float(leaf)
    return np.asarray(leaf, dtype=DTYPES[spec.code])[()]
