"""The traced array: a NumPy integer array of node ids, plus a dtype.

Structural operations run NumPy itself on the ids, so that their meaning is NumPy's. Basic slices
are views of the ids: writing through one changes the original, as in NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from archimedes.graph.dtypes import DTYPES, F32, F64, I64, code_of
from archimedes.symbolic.core import indexing
from archimedes.symbolic.core.dispatch import cast_ids, lift
from archimedes.symbolic.core.flat_view import FlatView
from archimedes.symbolic.core.operators import DIRECT, Operators
from archimedes.symbolic.core.trace import (
    Trace,
    current_trace,
    is_user_code,
    outside_numpy,
    trace_error,
)
from archimedes.symbolic.recorded import recorded_array as recorded

__all__ = ["SymbolicArray", "is_traced"]

# NumPy's own, also while names in its module are replaced (``creation.py``).
_asarray = np.asarray


class SymbolicArray(Operators):
    """A value of a recording: an array, a NumPy scalar or a Python number made of graph nodes.

    ``ids`` are node ids, ``code`` the dtype code, ``owner`` the trace it belongs to. Made with
    this name it is an array; ``scalars.py`` has the classes of the other two forms. ``weak``
    says that it stands for a Python number, which does not widen the arrays it meets.
    """

    __slots__ = ("__weakref__", "code", "ids", "owner")
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]
    weak: ClassVar[bool] = False
    #: The classes of the three forms, for those who make one.
    array: ClassVar[type[SymbolicArray]]
    scalar: ClassVar[type[SymbolicArray]]
    number: ClassVar[type[SymbolicArray]]

    def __new__(cls, ids: np.ndarray, code: int, trace: Trace) -> SymbolicArray:
        """Make an array, or the form that a subclass stands for."""
        return object.__new__(SymbolicArray.array if cls is SymbolicArray else cls)

    def __init__(self, ids: np.ndarray, code: int, trace: Trace) -> None:
        self.ids = ids
        self.code = code
        self.owner = trace

    # ---- description -------------------------------------------------------------------

    @property
    def holds_traced_values(self) -> bool:
        """True: checks of numbers have nothing to look at."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, as a tuple of ints; assigning one reshapes in place, where no copy is needed."""
        return self.ids.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        ids = self.ids.reshape(shape)
        if not np.may_share_memory(ids, self.ids):
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."
            )
        self.ids = ids

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.ids.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.ids.size

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype."""
        return DTYPES[self.code]

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes the elements take."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, as of NumPy's array."""
        return tuple(s // self.ids.itemsize * self.itemsize for s in self.ids.strides)

    @property
    def flags(self) -> Any:
        """Order in memory, and whether it can be written to."""
        return self.ids.flags

    @property
    def T(self) -> SymbolicArray:
        """The transpose."""
        return self._like(self.ids.T)

    @property
    def mT(self) -> SymbolicArray:
        """The array with its last two axes swapped."""
        return self._like(self.ids.mT)

    @property
    def real(self) -> SymbolicArray:
        """The array itself: traced arrays are real."""
        return self

    @property
    def imag(self) -> SymbolicArray:
        """Zeros of the same shape and dtype."""
        zero = current_trace().graph.const(0, self.code)
        return type(self)(np.full_like(self.ids, zero), self.code, current_trace())

    @property
    def flat(self) -> FlatView:
        """The elements in C order, to iterate over, index and assign to."""
        return FlatView(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        FlatView(self)[...] = values

    def __repr__(self) -> str:
        value = self.constant()
        if value is not None:
            return f"Traced({value!r})"
        return f"Traced({self.dtype}, shape={self.shape})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        value = self.constant()
        if value is not None:
            return format(value[()], spec)
        if not spec:
            return repr(self)
        raise trace_error(
            f"format(x, {spec!r}) needs the value of a traced {self.dtype}",
            "Print results of the compiled function, or use arc.callback to print while it runs.",
        )

    # ---- conversion to plain values ----------------------------------------------------

    def constant(self) -> np.ndarray | None:
        """Return the values as a NumPy array where all are known, else None."""
        values = self.owner.graph.value
        try:
            flat = [values[i] for i in self.ids.ravel().tolist()]
        except KeyError:
            return None
        return np.array(flat, dtype=self.dtype).reshape(self.shape)

    def _scalar(self, what: str, remedy: str) -> Any:
        if self.size == 1:
            value = self.owner.graph.value.get(int(self.ids.ravel()[0]))
            if value is not None:
                return value
        elif self.size != 1 and what != "bool(x)":
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        raise trace_error(f"{what} needs the value of a traced {self.dtype}", remedy)

    def __bool__(self) -> bool:
        if self.size > 1:
            raise trace_error(
                "the truth value of a traced array with more than one element is ambiguous",
                "Use np.all(x) or np.any(x), and np.where or arc.cond to choose by it.",
            )
        return bool(
            self._scalar(
                "bool(x)",
                "A branch on a value cannot be recorded. Write np.where(test, a, b) to choose "
                "between values, arc.cond(test, f, g, *args) to choose between computations, "
                "arc.while_loop to repeat while a test holds, np.logical_and/or (& |) instead of "
                "and/or, or declare the argument static.",
            )
        )

    _NUMBER = (
        "Keep it an array: np.sin(x) instead of math.sin(x), arc.special.erf(x) instead of "
        "math.erf(x), x[()] or x.astype(...) instead of "
        "float(x) or int(x), np.zeros(3, like=x) or np.zeros_like(x) to fill by assignment; for "
        "Python code that needs numbers use arc.callback; for a setting, declare it static."
    )

    def __float__(self) -> float:
        return float(self._scalar("float(x)", self._NUMBER))

    def __int__(self) -> int:
        return int(self._scalar("int(x)", self._NUMBER))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex(x)", self._NUMBER))

    def __index__(self) -> int:
        if self.code != I64:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(
            self._scalar(
                "use as an index or a count",
                "Sizes and loop counts are fixed when a function is recorded: declare the "
                "argument static (static_argnames), index a traced array, or use "
                "arc.fori_loop / arc.while_loop.",
            )
        )

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

    @property
    def __array__(self) -> Any:
        # NumPy asks for this attribute; only arrays of known values have it. NumPy's own code may
        # go on with an array of objects, which is lifted again; a statement of the user's cannot.
        value = self.constant()
        if value is None:
            if is_user_code(sys._getframe(1)):
                raise trace_error(
                    f"the values of a traced {self.dtype} array are needed (to index or fill a "
                    "plain NumPy array, or to enter compiled code)",
                    "Make the array inside the function or from np.array(table), which can hold "
                    "and take traced values; or call the code through arc.callback.",
                )
            if is_user_code(outside_numpy(sys._getframe(1))):
                raise trace_error(
                    "a list that holds traced values was given to a NumPy function that was kept "
                    "(in a variable, a default, a dict) before the recording began",
                    "Make an array of the list, np.array([...]), or call the function by its name "
                    "(np.sum).",
                )
            raise AttributeError("__array__")

        def convert(dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return value if dtype is None else value.astype(dtype)

        return convert

    # ---- indexing ----------------------------------------------------------------------

    def _like(self, ids: Any) -> SymbolicArray:
        """Wrap ids made from this array's by NumPy: a view belongs where the array does."""
        # Where NumPy gives a scalar of the ids, it would give one of the values.
        form = SymbolicArray.array if isinstance(ids, np.ndarray) else SymbolicArray.scalar
        if not self.ids.ndim and self.form() is not SymbolicArray.array:
            ids = np.array(ids)  # a scalar cannot be written to, also not through a view
        made = form(_asarray(ids, dtype=np.int64), self.code, self.owner)
        if self.owner is current_trace() or np.may_share_memory(made.ids, self.ids):
            return made
        return made.copy()

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
        ids = cast_ids(g, self.owner.ids_of(source), source.code, self.code)
        static = indexing.static_key(key)
        if static is not None:
            self.ids[static[0]] = ids
        else:
            indexing.put(self, key, ids)

    # ---- NumPy's protocols -------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from archimedes.symbolic.core.ufunc_methods import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from archimedes.symbolic.core.function_calls import call_function

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
        ids = cast_ids(trace.graph, trace.ids_of(self), self.code, code).copy(order)
        return self.form()(ids, code, trace)

    def copy(self, order: Any = "C") -> SymbolicArray:
        """Return a copy that can be written to."""
        trace = current_trace()
        return self.form()(trace.ids_of(self).copy(order), self.code, trace)

    def form(self) -> type[SymbolicArray]:
        """Return the class of what NumPy's methods make of it: an array's an array."""
        return SymbolicArray.array

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
    # ``isinstance`` looks here when ``type(x)`` is no answer.
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


SymbolicArray.array = SymbolicNdarray
DIRECT.update((SymbolicNdarray, recorded.RecordedArray))


def is_traced(x: Any) -> bool:
    """Tell whether a value is a traced array, or an array that holds traced values."""
    return isinstance(x, SymbolicArray) or (
        type(x) is recorded.RecordedArray and recorded.holds_traced(x)
    )
