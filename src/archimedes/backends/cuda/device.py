"""The device, through CuPy: imported when first needed, with an error that says what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from archimedes.errors import DeviceError
from archimedes.installation import install_command

__all__ = [
    "LoadedKernel",
    "LoadedModule",
    "architecture",
    "compiler_major",
    "cupy",
    "shared_memory",
    "toolkit",
]

_REMEDY = (
    f"install CuPy for its CUDA, {install_command('cuda')} (CUDA 13) or "
    f'{install_command("cuda12")} (CUDA 12). NumPy arrays run on the CPU, without backend="cuda".'
)


def cupy() -> Any:
    """Return CuPy, if it is installed and finds a GPU."""
    try:
        return _working()
    except ImportError as error:
        raise DeviceError(f"this needs an NVIDIA GPU and CuPy ({error}): {_REMEDY}") from error


@cache
def _working() -> Any:
    import cupy as module

    try:
        found = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"CuPy finds no NVIDIA GPU that works ({error}): {_REMEDY}") from error
    if not found:
        raise DeviceError(f"CuPy finds no NVIDIA GPU: {_REMEDY}")
    return module


def architecture() -> str:
    """Return the architecture of the current device, such as "sm_90"."""
    return f"sm_{cupy().cuda.Device().compute_capability}"


def toolkit() -> int:
    """Return the version of CUDA that CuPy uses, 13000 for 13.0."""
    return int(cupy().cuda.runtime.runtimeGetVersion())


@cache
def compiler_major() -> int:
    """Return the major version of CuPy's NVRTC, which is in memory from then on."""
    cupy()
    from cupy.cuda import nvrtc

    return int(nvrtc.getVersion()[0])


def shared_memory() -> int:
    """Return the bytes of shared memory that the rows of a block of threads may take together."""
    most = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return max(GIVEN, 2 * int(most) // 3)


#: Bytes that a block has without asking.
GIVEN = 48 * 1024
#: Numbers of attributes in CUDA's driver interface.
_LOCAL, _REGISTERS, _SHARED = 3, 4, 8


class LoadedModule:
    """Machine code on the current device."""

    def __init__(self, cubin: bytes) -> None:
        cupy()
        from cupy.cuda import function

        self.module = function.Module()
        self.module.load(cubin)

    def kernel(self, name: str, shared: int = 0) -> LoadedKernel:
        """Return a kernel of it whose blocks take so many bytes of shared memory."""
        return LoadedKernel(self, name, shared)


class LoadedKernel:
    """A kernel on the current device."""

    def __init__(self, code: bytes | LoadedModule, name: str, shared: int = 0) -> None:
        self._code = code if isinstance(code, LoadedModule) else LoadedModule(code)
        self.function = self._code.module.get_function(name)
        if shared > GIVEN:
            from cupy.cuda import driver

            driver.funcSetAttribute(self.function.ptr, _SHARED, shared)

    def launch(self, blocks: int, threads: int, arguments: Sequence[Any], shared: int) -> None:
        """Start it on the current stream."""
        try:
            self.function((blocks,), (threads,), tuple(arguments), shared)
        except RuntimeError as error:
            raise DeviceError(
                f"the GPU did not start a kernel of {blocks} blocks of {threads} threads: {error}. "
                "If an earlier kernel failed (an array that was freed meanwhile, a kernel of "
                "another package), its error shows here: CUDA then needs a new process."
            ) from error

    def attributes(self) -> tuple[int, int]:
        """Return registers per thread, and bytes of local memory per thread."""
        from cupy.cuda import driver

        asked = driver.funcGetAttribute
        pointer = self.function.ptr
        return int(asked(_REGISTERS, pointer)), int(asked(_LOCAL, pointer))

    def occupancy(self, threads: int, shared: int) -> int:
        """Return how many blocks a multiprocessor runs at a time."""
        from cupy.cuda import driver

        asked = driver.occupancyMaxActiveBlocksPerMultiprocessor
        return int(asked(self.function.ptr, threads, shared))
