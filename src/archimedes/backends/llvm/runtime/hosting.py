"""Calls from kernels back into Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.interrupts import keep
from archimedes.backends.llvm.calling_convention import RAISED
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.regions import Host

__all__ = ["HostCall", "Hosting"]

_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class HostCall(NamedTuple):
    """A place in a kernel that calls Python: the region and the dtypes of its inputs."""

    region: Host
    dtypes: list[int]


class Hosting:
    """The host functions of a kernel behind one C function.

    ``int callback(int64_t number, void *arguments, void *results)`` has one 8-byte slot a value.
    An exception is kept for the thread it came up in, and the kernel returns ``RAISED``.
    """

    def __init__(self, calls: Sequence[HostCall]) -> None:
        self.calls = list(calls)
        self._callback = _TYPE(self._run)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address

    def _run(self, number: int, arguments: int, results: int) -> int:
        try:
            region, dtypes = self.calls[number]
            values = [_slot(arguments, k, d)[()] for k, d in enumerate(dtypes)]
            for k, (d, value) in enumerate(zip(region.dtypes, region.function(values))):
                _slot(results, k, d)[()] = value
        except BaseException as error:
            keep(error)
            return RAISED
        return 0


def _slot(base: int, k: int, dtype: int) -> np.ndarray:
    """Return a 0-d array on the slot of a value."""
    kind = DTYPES[dtype]
    memory: Any = (ctypes.c_char * kind.itemsize).from_address(base + 8 * k)
    return np.ndarray((), kind, buffer=memory)
