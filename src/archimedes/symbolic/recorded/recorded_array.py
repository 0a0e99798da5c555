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

While such an array holds numbers, NumPy's functions run on its memory, and their results are such
arrays again. Once it holds traced values, all calls go to the traced array that it stands for.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.graph.dtypes import code_of
from archimedes.symbolic.core import trace as traces
from archimedes.symbolic.core.array import DIRECT, SymbolicArray
from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.indexing import FlatView
from archimedes.symbolic.core.loop_nests import constant_ids
from archimedes.symbolic.core.registry import call_function
from archimedes.symbolic.core.trace import current_trace, is_tracing, trace_error
from archimedes.symbolic.core.traced_value import HOLDERS, Holder, as_traced
from archimedes.symbolic.core.ufunc_calls import call_ufunc

__all__ = ["RecordedArray"]

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


# ---- arrays, the arrays they stem from, and the traced arrays they stand for -------------------


def root_of(x: RecordedArray) -> RecordedArray:
    """Return the array made while recording that a view stems from."""
    root, base = x, x.base
    while base is not None:
        if type(base) is RecordedArray:
            root = base
        base = getattr(base, "base", None)  # as_strided puts an object in between
    return root


def find_traced(x: RecordedArray) -> Any:
    """Return the traced array that an array stands for, or None if it holds numbers."""
    root = root_of(x)
    nodes = root._nodes
    return None if nodes is None else nodes.of(x, root)


def writable(x: RecordedArray) -> Any:
    """Return the traced array that an array stands for from now on, to write traced values to."""
    root = root_of(x)
    nodes = root._nodes
    if nodes is None:
        check_maker(root)
        if root._maker != traces.trace_number():
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


def check_maker(root: RecordedArray) -> None:
    """Refuse writing from a function recorded inside the one that made the array."""
    if root._maker != traces.trace_number() and traces.is_active(root._maker):
        raise traces.outer_write_error()


def as_plain(x: Any) -> Any:
    """Return an array made while recording as NumPy's own over the same memory."""
    return _view(x, ndarray) if type(x) is RecordedArray else x


def numbers_of(x: RecordedArray, what: str) -> np.ndarray:
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
    view = _view(array, RecordedArray)
    # A root must own its memory: NumPy has views of it refer to the owner, whatever their class.
    return view if root_of(view) is not view else _copy(view, "K")


# ---- functions on numbers ----------------------------------------------------------------------


