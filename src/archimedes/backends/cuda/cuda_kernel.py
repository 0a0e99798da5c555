"""A program on the GPU: compiled for the arrays it meets, kept on disk, started on the stream."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.backends.cuda.compiled_kernels import CompiledKernels
from archimedes.backends.cuda.device import cupy
from archimedes.backends.cuda.direct_calls import batch_entry
from archimedes.backends.cuda.kernel_figures import measured_batch, notes_of
from archimedes.backends.cuda.kernel_source import LONG, file_of, layout
from archimedes.backends.cuda.parted_kernels import program_text
from archimedes.backends.cuda.repeated_kernel import CudaRepeated
from archimedes.backends.cuda.repeated_source import RepeatedProgram
from archimedes.backends.cuda.written_out import with_calls_written_out
from archimedes.backends.protocol import Figures, Kernel, Program
from archimedes.backends.work import EVERYTHING, operations

if TYPE_CHECKING:
    from archimedes.backends.entry_forms import EntryRequest

__all__ = ["CHUNK_BYTES", "CudaProgram"]

#: NumPy's arrays go to the device in pieces of this many bytes, inputs and results together.
CHUNK_BYTES = 256 * 2**20


class CudaProgram(Kernel):
    """A program as kernels, one per choice of batched inputs and per device."""

    sources = ("cuda",)

    def __init__(self, program: Program) -> None:
        self.program = program._replace(graph=with_calls_written_out(program.graph, LONG))
        self._has_results = any(math.prod(shape) for _, shape in program.outputs)
        self._made: dict[tuple[int, tuple[bool, ...]], CompiledKernels] = {}
        self._lock = threading.Lock()

    def compiled(self, batched: tuple[bool, ...], device: int) -> CompiledKernels:
        """Return the kernel for certain batched inputs on the current device."""
        key = (device, batched)
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    found = self._made[key] = CompiledKernels(self.program, batched, device)
        return found

    def call(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute one instance: a batch of one."""
        self.call_batch(inputs, [True] * len(inputs), outputs, 1)

    def call_batch(
        self,
        inputs: Sequence[Any],
        batched: Sequence[bool],
        outputs: Sequence[Any],
        count: int,
        threads: int | None = None,
    ) -> None:
        """Start ``count`` instances on the current stream; ``threads`` of the CPU are not used."""
        if count and self._has_results:
            device = int(cupy().cuda.runtime.getDevice())
            self.compiled(tuple(map(bool, batched)), device).launch(inputs, outputs, count)

    def direct_entry(self, request: EntryRequest) -> Callable[..., Any] | None:
        """Return a short way to a launch, for batches of CuPy's arrays."""
        return batch_entry(self, request) if self._has_results else None

    def call_batch_from_host(
        self,
        inputs: Sequence[np.ndarray],
        batched: Sequence[bool],
        outputs: Sequence[np.ndarray],
        count: int,
        threads: int | None = None,
    ) -> bool:
        """Compute a batch of NumPy's in pieces, on two streams in turn: any number fits."""
        module = cupy()
        moved = [x for x, many in zip(inputs, batched) if many]
        row = sum(x.nbytes for x in (*moved, *outputs)) // max(count, 1)
        step = max(1, CHUNK_BYTES // max(row, 1))
        shared = [None if many else module.asarray(x) for x, many in zip(inputs, batched)]
        module.cuda.get_current_stream().synchronize()
        streams = [module.cuda.Stream(non_blocking=True) for _ in range(2)]
        for number, begin in enumerate(range(0, count, step)):
            piece = slice(begin, min(begin + step, count))
            with streams[number % 2] as stream:
                there = [
                    module.asarray(x[piece]) if s is None else s for x, s in zip(inputs, shared)
                ]
                results = [module.empty(out[piece].shape, out.dtype) for out in outputs]
                self.call_batch(there, batched, results, piece.stop - begin)
                for out, result in zip(outputs, results):
                    if result.size:
                        result.get(stream=stream, out=out[piece], blocking=False)
        for stream in streams:
            stream.synchronize()
        return True

    def repeating_batch(
        self, at: Kernel, carry: int, batched: Sequence[bool], key: int
    ) -> CudaRepeated:
        """Return a kernel whose threads repeat the program for one instance after the other."""
        assert isinstance(at, CudaProgram)
        whole = RepeatedProgram(self.program, at.program, carry, tuple(map(bool, batched)), key)
        return CudaRepeated(whole)

    def source(self, kind: str) -> str:
        """Return the CUDA C of a batch whose inputs all have a row per instance."""
        plan = layout(self.program, [True] * len(self.program.inputs))
        return file_of([program_text(self.program, plan)])

    def batch_notes(self, inputs: Sequence[Any]) -> tuple[str, ...]:
        """Say how fast a batch is in which each instance has its own row of all inputs."""
        if not self._has_results:
            return ()
        flags = [True] * len(inputs)

        def start(given: Sequence[Any], outs: Sequence[Any], count: int) -> None:
            self.call_batch(given, flags, outs, count)

        return (measured_batch(self.program, start, inputs),)

    def figures(self) -> Figures:
        """Return what the code made so far costs."""
        made = list(self._made.values())
        return Figures(
            operations=operations(self.program.graph, EVERYTHING),
            code_bytes=sum(x.bytes for x in made),
            compile_seconds=sum(x.seconds for x in made),
            from_disk=any(x.from_disk for x in made),
            notes=tuple(note for kernels in made for note in notes_of(kernels)),
        )
