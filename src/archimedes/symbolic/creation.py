"""Arrays made inside a traced function can hold traced values.

``y = np.zeros(3); y[0] = x[1]`` must work in a function that is being recorded, but nothing in
NumPy's protocols lets an array library take part in ``np.zeros(3)``. So, while at least one
trace is active, a few creation functions of the ``numpy`` module are replaced by versions that
return traced arrays of constants in a thread that is tracing and call the original in any other.
When the last trace ends, NumPy is as it was. See docs/decisions/004-numpy-creation.md.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.graph.dtypes import code_of
from archimedes.symbolic.array import SymbolicArray
from archimedes.symbolic.dispatch import lift
from archimedes.symbolic.registry import known
from archimedes.symbolic.trace import current_trace, is_tracing, trace_error

__all__ = ["install", "uninstall"]

_lock = threading.Lock()
_active = 0
_originals: dict[str, Any] = {}


#: Code that makes arrays for its own use, not for the function being recorded.
_INTERNAL = (
    "numpy",
    "scipy",
    *(f"archimedes.{p}" for p in ("graph", "symbolic", "backends", "function", "tree")),
)


@functools.cache
def _internal(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in _INTERNAL)


def _recording(name: str) -> bool:
    """Tell whether the caller of a replaced function is user code that is being recorded.

    Compiled extensions have no frame of their own: the user's frame is on top while they call
    ``np.zeros`` for themselves. A frame that calls it itself has the name among its own.
    """
    if not is_tracing():
        return False
    frame = sys._getframe(2)
    return name in frame.f_code.co_names and not _internal(frame.f_globals.get("__name__", ""))


def _constant(array: np.ndarray) -> Any:
    """Return a traced copy of a fresh array, or the array where its dtype cannot be traced."""
    if code_of(array.dtype) is None or (array.dtype.itemsize < 4 and array.dtype.kind != "b"):
        return array
    trace = current_trace()
    return SymbolicArray(trace.graph.constants(array), code_of(array.dtype), trace)  # type: ignore[arg-type]


def _size(name: str, x: Any) -> Any:
    """Return a size or shape with known traced numbers made concrete."""
    x = known(x)
    if _contains_traced(x):
        raise trace_error(
            f"np.{name} was given a traced size",
            "Sizes are fixed when a function is recorded: take them from x.shape or len(x), or "
            "declare the argument static (static_argnames).",
        )
    return x


def _fresh(original: Any) -> Callable[..., Any]:
    """For zeros, ones, empty, eye, identity: make it with NumPy, then trace it."""

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if not _recording(original.__name__):
            return original(*args, **kwargs)
        like = kwargs.pop("like", None)
        args = tuple(_size(original.__name__, a) for a in args)
        array = original(*args, **kwargs)
        if like is None or isinstance(like, SymbolicArray):
            return _constant(np.nan_to_num(array) if original is _originals["empty"] else array)
        return original(*args, like=like, **kwargs)

    return make


def _full(original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def full(shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if not _recording("full"):
            return original(shape, fill_value, dtype, **kwargs)
        value = lift(fill_value)
        if dtype is not None:
            value = value.astype(dtype)
        trace = current_trace()
        ids = np.broadcast_to(trace.ids_of(value), _size("full", shape))
        return SymbolicArray(ids.copy(), value.code, trace)

    return full


def _contains_traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_contains_traced(i) for i in x)
    return isinstance(x, SymbolicArray) or (isinstance(x, np.ndarray) and x.dtype == object)


def _array(original: Any, *, copies: bool) -> Callable[..., Any]:
    """For array, asarray and their like: traced content gives a traced array."""

    @functools.wraps(original)
    def array(a: Any, *args: Any, **kwargs: Any) -> Any:
        if not _recording(original.__name__):
            return original(a, *args, **kwargs)
        kwargs.pop("like", None)
        if not _contains_traced(a):
            made = original(a, *args, **kwargs)
            # A copy belongs to the function and may be written to; ints are mostly indices.
            return _constant(made) if copies and made.dtype.kind == "f" else made
        dtype = kwargs.get("dtype", args[0] if args else None)
        ndmin = kwargs.get("ndmin", 0)
        result = lift(a)
        if dtype is not None and np.dtype(dtype) != result.dtype:
            result = result.astype(dtype)
        elif copies and kwargs.get("copy", True):
            result = result.copy("K")
        if result.ndim < ndmin:
            result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
        return result if result.ndim else SymbolicArray(result.ids, result.code, result.owner)

    return array


def _iterable(original: Any) -> Callable[..., Any]:
    """np.iterable asks by iterating; a traced scalar answers only when that begins."""

    @functools.wraps(original)
    def iterable(y: Any) -> bool:
        return original(y) and not (isinstance(y, SymbolicArray) and y.ids.ndim == 0)

    return iterable


_REPLACED: dict[str, Callable[[Any], Any]] = {
    "zeros": _fresh,
    "ones": _fresh,
    "empty": _fresh,
    "eye": _fresh,
    "identity": _fresh,
    "full": _full,
    "iterable": _iterable,
    "array": functools.partial(_array, copies=True),
    "asarray": functools.partial(_array, copies=False),
    "asanyarray": functools.partial(_array, copies=False),
    "asfortranarray": functools.partial(_array, copies=False),
    "ascontiguousarray": functools.partial(_array, copies=False),
    "asarray_chkfinite": functools.partial(_array, copies=False),
}


@functools.cache
def _replacement(name: str, original: Any) -> Callable[..., Any]:
    return _REPLACED[name](original)


def install() -> None:
    """Take part in NumPy's creation functions from now on (counted)."""
    global _active
    with _lock:
        _active += 1
        if _active == 1:
            for name in _REPLACED:
                _originals[name] = getattr(np, name)
            for name, original in _originals.items():
                setattr(np, name, _replacement(name, original))


def uninstall() -> None:
    """Undo one ``install``; the last one restores NumPy."""
    global _active
    with _lock:
        _active -= 1
        if _active == 0:
            for name, original in _originals.items():
                setattr(np, name, original)
