"""The kernels of a program for certain batched inputs: machine code, made or read, and launches."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends import code_cache
from archimedes.backends.cuda.cupy_arrays import as_cupy, enough_memory
from archimedes.backends.cuda.device import (
    LoadedModule,
    architecture,
    compiler_major,
    cupy,
    shared_memory,
    toolkit,
)
from archimedes.backends.cuda.device_text import OPTIONS
from archimedes.backends.cuda.kernel_source import Layout, file_of, layout
from archimedes.backends.cuda.nvrtc import compile_cubin
from archimedes.backends.cuda.parted_kernels import program_text
from archimedes.backends.protocol import Program
from archimedes.errors import DeviceError

__all__ = ["FAR_BYTES", "CompiledKernels"]

#: Memory between the kernels of a long program: batches go through it in pieces.
FAR_BYTES = 2**30
_BACKENDS = Path(__file__).parent.parent
_FOLDERS = tuple(_BACKENDS / name for name in ("cuda", "c", "lowering"))


class _Code(NamedTuple):
    """Machine code; ``kernels`` and ``far`` are those of :class:`KernelText`."""

    kernels: tuple[tuple[str, int], ...]
    far: int
    cubin: bytes

    def packed(self) -> bytes:
        """Return it as bytes of a file."""
        return json.dumps([self.kernels, self.far]).encode() + b"\n" + self.cubin

    @classmethod
    def unpacked(cls, content: bytes) -> _Code:
        """Read what ``packed`` returned."""
        head, _, cubin = content.partition(b"\n")
        kernels, far = json.loads(head)
        return cls(tuple((name, shared) for name, shared in kernels), far, cubin)


class CompiledKernels:
    """What runs a program for certain batched inputs on one device."""

    def __init__(self, program: Program, batched: tuple[bool, ...], device: int) -> None:
        begin = time.perf_counter()
        self.device = device
        self.plan: Layout = layout(program, batched, shared_memory())
        found = code_cache.read(key := _key(program, self.plan))
        self.from_disk = found is not None
        code = _Code.unpacked(found) if found is not None else _made(program, self.plan)
        if found is None:
            code_cache.write(key, code.packed())
        self.bytes, self.far = len(code.cubin), code.far
        module = LoadedModule(code.cubin)
        self.kernels = [(module.kernel(name, shared), shared) for name, shared in code.kernels]
        self.seconds = time.perf_counter() - begin

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int) -> None:
        """Start for ``count`` instances."""
        given = [as_cupy(x) for x in (*inputs, *outputs)]
        self._check_device(given)
        self.start(given, count)

    def start(self, given: Sequence[Any], count: int) -> None:
        """Start for arrays of this device."""
        plan = self.plan
        pointers = [x for x, a in zip(given, plan.arrays) if a.row]
        if self.far:
            self._start_parts(pointers, count)
            return
        ((kernel, shared),) = self.kernels
        blocks = -(-count // plan.threads)
        kernel.launch(blocks, plan.threads, (*pointers, np.uint64(count)), shared)

    def _start_parts(self, arrays: Sequence[Any], count: int) -> None:
        """Start one kernel after the other, for as many instances as there is memory for."""
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
            for kernel, shared in self.kernels:
                given = (*rows, far, np.uint64(number))
                kernel.launch(-(-number // threads), threads, given, shared)

    def _memory(self, blocks: int) -> Any:
        """Return memory between kernels, for fewer blocks where there is little of it."""
        module = cupy()
        while blocks > 64:
            try:
                return module.empty((blocks * self.far,), np.uint8)
            except module.cuda.memory.OutOfMemoryError:
                blocks //= 4
        with enough_memory():
            return module.empty((blocks * self.far,), np.uint8)

    def _check_device(self, given: Sequence[Any]) -> None:
        """Refuse arrays of another device: a kernel would fail there and take the context along."""
        for array in given:
            if array.device.id != self.device:
                raise DeviceError(
                    f"an array lies on GPU {array.device.id}, but the current one is "
                    f"{self.device}: call the function inside "
                    f"`with cupy.cuda.Device({array.device.id}):`, with all arrays there"
                )


def _made(program: Program, plan: Layout) -> _Code:
    text = program_text(program, plan)
    cubin = compile_cubin(file_of([text]), architecture(), compiler_major())
    return _Code(text.kernels, text.far, cubin)


def _key(program: Program, plan: Layout) -> str:
    """Name machine code by all it depends on."""
    return code_cache.cache_key(
        "cuda",
        program.graph.lasting_digest(),
        program.inputs,
        program.outputs,
        plan,
        architecture(),
        toolkit(),
        OPTIONS,
        *map(code_cache.sources_digest, _FOLDERS),
    )