def call_plainly(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function on the numbers of arrays made while recording."""
    seen: list[tuple[Any, Any]] = []
    result = function(*_plain_tree(args, seen), **_plain_tree(kwargs, seen))
    return _adopt(result, seen)


def _plain_tree(x: Any, seen: list[tuple[Any, Any]]) -> Any:
    """Replace arrays made while recording by plain ones; note every array and what it was."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([_plain_tree(item, seen) for item in x])
    if kind is dict:
        return {key: _plain_tree(item, seen) for key, item in x.items()}
    if isinstance(x, ndarray):
        seen.append((as_plain(x), x))
        return seen[-1][0]
    return x


def _owner(x: np.ndarray) -> Any:
    base: Any = x
    while base is not None:
        x, base = base, getattr(base, "base", None)
    return x


def _adopt(result: Any, seen: list[tuple[Any, Any]]) -> Any:
    """Let arrays in a result take traced values, unless they are or view an outside array."""
    if isinstance(result, (tuple, list)):
        parts = [_adopt(r, seen) for r in result]
        make = getattr(type(result), "_make", type(result))
        return make(parts)
    if type(result) is not ndarray:
        return result
    for plain, original in seen:
        if result is plain:
            return original
    owner = _owner(result)
    for plain, original in seen:
        if _owner(plain) is owner and not isinstance(original, RecordedArray):
            return result
    return as_recorded(result)


def adopt_result(result: Any, *arguments: Any) -> Any:
    """Return what a NumPy function made of its arguments as what user code gets to see."""
    if isinstance(result, SymbolicArray):
        return result
    seen: list[tuple[Any, Any]] = []
    _plain_tree(arguments, seen)
    return _adopt(result, seen)


# ---- x.flat -------------------------------------------------------------------------------------


class RecordedFlat(FlatView):
    """``x.flat`` of an array made while recording."""

    __slots__ = ()

    def _numbers_of(self) -> Any:
        return np.ndarray.flat.__get__(self.base)

    def __iter__(self) -> Iterator[Any]:
        traced = find_traced(self.base)
        return iter(self._numbers_of() if traced is None else traced.flat)

    def __getitem__(self, key: Any) -> Any:
        traced = find_traced(self.base)
        return self._numbers_of()[key] if traced is None else traced.flat[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if find_traced(self.base) is None and not is_traced(value):
            check_maker(root_of(self.base))
            self._numbers_of()[key] = value
        else:
            writable(self.base).flat[key] = value


# ---- the array ----------------------------------------------------------------------------------

_get, _copy = ndarray.__getitem__, ndarray.copy
_get_dtype: Any = ndarray.dtype.__get__


class RecordedArray(ndarray):
    """A NumPy array made while recording, which can take traced values.

    >>> from archimedes.symbolic import Trace
    >>> with Trace():
    ...     made = as_recorded(np.ones(2))
    >>> isinstance(made, np.ndarray), made.holds_traced_values, float(made.sum())
    (True, False, 2.0)
    """

    __slots__ = ("_maker", "_nodes", "_views")
    __array_priority__ = 500.0

    def __array_finalize__(self, obj: Any) -> None:
        self._maker = traces.trace_number()
        self._nodes: Nodes | None = None
        #: Views of a root, as weak references.
        self._views: list[Any] | None = None
        if self.base is not None and isinstance(obj, RecordedArray):
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

    @property
    def holds_traced_values(self) -> bool:
        """Return whether traced values were written to it, or to what it is a view of."""
        return root_of(self)._nodes is not None

    # ---- reading and writing ---------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        traced = find_traced(self)
        if traced is None:
            if not is_traced(key):
                return _get(self, key)
            traced = lift(self)
        return traced[as_traced(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        traced = find_traced(self)
        if traced is None:
            if not is_traced(value) and not is_traced(key):
                check_maker(root_of(self))
                _set(self, key, value)
                return
            traced = writable(self)
        traced[as_traced(key)] = value

    def __iter__(self) -> Iterator[Any]:
        traced = find_traced(self)
        return ndarray.__iter__(self) if traced is None else iter(traced)

    @property
    def flat(self) -> Any:
        """The elements in C order, to iterate over, index and assign to."""
        return RecordedFlat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[...] = values

    @property  # type: ignore[misc]  # of traced values it cannot be set
    def imag(self) -> Any:
        """Zeros: arrays made while recording are real."""
        traced = find_traced(self)
        return ndarray.imag.__get__(self) if traced is None else traced.imag

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return another array over the same memory; ``type=np.ndarray`` makes no difference."""
        traced = find_traced(self)
        view = _view(self, *args, **kwargs)
        return as_recorded(view) if traced is None else traced.view(view.dtype)

    # ---- NumPy's protocols -----------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if is_traced(inputs) or is_traced(out) or is_traced(kwargs.get("where")):
            return call_ufunc(ufunc, method, inputs, kwargs)
        if out:
            kwargs["out"] = tuple(as_plain(x) for x in out)
            for x in out:
                if type(x) is RecordedArray:
                    check_maker(root_of(x))
        if method == "at":
            check_maker(root_of(self))
        result = getattr(ufunc, method)(*(as_plain(x) for x in inputs), **kwargs)
        if out:
            return out[0] if len(out) == 1 else tuple(out)
        if type(result) is tuple:
            return tuple(as_recorded(r) for r in result)
        return as_recorded(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if is_traced(args) or is_traced(tuple(kwargs.values())):
            return call_function(func, args, kwargs)
        return call_plainly(func, args, kwargs)

    # ---- leaving Python --------------------------------------------------------------------

    def __repr__(self) -> str:
        traced = find_traced(self)
        return repr(_view(self, ndarray) if traced is None else traced)

    def __str__(self) -> str:
        traced = find_traced(self)
        return str(_view(self, ndarray) if traced is None else traced)

    def __format__(self, spec: str) -> str:
        traced = find_traced(self)
        return format(_view(self, ndarray) if traced is None else traced, spec)

    def __reduce__(self) -> Any:
        return numbers_of(self, "pickled").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return numbers_of(self, "pickled").__reduce_ex__(protocol)

    @property
    def __array_interface__(self) -> Any:
        return numbers_of(self, "given to compiled code").__array_interface__

    @property
    def __array_struct__(self) -> Any:
        return numbers_of(self, "given to compiled code").__array_struct__


DIRECT.add(RecordedArray)
HOLDERS[RecordedArray] = Holder(find_traced, as_plain, writable)


# ---- methods -----------------------------------------------------------------------------------


def _method(name: str, *, writes: bool = False) -> Any:
    plain = getattr(ndarray, name)

    @functools.wraps(plain, assigned=("__name__", "__qualname__"))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        traced = find_traced(self)
        if traced is None:
            if not is_traced(args) and not (kwargs and is_traced(tuple(kwargs.values()))):
                if writes:
                    check_maker(root_of(self))
                return as_recorded(plain(self, *args, **kwargs))
            traced = writable(self) if writes else lift(self)
        return getattr(traced, name)(*args, **kwargs)

    return method


_READING = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy "
    "cumprod cumsum diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round "
    "searchsorted squeeze std sum swapaxes take tolist trace transpose var "
    "__bool__ __int__ __float__ __complex__ __index__ __contains__ __copy__ __deepcopy__ "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __matmul__ "
    "__rmatmul__ __eq__ __ne__"
)
_WRITING = "fill partition put sort"
for _names, _writes in ((_READING, False), (_WRITING, True)):
    for _name in _names.split():
        setattr(RecordedArray, _name, _method(_name, writes=_writes))


def _outside(name: str) -> Any:
    plain = getattr(ndarray, name)

    @functools.wraps(plain, assigned=("__name__", "__qualname__"))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if find_traced(self) is None:
            return plain(self, *args, **kwargs)
        return getattr(numbers_of(self, f"read by x.{name}()"), name)(*args, **kwargs)

    return method


_OUTSIDE = "tobytes tofile dump dumps byteswap getfield setfield resize __dlpack__"
for _name in _OUTSIDE.split():
    setattr(RecordedArray, _name, _outside(_name))
