"""Arrays made while recording: real NumPy arrays, until a traced value is written into one.

``np.zeros(3)`` inside a recorded function gives a ``RecordedArray``, a subclass of ndarray.
As long as it holds numbers only, NumPy works on its memory and nothing is recorded. The first
traced value written into it, or into any view of it, gives the array that all views stem from
its *root*, a parallel array of graph nodes: from then on that is what is read and written, for
the root and for every view, older ones included. A view finds its nodes as it finds its numbers,
by offset and strides.

The memory of such an array is filled with a poison: nan, the least integer. Code that ignores
NumPy's protocols and reads it gets nothing plausible; what such code writes is found by its
difference from the poison, and becomes constants. See docs/decisions/004-numpy-creation.md.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np

from archimedes.graph.dtypes import code_of
from archimedes.symbolic.core.trace import is_active, is_tracing, trace_error, trace_number
from archimedes.symbolic.recorded.array_nodes import Nodes, set_dtype

__all__ = [
    "RecordedMemory",
    "as_plain",
    "as_recorded",
    "check_maker",
    "holds_nodes",
    "numbers_of",
    "root_of",
    "traced_form",
    "writable",
]

ndarray = np.ndarray
_view, _copy = ndarray.view, ndarray.copy
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
        found, nodes = _get_dtype(self), self._nodes
        return found if nodes is None or found.kind != "V" else nodes.dtype

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


def traced_form(x: RecordedMemory) -> Any:
    """Return the traced array that an array stands for, or None if it holds numbers."""
    root = root_of(x)
    nodes = root._nodes
    return None if nodes is None else nodes.of(x, root)


def holds_nodes(x: RecordedMemory) -> bool:
    """Tell whether traced values were written to an array, or to what it is a view of."""
    return root_of(x)._nodes is not None


def writable(x: RecordedMemory) -> Any:
    """Return the traced array that an array stands for from now on, to write traced values to."""
    root = root_of(x)
    nodes = root._nodes
    if nodes is None:
        check_maker(root)
        if root._maker != trace_number():
            raise trace_error(
                "a traced value is written into an array that another recording made and kept",
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
    found = traced_form(x)
    if found is None:
        return as_plain(x)
    value = found.constant()
    if value is None:
        raise trace_error(
            f"an array that holds traced values is {what}",
            "Return it from the compiled function, or call the code through arc.callback.",
        )
    return value


def as_recorded(made: Any) -> Any:
    """Return a fresh NumPy array as one that can take traced values, if it is made in a recording.

    Arrays of other dtypes, and anything else, are returned as they are.
    """
    if type(made) is not ndarray or code_of(made.dtype) is None or not is_tracing():
        return made
    view = _view(made, RecordedMemory.form)
    # A root must own its memory: NumPy has views of it refer to the owner, whatever their class.
    return view if root_of(view) is not view else _copy(view, "K")
