"""As much of CuPy as the backend uses, on the CPU: arrays lie in NumPy's memory, behind a wall.

``installed`` puts it in CuPy's place; "machine code" is CUDA C, which ``emulation.py`` runs.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

import numpy as np

from archimedes.backends.cuda import device, nvrtc

from .emulation import Emulated

__all__ = ["Tensor", "installed", "ndarray"]


def there(value: Any) -> Any:
    """Put NumPy's results behind the wall; CuPy's scalars are arrays too."""
    if isinstance(value, tuple):
        return tuple(map(there, value))
    return ndarray(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


def held_in(value: Any) -> Any:
    """Look behind the wall; arrays of NumPy's are not taken, as CuPy does not take them."""
    if isinstance(value, ndarray):
        return value.held
    if isinstance(value, (tuple, list)):
        return type(value)(map(held_in, value))
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    return value


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on the device: NumPy cannot look into it, but its functions compute with it."""

    def __init__(self, held: Any) -> None:
        self.held, self.device = held, types.SimpleNamespace(id=0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any):
        if out:
            kwargs["out"] = held_in(out)
        result = getattr(ufunc, method)(*map(held_in, inputs), **kwargs)
        return out[0] if out else there(result)

    def __array_function__(self, func: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return there(func(*held_in(args), **{k: held_in(v) for k, v in kwargs.items()}))

    def __bool__(self) -> bool:
        return bool(self.held)

    def __int__(self) -> int:
        return int(self.held)

    def __float__(self) -> float:
        return float(self.held)

    def __len__(self) -> int:
        return len(self.held)

    def _reduced(name: str) -> Any:
        return lambda self, *args, **kwargs: there(getattr(self.held, name)(*args, **kwargs))

    any, all, sum, max, min, mean = map(_reduced, ("any", "all", "sum", "max", "min", "mean"))
    astype, copy, nonzero = map(_reduced, ("astype", "copy", "nonzero"))
    strides = property(lambda self: self.held.strides)

    shape = property(lambda self: self.held.shape)
    dtype = property(lambda self: self.held.dtype)
    ndim = property(lambda self: self.held.ndim)
    size = property(lambda self: self.held.size)
    nbytes = property(lambda self: self.held.nbytes)
    flags = property(lambda self: self.held.flags)
    data = property(lambda self: types.SimpleNamespace(ptr=self.held.ctypes.data))
    __cuda_array_interface__ = property(lambda self: {"data": (self.data.ptr, False)})

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __getitem__(self, k: Any) -> ndarray:
        return ndarray(np.asarray(self.held[held_in(k)]))

    def __setitem__(self, k: Any, value: Any) -> None:
        self.held[held_in(k)] = held_in(value)

    def reshape(self, *shape: Any) -> ndarray:
        return ndarray(self.held.reshape(*shape))

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True):
        if out is None:
            return self.held.copy()
        out[...] = self.held
        return out


class Tensor:
    """An array of another package on the device, which follows the protocols; as PyTorch's."""

    def __init__(self, held: Any, read_only: bool = False) -> None:
        self.held, self.read_only = np.array(held), read_only
        self.shape = self.held.shape

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.held.ctypes.data, self.read_only)}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def asarray(value: Any, dtype: Any = None) -> ndarray:
    if isinstance(value, Tensor):
        return ndarray(value.held)
    return value if isinstance(value, ndarray) else ndarray(np.array(value, dtype))


def _of_numpy(name: str) -> Any:
    function = getattr(np, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        kwargs = {k: held_in(v) for k, v in kwargs.items()}
        if out is not None:
            kwargs["out"] = out.held
        result = function(*held_in(args), **kwargs)
        return there(result) if out is None else out

    return call


#: Functions of NumPy's that solves use.
_SAME = ("arange", "zeros", "full", "array", "flatnonzero", "minimum", "where", "broadcast_to")


class _Module:
    def load(self, cubin: bytes) -> None:
        self.device = Emulated(cubin.decode())

    def get_function(self, name: str) -> Any:
        def launch(grid: tuple, block: tuple, arguments: tuple, shared: int = 0) -> None:
            *arrays, count = arguments
            assert shared <= 48 * 1024 and isinstance(count, np.uint64)
            held = [x.held for x in arrays]
            assert all(x.flags.c_contiguous for x in held)
            self.device.launch(name, grid[0], block[0], held, int(count))

        launch.ptr = 0  # type: ignore[attr-defined]
        return launch


class _Stream:
    def __init__(self, *index: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def record(self) -> _Stream:
        return self


class _Device(_Stream):
    id = 0
    compute_capability = "90"
    attributes: ClassVar = {
        "MaxSharedMemoryPerBlockOptin": 49152,
        "MaxThreadsPerMultiProcessor": 2048,
    }


class _Event:
    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


def _space(**names: Any) -> Any:
    return types.SimpleNamespace(**names)


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


def empty(shape: Any, dtype: Any = np.float64) -> ndarray:
    """A small device."""
    if np.prod(shape) > 10**7:
        raise OutOfMemoryError(f"Out of memory allocating {np.prod(shape)} numbers")
    return ndarray(np.empty(shape, dtype))


def _module() -> types.ModuleType:
    made = types.ModuleType("cupy")
    cuda = types.ModuleType("cupy.cuda")
    cuda.__dict__.update(
        runtime=_space(
            getDeviceCount=lambda: 1,
            getDevice=lambda: 0,
            runtimeGetVersion=lambda: 13000,
            CUDARuntimeError=CUDARuntimeError,
        ),
        nvrtc=_space(getVersion=lambda: (13, 0)),
        driver=_space(
            funcGetAttribute=lambda what, pointer: {3: 0, 4: 62}[what],
            funcSetAttribute=lambda pointer, what, value: None,
            occupancyMaxActiveBlocksPerMultiprocessor=lambda pointer, threads, shared: 8,
        ),
        function=_space(Module=_Module),
        Device=_Device,
        memory=_space(OutOfMemoryError=OutOfMemoryError),
        Stream=_Stream,
        Event=_Event,
        get_elapsed_time=lambda begin, end: 1e3 * (end.at - begin.at),
        alloc_pinned_memory=bytearray,
        get_current_stream=_Stream,
    )
    made.__dict__.update(
        cuda=cuda,
        ndarray=ndarray,
        asarray=asarray,
        from_dlpack=asarray,
        empty=empty,
        ascontiguousarray=lambda x, dtype=None: ndarray(np.ascontiguousarray(x.held, dtype)),
        copyto=lambda a, b: np.copyto(a.held, b.held),
        moveaxis=lambda x, a, b: ndarray(np.moveaxis(x.held, a, b)),
        may_share_memory=lambda a, b: np.may_share_memory(a.held, b.held),
        asnumpy=lambda x: x.get(),
        **{name: _of_numpy(name) for name in _SAME},
    )
    return made


@contextmanager
def installed() -> Iterator[types.ModuleType]:
    """Put it in the place of CuPy, and text in the place of machine code."""
    made = _module()
    as_text = mock.patch.object(nvrtc, "compile_cubin", lambda text, *rest: text.encode())
    # Only these: modules that are imported meanwhile stay.
    before = {name: sys.modules.get(name) for name in ("cupy", "cupy.cuda")}
    _forget()
    try:
        sys.modules.update({"cupy": made, "cupy.cuda": made.cuda})
        with as_text:
            yield made
    finally:
        for name, module in before.items():
            del sys.modules[name]
            if module is not None:
                sys.modules[name] = module
        _forget()


def _forget() -> None:
    """Have CuPy looked for again."""
    device._working.cache_clear()
    device.compiler_major.cache_clear()
