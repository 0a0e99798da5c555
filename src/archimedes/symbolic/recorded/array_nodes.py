"""The graph nodes of an array made while recording, laid out as its memory is."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.wide import constant_ids

__all__ = ["Nodes", "set_dtype"]

ndarray = np.ndarray
_view, _set = ndarray.view, ndarray.__setitem__
#: NumPy deprecates assignment to ``dtype`` from 2.5 on, and offers subclasses this instead.
_dtype: Any = ndarray.dtype
set_dtype: Any = getattr(ndarray, "_set_dtype", _dtype.__set__)
_interface: Any = ndarray.__array_interface__.__get__

#: What fills the memory of an array once its values are nodes, by dtype code.
_POISON = (np.nan, np.nan, np.iinfo(np.int64).min, True)


class Nodes:
    """The graph nodes of a root array, laid out as its memory is."""

    __slots__ = ("array", "code", "dtype", "itemsize", "memory", "poison", "start")

    def __init__(self, root: ndarray, views: list[ndarray], code: int) -> None:
        trace = current_trace()
        plain = _view(root, ndarray)
        self.code, self.dtype, self.itemsize = code, plain.dtype, plain.itemsize
        self.start = _interface(plain)["data"][0]
        # A root owns its memory, which has no gaps: neither have its nodes.
        ids = np.empty_like(plain, dtype=np.int64)
        ids[...] = constant_ids(trace.graph, plain)
        self.memory = ids.ravel("K")
        self.array: Any = SymbolicArray(ids, code, trace)
        self.array.ids.flags.writeable = plain.flags.writeable
        self.poison = self.fill(plain)
        # C code that reads one of them past NumPy's protocols finds no numbers, and raises.
        for array in (root, *(v for v in views if v.dtype == self.dtype)):
            set_dtype(array, np.dtype(f"V{self.itemsize}"))

    def place(self, plain: np.ndarray) -> np.ndarray:
        """Return the nodes at the place in memory of an array or view."""
        wide = self.memory.itemsize
        offset = (_interface(plain)["data"][0] - self.start) // self.itemsize * wide
        strides = [s // self.itemsize * wide for s in plain.strides]
        return ndarray(plain.shape, np.int64, self.memory, offset, strides)

    def fill(self, plain: np.ndarray) -> bytes:
        """Poison the memory of the root; return what it holds now."""
        _set(plain, ..., _POISON[self.code])
        return plain.tobytes()

    def of(self, x: ndarray, root: ndarray) -> Any:
        """Return the traced array that a root or a view of it stands for."""
        plain = _view(_view(root, ndarray), self.dtype)
        if plain.tobytes() != self.poison:
            self._take_in(plain)
        if x is root and x.shape == self.array.shape:
            if plain.flags.writeable != self.array.ids.flags.writeable:
                self.array.ids.flags.writeable = plain.flags.writeable
            return self.array
        if x.dtype != self.dtype:
            raise trace_error(
                f"a view reads the bytes of an array of traced {self.dtype} as {x.dtype}",
                "Use x.astype(...) to convert values.",
            )
        ids = self.place(_view(x, ndarray))
        ids.flags.writeable = x.flags.writeable
        return SymbolicArray(ids, self.code, self.array.owner)

    def _take_in(self, plain: np.ndarray) -> None:
        """Make constants of numbers that other code wrote into the poisoned memory."""
        wide = f"V{self.itemsize}"
        before = np.frombuffer(self.poison, wide).reshape(plain.shape)
        changed = np.ascontiguousarray(plain).view(wide).reshape(plain.shape) != before
        trace = self.array.owner
        self.array.ids[changed] = trace.graph.constants(plain[changed])
        self.fill(plain)
