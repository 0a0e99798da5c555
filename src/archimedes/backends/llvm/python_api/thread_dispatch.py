"""Callables that lead to one function in threads that record, and to another in all others.

A type of our own (``PyType_FromSpecWithBases``) whose instances are called by ``vectorcall``:
native code asks the thread's own storage (``PyThread_tss_get``) which function is meant, and passes
the arguments on as they are. That takes a few nanoseconds.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

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


class _Member(ctypes.Structure):
    """``PyMemberDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    """``PyType_Slot``."""

    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    """``PyType_Spec``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


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
    members = (_Member * 4)(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, _VECTORCALL, _READONLY, None),
        _Member(b"original", _T_OBJECT_EX, _ORIGINAL, _READONLY, None),
        _Member(b"version", _T_OBJECT_EX, _VERSION, _READONLY, None),
    )
    slots = (_Slot * 3)(
        _Slot(_TP_CALL, address("PyVectorcall_Call")),
        _Slot(_TP_MEMBERS, ctypes.addressof(members)),
    )
    spec = _Spec(b"archimedes.Stand", _SIZE, 0, _FLAGS, ctypes.addressof(slots))
    make = ctypes.pythonapi.PyType_FromSpecWithBases
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object)
    dispatch = make(ctypes.addressof(spec), (base,))
    dispatch.__doc__ = vars(base)["__doc__"]  # a type without a text has None
    _kept.append((members, slots, spec))
    return dispatch


#: What a type's specification refers to.
_kept: list[Any] = []


@cache
def thread_dispatch(base: type) -> ThreadDispatch:
    """Return the dispatch of this process whose type has the attributes of ``base``."""
    return ThreadDispatch(base)
