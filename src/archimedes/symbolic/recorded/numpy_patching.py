"""Proxies for NumPy's functions, which take their place while something is recorded.

A *proxy* leads to a version of the function that knows traced values in threads that record, and
to the original in all others. It equals the original, and has its class, name, docstring and hash.
Native code does this in a few nanoseconds (``Backend.thread_dispatch``), so that other threads are
not slowed down; where there is none, Python does. Names that ``from numpy import zeros`` bound in
modules of users are replaced too. See docs/decisions/004-numpy-creation.md.

NumPy offers its protocols to arrays, not to the items of a list: of a list of traced numbers,
``np.max([x, 1.0])``, it would make an array of Python objects. So the version of each function
makes the array that ``np.array`` would make (Python's numbers become float64, int64 or bool,
NumPy's scalars keep their dtype), and calls the original.
See docs/decisions/020-lists-of-traced-numbers.md.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, Protocol

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.conversion import lift
from archimedes.symbolic.core.trace import is_tracing
from archimedes.symbolic.core.user_frames import is_internal, treat_as_numpy

treat_as_numpy(__name__)


class _Text:
    """The docstring of a proxy is that of its function: ``numpy.ma`` reads it when imported."""

    def __get__(self, proxy: Any, owner: type) -> str:
        own = "What stands for a NumPy function while a recording is under way."
        return own if proxy is None else proxy.original.__doc__


class ProxyBase:  # noqa: D101  see _Text
    __slots__ = ()
    original: Any

    __class__ = property(lambda self: type(self.original))
    __doc__ = _Text()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def __eq__(self, other: object) -> bool:
        return self.original is (getattr(other, "original", None) if is_proxy(other) else other)

    def __hash__(self) -> int:
        return hash(self.original)

    def __repr__(self) -> str:
        return repr(self.original)

    def __reduce__(self) -> Any:
        module = getattr(self.original, "__module__", None) or "numpy"
        return _function_named, (module, self.original.__name__)


def _function_named(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def is_proxy(value: Any) -> bool:
    """Return whether a value stands for a function of NumPy."""
    return issubclass(type(value), ProxyBase)


#: Proxies of NumPy's classes, by id: the proxy and the original.
DERIVED: dict[int, tuple[Any, Any]] = {}


def original_of(value: Any) -> Any:
    """Return what a value stands for, or the value itself.

    A module that has bound ``np.zeros`` reads the same, whether or not another thread records.
    """
    if is_proxy(value):
        return value.original
    return DERIVED.get(id(value), (value, value))[1]


class Dispatch(Protocol):
    """Makes proxies, and keeps track of the threads that are recording."""

    def make(self, original: Any, version: Any) -> Any:
        """Return a callable: ``version`` in threads that are recording, ``original`` in others."""

    def begin(self) -> None:
        """Mark this thread as recording."""

    def end(self) -> None:
        """Mark this thread as no longer recording."""


class _Proxy(ProxyBase):
    __slots__ = ("original", "version")
    __doc__ = _Text()

    def __init__(self, original: Any, version: Any) -> None:
        self.original, self.version = original, version

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self.version if is_tracing() else self.original)(*args, **kwargs)


class _PythonDispatch:
    make = staticmethod(_Proxy)

    def begin(self) -> None:
        pass

    end = begin


_python = _PythonDispatch()
_native: Callable[[type, bool], Dispatch | None] | None = None


def use_native(source: Callable[[type, bool], Dispatch | None]) -> None:
    """Let native code make the proxies.

    ``source(base, needed)`` returns what makes them, of a class derived from ``base``, or None:
    where there is none, and unless it is ``needed`` also where it would have to be loaded.
    """
    global _native
    _native = source


def find_dispatch() -> Dispatch:
    """Return what makes proxies now: native code is loaded if it keeps other threads fast."""
    native = None if _native is None else _native(ProxyBase, threading.active_count() > 1)
    return _python if native is None else native


def is_called_by_user(frame: FrameType | None) -> bool:
    """Return whether a function was called, from a frame, by neither NumPy nor our machinery."""
    if frame is not None and frame.f_code is _Proxy.__call__.__code__:
        frame = frame.f_back
    return frame is not None and not is_internal(frame)


# ---- names bound by `from numpy import` ---------------------------------------------------------

#: Modules of users that were looked at -> how many names they had then.
_seen: dict[str, int] = {}
#: Modules that are none of a user's.
_others: set[str] = set()
#: How many modules there were when all were looked at.
_count = 0
#: Where functions are bound: the globals, the name there, the function.
_bindings: list[tuple[dict[str, Any], str, Any]] = []


def _names_of(module: Any) -> dict[str, Any]:
    """Return the names of a module, without loading one that loads on access."""
    try:
        names = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}


def _look(module: str, names: dict[str, Any], proxies: Mapping[int, Any]) -> None:
    if _seen.get(module) == len(names):
        return
    known = {binding[1] for binding in _bindings if binding[0] is names}
    for name, value in list(names.items()):
        if id(value) in proxies and name not in known:
            _bindings.append((names, name, value))
    _seen[module] = len(names)


def _find(internal: Callable[[str], bool], proxies: Mapping[int, Any]) -> None:
    """Look through new modules, and again through the main one, which grows in a notebook."""
    global _count
    grew = len(sys.modules) != _count
    _count = len(sys.modules)
    for module in list(sys.modules) if grew else ["__main__"]:
        if module in _others or (module in _seen and module != "__main__"):
            continue
        if internal(module) or module.partition(".")[0] in sys.stdlib_module_names:
            _others.add(module)
        else:
            _look(module, _names_of(sys.modules.get(module)), proxies)


def replace_bound_names(internal: Callable[[str], bool], proxies: Mapping[int, Any]) -> None:
    """Replace functions in the modules of users that bound them; ``proxies`` are by their ids."""
    _find(internal, proxies)
    for names, name, original in _bindings:
        if names.get(name) is original:
            names[name] = proxies[id(original)]


def restore_bound_names(originals: Mapping[int, Any]) -> None:
    """Undo ``replace_bound_names``; ``originals`` are by the ids of their proxies.

    A name that was bound anew meanwhile stays. Modules that were imported meanwhile, by any
    thread, get the originals too.
    """
    for names, name, original in _bindings:
        if originals.get(id(names.get(name))) is original:
            names[name] = original
    main = _names_of(sys.modules.get("__main__"))
    fresh = [main] if len(main) != _seen.get("__main__") else []
    if len(sys.modules) != _count:
        new = [name for name in list(sys.modules) if name not in _others and name not in _seen]
        fresh += [_names_of(sys.modules.get(name)) for name in new]
    for names in fresh:
        for name, value in list(names.items()):
            if id(value) in originals:
                names[name] = originals[id(value)]


# ---- lists of traced numbers --------------------------------------------------------------------

_JOINING = "concatenate concat stack vstack hstack dstack column_stack row_stack"
#: Arguments that are sequences of arrays: each of their items is one, or a list that makes one.
_SEQUENCES: dict[str, frozenset[Any]] = {
    **dict.fromkeys(_JOINING.split(), frozenset({0, "arrays", "tup"})),
    "select": frozenset({0, 1, "condlist", "choicelist"}),
    "choose": frozenset({1, "choices"}),
    "piecewise": frozenset({1, 2, "condlist", "funclist"}),
    "lexsort": frozenset({0, "keys"}),
    "multi_dot": frozenset({0, "arrays"}),
    "ravel_multi_index": frozenset({0, "multi_index"}),
}
#: Arguments that are not arrays, though they may be tuples; for ``np.block`` the nesting counts.
_ASIDE: dict[str, frozenset[Any]] = {"block": frozenset({0, "arrays"})}
_ALWAYS_ASIDE = frozenset({"out", "shape", "axis", "axes"})
_LISTS = frozenset({list, tuple})


def _as_array(x: Any) -> Any:
    return lift(x) if isinstance(x, (list, tuple)) and is_traced(x) else x


def _argument(name: str, key: Any, x: Any) -> Any:
    if not isinstance(x, (list, tuple)) or key in _ALWAYS_ASIDE or not is_traced(x):
        return x
    if key in _ASIDE.get(name, ()):
        return x
    if key in _SEQUENCES.get(name, ()):
        items = [_as_array(item) for item in x]
        return tuple(items) if isinstance(x, tuple) else items
    return lift(x)


def with_arrays(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a NumPy function with arrays in place of lists of traced numbers."""
    return (
        tuple([_argument(name, k, a) for k, a in enumerate(args)]),
        {key: _argument(name, key, value) for key, value in kwargs.items()},
    )


def take_lists(original: Any) -> Callable[..., Any]:
    """Return a version of a NumPy function that takes lists of traced numbers."""
    name = original.__name__

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            if type(a) in _LISTS:
                break
        else:
            if not kwargs:
                return original(*args)
        if is_tracing() and is_called_by_user(sys._getframe(1)):
            args, kwargs = with_arrays(name, args, kwargs)
        return original(*args, **kwargs)

    return call


def array_functions(module: ModuleType) -> dict[str, Any]:
    """Return the functions of a module of NumPy that offer its protocol to arrays."""
    kind = type(np.sum)
    return {name: f for name, f in vars(module).items() if isinstance(f, kind) and name[0] != "_"}
