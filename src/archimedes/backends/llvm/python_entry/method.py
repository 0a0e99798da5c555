"""A native ``__call__`` for objects that keep direct entries: no Python between caller and entry.

A method written in Python takes its arguments apart and puts them together again, which takes
longer than a short kernel. This one is a method descriptor that CPython makes of a native function
(``METH_FASTCALL | METH_KEYWORDS``): it hands the arguments, where they lie, to one path after the
other of a tuple of the object's, and where all of them return ``NotImplemented`` to a method of
the object that takes anything. Only functions of CPython's stable interface are called.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_entry.text_lines import address, literal
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["calling_method"]

_NAME = "arc_method"
_METH_FASTCALL, _METH_KEYWORDS = 0x0080, 0x0002
_TEXT = """
define ptr @arc_method(ptr %self, ptr %args, i64 %nargs, ptr %names) {{
entry:
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %look, label %slow
look:
  %held = call ptr {get}(ptr %self, ptr {paths})
  %none = icmp eq ptr %held, null
  br i1 %none, label %failed, label %count
count:
  %size = call i64 {size}(ptr %held)
  br label %test
test:
  %k = phi i64 [ 0, %count ], [ %k1, %other ]
  %left = icmp slt i64 %k, %size
  br i1 %left, label %try, label %through
try:
  %path = call ptr {item}(ptr %held, i64 %k)
  %result = call ptr {call}(ptr %path, ptr %args, i64 %nargs, ptr null)
  %not = icmp eq ptr %result, {other}
  br i1 %not, label %other, label %done
other:
  call void {drop}(ptr %result)
  %k1 = add i64 %k, 1
  br label %test
done:
  call void {drop}(ptr %held)
  ret ptr %result
through:
  call void {drop}(ptr %held)
  br label %slow
slow:
  %method = call ptr {get}(ptr %self, ptr {anything})
  %lost = icmp eq ptr %method, null
  br i1 %lost, label %failed, label %ask
ask:
  %found = call ptr {call}(ptr %method, ptr %args, i64 %nargs, ptr %names)
  call void {drop}(ptr %method)
  ret ptr %found
failed:
  ret ptr null
}}
"""

_lock = threading.Lock()
#: Code and definitions that classes use: they stay.
_kept: list[Any] = []


@functools.cache
def _code(paths: str, anything: str) -> NativeCode:
    names = [sys.intern(paths), sys.intern(anything)]
    _kept.append(names)
    known = {
        "get": "PyObject_GetAttr",
        "size": "PyTuple_Size",
        "item": "PyTuple_GetItem",
        "call": "PyObject_Vectorcall",
        "drop": "Py_DecRef",
    }
    text = _TEXT.format(
        **{key: literal(address(name)) for key, name in known.items()},
        paths=literal(id(names[0])),
        anything=literal(id(names[1])),
        other=literal(id(NotImplemented)),
    )
    triple = f'target triple = "{host_target(None).triple}"\n'
    return NativeCode(host_target(None).compile(triple + text), _NAME, {})


def calling_method(cls: type, paths: str, anything: str, doc: str) -> Any:
    """Return a method ``__call__`` for a class.

    ``paths`` names the attribute of its objects with the tuple of direct paths, ``anything`` the
    method that takes what these do not.
    """
    with _lock:
        code = _code(paths, anything)
        labels = [np.frombuffer(x.encode() + b"\0", np.uint8) for x in ("__call__", doc)]
        flags = _METH_FASTCALL | _METH_KEYWORDS
        # struct PyMethodDef {name, function, flags, doc}
        definition = np.array(
            [labels[0].ctypes.data, code.address, flags, labels[1].ctypes.data], np.uint64
        )
        _kept.append((labels, definition))
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.py_object, ctypes.c_void_p]
    return make(cls, definition.ctypes.data)
