"""Arrays made while recording: real NumPy arrays, until a traced value is written into one.

``np.zeros(3)`` inside a recorded function gives a ``RecordedArray``, a subclass of ndarray. As long
as it holds numbers only, NumPy works on its memory and nothing is recorded. The first traced value
that is written into it, or into any view of it, gives the array that all views stem from, its
*root*, a parallel array of graph nodes. From then on these nodes are read and written, for the root
and for every view, also for older ones. A view finds its nodes as it finds its numbers: by offset
and strides.

The memory of such an array is then filled with a poison: nan, or the least integer. Code that
ignores NumPy's protocols and reads the memory gets nothing plausible. What such code writes differs
from the poison, and becomes constants. See docs/decisions/004-numpy-creation.md.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np

from archimedes.graph.dtypes import code_of
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.loop_nests import constant_ids
from archimedes.symbolic.core.trace import (
    current_trace,
    is_active,
    is_tracing,
    trace_error,
    trace_number,
)

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

    def at(self, plain: np.ndarray) -> np.ndarray:
        """Return the nodes at the memory of an array or view."""
        itemsize = self.memory.itemsize
        offset = (_interface(plain)["data"][0] - self.start) // self.itemsize * itemsize
        strides = [s // self.itemsize * itemsize for s in plain.strides]
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
        ids = self.at(_view(x, ndarray))
        ids.flags.writeable = x.flags.writeable
        return SymbolicArray(ids, self.code, self.array.owner)

    def _take_in(self, plain: np.ndarray) -> None:
        """Make constants of numbers that other code wrote into the poisoned memory."""
        raw = f"V{self.itemsize}"
        before = np.frombuffer(self.poison, raw).reshape(plain.shape)
        changed = np.ascontiguousarray(plain).view(raw).reshape(plain.shape) != before
        trace = self.array.owner
        self.array.ids[changed] = trace.graph.constants(plain[changed])
        self.fill(plain)


# ---- memory -------------------------------------------------------------------------------------

_copy = ndarray.copy
_get_dtype: Any = ndarray.dtype.__get__


class RecordedMemory(ndarray):
    """The memory of an array made while recording, and the nodes that may take its place.

    ``form`` is the class with NumPy's interface, which ``recorded_array.py`` enters.
    """

    __slots__ = ("_maker", "_nodes", "_views")
    form: ClassVar[type[RecordedMemory]]

    def __array_finalize__(self, obj: Any) -> None:
        self._maker = trace_number()
        self._nodes: Nodes | None = None
        #: Views of a root, as weak references.
        self._views: list[Any] | None = None
        if self.base is not None and isinstance(obj, RecordedMemory):
            self._nodes = obj._nodes
            root = root_of(self)
            if root is not self:
                if root._views is None:
                    root._views = []
                views, count = root._views, len(root._views)
                if count >= 64 and count & (count - 1) == 0:  # most of them are gone
                    views[:] = [ref for ref in views if ref() is not None]
                views.append(weakref.ref(self))

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the values, be they numbers or nodes."""
        memory_dtype, nodes = _get_dtype(self), self._nodes
        return memory_dtype if nodes is None or memory_dtype.kind != "V" else nodes.dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        set_dtype(self, dtype)

    def _set_dtype(self, dtype: Any) -> None:
        """Set the dtype of a view: what NumPy calls from 2.5 on, instead of the setter."""
        set_dtype(self, dtype)


def root_of(x: RecordedMemory) -> RecordedMemory:
    """Return the array made while recording that a view stems from."""
    form, root, base = RecordedMemory.form, x, x.base
    while base is not None:
        if type(base) is form:
            root = base
        base = getattr(base, "base", None)  # as_strided puts an object in between
    return root


def find_traced(x: RecordedMemory) -> Any:
    """Return the traced array that an array stands for, or None if it holds numbers."""
    root = root_of(x)
    nodes = root._nodes
    return None if nodes is None else nodes.of(x, root)


def holds_nodes(x: RecordedMemory) -> bool:
    """Return whether traced values were written to an array, or to what it is a view of."""
    return root_of(x)._nodes is not None


def writable(x: RecordedMemory) -> Any:
    """Return the traced array that an array stands for from now on, to write traced values to."""
    root = root_of(x)
    nodes = root._nodes
    if nodes is None:
        check_maker(root)
        if root._maker != trace_number():
            raise trace_error(
                "a traced value is written into an array that was made in another recording",
                "Copy it first: a = np.array(a).",
            )
        code = code_of(root.dtype)
        if code is None:
            raise trace_error(
                f"a traced value is written into an array of dtype {root.dtype}",
                "Use float64, float32, int64 or bool.",
            )
        views = [view for ref in root._views or () if (view := ref()) is not None]
        nodes = Nodes(root, views, code)
        for array in (root, *views):
            array._nodes = nodes
    return nodes.of(x, root)


def check_maker(root: RecordedMemory) -> None:
    """Refuse writing from a function recorded inside the one that made the array."""
    if root._maker != trace_number() and is_active(root._maker):
        raise trace_error(
            "a function recorded inside another writes to the outer one's array",
            "Copy it first (y = x.copy()), and return the result.",
        )


def as_plain(x: Any) -> Any:
    """Return an array made while recording as NumPy's own over the same memory."""
    return _view(x, ndarray) if type(x) is RecordedMemory.form else x


def numbers_of(x: RecordedMemory, what: str) -> np.ndarray:
    """Return the memory as a plain array, for code that knows nothing of traced values."""
    traced = find_traced(x)
    if traced is None:
        return as_plain(x)
    value = traced.constant()
    if value is None:
        raise trace_error(
            f"an array that holds traced values is {what}",
            "Return it from the compiled function, or call the code through arc.callback.",
        )
    return value


def as_recorded(array: Any) -> Any:
    """Return a fresh NumPy array as one that can take traced values, if it is made in a recording.

    Arrays of other dtypes, and anything else, are returned as they are.
    """
    if type(array) is not ndarray or code_of(array.dtype) is None or not is_tracing():
        return array
    view = _view(array, RecordedMemory.form)
    # A root must own its memory: NumPy has views of it refer to the owner, whatever their class.
    return view if root_of(view) is not view else _copy(view, "K")
