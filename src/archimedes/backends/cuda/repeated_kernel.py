"""Programs that a kernel repeats for many instances: compiled, kept on disk, started."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.backends import code_cache
from archimedes.backends.cuda.cupy_arrays import as_cupy
from archimedes.backends.cuda.device import (
    LoadedKernel,
    architecture,
    compiler_major,
    cupy,
    toolkit,
)
from archimedes.backends.cuda.device_text import OPTIONS
from archimedes.backends.cuda.kernel_source import file_of
from archimedes.backends.cuda.nvrtc import compile_cubin
from archimedes.backends.cuda.repeated_source import (
    REPEATED,
    THREADS,
    RepeatedProgram,
    repeated_text,
)

__all__ = ["CudaRepeated"]

#: Blocks that are started at most: more than any device has at work, since each goes on with
#: further instances.
BLOCKS = 4096
_FOLDERS = (Path(__file__).parent, Path(__file__).parent.parent / "c")


class CudaRepeated:
    """A program repeated on the current device; see ``Kernel.repeating_batch``."""

    def __init__(self, program: RepeatedProgram) -> None:
        self.program = program
        self._made: dict[int, LoadedKernel] = {}
        self._lock = threading.Lock()

    def _loaded(self) -> LoadedKernel:
        device = int(cupy().cuda.Device().id)
        if device not in self._made:
            with self._lock:
                if device not in self._made:
                    self._made[device] = LoadedKernel(_machine_code(self.program), REPEATED)
        return self._made[device]

    def __call__(
        self,
        state: Sequence[Any],
        given: Sequence[Any],
        items: np.ndarray,
        sign: float,
        places: Any,
        done: Any,
        results: Any,
    ) -> None:
        """Start it on the current stream for all of ``places``."""
        count = len(places)
        if not count:
            return
        module = cupy()
        inputs = self.program.step.inputs
        leaves = [as_cupy(x) for x, kind in zip((*state, *given), inputs) if 0 not in kind.shape]
        along = module.asarray(np.concatenate([[sign], items]))
        many = module.asarray(np.array([len(items)], dtype=np.int64))
        queue = module.asarray(np.zeros(1, dtype=np.uint64))
        blocks = min(BLOCKS, -(-count // THREADS))
        arrays = [*leaves, along, many, places, done, results, queue]
        self._loaded().launch(blocks, THREADS, (*arrays, np.uint64(count)), 0)


def _machine_code(program: RepeatedProgram) -> bytes:
    """Return what the kernel is on the current device."""
    key = code_cache.cache_key(
        "cuda repeated",
        *(
            (part.graph.lasting_digest(), part.inputs, part.outputs)
            for part in (program.step, program.at)
        ),
        program.carry,
        program.batched,
        program.key,
        architecture(),
        toolkit(),
        OPTIONS,
        *map(code_cache.sources_digest, _FOLDERS),
    )
    found = code_cache.read(key)
    if found is None:
        text = file_of([repeated_text(program)])
        found = compile_cubin(text, architecture(), compiler_major())
        code_cache.write(key, found)
    return found
