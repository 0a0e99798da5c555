"""The device, through CuPy: the only module that uses CuPy and its arrays.

CuPy is imported when first needed, with an error that says what is missing. Arrays on a GPU are
CuPy's, and those of other packages, which CuPy uses without a copy. Results are copied into
NumPy's memory in pieces through pinned memory: the driver copies to ordinary memory in small
pieces, one after the other. Through two pinned pieces the device writes one while a thread copies
the other to where it stays, and several threads with streams of their own do so at the same time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from archimedes.backends.array_kinds import Arrays
from archimedes.errors import DeviceError
from archimedes.graph.dtypes import DTYPES
from archimedes.installation import install_command

#: Bytes of a pinned piece; smaller arrays are copied as they are.
PIECE_BYTES = 16 * 2**20
#: Bytes of shared memory that a block has without asking.
SHARED_BYTES = 48 * 1024
#: Numbers of attributes in CUDA's driver interface.
_LOCAL, _REGISTERS, _SHARED = 3, 4, 8
#: DLPack's numbers of memory on a GPU: its own, and memory that it shares with the CPU.
_ON_GPU = (2, 13)
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
        count = module.cuda.runtime.getDeviceCount()
    except module.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"CuPy finds no NVIDIA GPU that works ({error}): {_REMEDY}") from error
    if not count:
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
    """Return the major version of CuPy's NVRTC, which this loads."""
    cupy()
    from cupy.cuda import nvrtc

    return int(nvrtc.getVersion()[0])


