"""CUDA as a backend: calls with arrays on a GPU run there, calls with NumPy's if it is named.

Nothing of CUDA is imported before such a call.
"""

from __future__ import annotations

from pathlib import Path

from archimedes.backends.code_cache import cache_folder
from archimedes.backends.cuda.device import CupyArrays, cupy
from archimedes.backends.protocol import Backend, GroupSizes, Kernel, Program


class Cuda(Backend):
    """The current NVIDIA GPU."""

    name = "cuda"
    arrays = CupyArrays()
    sizes = GroupSizes(group=2**18, keeping=2**16, shares=1, least=2**12, chunk=2**18)

    def build(self, program: Program) -> Kernel:
        """Check that there is a device; kernels are compiled when the first arrays are known."""
        from archimedes.backends.cuda.cuda_kernel import CudaProgram

        cupy()
        return CudaProgram(program)

    def cache_folder(self) -> Path | None:
        """Return the folder of machine code."""
        return cache_folder()


BACKEND = Cuda()
