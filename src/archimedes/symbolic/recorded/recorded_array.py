"""Arrays made while recording: real NumPy arrays, until a traced value is written into one.

``np.zeros(3)`` inside a recorded function gives a :class:`RecordedArray`, a subclass of ndarray.
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

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from archimedes.graph.dtypes import code_of

# Modules, not what is in them: these files need each other.
from archimedes.symbolic.core import array as arrays
from archimedes.symbolic.core import dispatch
from archimedes.symbolic.core.trace import (
    is_active,
    is_tracing,
    trace_error,
    trace_number,
)
from archimedes.symbolic.recorded.array_nodes import Nodes

__all__ = [
    "UNTRACED",
    "RecordedArray",
    "as_plain",
    "as_recorded",
    "check_maker",
    "holds_traced",
    "root_of",
    "traced_form",
    "traced_or_same",
    "writable",
]

ndarray = np.ndarray
_view, _copy = ndarray.view, ndarray.copy
_get, _set = ndarray.__getitem__, ndarray.__setitem__

#: Types that need no closer look.
UNTRACED = frozenset(
    {float, int, bool, str, slice, type(None), type(...), np.float64, np.int64, np.bool_}
)


@cache
def _late(name: str) -> Any:
    """Return a module of this package that needs this one first."""
    return import_module(f"archimedes.symbolic.{name}")


class RecordedArray(ndarray):
    """A NumPy array made while recording, which can take traced values; see the module's text.

    >>> from archimedes.symbolic import Trace
    >>> with Trace():
    ...     made = as_recorded(np.ones(2))
    >>> isinstance(made, np.ndarray), made.holds_traced_values, float(made.sum())
    (True, False, 2.0)
    """

    __slots__ = ("_maker", "_nodes")
    __array_priority__ = 500.0

    def __array_finalize__(self, obj: Any) -> None:
        self._maker = trace_number()
        self._nodes: Nodes | None = None

    @property
    def holds_traced_values(self) -> bool:
        """Tell whether traced values were written to it, so that it is no array of numbers."""
        return root_of(self)._nodes is not None

    # ---- reading and writing ---------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        found = traced_form(self)
        if found is None:
            if not holds_traced(key):
                return _get(self, key)
            found = dispatch.lift(self)
        return found[traced_or_same(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        found = traced_form(self)
        if found is None:
            if not holds_traced(value) and not holds_traced(key):
                check_maker(root_of(self))
                _set(self, key, value)
                return
            found = writable(self)
        found[traced_or_same(key)] = value

    def __iter__(self) -> Iterator[Any]:
        found = traced_form(self)
        return ndarray.__iter__(self) if found is None else iter(found)

    @property
    def flat(self) -> Any:
        """The elements in C order, to iterate over, index and assign to."""
        return _late("core.flat_view").RecordedFlat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[...] = values

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return another array over the same memory; ``type=np.ndarray`` makes no difference."""
        found = traced_form(self)
        made = _view(self, *args, **kwargs)
        return as_recorded(made) if found is None else found.view(made.dtype)

    # ---- NumPy's protocols -----------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if holds_traced(inputs) or holds_traced(out) or holds_traced(kwargs.get("where")):
            return _late("core.ufunc_methods").call_ufunc(ufunc, method, inputs, kwargs)
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
        if holds_traced(args) or holds_traced(tuple(kwargs.values())):
            return _late("core.function_calls").call_function(func, args, kwargs)
        return _late("recorded.recorded_results").call_plainly(func, args, kwargs)

    # ---- leaving Python --------------------------------------------------------------------

    def __repr__(self) -> str:
        found = traced_form(self)
        return repr(_view(self, ndarray) if found is None else found)

    def __str__(self) -> str:
        found = traced_form(self)
        return str(_view(self, ndarray) if found is None else found)

    def __format__(self, spec: str) -> str:
        found = traced_form(self)
        return format(_view(self, ndarray) if found is None else found, spec)

    def __reduce__(self) -> Any:
        return _numbers(self, "pickled").__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _numbers(self, "pickled").__reduce_ex__(protocol)

    @property
    def __array_interface__(self) -> Any:
        return _numbers(self, "given to compiled code").__array_interface__

    @property
    def __array_struct__(self) -> Any:
        return _numbers(self, "given to compiled code").__array_struct__


# ---- what an array stands for ------------------------------------------------------------------


def root_of(x: RecordedArray) -> RecordedArray:
    """Return the array made while recording that a view stems from."""
    root, base = x, x.base
    while base is not None:
        if type(base) is RecordedArray:
            root = base
        base = getattr(base, "base", None)  # as_strided puts an object in between
    return root


