"""Calls from kernels back into Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from archimedes.backends.interrupts import keep
from archimedes.graph.dtypes import DTYPES
from archimedes.graph.regions import Host

__all__ = ["HostCall", "Hosting"]

_SLOTS = ctypes.POINTER(ctypes.c_int64)
_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, _SLOTS, _SLOTS)


class HostCall(NamedTuple):
    """A place in a kernel that calls Python: the region and the dtypes of its inputs."""

    region: Host
    dtypes: list[int]


class Hosting:
    """The host functions of a kernel behind one C function.

    ``void callback(int64_t number, void *arguments, void *results)`` has one 8-byte slot a value,
    and writes 1 behind the results when it is done. A kernel that finds 0 there returns ``RAISED``:
    what was raised is kept for its thread, unless a signal handler raised before ``_run`` began.
    """

    def __init__(self, calls: Sequence[HostCall]) -> None:
        self.calls = list(calls)
        self._callback = _TYPE(self._run)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address

    def _run(self, number: int, arguments: Any, results: Any) -> None:
        try:
            region, dtypes = self.calls[number]
            values = [x[0] for x in _slots(arguments, dtypes)]
            for slot, value in zip(_slots(results, region.dtypes), region.function(values)):
                slot[0] = value
            results[len(region.dtypes)] = 1
        except BaseException as error:
            keep(error)


def _slots(memory: Any, dtypes: Sequence[int]) -> list[np.ndarray]:
    """Return an array of one value on each of these slots."""
    words: Any = ctypes.cast(memory, ctypes.POINTER(ctypes.c_int64 * len(dtypes))).contents
    return [np.frombuffer(words, DTYPES[d], 1, 8 * k) for k, d in enumerate(dtypes)]
