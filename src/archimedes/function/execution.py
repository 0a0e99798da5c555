"""Running a recording on numbers: the interpreter at first, native code when it is worth it.

Both give the same bits, so which one runs is a matter of time only. Compiling costs tens of
milliseconds; a recording is interpreted until the work done exceeds ``WARM_UP`` operations.
``ARCHIMEDES_BACKEND=llvm`` compiles at the first call, ``=interpreter`` never does.

In "fast" numerics the recording's graph is first rewritten (``graph/fast.py``); what runs is the
result, in every backend the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.backends import interpreter
from archimedes.backends.cpus import cpu_count
from archimedes.function.recording import LeafSpec, OutLeaf, Recording
from archimedes.graph.dtypes import DTYPES, I64
from archimedes.graph.program import Graph
from archimedes.graph.regions import Solve, While

if TYPE_CHECKING:
    from archimedes.backends.llvm import Kernel
    from archimedes.function.identity.states import State

__all__ = ["BACKENDS", "NUMERICS", "Executor", "canonical", "default_backend"]

#: Operations that are interpreted before a recording is compiled.
WARM_UP = 20_000
#: Batches below this many operations run in one thread: starting others costs more.
THREADING = 2_000_000
#: Larger values that the instances of a batch share do not go on a thread's stack.
SHARED_BYTES = 65_536
#: Kernels of fewer operations keep the GIL: giving it away takes longer than they do.
BRIEF = 1_000
#: Native calls made through ctypes, before an entry of their own is compiled.
FIRST_CALLS = 3
#: More instances than any batch has.
EVERYTHING = 2**62
#: How often a bounded loop is assumed to run.
ROUNDS = 100
BACKENDS = ("auto", "llvm", "interpreter")
NUMERICS = ("strict", "fast")


def default_backend() -> str:
    """Return the backend named by the environment, or "auto"."""
    name = os.environ.get("ARCHIMEDES_BACKEND", "auto")
    if name not in BACKENDS:
        raise ValueError(f"ARCHIMEDES_BACKEND={name!r} is not one of {BACKENDS}")
    return name


class Executor:
    """Runs one recording: on single arguments, or on a batch along leading axes."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_entries",
        "_kernel",
        "_lock",
        "_operations",
        "_work",
        "backend",
        "finished",
        "graph",
        "native",
        "paths",
        "recording",
        "shortcuts",
        "state",
    )

    def __init__(
        self,
        recording: Recording,
        backend: str,
        numerics: str = "strict",
        state: State | None = None,
    ) -> None:
        self.recording = recording
        #: What the function read when it was recorded; native entries check that it still holds.
        self.state = state
        #: What runs.
        self.graph = _in_mode(recording.graph, numerics)
        self.backend = backend
        #: The call paths that were generated for it already.
        self.shortcuts: set[Any] = set()
        self.paths: list[Any] = []
        self._entries: dict[Any, Any] = {}
        self._operations = _operations(self.graph, ROUNDS)
        self._work = self._calls = 0
        self._lock = threading.Lock()
        self._kernel: Kernel | None = None
        #: The builtin that ``entry`` makes for single calls; None until then.
        self.native: Any = None
        #: Whether such builtins return the result itself, not a tuple of its traced leaves.
        self.finished = False

    # ---- native code -------------------------------------------------------------------

    @property
    def warm(self) -> bool:
        """Whether native code runs already."""
        return self._kernel is not None

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
            self.graph,
            [(s.size, s.code) for s in r.leaves if s.code >= 0],
            [(o.spec.size, o.spec.code) for o in r.outs if o.spec.code >= 0],
        )

    def entry(
        self, batched: tuple[bool, ...] | None = None, limit: int = 0, into: bool = False
    ) -> Callable[..., Any] | None:
        """Return the builtin that takes leaves and returns the result (see ``finished``).

        For batches, ``batched`` marks the leaves with an axis of instances, and ``limit`` is how
        many of those one thread takes on. With ``into`` it takes arrays for the results too.
        None where this interpreter's objects are not laid out as it assumes.
        """
        key = (batched, limit, into)
        if key not in self._entries:
            kernel = self.kernel()
            with self._lock:
                # Made once: another thread may be running the one that is there.
                if key not in self._entries:
                    self._entries[key] = self._make_entry(kernel, *key)
            if key == (None, 0, False):
                self.native = self._entries[key]
        return self._entries[key]

    def _make_entry(
        self, kernel: Kernel, batched: tuple[bool, ...] | None, limit: int, into: bool
    ) -> Callable[..., Any] | None:
        from archimedes.backends.llvm.python_entry import entry as calling
        from archimedes.function.result_forms import result_form

        # Callbacks may have effects: a kernel that has them is never run twice to find an error.
        if not calling.supported() or kernel.has_host:
            return None
        r = self.recording
        marks = batched or (False,) * len(r.leaves)
        arguments = [
            calling.Argument(s.code, s.shape, s.weak, s.value, mark)
            for s, mark in zip(r.leaves, marks)
        ]
        results = [calling.Result(o.spec.code, o.spec.shape) for o in r.outs if o.spec.code >= 0]
        address, batch = kernel.address, None
        if batched is not None:
            flags = [mark for mark, s in zip(batched, r.leaves) if s.code >= 0]
            address, shared, sizes = kernel.batch_addresses(flags)
            if sum(sizes) > SHARED_BYTES:
                return None
            batch = calling.Batch(limit, shared, sizes)
        form = result_form(r)
        self.finished = form is not None
        if form is None:
            form = calling.Tuple(tuple(map(calling.Leaf, range(len(results)))))
        brief = batch is None and _operations(self.graph, EVERYTHING) < BRIEF
        guard = self.state.guard() if self.state is not None and self.state.places else None
        return calling.make_entry(
            address, arguments, results, form, kernel, batch, into, brief, guard
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
        entry = self.entry() if self.busy() else None
        if entry is not None:
            values = entry(*map(canonical, leaves, self.recording.leaves))
            if values is not NotImplemented:
                return self.from_entry(values)
        return self._call_kernel(leaves)

    def busy(self) -> bool:
        """Count a native call and tell whether there were enough to make an entry for them."""
        self._calls += 1
        return self._calls > FIRST_CALLS

    def from_entry(self, values: Any) -> Any:
        """Return the result of what an entry returned."""
        return values if self.finished else self.finish(values)

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

    def into(self, leaves: Sequence[Any], out: Sequence[np.ndarray]) -> None:
        """Evaluate into the arrays of the traced result leaves."""
        entry = self.entry(into=True) if self._warm(1) and self.busy() else None
        if entry is None or entry(*map(canonical, leaves, self.recording.leaves), *out) is not None:
            # Interpreted, or an array that overlaps another: compute apart, then copy.
            results = zip(self.recording.outs, tree.leaves(self(leaves)))
            copied([value for o, value in results if o.spec.code >= 0], out)

    def _interpret(self, leaves: Sequence[Any]) -> Any:
        values: list[Any] = []
        for leaf, spec in zip(leaves, self.recording.leaves):
            if spec.code >= 0:
                values.extend(np.asarray(leaf, dtype=DTYPES[spec.code]).ravel())
        results = interpreter.run(self.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.array(results[out.start : out.stop], dtype=DTYPES[out.spec.code])
            return block.reshape(out.spec.shape)[()]

        return self.recording.rebuild(take)

    # ---- batches -----------------------------------------------------------------------

    def one_thread(self, threads: int | None) -> int:
        """Return how many instances one thread takes on before others help (0: none)."""
        if threads is None:
            return THREADING // self._operations if self._operations else EVERYTHING
        return EVERYTHING if threads == 1 else 0

    def batch(
        self,
        leaves: Sequence[Any],
        batched: Sequence[bool],
        count: int,
        threads: int | None = None,
        out: Sequence[np.ndarray] | None = None,
    ) -> tuple[Any, ...]:
        """Evaluate ``count`` instances; batched leaves have a leading axis of that length.

        Returns the traced result leaves with a leading axis, in ``out`` where given. ``threads``
        defaults to all cores where the batch is large enough.
        """
        if not self._warm(count):
            values = self._interpret_batch(leaves, batched, count)
            return values if out is None else copied(values, out)
        r = self.recording
        given, flags = [], []
        for leaf, spec, many in zip(leaves, r.leaves, batched):
            if spec.code >= 0:
                shape = (count, *spec.shape) if many else spec.shape
                given.append(_array(leaf, LeafSpec(spec.code, shape)))
                flags.append(many)
        places: Sequence[np.ndarray]
        if out is None or overlapping(out, given):
            specs = [o.spec for o in r.outs if o.spec.code >= 0]
            places = [np.empty((count, *s.shape), DTYPES[s.code]) for s in specs]
        else:
            places = out
        if threads is None:
            threads = 1 if count <= self.one_thread(None) else cpu_count()
        self.kernel().call_batch(given, flags, places, count, threads)
        return tuple(places) if out is None or places is out else copied(places, out)

    def _interpret_batch(
        self, leaves: Sequence[Any], batched: Sequence[bool], count: int
    ) -> tuple[np.ndarray, ...]:
        values: list[Any] = []
        for leaf, spec, many in zip(leaves, self.recording.leaves, batched):
            if spec.code < 0:
                continue
            array = np.asarray(leaf, dtype=DTYPES[spec.code])
            if many:
                values.extend(array.reshape(count, spec.size).T)
            else:
                values.extend(array.ravel())
        results = interpreter.run(self.graph, values)

        def take(out: OutLeaf) -> Any:
            block = np.empty((out.spec.size, count), dtype=DTYPES[out.spec.code])
            for row, value in zip(block, results[out.start : out.stop]):
                row[...] = value
            return np.ascontiguousarray(block.T).reshape(count, *out.spec.shape)

        return tuple(take(out) for out in self.recording.outs if out.spec.code >= 0)


def _in_mode(graph: Graph, numerics: str) -> Graph:
    if numerics == "strict":
        return graph
    from archimedes.graph.fast import fast

    return fast(graph)


def overlapping(outs: Sequence[np.ndarray], given: Sequence[np.ndarray]) -> bool:
    """Tell whether a result array shares memory with an argument."""
    return any(np.may_share_memory(a, b) for a in outs for b in given)


def copied(values: Sequence[Any], outs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Copy results into the caller's arrays."""
    for value, place in zip(values, outs):
        place[...] = value
    return tuple(outs)


def _operations(graph: Graph, rounds: int) -> int:
    """Count the nodes of a graph and of the bodies in it: roughly what one run costs.

    A loop with a bound is taken to run ``rounds`` times, or as often as it may if that is less.
    """
    total = len(graph)
    for region in graph.regions.values():
        if isinstance(region, Solve):
            total += region.size**2 * (region.size + region.columns)
        times = getattr(region, "length", 1)
        if isinstance(region, While):
            times = min(region.limit, rounds)
        total += times * sum(_operations(body, rounds) for body in region.bodies)
    return total


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
