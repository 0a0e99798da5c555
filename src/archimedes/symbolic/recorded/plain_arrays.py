"""Plain NumPy arrays that meet traced values: ``table[k]``, ``table.dot(x)``, ``table[0] = x``.

An array made outside the recording is of NumPy's own class, whose indexing and methods are C code
that asks a traced value for its number. While a recording is under way, the entries of the class
that take other arrays are replaced by Python functions: a traced argument makes them read the
array as a constant, or refuse to write to it, and anything else goes to the original.

Python does not let one assign to a class written in C, so its dictionary is taken from behind
``np.ndarray.__dict__``, and the two slots of ``x[k]`` and ``x[k] = v`` are set to those that
Python gives a class with such methods. This is done only on CPython, and only where
``PyType_GetSlot`` confirms what is about to be changed; elsewhere the C code raises the errors of
``SymbolicArray.__array__`` and ``__float__``, which say what to write instead.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import numpy as np

from archimedes.errors import explained
from archimedes.graph.dtypes import code_of
from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.trace import is_internal, is_tracing, trace_error
from archimedes.symbolic.core.traced_content import UNTRACED, holds_traced
from archimedes.symbolic.recorded.recorded_memory import as_recorded

__all__ = ["install", "uninstall"]

_get, _set = np.ndarray.__getitem__, np.ndarray.__setitem__


def _getitem(self: Any, key: Any) -> Any:
    if type(key) in UNTRACED or not holds_traced(key) or not is_tracing():
        return _get(self, key)
    return lift(self)[key]


def _setitem(self: Any, key: Any, value: Any) -> None:
    if (holds_traced(value) or holds_traced(key)) and is_tracing() and self.dtype != object:
        if code_of(self.dtype) is None:
            raise trace_error(
                f"a traced value is written into an array of dtype {self.dtype}",
                "Use float64, float32, int64 or bool.",
            )
        raise _no_writing("a[k] = x")
    _set(self, key, value)


def _no_writing(what: str) -> Exception:
    return trace_error(
        f"a traced value cannot be written into a plain NumPy array ({what}): one made outside "
        "the recorded function, or computed from such arrays alone",
        explained(
            "outside array",
            "Copy it inside the function first: a = np.array(a), then write to the copy.",
        ),
    )


def _reading(name: str) -> Any:
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_tracing() and (holds_traced(args) or holds_traced(tuple(kwargs.values()))):
            return getattr(lift(self), name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def _writing(name: str) -> Any:
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_tracing() and (holds_traced(args) or holds_traced(tuple(kwargs.values()))):
            raise _no_writing(f"a.{name}(x)")
        return original(self, *args, **kwargs)

    return method


def _copying(name: str) -> Any:
    original = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        if made is not self and is_tracing() and not is_internal(sys._getframe(1)):
            return as_recorded(made)
        return made

    return method


_METHODS: dict[str, Any] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    **{name: _reading(name) for name in ("dot", "take", "searchsorted", "choose")},
    **{name: _writing(name) for name in ("fill", "put")},
    **{name: _copying(name) for name in ("copy", "astype", "flatten")},
}
_ORIGINALS = {name: getattr(np.ndarray, name) for name in _METHODS}


class _Python(np.ndarray):
    """Its slots are those of any class that has these methods in Python."""

    def __getitem__(self, key: Any) -> Any:
        return _get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _set(self, key, value)


#: Numbers of slots in CPython's stable interface (typeslots.h).
_ASS_SUBSCRIPT, _LENGTH, _SUBSCRIPT = 3, 4, 5
#: Where a class keeps the table of its mapping slots: after three words of head, eleventh.
_TABLE = 14 * ctypes.sizeof(ctypes.c_void_p)


class _Slots:
    """The slots of ``x[k]`` and ``x[k] = v`` of np.ndarray: NumPy's, and Python's for methods."""

    def __init__(self) -> None:
        api: Any = ctypes.pythonapi
        read = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
            ("PyType_GetSlot", api)
        )
        numbers = (_LENGTH, _SUBSCRIPT, _ASS_SUBSCRIPT)
        self.numpy = [read(np.ndarray, k) for k in numbers]
        self.python = [self.numpy[0], *(read(_Python, k) for k in numbers[1:])]
        table: Any = ctypes.c_void_p.from_address(id(np.ndarray) + _TABLE).value
        self.table = (ctypes.c_void_p * 3).from_address(table)
        (self.names,) = (d for d in gc.get_referents(np.ndarray.__dict__) if type(d) is dict)
        self.changed = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyType_Modified", api))

    def confirmed(self) -> bool:
        """Tell whether the table and the dictionary are what they are taken for."""
        return list(self.table) == self.numpy and all(
            self.names.get(name) is original for name, original in _ORIGINALS.items()
        )

    def use(self, methods: dict[str, Any], pointers: list[Any]) -> None:
        self.names.update(methods)
        self.changed(np.ndarray)
        self.table[:] = pointers


def _slots() -> _Slots | None:
    if sys.implementation.name != "cpython" or "free-threading" in sys.version:
        return None
    slots = _Slots()
    return slots if slots.confirmed() else None


_slots_found = _slots()


def install() -> None:
    """Have plain arrays notice traced values."""
    if _slots_found is not None:
        _slots_found.use(_METHODS, _slots_found.python)


def uninstall() -> None:
    """Undo ``install``."""
    if _slots_found is not None:
        _slots_found.use(_ORIGINALS, _slots_found.numpy)
