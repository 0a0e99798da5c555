"""A program on the GPU: compiled for the arrays of its calls, cached on disk, launched."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.backends import protocol
from archimedes.backends.cuda import kernel_text
from archimedes.backends.cuda.device import (
    LoadedKernel,
    as_cupy,
    cupy,
    enough_memory,
    load_module,
    shared_memory,
)
from archimedes.backends.cuda.nvrtc import compile_kernels
from archimedes.backends.cuda.repeated_kernel import CudaRepeated, RepeatedProgram
from archimedes.backends.protocol import Flags, Kernel, Leaves, Program, Threads
from archimedes.errors import DeviceError
from archimedes.graph.dtypes import DTYPES

#: NumPy's arrays go to the device in pieces of this many bytes, inputs and results together.
CHUNK_BYTES = 256 * 2**20
#: Memory between the kernels of a long program: batches go through it in pieces.
FAR_BYTES = 2**30
#: Instances and bytes of a batch that is timed, at most.
TIMED_INSTANCES, TIMED_BYTES = 2**20, 2**28


class CudaProgram(Kernel):
    """A program as kernels, one per choice of batched inputs and per device."""

    sources = ("cuda",)

    def __init__(self, program: Program) -> None:
        self.program = program._replace(graph=kernel_text.inline_single_calls(program.graph))
        self._has_results = any(x.size for x in program.outputs)
        self._compiled: dict[tuple[int, tuple[bool, ...]], CompiledKernels] = {}
        self._lock = threading.Lock()

    def compiled(self, batched: tuple[bool, ...], device: int) -> CompiledKernels:
        """Return the kernels for one choice of batched inputs on the current device."""
        key = (device, batched)
        if key not in self._compiled:
            with self._lock:
                if key not in self._compiled:
                    self._compiled[key] = CompiledKernels(self.program, batched, device)
        return self._compiled[key]

    def call(self, inputs: Leaves, outputs: Leaves) -> None:
        """Compute one instance: a batch of one."""
        self.call_batch(inputs, [True] * len(inputs), outputs, 1)

    def call_batch(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
    ) -> None:
        """Start ``count`` instances on the current stream; ``threads`` of the CPU are not used."""
        if count and self._has_results:
            device = int(cupy().cuda.runtime.getDevice())
            self.compiled(tuple(map(bool, batched)), device).launch(inputs, outputs, count)

    def direct_entry(self, request: protocol.EntryRequest) -> Callable[..., Any] | None:
        """Return a function that launches the kernel at once, for batches of CuPy's arrays."""
        return batch_entry(self, request) if self._has_results else None

    def call_batch_from_host(
        self, inputs: Leaves, batched: Flags, outputs: Leaves, count: int, threads: Threads = None
    ) -> bool:
        """Compute a batch of NumPy's arrays in pieces, on two streams in turn: any size fits."""
        module = cupy()
        rows = [x for x, many in zip(inputs, batched) if many]
        row = sum(x.nbytes for x in (*rows, *outputs)) // max(count, 1)
        step = max(1, CHUNK_BYTES // max(row, 1))
        shared = [None if many else module.asarray(x) for x, many in zip(inputs, batched)]
        module.cuda.get_current_stream().synchronize()
        streams = [module.cuda.Stream(non_blocking=True) for _ in range(2)]
        for number, begin in enumerate(range(0, count, step)):
            piece = slice(begin, min(begin + step, count))
            with streams[number % 2] as stream:
                pairs = zip(inputs, shared)
                there = [module.asarray(x[piece]) if s is None else s for x, s in pairs]
                results = [module.empty(out[piece].shape, out.dtype) for out in outputs]
                self.call_batch(there, batched, results, piece.stop - begin)
                for out, result in zip(outputs, results):
                    if result.size:
                        result.get(stream=stream, out=out[piece], blocking=False)
        for stream in streams:
            stream.synchronize()
        return True

    def repeating_batch(self, at: Kernel, carry: int, batched: Flags, key: int) -> CudaRepeated:
        """Return a kernel whose threads repeat the program for one instance after the other."""
        assert isinstance(at, CudaProgram)
        whole = RepeatedProgram(self.program, at.program, carry, tuple(map(bool, batched)), key)
        return CudaRepeated(whole)

    def source(self, kind: str) -> str:
        """Return the CUDA C of a batch whose inputs all have a row per instance."""
        plan = kernel_text.layout(self.program, [True] * len(self.program.inputs))
        return kernel_text.assemble_file([kernel_text.program_text(self.program, plan)])

    def batch_notes(self, inputs: Sequence[Any]) -> tuple[str, ...]:
        """Time a batch in which each instance has its own row of every input."""
        if not self._has_results:
            return ()
        return (self._time_batch(inputs),)

    def figures(self) -> protocol.Figures:
        """Return what the kernels compiled so far take."""
        compiled = list(self._compiled.values())
        return protocol.Figures(
            operations=protocol.estimate_work(self.program.graph, protocol.EVERYTHING),
            code_bytes=sum(x.bytes for x in compiled),
            compile_seconds=sum(x.seconds for x in compiled),
            from_disk=any(x.from_disk for x in compiled),
            notes=tuple(note for kernels in compiled for note in kernels.describe()),
        )

    def _time_batch(self, inputs: Sequence[Any]) -> str:
        """Time many instances of the same inputs, each with its own row; compare with a copy."""
        module = cupy()
        outputs = [(DTYPES[code], shape) for code, shape in self.program.outputs]
        row = sum(x.nbytes for x in inputs)
        row += sum(dtype.itemsize * math.prod(shape) for dtype, shape in outputs)
        count = max(1, min(TIMED_INSTANCES, TIMED_BYTES // max(row, 1)))
        arrays = [
            module.ascontiguousarray(module.broadcast_to(x, (count, *x.shape))) for x in inputs
        ]
        outs = [module.empty((count, *shape), dtype) for dtype, shape in outputs]
        flags = [True] * len(inputs)
        seconds = device_seconds(lambda: self.call_batch(arrays, flags, outs, count))
        source, target = (module.empty((TIMED_BYTES,), "uint8") for _ in range(2))
        copied = 2 * TIMED_BYTES / device_seconds(lambda: module.copyto(target, source))
        rate = row * count / seconds
        return (
            f"{count} instances at a time: {count / seconds:.3g} per second, "
            f"{rate / 1e9:.0f} GB/s, {100 * rate / copied:.0f} % of a copy's"
        )


class CompiledKernels:
    """The kernels of a program for one choice of batched inputs, on one device."""

    def __init__(self, program: Program, batched: tuple[bool, ...], device: int) -> None:
        begin = time.perf_counter()
        self.device = device
        plan = self.plan = kernel_text.layout(program, batched, shared_memory())
        digest = program.graph.digest(lasting=True)
        code, self.from_disk = compile_kernels(
            ("cuda", digest, program.inputs, program.outputs, plan),
            lambda: kernel_text.program_text(program, plan),
        )
        self.bytes, self.far = len(code.cubin), code.far
        module = load_module(code.cubin)
        self.kernels = [LoadedKernel(module, name, shared) for name, shared in code.kernels]
        self.seconds = time.perf_counter() - begin

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> None:
        """Launch for ``count`` instances."""
        arrays = [as_cupy(x) for x in (*inputs, *outputs)]
        self._check_device(arrays)
        self.start(arrays, count)

    def start(self, arrays: Sequence[Any], count: int) -> None:
        """Launch for arrays that are known to be on this device."""
        plan = self.plan
        pointers = [x for x, a in zip(arrays, plan.arrays) if a.row]
        if self.far:
            self._start_parts(pointers, count)
            return
        (kernel,) = self.kernels
        blocks = -(-count // plan.threads)
        kernel.launch(blocks, plan.threads, (*pointers, np.uint64(count)))

    def _start_parts(self, arrays: Sequence[Any], count: int) -> None:
        """Launch one kernel after the other, for as many instances at a time as fit into memory."""
        threads, many = self.plan.threads, [a.many for a in self.plan.arrays if a.row]
        blocks = min(-(-count // threads), max(1, FAR_BYTES // self.far))
        far = self._memory(blocks)
        step = far.size // self.far * threads
        for begin in range(0, count, step):
            piece = slice(begin, min(begin + step, count))
            number = piece.stop - begin
            rows = arrays
            if number < count:
                rows = [x[piece] if each else x for x, each in zip(arrays, many)]
            for kernel in self.kernels:
                kernel.launch(-(-number // threads), threads, (*rows, far, np.uint64(number)))

    def _memory(self, blocks: int) -> Any:
        """Allocate memory between kernels, for fewer blocks if the device has little left."""
        module = cupy()
        while blocks > 64:
            try:
                return module.empty((blocks * self.far,), np.uint8)
            except module.cuda.memory.OutOfMemoryError:
                blocks //= 4
        with enough_memory():
            return module.empty((blocks * self.far,), np.uint8)

    def _check_device(self, arrays: Sequence[Any]) -> None:
        """Raise for arrays of another device: a kernel would fail and spoil the CUDA context."""
        for array in arrays:
            if array.device.id != self.device:
                raise DeviceError(
                    f"an array is on GPU {array.device.id}, but the current one is "
                    f"{self.device}: call the function inside "
                    f"`with cupy.cuda.Device({array.device.id}):`, with all arrays there"
                )

    def describe(self) -> list[str]:
        """Describe registers, memory and occupancy of each kernel."""
        plan, notes = self.plan, list[str]()
        most = int(cupy().cuda.Device().attributes["MaxThreadsPerMultiProcessor"])
        for number, kernel in enumerate(self.kernels, 1):
            registers, local = kernel.attributes()
            threads = plan.threads * kernel.occupancy(plan.threads)
            which = f"kernel {number} of {len(self.kernels)}: " if self.far else ""
            notes.append(
                f"{which}{plan.threads} threads per block, {registers} registers and {local} bytes "
                f"of local memory per thread, {kernel.shared} bytes of shared memory per block, "
                f"{threads} of {most} threads on a multiprocessor"
            )
        if self.far:
            notes.append(f"{self.far // plan.threads} bytes per instance between kernels")
        return notes


def device_seconds(run: Callable[[], Any], repeats: int = 5, together: int = 3) -> float:
    """Return the shortest time of a call on the device in s, of several measurements."""
    module = cupy()
    run()
    times = []
    for _ in range(repeats):
        begin, end = module.cuda.Event(), module.cuda.Event()
        begin.record()
        for _ in range(together):
            run()
        end.record()
        end.synchronize()
        times.append(1e-3 * float(module.cuda.get_elapsed_time(begin, end)) / together)
    return min(times)


# ---- the short way from a call of ``vmap`` with CuPy's arrays to the launch of a kernel: an entry
# looks at its arguments once. What it does not know (arrays of other packages, other shapes,
# overlapping results, too little memory) goes the long way, which has the errors too.


def batch_entry(program: CudaProgram, request: protocol.EntryRequest) -> Callable[..., Any] | None:
    """Return ``entry(*leaves)``, or ``entry(*leaves, *results)`` for results in given arrays.

    None where arguments are numbers, which would have to be moved each time.
    """
    traced = [a for a in request.arguments if a.traced]
    if not request.batch or any(a.weak for a in traced) or not request.results:
        return None
    count, into, known = len(request.arguments), request.into, _Known(request)
    total = count + (len(request.results) if into else 0)
    flags, finish = tuple(a.batched for a in traced), _builder(request.form)
    current = cupy().cuda.runtime.getDevice

    def entry(*values: Any) -> Any:
        if len(values) != total:
            return NotImplemented
        device = current()
        arrays, rows = known.arguments(values[:count], device)
        if not rows:
            return NotImplemented
        if into:
            outs = known.check_outputs(values[count:], arrays, rows, device)
        else:
            outs = known.empty(rows)
        if outs is None:
            return NotImplemented
        program.compiled(flags, device).start([*arrays, *outs], rows)
        return None if into else finish(outs)

    return entry


class _Known:
    """The arguments and results that an entry handles itself."""

    def __init__(self, request: protocol.EntryRequest) -> None:
        self.module = cupy()
        #: Arguments with their dtypes; those without one must be the very object.
        self.leaves = [(a, DTYPES[a.code] if a.traced else None) for a in request.arguments]
        self.results = [(DTYPES[r.code], r.shape) for r in request.results]

    def _fits(self, x: Any, dtype: np.dtype, shape: tuple[int, ...], device: int) -> bool:
        """Return whether a kernel on a device can use an array as it is."""
        plain = type(x) is self.module.ndarray and x.dtype == dtype and x.flags.c_contiguous
        return plain and x.shape == shape and x.device.id == device

    def arguments(self, values: Sequence[Any], device: int) -> tuple[list[Any], int]:
        """Return the arrays among the arguments and how many instances they have (0: none)."""
        rows, arrays = -1, []
        for x, (leaf, dtype) in zip(values, self.leaves):
            if dtype is None:
                if x is not leaf.value:
                    return [], 0
                continue
            if leaf.batched and rows < 0:
                rows = next(iter(getattr(x, "shape", ())), -1)
            shape = (rows, *leaf.shape) if leaf.batched else leaf.shape
            if not self._fits(x, dtype, shape, device):
                return [], 0
            arrays.append(x)
        return arrays, max(rows, 0)

    def empty(self, rows: int) -> list[Any] | None:
        """Return arrays for results, None if the memory is not sufficient."""
        make = self.module.empty
        try:
            return [make((rows, *shape), dtype) for dtype, shape in self.results]
        except self.module.cuda.memory.OutOfMemoryError:
            return None

    def check_outputs(
        self, outs: Sequence[Any], arrays: Sequence[Any], rows: int, device: int
    ) -> list[Any] | None:
        """Return the caller's arrays for results if kernels can write to them as they are."""
        spans = [(x.data.ptr, x.data.ptr + x.nbytes) for x in arrays]
        for x, (dtype, shape) in zip(outs, self.results):
            if not self._fits(x, dtype, (rows, *shape), device):
                return None
            start = x.data.ptr
            end = start + x.nbytes
            if any(start < stop and begin < end for begin, stop in spans):
                return None
            spans.append((start, end))
        return list(outs)


def _builder(form: protocol.Form) -> Callable[[Sequence[Any]], Any]:
    """Return the function that builds a result from its leaves."""
    if isinstance(form, protocol.Leaf):
        number = form.place
        return lambda outs: outs[number]
    if isinstance(form, protocol.Known):
        value = form.value
        return lambda outs: value
    parts = [_builder(part) for part in form.parts]
    if isinstance(form, protocol.Tuple):
        return lambda outs: tuple([part(outs) for part in parts])
    cls, fields = form.cls, form.fields

    def make(outs: Sequence[Any]) -> Any:
        result: Any = object.__new__(cls)
        result.__dict__.update(zip(fields, [part(outs) for part in parts]))
        return result

    return make
