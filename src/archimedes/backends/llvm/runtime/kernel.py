"""Kernels: a graph as machine code, called on NumPy arrays."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import numpy as np

from archimedes.backends import code_cache as cache
from archimedes.backends.interrupts import raise_kept
from archimedes.backends.leaves import leaf_values
from archimedes.backends.llvm.calling_convention import (
    BATCH,
    LOOP_THREADS,
    NO_MEMORY,
    PART,
    SAFEPOINT,
    SCALAR,
    Leaf,
    fixed_leaves,
)
from archimedes.backends.llvm.python_api.c_api import is_supported
from archimedes.backends.llvm.runtime import loop_threads
from archimedes.backends.llvm.runtime.calls_to_python import Hosting, safepoint_address
from archimedes.backends.llvm.runtime.cost_model import lanes_for
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target
from archimedes.backends.llvm.runtime.pointers import (
    check_leaves,
    check_pointers,
    data_pointer,
    pointer_table,
)
from archimedes.backends.llvm.runtime.thread_pool import over_chunks
from archimedes.backends.lowering.analysis import cost, fixed_nodes, has_host
from archimedes.backends.protocol import (
    EVERYTHING,
    EntryRequest,
    Figures,
    Flags,
    Kernel,
    Leaves,
    Threads,
    estimate_work,
)
from archimedes.graph.digests import table_digest
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.passes import with_outputs
from archimedes.graph.program import Graph
from archimedes.graph.table_data import data_form, data_tables
from archimedes.graph.text import statistics
from archimedes.slow_notice import notify_if_slow
from archimedes.system.cpus import cpu_count
from archimedes.system.floating_point import in_default_environment

if TYPE_CHECKING:
    from archimedes.backends.llvm.lowering.entries import Program


#: Batches below this many operations run in one thread: starting others costs more.
THREADING = 2_000_000
#: Larger values that the instances of a batch share do not go on a thread's stack.
SHARED_BYTES = 65_536
#: Kernels of fewer operations keep the GIL: giving it away takes longer than they do.
BRIEF = 3_000
#: Operations that count as floating-point work.
_FLOPS = ("add", "sub", "mul", "div", "neg", "sqrt", "min", "max", "abs")


def _why_slow(graph: Graph) -> str:
    """Say why it takes long to compile a program, and what to do."""
    return (
        f"it has {cost(graph, {}):,} operations, and LLVM compiles some 20,000 per second. "
        "Operations on whole arrays, arc.vmap and arc.scan make it shorter; compiled code is kept "
        "on disk for the next time; backend='interpreter' starts at once"
    )


#: Code of so many programs with longer tables is kept in memory, for the same with other data.
RECENT = 64
_recent_code: OrderedDict[str, bytes] = OrderedDict()
_recent_lock = threading.Lock()


def _remember_code(key: str, code: bytes) -> None:
    """Keep code in memory under a key, and drop the oldest."""
    with _recent_lock:
        _recent_code[key] = code
        if len(_recent_code) > RECENT:
            _recent_code.popitem(last=False)


#: Unoptimized functions are cut from so many operations on: all their values lie on the stack.
UNCUT = 16_000
#: The sources of this backend.
_OWN = Path(__file__).parents[1]
# Tables of pointers are passed as bytes, the quickest way through ctypes.
_SCALAR_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_BATCH_TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64
)


def build(
    graph: Graph,
    in_leaves: Sequence[tuple[int, int]],
    out_leaves: Sequence[tuple[int, int]],
    *,
    lanes: int | None = None,
    target_features: str | None = None,
    part: int = PART,
    name: str = "",
    unoptimized: bool = False,
) -> NativeKernel:
    """Compile a graph for this machine.

    ``in_leaves`` and ``out_leaves`` list ``(count, dtype code)`` of the arrays that hold the
    graph's inputs and outputs in order. ``lanes`` sets the number of instances a batch computes
    at once (default: what ``cost_model.py`` says); ``target_features`` turns CPU features on or
    off; ``part`` is the number of operations a native function may have; ``name`` is for messages.
    An ``unoptimized`` kernel is compiled in an eighth of the time, and again by
    ``NativeKernel.optimize``.

    Example::

        kernel = build(graph, [(13, F64), (6, F64)], [(13, F64)])
        kernel.call([x, u], [xdot])
    """
    if lanes is not None and (lanes < 1 or lanes & (lanes - 1)):
        raise ValueError(
            f"lanes={lanes}: it must be a power of two, or None for the width of the CPU"
        )
    inputs = [Leaf(*leaf) for leaf in in_leaves]
    outputs = [Leaf(*leaf) for leaf in out_leaves]
    check_leaves("in_leaves", inputs, graph.input_dtypes)
    check_leaves("out_leaves", outputs, graph.output_dtypes)
    target = host_target(target_features)
    return NativeKernel(graph, inputs, outputs, target, lanes, part, name, unoptimized)


class NativeKernel(Kernel):
    """A graph as native code, made by :func:`build`.

    ``call`` runs one instance, ``call_batch`` many. Both release the GIL, keep no state, and may
    run in any number of threads at once. Arrays must be C-contiguous and of the leaves' dtypes
    (float64, float32, int64, bool); outputs may not overlap inputs. ``address`` is the native
    function ``int (void **in, void **out)`` for callers that have the pointers already; keep the
    kernel while using it. ``cached`` counts the entries whose code came from the disk.
    """

    sources = ("llvm", "asm")

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Leaf],
        outputs: Sequence[Leaf],
        target: Target,
        lanes: int | None,
        part: int,
        name: str = "",
        unoptimized: bool = False,
    ) -> None:
        self.recorded, self.name = graph, name
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.target, self.part = target, part
        self._seconds = 0.0
        self.cached = 0
        self._codes: list[NativeCode] = []
        self._hosting: Hosting | None = None
        self._batches: dict[tuple[bool, ...], _Batch] = {}
        self._compiling = threading.Lock()
        #: Longer tables, which lie beside the code, and their names in it.
        self._tables = data_tables(graph)
        self._names: dict[str, str] = {}
        for table in self._tables:
            self._names.setdefault(table_digest(table), f"arc_data{len(self._names)}")
        #: Whether it calls back into Python.
        self.has_host = has_host(graph)
        # Callbacks take one instance at a time.
        self._wanted = 1 if self.has_host else lanes
        self._values = leaf_values(graph.input_dtypes, [leaf.size for leaf in inputs])
        self._lane_counts: dict[tuple[bool, ...], int] = {}
        #: Whether the scalar entry is of the unoptimized tier.
        self.unoptimized = unoptimized and not self.has_host
        self._single: NativeCode | None = None
        self._in_dtypes = [DTYPES[leaf.dtype] for leaf in inputs]
        self._out_dtypes = [DTYPES[leaf.dtype] for leaf in outputs]
        if self.unoptimized:
            self._scalar()

    @property
    def address(self) -> int:
        """The function for one instance, made when it is first wanted: batches need none."""
        return (self._single or self._scalar()).address

    def _scalar(self) -> NativeCode:
        if self._single is None:
            with self._compiling:
                if self._single is None:
                    self._use(self._compile(SCALAR, ()))
        assert self._single is not None
        return self._single

    def _use(self, code: NativeCode) -> None:
        self._call = _SCALAR_TYPE(code.address)
        self._single = code

    def optimize(self) -> None:
        """Compile for the optimized tier; calls under way may still run the unoptimized code."""
        with self._compiling:
            if self.unoptimized:
                self.unoptimized = False
                self._use(self._compile(SCALAR, ()))

    @cached_property
    def graph(self) -> Graph:
        """The graph in exact operations; not needed where all code comes from the disk."""
        from archimedes.graph.expand import expand

        return expand(self.recorded)

    def _one_instance(self) -> Graph:
        """Return the graph for a call of its own, whose lanes are free for equal functions."""
        from archimedes.backends.llvm.slp_vectorize import slp_vectorize
        from archimedes.graph.expand import expand

        vectorized = slp_vectorize(self.recorded, self.target.lanes)
        return self.graph if vectorized is self.recorded else expand(vectorized)

    # ---- making code -------------------------------------------------------------------

    def program(self, entry: str, batched: tuple[bool, ...], target: Target) -> Program:
        """Return the module of an entry, SCALAR or BATCH, as text."""
        # Takes a while, and code from the disk does without.
        from archimedes.backends.llvm.lowering.entries import Source, batch_program, scalar_program

        # Unoptimized code is not cut: moving values between pieces takes longest of all. Nor is it
        # vectorized: vectors take LLVM several times as long.
        part = self.part if target.effort else max(self.part, UNCUT)
        graph = self._one_instance() if entry == SCALAR and target.effort else self.graph
        source = Source(graph, self.inputs, self.outputs, target, part, self._names)
        if entry == SCALAR:
            return scalar_program(source)
        return batch_program(source, batched, self.lanes_of(batched), self._fixed(batched))

    @property
    def lanes(self) -> int:
        """Instances that a batch computes at once, where all inputs are batched."""
        return self.lanes_of((True,) * len(self.inputs))

    def lanes_of(self, batched: tuple[bool, ...]) -> int:
        """Return how many instances a batch with these inputs batched computes at once."""
        if self._wanted:
            return self._wanted
        if batched not in self._lane_counts:
            varies = self._varies(batched)
            self._lane_counts[batched] = lanes_for(self.recorded, self.target, varies)
        return self._lane_counts[batched]

    def _varies(self, batched: Sequence[bool]) -> list[bool]:
        """Return which inputs of the graph differ from instance to instance."""
        return [flag for count, flag in zip(self._values, batched) for _ in range(count)]

    def _fixed(self, batched: tuple[bool, ...]) -> list[int]:
        """Return the nodes that a batch computes once for all instances."""
        varies = self._varies(batched)
        if all(batched) and not fixed_nodes(self.recorded, varies):
            # Nor is there anything in the operations these are made of.
            return []
        return fixed_nodes(self.graph, varies)

    def _key(self, entry: str, batched: tuple[bool, ...], target: Target) -> str:
        """Return the name of code on disk."""
        return cache.cache_key(
            self.recorded.digest(lasting=True, data=False),
            data_form(self._tables),
            self.inputs,
            self.outputs,
            entry,
            batched,
            self.lanes_of(batched) if batched else 1,
            self.part,
            target,
            f"{llvmlite.__version__} {cache.sources_digest(_OWN)}",
        )

    def _look_up(self, entry: str, batched: tuple[bool, ...]) -> tuple[Target, str, bytes | None]:
        """Return the target and the key of an entry, and its code if that exists.

        Optimized code that exists is used where unoptimized code would do.
        """
        targets = [self.target]
        if self.unoptimized and entry == SCALAR:
            targets.append(replace(self.target, effort=0))
        for target in targets:
            key = self._key(entry, batched, target)
            # Code of the same program with other data may be in memory.
            code = (_recent_code.get(key) if self._tables else None) or cache.read(key)
            if code is not None:
                break
        if entry == SCALAR:
            self.unoptimized = target is not self.target
        return target, key, code

    @in_default_environment
    def _compile(self, entry: str, batched: tuple[bool, ...]) -> NativeCode:
        begin = time.perf_counter()
        hosted = self.has_host
        target, key, code = (self.target, "", None) if hosted else self._look_up(entry, batched)
        imports = {self._names[table_digest(t)]: data_pointer(t) for t in self._tables}
        imports[LOOP_THREADS] = loop_threads.ADDRESS
        if code is not None:
            self.cached += 1
        else:
            name = self.name or "a program"
            with notify_if_slow(f"compiling {name}", lambda: _why_slow(self.recorded)):
                program = self.program(entry, batched, target)
                code = target.compile(program.text, program.fused)
            if hosted:
                # Both entries lower the same regions in the same order.
                self._hosting = self._hosting or Hosting(program.hosts)
                imports["arc_host"] = self._hosting.address
            else:
                cache.write(key, code)
        if self._tables and not hosted:
            _remember_code(key, code)
        if SAFEPOINT.encode() in code:
            imports[SAFEPOINT] = safepoint_address()
        native = NativeCode(code, entry, imports)
        self._codes.append(native)
        self._seconds += time.perf_counter() - begin
        return native

    def figures(self) -> Figures:
        """Return what the code made so far costs, which is at least that of one instance."""
        if not self._codes:
            self._scalar()
        expanded = statistics(self.graph).by_op
        return Figures(
            operations=cost(self.graph, {}),
            flops=sum(expanded.get(op, 0) for op in _FLOPS),
            code_bytes=sum(code.size for code in self._codes),
            compile_seconds=self._seconds,
            lanes=self.lanes,
            from_disk=self.cached > 0,
        )

    def source(self, kind: str) -> str:
        """Return the scalar kernel as LLVM IR or assembly."""
        text = self.program(SCALAR, (), self.target).text
        return text if kind == "llvm" else self.target.assembly(text)

    def batch_source(self, batched: Sequence[bool] | None = None, asm: bool = False) -> str:
        """Return the batch kernel as LLVM IR or assembly (default: all inputs batched)."""
        flags = [True] * len(self.inputs) if batched is None else batched
        program = self.program(BATCH, tuple(map(bool, flags)), self.target)
        return self.target.assembly(program.text, program.fused) if asm else program.text

    # ---- calling -----------------------------------------------------------------------

    def check_status(self, status: int) -> None:
        """Raise where a call of native code did not return 0."""
        if status == NO_MEMORY:
            raise MemoryError("no memory for the scratch space of a kernel")
        if status:
            raise_kept()

    def call(self, inputs: Leaves, outputs: Leaves) -> None:
        """Compute one instance."""
        self._run(*self._pointers(inputs, outputs))

    def _pointers(self, inputs: Leaves, outputs: Leaves) -> tuple[list[int], list[int]]:
        """Return the addresses of the arrays of a call, which must be those of the leaves."""
        sizes_in, sizes_out = ([x.size for x in leaves] for leaves in (self.inputs, self.outputs))
        pointers = check_pointers("input", inputs, self._in_dtypes, sizes_in)
        return pointers, check_pointers("output", outputs, self._out_dtypes, sizes_out)

    def bind(self, inputs: Leaves, outputs: Leaves) -> Callable[[], None]:
        """Return ``f()``, which computes one instance with these arrays; it holds them."""
        held = (tuple(inputs), tuple(outputs))
        reads, writes = map(pointer_table, self._pointers(inputs, outputs))
        self._scalar()

        def run(_: object = held) -> None:
            status = self._call(reads, writes)
            if status:
                self.check_status(status)

        return run

    def _run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        if self._single is None:
            self._scalar()
        self.check_status(self._call(pointer_table(inputs), pointer_table(outputs)))

    def _batch(self, batched: tuple[bool, ...]) -> _Batch:
        if batched not in self._batches:
            if len(batched) != len(self.inputs):
                raise ValueError(
                    f"batched has {len(batched)} flags for {len(self.inputs)} input arrays"
                )
            shared, fixed = None, self._fixed(batched)
            if fixed:
                once, leaves = with_outputs(self.graph, fixed), fixed_leaves(self.graph, fixed)
                shared = NativeKernel(once, self.inputs, leaves, self.target, 1, self.part)
            at, lanes = self._compile(BATCH, batched).address, self.lanes_of(batched)
            self._batches[batched] = _Batch(at, _BATCH_TYPE(at), shared, lanes)
        return self._batches[batched]

    def batch_addresses(self, batched: Sequence[bool]) -> tuple[int, int, tuple[int, ...]]:
        """Return the batch function, the function for what instances share, and its results.

        For callers that have the pointers already: ``int (void **in, void **out, int64 begin,
        int64 end)``, and ``int (void **in, void **values)`` (0 where nothing is shared), whose
        values are arrays of so many bytes and follow the inputs in the table of the former.
        """
        batch = self._batch(tuple(map(bool, batched)))
        if batch.shared is None:
            return batch.address, 0, ()
        sizes = [leaf.size * DTYPES[leaf.dtype].itemsize for leaf in batch.shared.outputs]
        return batch.address, batch.shared.address, tuple(sizes)

    def call_batch(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
    ) -> None:
        """Compute ``count`` instances, in lanes and threads."""
        flags = tuple(map(bool, batched))
        batch = self._batch(flags)
        sizes = [leaf.size * (count if flag else 1) for leaf, flag in zip(self.inputs, flags)]
        pointers = check_pointers("input", inputs, self._in_dtypes, sizes)
        sizes = [leaf.size * count for leaf in self.outputs]
        to = pointer_table(check_pointers("output", outputs, self._out_dtypes, sizes))
        if count == 0:
            return
        values: list[np.ndarray] = []
        if batch.shared is not None:
            values = [np.empty(leaf.size, DTYPES[leaf.dtype]) for leaf in batch.shared.outputs]
            batch.shared._run(pointers, [data_pointer(v) for v in values])
        arrays = pointer_table([*pointers, *(data_pointer(v) for v in values)])
        if threads is None:
            threads = 1 if count <= self._alone(None) else cpu_count()

        def run(begin: int, end: int) -> None:
            self.check_status(batch.function(arrays, to, begin, end))

        over_chunks(run, count, threads, batch.lanes)

    def _alone(self, threads: int | None) -> int:
        """Return how many instances one thread takes on before others help (0: none)."""
        if threads is None and cpu_count() > 1:
            return THREADING // self._work if self._work else EVERYTHING
        return EVERYTHING if threads in (None, 1) else 0

    @cached_property
    def _work(self) -> int:
        """About how many operations an instance takes."""
        return estimate_work(self.recorded)

    def direct_entry(self, request: EntryRequest) -> Callable[..., Any] | None:
        """Return a builtin that CPython calls directly."""
        # Callbacks may have effects: a kernel that has them is never run twice to find an error.
        if not is_supported() or self.has_host:
            return None
        from archimedes.backends.llvm.python_api.entry import Batch, make_entry

        if not request.batch:
            brief = estimate_work(self.recorded, EVERYTHING) < BRIEF
            return make_entry(request, self.address, self, None, brief)
        limit = self._alone(request.threads)
        if not limit:
            return None
        flags = [argument.batched for argument in request.arguments if argument.traced]
        address, shared, sizes = self.batch_addresses(flags)
        if sum(sizes) > SHARED_BYTES:
            return None
        return make_entry(request, address, self, Batch(limit, shared, sizes))

    def sorted_runs(self) -> Any:
        """Return the kernel over sorted items, each with the row it belongs to."""
        from archimedes.backends.llvm.runtime.repeated_kernels import Runs

        return Runs(self)

    def repeating(
        self, inputs: Leaves, outputs: Leaves, carry: int
    ) -> Callable[[np.ndarray], tuple[int, int]]:
        """Return the kernel called again and again without going back to Python."""
        from archimedes.backends.llvm.runtime.repeated_kernels import repeating

        return repeating(self, inputs, outputs, carry)


class _Batch(NamedTuple):
    """The native batch function, the kernel of what instances share, and instances at once."""

    address: int
    function: ctypes._FuncPointer
    shared: NativeKernel | None
    lanes: int
