"""What NumPy's functions do inside a recorded function: their arrays can hold traced values.

``y = np.zeros(3); y[0] = x[1]`` must work in a function that is being recorded, but nothing in
NumPy's protocols lets an array library take part in ``np.zeros(3)``. So, while at least one
recording is under way, the names of NumPy's creation functions, in the ``numpy`` module and where
``from numpy import zeros`` bound them, lead to proxies (``numpy_patching.py``). In a thread that
records, a proxy calls the version of this file, whose arrays can take traced values
(``recorded_array.py``); in any other thread it calls the original. When the last recording ends,
all names are as they were. See docs/decisions/004-numpy-creation.md.

Some classes NumPy writes in Python and offers no protocol for (``np.r_``, ``np.vectorize``). Their
names lead to classes derived from them, which give them traced arrays as arrays of objects, and
make a traced array of what they return.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.trace import current_trace, is_tracing, trace_error
from archimedes.symbolic.core.traced_value import as_constant
from archimedes.symbolic.core.user_frames import is_internal_module
from archimedes.symbolic.recorded import numpy_patching
from archimedes.symbolic.recorded.recorded_array import RecordedArray, adopt_result, as_recorded

# ---- classes that NumPy writes in Python --------------------------------------------------------


def _objects(x: Any) -> Any:
    """Return a traced array as an array of its elements; anything else unchanged."""
    if not is_traced(x) or isinstance(x, (list, tuple)):
        return x
    traced = lift(x)
    objects = np.empty(traced.shape, dtype=object)
    for at in np.ndindex(*traced.shape):
        objects[at] = traced[at]
    return objects


def _lift_result(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_lift_result(part) for part in result)
    return lift(result) if is_traced(result) else as_recorded(result)


class _LikeBase(type):
    """The metaclass of classes that replace another: instances of the other count as theirs."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__bases__[0])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__bases__[0])


class _Vectorize(np.vectorize, metaclass=_LikeBase):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return super().__call__(*args, **kwargs)
        if is_traced(args) or is_traced(tuple(kwargs.values())):
            args = tuple(_objects(a) for a in args)
            kwargs = {key: _objects(value) for key, value in kwargs.items()}
        return _lift_result(super().__call__(*args, **kwargs))


class _Ndenumerate(np.ndenumerate, metaclass=_LikeBase):
    def __init__(self, arr: Any) -> None:
        super().__init__(_objects(arr) if is_tracing() else arr)


def _taking_keys(concatenator: Any) -> Any:
    """Return a version of ``np.r_`` or ``np.c_`` whose key may hold traced arrays."""

    class Concatenator(type(concatenator)):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            if not is_tracing():
                return concatenator[key]
            if is_traced(key):
                key = tuple(map(_objects, key)) if isinstance(key, tuple) else _objects(key)
            return _lift_result(concatenator[key])

    return Concatenator()


#: Names in NumPy, and what takes their place while something is recorded.
VERSIONS: dict[str, Any] = {
    "r_": _taking_keys(np.r_),
    "c_": _taking_keys(np.c_),
    "vectorize": _Vectorize,
    "ndenumerate": _Ndenumerate,
}
numpy_patching.DERIVED.update(
    (id(version), (version, getattr(np, n))) for n, version in VERSIONS.items()
)
for _name in ("vectorize", "ndenumerate"):
    VERSIONS[_name].__name__ = VERSIONS[_name].__qualname__ = _name


# ---- creation functions -------------------------------------------------------------------------


def _recording() -> bool:
    """Return whether the caller of a replaced function is user code that is being recorded."""
    return is_tracing() and numpy_patching.is_called_by_user(sys._getframe(2))


def _size(name: str, x: Any) -> Any:
    """Return a size or shape with known traced numbers made concrete."""
    x = as_constant(x)
    if is_traced(x):
        raise trace_error(
            f"np.{name} was given a traced size",
            "Sizes are fixed when a function is recorded: take them from x.shape or len(x), or "
            "declare the argument static (static_argnames).",
        )
    return x


def _of_size(original: Any) -> Callable[..., Any]:
    """For zeros, ones, empty, eye, identity: sizes and options in, a fresh array out."""
    name = original.__name__
    # What np.empty finds in memory would become part of the recording.
    make = _originals["zeros"] if name == "empty" else original

    @functools.wraps(original)
    def fresh(*args: Any, **kwargs: Any) -> Any:
        if not _recording():
            return original(*args, **kwargs)
        if isinstance(kwargs.get("like"), SymbolicArray):
            del kwargs["like"]
        return as_recorded(make(*(_size(name, a) for a in args), **kwargs))

    return fresh


def _full(original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **kw: Any) -> Any:
        if not _recording():
            return original(shape, fill_value, dtype, order, **kw)
        shape = _size("full", shape)
        if not is_traced(fill_value):
            return as_recorded(original(shape, fill_value, dtype, order))
        value = lift(fill_value)
        if dtype is not None:
            value = value.astype(dtype)
        trace = current_trace()
        ids = original(shape, trace.elements_of(value), np.int64, order)
        return SymbolicArray(ids, value.code, trace)

    return full