def shared_memory() -> int:
    """Return the bytes of shared memory that the rows of a block of threads may take together."""
    most = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return max(SHARED_BYTES, 2 * int(most) // 3)


# ---- kernels ----------------------------------------------------------------------------


def load_module(cubin: bytes) -> Any:
    """Return machine code on the current device, as CuPy's module."""
    cupy()
    from cupy.cuda import function

    module = function.Module()
    module.load(cubin)
    return module


class LoadedKernel:
    """A kernel of a module on the current device; its blocks take ``shared`` bytes of memory."""

    def __init__(self, module: Any, name: str, shared: int = 0) -> None:
        self._module, self.shared = module, shared
        self.function = module.get_function(name)
        if shared > SHARED_BYTES:
            from cupy.cuda import driver

            driver.funcSetAttribute(self.function.ptr, _SHARED, shared)

    def launch(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Start it on the current stream."""
        try:
            self.function((blocks,), (threads,), tuple(arguments), self.shared)
        except RuntimeError as error:
            raise DeviceError(
                f"the GPU did not start a kernel of {blocks} blocks of {threads} threads: {error}. "
                "If an earlier kernel failed (an array that was freed meanwhile, a kernel of "
                "another package), its error appears only now, and CUDA needs a new process."
            ) from error

    def attributes(self) -> tuple[int, int]:
        """Return registers per thread, and bytes of local memory per thread."""
        from cupy.cuda import driver

        pointer = self.function.ptr
        registers, local = (driver.funcGetAttribute(k, pointer) for k in (_REGISTERS, _LOCAL))
        return int(registers), int(local)

    def occupancy(self, threads: int) -> int:
        """Return how many blocks a multiprocessor runs at a time."""
        from cupy.cuda import driver

        most = driver.occupancyMaxActiveBlocksPerMultiprocessor
        return int(most(self.function.ptr, threads, self.shared))


# ---- arrays -----------------------------------------------------------------------------


def _is_on_gpu(value: Any) -> bool:
    """Return whether an array of any package lies on a GPU, by the protocols that it follows."""
    kind = type(value)
    if kind is getattr(sys.modules.get("cupy"), "ndarray", None):
        return True
    if hasattr(kind, "__dlpack_device__"):
        return int(value.__dlpack_device__()[0]) in _ON_GPU
    return hasattr(kind, "__cuda_array_interface__")


def as_cupy(value: Any) -> Any:
    """Return an array on a GPU as CuPy's, without a copy; NumPy's and numbers are copied there."""
    module = cupy()
    if isinstance(value, module.ndarray):
        return value
    if _is_on_gpu(value) and not hasattr(value, "__cuda_array_interface__"):
        return module.from_dlpack(value)
    return module.asarray(value)


@contextmanager
def on_stream(index: int, pointer: int) -> Iterator[None]:
    """Work on a device and a stream that belong to another package."""
    module = cupy()
    with module.cuda.Device(index), module.cuda.ExternalStream(pointer):
        yield


@contextmanager
def finished_on(index: int) -> Iterator[None]:
    """Work on a device to the end: a package that owns the memory may free it afterwards."""
    module = cupy()
    with module.cuda.Device(index):
        yield
        module.cuda.get_current_stream().synchronize()


@contextmanager
def enough_memory() -> Iterator[None]:
    """Raise a DeviceError that says what helps if the device runs out of memory."""
    try:
        yield
    except cupy().cuda.memory.OutOfMemoryError as error:
        raise DeviceError(
            f"the memory of the GPU is exhausted ({str(error).rstrip('.')}). Call the function for "
            'fewer instances at a time, or with NumPy arrays and backend="cuda", which go there in '
            "pieces."
        ) from error


class CupyArrays(Arrays):
    """CuPy's arrays, and all with ``__cuda_array_interface__`` or DLPack on a GPU."""

    kind = "GPU"
    remedy = "move them with cupy.asarray(x) or cupy.asnumpy(x)"

    def owns(self, value: Any) -> bool:
        """Return whether an array lies on a GPU; CuPy need not be there to know."""
        return _is_on_gpu(value)

    def describe(self, array: Any) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and dtype."""
        own = as_cupy(array)
        return tuple(own.shape), own.dtype

    def take(self, value: Any, code: int, shape: tuple[int, ...]) -> Any:
        """Return a value as CuPy's array in C order."""
        if _is_on_gpu(value):
            value = as_cupy(value)
            if value.shape == shape and value.dtype == DTYPES[code] and value.flags.c_contiguous:
                return value
        with enough_memory():
            return cupy().ascontiguousarray(as_cupy(value), dtype=DTYPES[code]).reshape(shape)

    def empty(self, code: int, shape: tuple[int, ...]) -> Any:
        """Return a new array of CuPy's."""
        with enough_memory():
            return cupy().empty(shape, DTYPES[code])

    def to_host(self, array: Any) -> np.ndarray:
        """Copy to a NumPy array, after all earlier work on the current stream is done."""
        return as_cupy(array).get()

    def module(self) -> Any:
        """Return CuPy."""
        return cupy()

    def own(self, array: Any) -> Any:
        """Return an array on a GPU as CuPy's."""
        return as_cupy(array) if _is_on_gpu(array) else array

    def glance(self, array: Any) -> np.ndarray:
        """Copy to pinned memory, which is meant to be read and dropped."""
        source = as_cupy(array)
        if not source.size:
            return source.get()
        copy = _allocate_pinned(source.size, source.dtype).reshape(source.shape)
        source.get(out=copy)
        return copy

    def fetch(self, array: Any, target: np.ndarray) -> None:
        """Copy to NumPy's memory through pinned memory."""
        _copy_in_pieces(as_cupy(array), target)

    @contextmanager
    def working(self, apart: bool) -> Iterator[None]:
        """Report a lack of memory; with ``apart``, work on a stream of its own."""
        stream = cupy().cuda.Stream(non_blocking=True) if apart else nullcontext()
        with enough_memory(), stream:
            yield

    def move_axis(self, array: Any, source: int, destination: int) -> Any:
        """Return a view."""
        return cupy().moveaxis(as_cupy(array), source, destination)

    def copy_into(self, value: Any, target: Any) -> None:
        """Write a value into an array on the GPU."""
        as_cupy(target)[...] = as_cupy(value)

    def is_plain(self, array: Any) -> bool:
        """Return whether a kernel could write to it."""
        interface = getattr(array, "__cuda_array_interface__", None)
        read_only = interface is not None and bool(interface["data"][1])
        return bool(as_cupy(array).flags.c_contiguous) and not read_only

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Return whether two arrays may share memory."""
        one, other = as_cupy(a), as_cupy(b)
        if not (one.flags.c_contiguous and other.flags.c_contiguous):
            return bool(cupy().may_share_memory(one, other))
        # CuPy takes longer to say so than a kernel takes to start.
        start, begin = one.data.ptr, other.data.ptr
        return start < begin + other.nbytes and begin < start + one.nbytes


def _copy_in_pieces(array: Any, target: np.ndarray) -> None:
    """Copy an array of CuPy's in C order into one of NumPy's, after all earlier work is done."""
    stream = cupy().cuda.get_current_stream()
    in_order = target.flags.c_contiguous and array.flags.c_contiguous
    if array.nbytes <= PIECE_BYTES or not in_order:
        target[...] = array.get()
        return
    source, target = array.reshape(-1), target.reshape(-1)
    step = PIECE_BYTES // array.dtype.itemsize
    pieces = [_allocate_pinned(step, array.dtype) for _ in range(2)]
    waiting: list[tuple[Any, slice, np.ndarray]] = []

    def finish(event: Any, part: slice, piece: np.ndarray) -> None:
        event.synchronize()
        target[part] = piece

    for number, begin in enumerate(range(0, source.size, step)):
        part = slice(begin, min(begin + step, source.size))
        piece = pieces[number % 2][: part.stop - begin]
        if len(waiting) == 2:
            finish(*waiting.pop(0))
        source[part].get(stream=stream, out=piece, blocking=False)
        waiting.append((stream.record(), part, piece))
    for copy in waiting:
        finish(*copy)


def _allocate_pinned(count: int, dtype: np.dtype) -> np.ndarray:
    """Return an array in pinned memory, which the device can write to; CuPy reuses it later."""
    memory = cupy().cuda.alloc_pinned_memory(count * dtype.itemsize)
    return np.frombuffer(memory, dtype, count)
