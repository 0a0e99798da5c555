"""The traced array: NumPy's interface to the ids of a traced value.

Structural operations run NumPy itself on the ids, so that their meaning is NumPy's. Basic slices
are views of the ids: writing through one changes the original, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.graph.dtypes import F32, F64, code_of
from archimedes.symbolic.core import indexing
from archimedes.symbolic.core.casting import cast_ids
from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.flat_view import FlatView
from archimedes.symbolic.core.function_calls import call_function
from archimedes.symbolic.core.operators import DIRECT, Operators
from archimedes.symbolic.core.trace import Trace, current_trace, trace_error
from archimedes.symbolic.core.traced_value import TracedValue
from archimedes.symbolic.core.ufunc_methods import call_ufunc

__all__ = ["SymbolicArray"]


class SymbolicArray(TracedValue, Operators):
    """A value of a recording: an array, a NumPy scalar or a Python number made of graph nodes.

    Made with this name it is an array; ``scalars.py`` has the classes of the other two forms.
    """

    __slots__ = ()

    def __new__(cls, ids: np.ndarray, code: int, trace: Trace) -> SymbolicArray:
        """Make an array, or the form that a subclass stands for."""
        return object.__new__(TracedValue.array if cls is SymbolicArray else cls)

    # ---- elements ----------------------------------------------------------------------

    @property
    def flat(self) -> FlatView:
        """The elements in C order, to iterate over, index and assign to."""
        return FlatView(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        FlatView(self)[...] = values

    def item(self, *args: int) -> Any:
        """Return one element: a Python number where its value is known, else a traced scalar."""
        if not args and self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        at = args[0] if len(args) == 1 else args
        chosen = self[at] if isinstance(at, tuple) and at else self.flat[at or 0]
        value = chosen.constant()
        return chosen.as_number() if value is None else value.item()

    def as_number(self) -> SymbolicArray:
        """Return a scalar as the Python number that ``x.item()`` gives."""
        trace = current_trace()
        code = F64 if self.code == F32 else self.code
        ids = cast_ids(trace.graph, trace.ids_of(self), self.code, code)
        return SymbolicArray.number(ids, code, trace)

    def tolist(self) -> Any:
        """Return nested lists of traced Python numbers."""
        return self.item() if self.ndim == 0 else [self[k].tolist() for k in range(len(self.ids))]

    def __getitem__(self, key: Any) -> SymbolicArray:
        static = indexing.static_key(key)
        if static is not None:
            return self._like(self.ids[static[0]])
        return indexing.take(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.owner is not current_trace():
            raise trace_error(
                "a function recorded inside another writes to the outer one's array",
                "Copy it first (y = x.copy()), and return the result.",
            )
        g = self.owner.graph
        source = lift(value)
        ids = cast_ids(g, self.owner.elements_of(source), source.code, self.code)
        static = indexing.static_key(key)
        if static is not None:
            self.ids[static[0]] = ids
        else:
            indexing.put(self, key, ids)

    # ---- NumPy's protocols -------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(func, args, kwargs)

    # ---- methods that are not functions of the same name -------------------------------

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> SymbolicArray:
        """Convert to another dtype; floats are truncated toward zero, as in NumPy."""
        code = code_of(np.dtype(dtype))
        if code is None:
            raise trace_error(
                f"dtype {np.dtype(dtype)} cannot be traced",
                "Use float64, float32, int64 or bool.",
            )
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to "
                f"the rule {casting!r}"
            )
        if code == self.code and not copy:
            # NumPy decides whether the order asks for a copy.
            ids = self.ids.astype(self.ids.dtype, order=order, copy=False)
            return self if ids is self.ids else self.form()(ids, code, self.owner)
        trace = current_trace()
        ids = cast_ids(trace.graph, trace.elements_of(self), self.code, code).copy(order)
        return self.form()(ids, code, trace)

    def __copy__(self) -> SymbolicArray:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> SymbolicArray:
        return self.copy("K")

    def flatten(self, order: Any = "C") -> SymbolicArray:
        """Return a copy collapsed into one dimension."""
        return self._like(self.ids.flatten(order))

    def view(self, dtype: Any = None) -> SymbolicArray:
        """Return another array of the same elements: writing to one changes both."""
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise trace_error(
                f"x.view({np.dtype(dtype)}) reads the bytes of a traced array as another dtype",
                "Use x.astype(...) to convert values.",
            )
        return self._like(self.ids.view())

    def reshape(self, *shape: Any, order: Any = "C") -> SymbolicArray:
        """Return the array in another shape."""
        wanted = shape[0] if len(shape) == 1 else shape
        return self._like(self.ids.reshape(wanted, order=order))

    def transpose(self, *axes: Any) -> SymbolicArray:
        """Return the array with its axes permuted."""
        return self._like(self.ids.transpose(*axes))

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def sort(self, axis: int = -1, **kwargs: Any) -> None:
        """Sort in place."""
        self[...] = np.sort(self, axis=axis, **kwargs)

    def partition(self, kth: Any, axis: int = -1, **kwargs: Any) -> None:
        """Partition in place (by a full sort)."""
        self[...] = np.partition(self, kth, axis=axis, **kwargs)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> SymbolicArray:
        """Return the slices along an axis that a static condition selects."""
        return np.compress(condition, self, axis=axis, out=out)

    def conj(self) -> SymbolicArray:
        """Return the array: traced arrays are real."""
        return self

    conjugate = conj


class SymbolicNdarray(SymbolicArray):
    """A traced array; unlike a scalar, it has a length and can be iterated over."""

    __slots__ = ()
    # ``isinstance`` looks here when ``type(x)`` does not answer.
    __class__ = property(lambda self: np.ndarray)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return len(self.ids)

    def __iter__(self) -> Iterator[SymbolicArray]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self._like(row) for row in self.ids)

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))


TracedValue.array = SymbolicNdarray
DIRECT.add(SymbolicNdarray)
