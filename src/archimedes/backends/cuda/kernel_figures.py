"""What kernels take of a device, for reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from archimedes.backends.cuda.device import cupy
from archimedes.backends.protocol import Program
from archimedes.graph.dtypes import DTYPES

if TYPE_CHECKING:
    from archimedes.backends.cuda.compiled_kernels import CompiledKernels

__all__ = ["measured_batch", "notes_of", "seconds_there"]

#: Instances and bytes of a batch that is timed, at most.
INSTANCES, BYTES = 2**20, 2**28


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


def seconds_there(run: Callable[[], Any], repeats: int = 5, together: int = 3) -> float:
    """Return the least time of a call on the device, of several that follow each other."""
    module = cupy()
    run()
    found = []
    for _ in range(repeats):
        begin, end = module.cuda.Event(), module.cuda.Event()
        begin.record()
        for _ in range(together):
            run()
        end.record()
        end.synchronize()
        found.append(1e-3 * float(module.cuda.get_elapsed_time(begin, end)) / together)
    return min(found)


def measured_batch(
    program: Program, start: Callable[[Sequence[Any], Sequence[Any], int], None], one: Sequence[Any]
) -> str:
    """Time many instances of the same inputs, each with its own row; compare with a copy."""
    module = cupy()
    outputs = [(DTYPES[code], shape) for code, shape in program.outputs]
    row = sum(x.nbytes for x in one)
    row += sum(dtype.itemsize * math.prod(shape) for dtype, shape in outputs)
    count = max(1, min(INSTANCES, BYTES // max(row, 1)))
    inputs = [module.ascontiguousarray(module.broadcast_to(x, (count, *x.shape))) for x in one]
    outs = [module.empty((count, *shape), dtype) for dtype, shape in outputs]
    took = seconds_there(lambda: start(inputs, outs, count))
    source, target = (module.empty((BYTES,), "uint8") for _ in range(2))
    copied = 2 * BYTES / seconds_there(lambda: module.copyto(target, source))
    rate = row * count / took
    return (
        f"{count} instances at a time: {count / took:.3g} per second, {rate / 1e9:.0f} GB/s, "
        f"{100 * rate / copied:.0f} % of a copy's"
    )
