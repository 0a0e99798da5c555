"""The class of arrays made while recording: NumPy's interface to ``recorded_memory.py``.

While such an array holds numbers, NumPy's functions run on its memory, and their results are such
arrays again. Once it holds traced values, all calls go to the traced array that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.array import DIRECT, SymbolicArray
from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.indexing import FlatView
from archimedes.symbolic.core.registry import call_function
from archimedes.symbolic.core.traced_value import HOLDERS, Holder, as_traced
from archimedes.symbolic.core.ufunc_calls import call_ufunc
from archimedes.symbolic.recorded.recorded_memory import (
    RecordedMemory,
    as_plain,
    as_recorded,
    check_maker,
    find_traced,
    holds_nodes,
    numbers_of,
    root_of,
    writable,
)

__all__ = ["RecordedArray"]

ndarray = np.ndarray


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
        if _owner(plain) is owner and not isinstance(original, RecordedMemory):
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

_view = ndarray.view
_get, _set = ndarray.__getitem__, ndarray.__setitem__


class RecordedArray(RecordedMemory):
    """A NumPy array made while recording, which can take traced values.

    >>> from archimedes.symbolic import Trace
    >>> with Trace():
    ...     made = as_recorded(np.ones(2))
    >>> isinstance(made, np.ndarray), made.holds_traced_values, float(made.sum())
    (True, False, 2.0)
    """

    __slots__ = ()
    __array_priority__ = 500.0

    @property
    def holds_traced_values(self) -> bool:
        """Return whether traced values were written to it."""
        return holds_nodes(self)

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


RecordedMemory.form = RecordedArray
DIRECT.add(RecordedArray)
HOLDERS[RecordedArray] = Holder(find_traced, as_plain, writable)


# ---- methods -----------------------------------------------------------------------------------


def _method(name: str, *, writes: bool = False) -> Any:
    plain = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        traced = find_traced(self)
        if traced is None:
            if not is_traced(args) and not (kwargs and is_traced(tuple(kwargs.values()))):
                if writes:
                    check_maker(root_of(self))
                return as_recorded(plain(self, *args, **kwargs))
            traced = writable(self) if writes else lift(self)
        return getattr(traced, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``."
    return method


_READING = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy "
    "cumprod cumsum diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round "
    "searchsorted squeeze std sum swapaxes take tolist trace transpose var "
    "__bool__ __int__ __float__ __complex__ __index__ __contains__ __copy__ __deepcopy__ "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __matmul__ "
    "__rmatmul__"
)
_WRITING = "fill partition put sort"
for _names, _writes in ((_READING, False), (_WRITING, True)):
    for _name in _names.split():
        setattr(RecordedArray, _name, _method(_name, writes=_writes))


def _outside(name: str) -> Any:
    plain = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        traced = find_traced(self)
        if traced is None:
            return plain(self, *args, **kwargs)
        return getattr(numbers_of(self, f"read by x.{name}()"), name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``."
    return method


_OUTSIDE = "tobytes tofile dump dumps byteswap getfield setfield resize __dlpack__"
for _name in _OUTSIDE.split():
    setattr(RecordedArray, _name, _outside(_name))