def _array(original: Any) -> Callable[..., Any]:
    """For array, asarray and their like: traced content gives a traced array."""
    name = original.__name__

    @functools.wraps(original)
    def array(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not _recording():
            if type(a) is RecordedArray and is_tracing() and is_traced(a):
                # A library would read its memory.
                raise trace_error(
                    f"np.{name} in library code needs the numbers of an array of traced values",
                    "Use NumPy's functions, or call the library through arc.callback.",
                )
            return original(a, dtype, *args, **kwargs)
        if is_traced(a):
            if type(a) is list and dtype is None and not args and not kwargs:
                return lift(a)
            kwargs.pop("like", None)
            return _convert_traced(original, lift(a), dtype, args, kwargs)
        if isinstance(kwargs.get("like"), SymbolicArray):
            del kwargs["like"]
        return adopt_result(original(a, dtype, *args, **kwargs), a)

    return array


def _convert_traced(original: Any, x: Any, dtype: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Let NumPy decide on the ids whether to copy, and in which order of memory."""
    if dtype is not None and np.dtype(dtype) != x.dtype:
        x = x.astype(dtype, order=kwargs.get("order") or "K")
    # A scalar is not an array: what NumPy makes of it is an array of its own.
    source = x.ids if isinstance(x, SymbolicArray.array) else x.ids.copy()
    ids = original(source, None, *args, **kwargs)
    return x if ids is x.ids else x._like(ids)


def _iterable(original: Any) -> Callable[..., Any]:
    """np.iterable calls iter(y), which for a traced scalar fails only at the first step."""

    @functools.wraps(original)
    def iterable(y: Any) -> bool:
        return original(y) and not (isinstance(y, SymbolicArray) and y.ids.ndim == 0)

    return iterable


def _adopt_results(original: Any) -> Callable[..., Any]:
    """For functions of arrays and numbers whose result is an array that may be written to."""
    name = original.__name__

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if not _recording():
            return original(*args, **kwargs)
        args, kwargs = numpy_patching.with_arrays(name, args, kwargs)
        return adopt_result(original(*args, **kwargs), args, kwargs)

    return make


def _take(original: Any) -> Callable[..., Any]:
    """For take, whose protocol does not look at the indices."""

    @functools.wraps(original)
    def take(a: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        if is_tracing() and (is_traced(indices) or (isinstance(a, (list, tuple)) and is_traced(a))):
            a = lift(a)
        return original(a, indices, *args, **kwargs)

    return take


_NAMES: dict[Callable[[Any], Any], str] = {
    _of_size: "zeros ones empty eye identity tri",
    _full: "full",
    _array: "array asarray asanyarray asfortranarray ascontiguousarray asarray_chkfinite require",
    _take: "take",
    _iterable: "iterable",
    _adopt_results: (
        "arange linspace logspace geomspace zeros_like ones_like empty_like full_like copy "
        "fromfunction fromiter indices meshgrid concatenate stack vstack hstack dstack "
        "column_stack block diag diagflat tril triu vander tile repeat outer kron"
    ),
}
_originals: dict[str, Any] = {
    name: getattr(np, name) for names in _NAMES.values() for name in names.split()
}


def _versions() -> Iterator[tuple[Any, str, Any, Any]]:
    """Yield modules with names of functions there, the functions, and versions for recordings."""
    versions: dict[int, Any] = {}
    for make, names in _NAMES.items():
        for name in names.split():
            yield np, name, _originals[name], make(_originals[name])
    for module in (np, np.linalg, np.fft):
        for name, f in numpy_patching.array_functions(module).items():
            if module is not np or name not in _originals:
                if id(f) not in versions:
                    versions[id(f)] = numpy_patching.take_lists(f)
                yield module, name, f, versions[id(f)]


class _Replacements:
    """Functions of NumPy by module and name, and the proxy of each."""

    def __init__(self, dispatch: numpy_patching.Dispatch) -> None:
        self.dispatch = dispatch
        self.names: list[tuple[dict[str, Any], str, Any, Any]] = []
        #: Proxies and versions by the ids of functions, functions by those of proxies.
        self.proxies: dict[int, Any] = {}
        self.versions: dict[int, Any] = {}
        self.originals: dict[int, Any] = {}
        for module, name, original, version in _versions():
            self.versions[id(original)] = version
            if id(original) not in self.proxies:
                self.proxies[id(original)] = dispatch.make(original, version)
            self._add(module, name, original, self.proxies[id(original)])
        for name, version in VERSIONS.items():
            self._add(np, name, getattr(np, name), version)

    def _add(self, module: Any, name: str, original: Any, proxy: Any) -> None:
        self.names.append((vars(module), name, original, proxy))
        self.proxies[id(original)], self.originals[id(proxy)] = proxy, original

    def install(self) -> None:
        """Put the proxies in; what someone else has put there stays."""
        for names, name, original, proxy in self.names:
            if names.get(name) is original:
                names[name] = proxy
        numpy_patching.replace_bound_names(is_internal_module, self.proxies)

    def uninstall(self) -> None:
        """Put the functions back."""
        for names, name, original, proxy in self.names:
            if names.get(name) is proxy:
                names[name] = original
        numpy_patching.restore_bound_names(self.originals)


def recording_versions() -> dict[int, Any]:
    """Return what user code gets for functions of NumPy, by their ids, while it is recorded."""
    assert _replacements is not None  # a recording is under way
    return _replacements.versions


_lock = threading.Lock()
_active = 0
_replacements: _Replacements | None = None


def install() -> None:
    """Take part in NumPy's functions from now on, in this thread (counted)."""
    global _active, _replacements
    dispatch = numpy_patching.find_dispatch()  # before the lock: it may import
    with _lock:
        if _active == 0:
            if _replacements is None or _replacements.dispatch is not dispatch:
                _replacements = _Replacements(dispatch)
            _replacements.install()
        _active += 1
        assert _replacements is not None
        _replacements.dispatch.begin()


def uninstall() -> None:
    """Undo one ``install`` of this thread; the last one restores NumPy."""
    global _active
    assert _replacements is not None
    _replacements.dispatch.end()
    with _lock:
        _active -= 1
        if _active == 0:
            _replacements.uninstall()
