"""Callables that lead to one function in threads that record, and to another in all others.

A type of our own (``PyType_FromSpecWithBases``) whose instances are called by ``vectorcall``:
native code asks the thread's own storage (``PyThread_tss_get``) which function is meant, and passes
the arguments on as they are. That takes a few nanoseconds.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_api.c_api import address, make_builtin
from archimedes.backends.llvm.runtime.machine import common_code, read_ir

#: What an instance has after what every object has: its vectorcall, and the two functions.
_HEAD, _WORD = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)
_VECTORCALL, _ORIGINAL, _VERSION, _SIZE = (_HEAD + k * _WORD for k in range(4))
#: Numbers of CPython's stable interface: typeslots.h, structmember.h, object.h, methodobject.h.
_TP_CALL, _TP_MEMBERS = 50, 72
_T_OBJECT_EX, _T_PYSSIZET, _READONLY = 16, 19, 1
_FLAGS = 1 << 18 | 1 << 11  # Py_TPFLAGS_DEFAULT, Py_TPFLAGS_HAVE_VECTORCALL
_METH_FASTCALL = 0x0080


def dispatch_text() -> str:
    """Return the module: ``arc_fill`` fills in a callable, which calls ``arc_dispatch``."""
    fields = {"vectorcall": _VECTORCALL, "original": _ORIGINAL, "version": _VERSION}
    return read_ir("thread_dispatch", **fields)


class ThreadDispatch:
    """The type of such callables, what makes one, and what marks a thread."""

    def __init__(self, base: type) -> None:
        api: Any = ctypes.pythonapi
        new, create, mark = api.PyThread_tss_alloc, api.PyThread_tss_create, api.PyThread_tss_set
        new.restype, create.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        mark.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        key = new()
        if not key or create(key):
            raise MemoryError("no storage for what belongs to a thread")
        self._key, self._mark = key, mark
        names = ("PyThread_tss_get", "PyObject_Vectorcall", "Py_IncRef")
        imports = {"arc.key": key, **{name: address(name) for name in names}}
        code = common_code(dispatch_text(), "arc_fill", imports)
        self.type = _make_type(base)
        #: ``fill(callable, original, version)`` enters the functions, and returns the callable.
        self._fill = make_builtin(code.address, _METH_FASTCALL, (code,))

    def make(self, original: Any, version: Any) -> Any:
        """Return a callable: ``version`` in threads that record, ``original`` in others."""
        return self._fill(self.type(), original, version)

    def begin(self) -> None:
        """Make such callables call their ``version`` in this thread."""
        self._mark(self._key, 1)

    def end(self) -> None:
        """Make such callables call their ``original`` again in this thread."""
        self._mark(self._key, None)


def _make_type(base: type) -> Any:
    """Return the type, from tables of 64-bit words in the layout of CPython's stable ABI."""
    offsets = {"__vectorcalloffset__": _VECTORCALL, "original": _ORIGINAL, "version": _VERSION}
    names = [np.frombuffer(f"{x}\0".encode(), np.uint8) for x in ("archimedes.Stand", *offsets)]
    name, *labels = (x.ctypes.data for x in names)
    kinds = (_T_PYSSIZET, _T_OBJECT_EX, _T_OBJECT_EX)
    # PyMemberDef {name, type, offset, flags, doc} and PyType_Slot {slot, value}; zeros end them.
    rows = [[x, *row, _READONLY, 0] for x, *row in zip(labels, kinds, offsets.values())]
    members = np.array([*rows, [0] * 5], np.uint64)
    calls = (_TP_CALL, address("PyVectorcall_Call"))
    slots = np.array([calls, (_TP_MEMBERS, members.ctypes.data), (0, 0)], np.uint64)
    # PyType_Spec {name, basicsize and itemsize, flags, slots}.
    spec = np.array([name, _SIZE, _FLAGS, slots.ctypes.data], np.uint64)
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object)
    dispatch = make(spec.ctypes.data, (base,))
    dispatch.__doc__ = vars(base)["__doc__"]  # a type without a text has None
    _kept.append((names, members, slots, spec))
    return dispatch


#: What a type's specification refers to.
_kept: list[Any] = []


@cache
def thread_dispatch(base: type) -> ThreadDispatch:
    """Return the dispatch of this process whose type has the attributes of ``base``."""
    return ThreadDispatch(base)
