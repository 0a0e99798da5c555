"""What kernels take of a device, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.backends.cuda.device import cupy

if TYPE_CHECKING:
    from archimedes.backends.cuda.compiled_kernels import CompiledKernels

__all__ = ["notes_of"]


def notes_of(compiled: CompiledKernels) -> list[str]:
    """Say of each kernel what its threads and blocks take, and how full the device is with them."""
    plan, notes = compiled.plan, list[str]()
    most = int(cupy().cuda.Device().attributes["MaxThreadsPerMultiProcessor"])
    for number, (kernel, shared) in enumerate(compiled.kernels, 1):
        registers, local = kernel.attributes()
        threads = plan.threads * kernel.occupancy(plan.threads, shared)
        which = f"kernel {number} of {len(compiled.kernels)}: " if compiled.far else ""
        notes.append(
            f"{which}{plan.threads} threads per block, {registers} registers and {local} bytes of "
            f"local memory per thread, {shared} bytes of shared memory per block, "
            f"{threads} of {most} threads on a multiprocessor"
        )
    if compiled.far:
        notes.append(f"{compiled.far // plan.threads} bytes per instance between kernels")
    return notes
