"""The traced array: NumPy's interface to the ids of a traced value.

Operators and most methods are the NumPy function of the same meaning. Structural operations run
NumPy itself on the ids, so that their meaning is NumPy's. Basic slices are views of the ids:
writing through one changes the original, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.graph.dtypes import F32, F64
from archimedes.symbolic.core import indexing
from archimedes.symbolic.core.conversion import cast_ids, code_of_dtype, lift
from archimedes.symbolic.core.indexing import FlatView
from archimedes.symbolic.core.registry import call_function
from archimedes.symbolic.core.trace import Trace, current_trace, outer_write_error, trace_error
from archimedes.symbolic.core.traced_value import DType, Key, Operand, Traced, TracedValue
from archimedes.symbolic.core.ufunc_calls import apply_ufunc, call_ufunc
from archimedes.symbolic.core.ufuncs import UFUNCS

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["SymbolicArray"]

#: Types whose operators end here without a way through NumPy: Python's numbers, and traced ones.
DIRECT: set[type] = {float, int}


class Operators:
    """What traced arrays inherit: ``x + y``, ``x @ y``, ``x += y``, ``x.sin()``, ``x.sum(...)``."""

    __slots__ = ()


def _operator(ufunc: np.ufunc, *, swap: bool = False) -> Callable[..., Any]:
    elementwise = ufunc in UFUNCS

    def method(self: Traced, other: Operand) -> Traced:
        if elementwise and type(other) in DIRECT:
            # No other class has a say: the way through NumPy would end here.
            return apply_ufunc(ufunc, (other, self) if swap else (self, other))
        if getattr(other, "__array_ufunc__", False) is None or isinstance(other, str):
            return NotImplemented
        return ufunc(other, self) if swap else ufunc(self, other)

    return method


def _inplace(ufunc: np.ufunc) -> Callable[..., Any]:
    def method(self: Traced, other: Operand) -> Traced:
        if self.ids.ndim == 0 and self.form() is not self.array:
            return ufunc(self, other)  # a scalar is a value: it is replaced, not written to
        return ufunc(self, other, out=(self,))

    return method


def _unary(ufunc: np.ufunc) -> Callable[..., Any]:
    def method(self: Traced) -> Traced:
        return apply_ufunc(ufunc, (self,))

    return method


def _power(self: Traced, exponent: Operand) -> Traced:
    # NumPy's operator, unlike np.power, takes the square root for an exponent of 0.5.
    if type(exponent) is float and exponent == 0.5:
        return np.sqrt(self)
    return np.power(self, exponent)


_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "divmod": np.divmod,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
#: Python's operators, by the names of their methods.
OPERATORS = {**_BINARY, **_COMPARISONS, **_UNARY}
for _name, _ufunc in _BINARY.items():
    setattr(Operators, f"__{_name}__", _operator(_ufunc))
    setattr(Operators, f"__r{_name}__", _operator(_ufunc, swap=True))
    setattr(Operators, f"__i{_name}__", _inplace(_ufunc))
Operators.__pow__ = _power  # type: ignore[attr-defined, operator, unused-ignore]
Operators.__rpow__ = _operator(np.power, swap=True)  # type: ignore[attr-defined]
Operators.__ipow__ = _inplace(np.power)  # type: ignore[attr-defined]
for _name, _ufunc in _COMPARISONS.items():
    setattr(Operators, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in _UNARY.items():
    setattr(Operators, f"__{_name}__", _unary(_ufunc))

# Object arrays of traced scalars call methods named like ufuncs: np.sin(a) calls a[i].sin().
_UFUNCS = (
    "sqrt sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh exp exp2 "
    "expm1 log log2 log10 log1p cbrt hypot floor ceil trunc rint sign square degrees radians "
    "deg2rad rad2deg isnan isfinite isinf fabs"
)
for _name in _UFUNCS.split():
    _ufunc = getattr(np, _name)
    setattr(Operators, _name, (_operator if _ufunc.nin == 2 else _unary)(_ufunc))


def _function_method(name: str) -> Callable[..., Any]:
    def method(self: Traced, *args: Any, **kwargs: Any) -> Traced:
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Return ``np.{name}(self, ...)``."
    return method


_FUNCTIONS = (
    "sum prod mean std var max min argmax argmin any all cumsum cumprod dot ravel squeeze swapaxes "
    "repeat take diagonal trace clip round argsort argpartition nonzero searchsorted choose put"
)
for _name in _FUNCTIONS.split():
    setattr(Operators, _name, _function_method(_name))


# ---- the array ----------------------------------------------------------------------------------


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
    def flat(self, values: Operand) -> None:
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

    def __getitem__(self, key: Key) -> SymbolicArray:
        static = indexing.static_key(key)
        if static is not None:
            return self._like(self.ids[static[0]])
        return indexing.take(self, key)

    def __setitem__(self, key: Key, value: Operand) -> None:
        if self.owner is not current_trace():
            raise outer_write_error()
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

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Traced:
        return call_function(func, args, kwargs)

    # ---- methods that are not functions of the same name -------------------------------

    def astype(
        self,
        dtype: DTypeLike,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> SymbolicArray:
        """Convert to another dtype; floats are truncated toward zero, as in NumPy."""
        code = code_of_dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):
            np.empty(0, self.dtype).astype(dtype, casting=casting)  # raises NumPy's error
        if code == self.code and not copy:
            # NumPy decides whether the order asks for a copy.
            ids = self.ids.astype(self.ids.dtype, order=order, copy=False)
            return self if ids is self.ids else self.form()(ids, code, self.owner)
        trace = current_trace()
        ids = cast_ids(trace.graph, trace.elements_of(self), self.code, code).copy(order)
        return self.form()(ids, code, trace)

    def __copy__(self) -> SymbolicArray:
        return self.copy("K")

    def __deepcopy__(self, memo: object) -> SymbolicArray:
        return self.copy("K")

    def flatten(self, order: Any = "C") -> SymbolicArray:
        """Return a copy collapsed into one dimension."""
        return self._like(self.ids.flatten(order))

    def view(self, dtype: DType = None) -> SymbolicArray:
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

    def fill(self, value: Operand) -> None:
        """Set every element."""
        self[...] = value

    def sort(self, axis: int = -1, **kwargs: Any) -> None:
        """Sort in place."""
        self[...] = np.sort(self, axis=axis, **kwargs)

    def partition(self, kth: Operand, axis: int = -1, **kwargs: Any) -> None:
        """Partition in place (by a full sort)."""
        self[...] = np.partition(self, kth, axis=axis, **kwargs)

    def compress(self, condition: Operand, axis: int | None = None, out: Operand = None) -> Traced:
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

    def __contains__(self, value: Operand) -> bool:
        return bool(np.any(self == value))


TracedValue.array = SymbolicNdarray
DIRECT.add(SymbolicNdarray)
