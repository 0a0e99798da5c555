"""The device, through CuPy: imported when first needed, with an error that says what is missing."""

from __future__ import annotations

from functools import cache
from typing import Any

from archimedes.errors import DeviceError

__all__ = ["LoadedKernel", "architecture", "compiler_major", "cupy", "toolkit"]

_REMEDY = (
    'install CuPy for its CUDA, pip install "archimedes[cuda]" (CUDA 13) or '
    '"archimedes[cuda12]" (CUDA 12). NumPy arrays run on the CPU, without backend="cuda".'
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


#: Numbers of attributes in CUDA's driver interface.
_LOCAL, _REGISTERS = 3, 4


class LoadedKernel:
    """A kernel on the current device."""

    def __init__(self, cubin: bytes, name: str) -> None:
        cupy()
        from cupy.cuda import function

        self._module = function.Module()
        self._module.load(cubin)
        self._function = self._module.get_function(name)

    def launch(self, blocks: int, threads: int, arguments: tuple[Any, ...], shared: int) -> None:
        """Start it on the current stream."""
        self._function((blocks,), (threads,), arguments, shared)

    def attributes(self) -> tuple[int, int]:
        """Return registers per thread, and bytes of local memory per thread."""
        from cupy.cuda import driver

        asked = driver.funcGetAttribute
        pointer = self._function.ptr
        return int(asked(_REGISTERS, pointer)), int(asked(_LOCAL, pointer))