def traced_form(x: RecordedArray) -> Any:
    """Return the traced array that an array stands for, or None if it holds numbers."""
    root = root_of(x)
    nodes = root._nodes
    return None if nodes is None else nodes.of(x, root)


def traced_or_same(x: Any) -> Any:
    """Return an array that holds traced values as the traced array; lists and tuples likewise."""
    kind = type(x)
    if kind is RecordedArray:
        found = traced_form(x)
        return x if found is None else found
    if (kind is list or kind is tuple) and RecordedArray in map(type, x):
        return kind([traced_or_same(item) for item in x])
    return x


def holds_traced(x: Any) -> bool:
    """Tell whether a value, or a part of a list or tuple, is traced."""
    kind = type(x)
    if kind in UNTRACED:
        return False
    if kind is RecordedArray:
        return root_of(x)._nodes is not None
    if isinstance(x, arrays.SymbolicArray):
        return True
    if isinstance(x, (list, tuple)):
        for item in x:  # noqa: SIM110 - keys and lists of numbers are looked at all the time
            if type(item) not in UNTRACED and holds_traced(item):
                return True
        return False
    return kind is ndarray and x.dtype == object and holds_traced(x.ravel().tolist())


def writable(x: RecordedArray) -> Any:
    """Return the traced array that an array stands for from now on, to write traced values to."""
    root = root_of(x)
    if root._nodes is None:
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
        root._nodes = Nodes(root, code)
    return root._nodes.of(x, root)


def check_maker(root: RecordedArray) -> None:
    """Refuse writing from a function recorded inside the one that made the array."""
    if root._maker != trace_number() and is_active(root._maker):
        raise trace_error(
            "a function recorded inside another writes to the outer one's array",
            "Copy it first (y = x.copy()), and return the result.",
        )


def as_plain(x: Any) -> Any:
    """Return an array made while recording as NumPy's own over the same memory."""
    return _view(x, ndarray) if type(x) is RecordedArray else x


def _numbers(x: RecordedArray, what: str) -> np.ndarray:
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
    view = _view(made, RecordedArray)
    # A root must own its memory: NumPy has views of it refer to the owner, whatever their class.
    return view if root_of(view) is not view else _copy(view, "K")


# ---- methods -----------------------------------------------------------------------------------


def _method(name: str, *, writes: bool = False) -> Any:
    plain = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = traced_form(self)
        if found is None:
            if not holds_traced(args) and not (kwargs and holds_traced(tuple(kwargs.values()))):
                if writes:
                    check_maker(root_of(self))
                return as_recorded(plain(self, *args, **kwargs))
            found = writable(self) if writes else dispatch.lift(self)
        return getattr(found, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``."
    return method


_READING = (
    "all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy "
    "cumprod cumsum diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round "
    "searchsorted squeeze std sum swapaxes take tolist trace transpose var "
    "__bool__ __int__ __float__ __complex__ __index__ __contains__ __copy__ __deepcopy__"
)
_WRITING = "fill partition put sort"
for _names, _writes in ((_READING, False), (_WRITING, True)):
    for _name in _names.split():
        setattr(RecordedArray, _name, _method(_name, writes=_writes))


def _outside(name: str) -> Any:
    plain = getattr(ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = traced_form(self)
        if found is None:
            return plain(self, *args, **kwargs)
        return getattr(_numbers(self, f"read by x.{name}()"), name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ``ndarray.{name}``."
    return method


for _name in [
    "tobytes",
    "tofile",
    "dump",
    "dumps",
    "byteswap",
    "getfield",
    "setfield",
    "resize",
    "__dlpack__",
]:
    setattr(RecordedArray, _name, _outside(_name))


def _operator(name: str, ufunc: Any, swap: bool) -> Any:
    """Python's operator: with a traced operand, a short cut past NumPy."""
    plain = getattr(ndarray, name)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, arrays.SymbolicArray):
            return plain(self, other)
        mine = dispatch.lift(self)
        pair = (other, mine) if swap else (mine, other)
        if ufunc == np.matmul:
            return _late("numpy_functions.products").matmul(*pair)
        return dispatch.apply_ufunc(ufunc, pair)

    return method


_OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "matmul": np.matmul,
}
for _symbol, _ufunc in _OPERATORS.items():
    for _prefix in ("", "r"):
        _name = f"__{_prefix}{_symbol}__"
        setattr(RecordedArray, _name, _operator(_name, _ufunc, _prefix == "r"))
