"""LLVM as a backend: scalar and lane kernels, threads, direct entries, a cache on disk.

Nothing of LLVM is imported before a program is built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.protocol import (
    EVERYTHING,
    Backend,
    Figures,
    Kernel,
    Program,
    estimate_work,
)
from archimedes.graph.text import statistics
from archimedes.system.cpus import cpu_count

if TYPE_CHECKING:
    from archimedes.backends.entry_forms import EntryRequest
    from archimedes.backends.llvm.runtime.kernel import Kernel as NativeKernel


#: Batches below this many operations run in one thread: starting others costs more.
THREADING = 2_000_000
#: Larger values that the instances of a batch share do not go on a thread's stack.
SHARED_BYTES = 65_536
#: Kernels of fewer operations keep the GIL: giving it away takes longer than they do.
BRIEF = 3_000
#: Operations that count as floating-point work.
_FLOPS = ("add", "sub", "mul", "div", "neg", "sqrt", "min", "max", "abs")


class NativeProgram(Kernel):
    """A program as machine code."""

    sources = ("llvm", "asm")

    def __init__(self, program: Program, unoptimized: bool = False) -> None:
        from archimedes.backends.llvm.runtime.kernel import build

        self.program = program
        self._work = estimate_work(program.graph)
        sizes = [[(int(np.prod(shape)), code) for code, shape in types] for types in program[1:3]]
        self.kernel: NativeKernel = build(
            program.graph, *sizes, name=program.name, unoptimized=unoptimized
        )

    def call(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute one instance."""
        self.kernel.call(inputs, outputs)

    def bind(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
    ) -> Callable[[], None]:
        """Return the kernel with the addresses of its arrays."""
        return self.kernel.bind(inputs, outputs)

    def call_batch(
        self,
        inputs: Sequence[np.ndarray],
        batched: Sequence[bool],
        outputs: Sequence[np.ndarray],
        count: int,
        threads: int | None = None,
    ) -> None:
        """Compute many instances, in lanes and threads."""
        if threads is None:
            threads = 1 if count <= self._alone(None) else cpu_count()
        self.kernel.call_batch(inputs, batched, outputs, count, threads)

    def _alone(self, threads: int | None) -> int:
        """Return how many instances one thread takes on before others help (0: none)."""
        if threads is None and cpu_count() > 1:
            return THREADING // self._work if self._work else EVERYTHING
        return EVERYTHING if threads in (None, 1) else 0

    def direct_entry(self, request: EntryRequest) -> Callable[..., Any] | None:
        """Return a builtin that CPython calls directly."""
        from archimedes.backends.llvm.python_api.c_api import is_supported

        # Callbacks may have effects: a kernel that has them is never run twice to find an error.
        if not is_supported() or self.kernel.has_host:
            return None
        from archimedes.backends.llvm.python_api.entry import Batch, make_entry

        batch = None
        if not request.batch:
            address = self.kernel.address
        else:
            limit = self._alone(request.threads)
            flags = [argument.batched for argument in request.arguments if argument.traced]
            if not limit:
                return None
            address, shared, sizes = self.kernel.batch_addresses(flags)
            if sum(sizes) > SHARED_BYTES:
                return None
            batch = Batch(limit, shared, sizes)
        brief = batch is None and estimate_work(self.program.graph, EVERYTHING) < BRIEF
        return make_entry(request, address, self.kernel, batch, brief)

    def sorted_runs(self) -> Any:
        """Return the kernel over sorted items, each with the row it belongs to."""
        from archimedes.backends.llvm.runtime.native_loops import Runs

        return Runs(self.kernel)

    def repeating(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], carry: int
    ) -> Callable[[np.ndarray], tuple[int, int]]:
        """Return the kernel called again and again without going back to Python."""
        from archimedes.backends.llvm.runtime.native_loops import repeating

        return repeating(self.kernel, inputs, outputs, carry)

    def optimize(self) -> None:
        """Compile for the optimized tier."""
        self.kernel.optimize()

    def source(self, kind: str) -> str:
        """Return the scalar kernel as LLVM IR or assembly."""
        return self.kernel.llvm_ir if kind == "llvm" else self.kernel.asm

    def figures(self) -> Figures:
        """Return what the code made so far costs."""
        stats = self.kernel.stats
        expanded = statistics(self.kernel.graph).by_op
        return Figures(
            operations=stats.nodes,
            flops=sum(expanded.get(op, 0) for op in _FLOPS),
            code_bytes=stats.code_bytes,
            compile_seconds=stats.compile_seconds,
            lanes=stats.lanes,
            from_disk=stats.cached > 0,
        )


class LLVM(Backend):
    """Native code for this machine's CPUs."""

    name = "llvm"
    reads_tables_in_place = True

    def build(self, program: Program) -> Kernel:
        """Compile, or read from the cache."""
        return NativeProgram(program)

    def build_unoptimized(self, program: Program) -> Kernel:
        """Compile for the unoptimized tier, or read from the cache what was compiled before."""
        return NativeProgram(program, unoptimized=True)

    def thread_dispatch(self, base: type, needed: bool) -> Any:
        """Return what makes callables that tell threads apart."""
        from archimedes.backends.llvm.python_api.c_api import is_supported

        if not is_supported() or not (needed or "llvmlite" in sys.modules):
            return None
        from archimedes.backends.llvm.python_api.thread_dispatch import thread_dispatch

        return thread_dispatch(base)

    def block_factors(self) -> Any:
        """Return the native factorisation."""
        from archimedes.backends.llvm.runtime import block_lu

        return block_lu

    def array_functions(
        self, functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
    ) -> Mapping[str, Callable[..., int]] | None:
        """Return the functions as native code."""
        from archimedes.backends.llvm.runtime.array_functions import array_functions

        return array_functions(functions, sources)

    def cache_folder(self) -> Path | None:
        """Return the folder of object code."""
        from archimedes.backends.code_cache import cache_folder

        return cache_folder()


BACKEND = LLVM()
