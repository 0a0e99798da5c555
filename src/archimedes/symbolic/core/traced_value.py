"""What every traced value is: a NumPy integer array of node ids, a dtype, and its trace.

This is the part of the traced array that stands on traces alone. What computes, lifts and indexes
is built on it; ``array.py`` puts the whole together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from archimedes.errors import refer_to
from archimedes.graph.blocks.references import constant_values
from archimedes.graph.dtypes import DTYPES, I64
from archimedes.symbolic.core.trace import Trace, current_trace, trace_error
from archimedes.symbolic.core.user_frames import is_user_code, outside_numpy

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["as_traced"]

# NumPy's own, also while names in its module are replaced (``recorded/numpy_patching.py``).
_asarray = np.asarray


#: A traced value. Type checkers have no word for a class that NumPy's functions take by protocol.
Traced: TypeAlias = Any
#: What NumPy's functions take for an array: a traced value, an array, a number, or lists of these.
Operand: TypeAlias = Any
#: A key of ``x[key]``: numbers, slices, None, an ellipsis, arrays, or a tuple of these.
Key: TypeAlias = Any
#: A dtype, as NumPy's functions take it.
DType: TypeAlias = "DTypeLike | None"
#: Axes of an array, as NumPy's functions take them.
Axis: TypeAlias = int | Sequence[int] | None
#: What NumPy's functions have for an argument that was not given.
NO_VALUE: Any = np._NoValue
#: The name of a module in which a decision by values that are not known is no error, but a no.
UNKNOWN_IS_FALSE = "copies of NumPy's functions, in which what is not known is false"


class TracedValue:
    """The nodes of a value, what they look like, and what Python may ask of them.

    ``ids`` are node ids, ``code`` the dtype code, ``owner`` the trace it belongs to. ``weak``
    says that it stands for a Python number, which does not widen the arrays it meets.
    """

    __slots__ = ("__weakref__", "code", "ids", "owner")
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]
    weak: ClassVar[bool] = False
    #: The classes of the three forms, for those who make one; ``array.py`` and ``scalars.py``
    #: enter theirs.
    array: ClassVar[Any]
    scalar: ClassVar[Any]
    number: ClassVar[Any]

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

    ndim = property(lambda self: self.ids.ndim, doc="Number of dimensions.")
    size = property(lambda self: self.ids.size, doc="Number of elements.")
    dtype = property(lambda self: DTYPES[self.code], doc="NumPy dtype.")
    itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes an element takes.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="Bytes the elements take.")
    flags = property(
        lambda self: self.ids.flags, doc="Order in memory, and whether it is writable."
    )
    T = property(lambda self: self._like(self.ids.T), doc="The transpose.")
    mT = property(lambda self: self._like(self.ids.mT), doc="The array with its last axes swapped.")

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, as in a NumPy array."""
        return tuple(s // self.ids.itemsize * self.itemsize for s in self.ids.strides)

    @property
    def real(self) -> Any:
        """The array itself: traced arrays are real."""
        return self

    @property
    def imag(self) -> Any:
        """Zeros of the same shape and dtype."""
        zero = current_trace().graph.const(0, self.code)
        return type(self)(np.full_like(self.ids, zero), self.code, current_trace())

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
            "Print results of the compiled function, or use arc.callback to print while it "
            "runs." + refer_to("print"),
        )

    # ---- conversion to plain values ----------------------------------------------------

    def constant(self) -> np.ndarray | None:
        """Return the values as a NumPy array where all are known, else None."""
        return constant_values(self.owner.graph, self.ids, self.dtype)

    def _scalar(self, what: str, remedy: str) -> Any:
        if self.size == 1:
            graph = self.owner.graph
            value = graph.value.get(graph.node_of(int(self.ids.ravel()[0])))
            if value is not None:
                return value
        frame = sys._getframe(2)
        if what == "bool(x)" and frame.f_globals.get("__name__") == UNKNOWN_IS_FALSE:
            return False
        self._explain_plain_array(frame)
        if self.size != 1 and what != "bool(x)":
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        raise trace_error(f"{what} needs the value of a traced {self.dtype}", remedy)

    def _explain_plain_array(self, frame: FrameType) -> None:
        """Raise the error about a plain array that was given this value, if there is one."""
        # For errors only: it takes a while to import.
        from archimedes.symbolic.core.plain_array_uses import explain_plain_array_use

        frame = outside_numpy(frame)
        if is_user_code(frame):
            use = explain_plain_array_use(frame, frame.f_lasti, self.dtype)
            if use is not None:
                raise trace_error(*use)

    def __bool__(self) -> bool:
        if self.size > 1:
            raise trace_error(
                "the truth value of a traced array with more than one element is ambiguous",
                "Use np.all(x) or np.any(x), and np.where or arc.cond to choose by it."
                + refer_to("branch"),
            )
        return bool(self._scalar("bool(x)", self._BRANCH))

    _BRANCH = (
        "A branch on a value cannot be recorded. Write np.where(test, a, b) to choose "
        "between values, arc.cond(test, f, g, *args) to choose between computations, "
        "arc.while_loop to repeat while a test holds, np.logical_and/or (& |) instead of "
        "and/or, or declare the argument static." + refer_to("branch")
    )
    _NUMBER = (
        "Keep it an array: np.sin(x) instead of math.sin(x), arc.special.erf(x) instead of "
        "math.erf(x), x[()] or x.astype(...) instead of "
        "float(x) or int(x), np.zeros(3, like=x) or np.zeros_like(x) to fill by assignment; for "
        "Python code that needs numbers use arc.callback; for a setting, declare it static."
        + refer_to("number")
    )
    _COUNT = (
        "Sizes and loop counts are fixed when a function is recorded: declare the argument static "
        "(static_argnames), write np.take(values, k) to index a list, or use arc.fori_loop / "
        "arc.while_loop." + refer_to("count")
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
        return int(self._scalar("use as an index or a count", self._COUNT))

    @property
    def __array__(self) -> Any:
        # NumPy asks for this attribute; only arrays of known values have it. NumPy's own code may
        # go on with an array of objects, which is lifted again; a statement of the user's cannot.
        value = self.constant()
        if value is None:
            frame = sys._getframe(1)
            self._explain_plain_array(frame)
            if is_user_code(frame):
                raise trace_error(
                    f"the values of a traced {self.dtype} array are needed (to index or fill a "
                    "plain NumPy array, or to enter compiled code)",
                    "Write np.take(table, k) for table[k] and np.dot(table, x) for table.dot(x); "
                    "make an array to be filled inside the function, a = np.array(table); or call "
                    "the code through arc.callback.",
                )
            if is_user_code(outside_numpy(frame)):
                raise trace_error(
                    "a NumPy function was given a traced value where it needs numbers, or a list "
                    "that holds traced values",
                    "Make an array of a list, np.array([...]), and give NumPy arrays that were "
                    "made inside the function, np.array(table); or call the code through "
                    "arc.callback.",
                )
            raise AttributeError("__array__")

        def convert(dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return value if dtype is None else value.astype(dtype)

        return convert

    # ---- what NumPy makes of the ids ---------------------------------------------------

    def _like(self, ids: Any) -> Any:
        """Wrap ids that NumPy made from this array's: a view belongs to the same trace."""
        # Where NumPy gives a scalar of the ids, it would give one of the values.
        form = TracedValue.array if isinstance(ids, np.ndarray) else TracedValue.scalar
        if not self.ids.ndim and self.form() is not TracedValue.array:
            ids = np.array(ids)  # a scalar cannot be written to, not even through a view
        result = form(_asarray(ids, dtype=np.int64), self.code, self.owner)
        if self.owner is current_trace() or np.may_share_memory(result.ids, self.ids):
            return result
        return result.copy()

    def copy(self, order: Any = "C") -> Any:
        """Return a copy that can be written to."""
        trace = current_trace()
        return self.form()(trace.elements_of(self).copy(order), self.code, trace)

    def form(self) -> Any:
        """Return the class of the results of NumPy's methods: for an array, the array's."""
        return TracedValue.array


# ---- what is traced, or holds traced values -----------------------------------------------------


class Holder(NamedTuple):
    """What can be asked of an array that may hold traced values, besides whether it does."""

    #: The traced array that it stands for, or None while it holds numbers.
    traced: Callable[[Any], Any]
    #: Its numbers, as NumPy's own array.
    plain: Callable[[Any], np.ndarray]
    #: The traced array that it stands for from now on, to write traced values to.
    writable: Callable[[Any], Any]


#: Classes of such arrays.
HOLDERS: dict[type, Holder] = {}


def as_traced(x: Any) -> Any:
    """Return an array that holds traced values as the traced array; lists and tuples likewise."""
    kind = type(x)
    holder = HOLDERS.get(kind)
    if holder is not None:
        traced = holder.traced(x)
        return x if traced is None else traced
    if (kind is list or kind is tuple) and not HOLDERS.keys().isdisjoint(map(type, x)):
        return kind([as_traced(item) for item in x])
    return x


def as_constant(x: Any) -> Any:
    """Return traced arrays whose values are known as NumPy arrays; anything else unchanged."""
    if isinstance(x, TracedValue):
        value = x.constant()
        return x if value is None else value
    if isinstance(x, (list, tuple)) and any(isinstance(i, (TracedValue, list, tuple)) for i in x):
        items = [as_constant(i) for i in x]
        return type(x)(items) if type(x) in (list, tuple) else x
    return x
