"""Arrays on a GPU: CuPy's, and those of others, which CuPy looks at where they lie."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from archimedes.backends.array_kinds import Arrays
from archimedes.backends.cuda.copies import fetch, pinned_copy
from archimedes.backends.cuda.device import cupy
from archimedes.errors import DeviceError
from archimedes.graph.dtypes import DTYPES

__all__ = ["CupyArrays", "as_cupy", "enough_memory"]

#: DLPack's numbers of memory on a GPU: its own, and memory that it shares with the CPU.
_ON_GPU = (2, 13)


def _is_on_gpu(value: Any) -> bool:
    """Tell whether an array of any package lies on a GPU, by the protocols that it follows."""
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
def enough_memory() -> Iterator[None]:
    """Say what helps where the device's memory does not suffice; nothing is lost then."""
    try:
        yield
    except cupy().cuda.memory.OutOfMemoryError as error:
        raise DeviceError(
            f"the memory of the GPU does not suffice: {error}. Call the function for fewer "
            'instances at a time, or with NumPy arrays and backend="cuda", which go there in '
            "pieces."
        ) from error


class CupyArrays(Arrays):
    """CuPy's arrays, and all with ``__cuda_array_interface__`` or DLPack on a GPU."""

    kind = "GPU"
    remedy = "move them with cupy.asarray(x) or cupy.asnumpy(x)"

    def owns(self, value: Any) -> bool:
        """Tell whether an array lies on a GPU; CuPy need not be there to know."""
        return _is_on_gpu(value)

    def describe(self, array: Any) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and dtype."""
        found = as_cupy(array)
        return tuple(found.shape), found.dtype

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
        """Copy to NumPy's, when all before on the current stream is done."""
        return as_cupy(array).get()

    def module(self) -> Any:
        """Return CuPy."""
        return cupy()

    def own(self, array: Any) -> Any:
        """Return an array on a GPU as CuPy's."""
        return as_cupy(array) if _is_on_gpu(array) else array

    def glance(self, array: Any) -> np.ndarray:
        """Copy to memory that the GPU writes to by itself, which is not for keeping."""
        return pinned_copy(as_cupy(array))

    def fetch(self, array: Any, place: np.ndarray) -> None:
        """Copy to NumPy's memory through memory that the GPU writes to by itself."""
        fetch(as_cupy(array), place)

    @contextmanager
    def working(self, apart: bool) -> Iterator[None]:
        """Watch the memory; ``apart``: on a stream of its own."""
        stream = cupy().cuda.Stream(non_blocking=True) if apart else nullcontext()
        with enough_memory(), stream:
            yield

    def move_axis(self, array: Any, source: int, destination: int) -> Any:
        """Return a view."""
        return cupy().moveaxis(as_cupy(array), source, destination)

    def copy_into(self, value: Any, place: Any) -> None:
        """Write a value into an array on the GPU."""
        as_cupy(place)[...] = as_cupy(value)

    def is_plain(self, array: Any) -> bool:
        """Tell whether a kernel could write to it."""
        found = as_cupy(array)
        return bool(found.flags.c_contiguous) and not _is_read_only(array)

    def may_overlap(self, a: Any, b: Any) -> bool:
        """Tell whether two arrays may share memory."""
        one, other = as_cupy(a), as_cupy(b)
        if not (one.flags.c_contiguous and other.flags.c_contiguous):
            return bool(cupy().may_share_memory(one, other))
        # CuPy takes longer to say so than a kernel takes to start.
        start, begin = one.data.ptr, other.data.ptr
        return start < begin + other.nbytes and begin < start + one.nbytes


def _is_read_only(array: Any) -> bool:
    interface = getattr(array, "__cuda_array_interface__", None)
    return bool(interface["data"][1]) if interface is not None else False
