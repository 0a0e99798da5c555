"""A native ``__call__`` for objects that keep direct entries: no Python between caller and entry.

A method written in Python takes its arguments apart and puts them together again, which takes
longer than a short kernel. This one is a slot wrapper, as classes written in C have: CPython's own
`PyDescr_NewWrapper` makes it of a native function, and a class that it is assigned to is called
through that function without a lookup. It finds the tuple of the object's direct paths in a slot
(``__slots__``), hands the arguments, where they lie, to one path after the other, and where all of
them return ``NotImplemented`` to a method of the object that takes anything.

Words of CPython's public structures that are read: of a slot wrapper its ``struct wrapperbase``,
of a member descriptor its ``PyMemberDef`` (both behind the five words of a descriptor), of a
builtin of positional arguments (``METH_FASTCALL``) its function and ``__self__``, which are called
without further ceremony.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import sys
import threading
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from archimedes.backends.llvm.python_entry.common_code import common_code
from archimedes.backends.llvm.python_entry.text_lines import address
from archimedes.backends.llvm.runtime.machine import NativeCode

__all__ = ["calling_method"]

_NAME = "arc_method"
#: Bytes before what is special to a kind of descriptor; words of a struct wrapperbase, and which
#: of them is the text that describes it; bytes before the offset in a PyMemberDef.
_DESCRIPTOR, _WRAPPER_BASE, _DOC, _OFFSET = 40, 7, 4, 16
_TEXT = """
@arc.anything = external global i8
@arc.other = external global i8
@arc.builtin = external global i8
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Call(ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
define ptr @arc_method(ptr %self, ptr %args, ptr %names) {{
entry:
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %look, label %slow
look:
  %slot = getelementptr i8, ptr %self, i64 {offset}
  %held = load ptr, ptr %slot, align 8
  %none = icmp eq ptr %held, null
  br i1 %none, label %slow, label %count
count:
  call void @Py_IncRef(ptr %held)
  %at.size = getelementptr i8, ptr %held, i64 16
  %size = load i64, ptr %at.size, align 8
  %at.nargs = getelementptr i8, ptr %args, i64 16
  %nargs = load i64, ptr %at.nargs, align 8
  %given = getelementptr i8, ptr %args, i64 {items}
  %paths = getelementptr i8, ptr %held, i64 {items}
  br label %test
test:
  %k = phi i64 [ 0, %count ], [ %k1, %other ]
  %left = icmp slt i64 %k, %size
  br i1 %left, label %try, label %through
try:
  %at.path = getelementptr ptr, ptr %paths, i64 %k
  %path = load ptr, ptr %at.path, align 8
  %at.kind = getelementptr i8, ptr %path, i64 8
  %kind = load ptr, ptr %at.kind, align 8
  %builtin = icmp eq ptr %kind, @arc.builtin
  br i1 %builtin, label %look.inside, label %any
look.inside:
  %at.definition = getelementptr i8, ptr %path, i64 16
  %definition = load ptr, ptr %at.definition, align 8
  %at.flags = getelementptr i8, ptr %definition, i64 16
  %flags = load i32, ptr %at.flags, align 4
  %fast = icmp eq i32 %flags, 128
  br i1 %fast, label %native, label %any
native:
  %at.function = getelementptr i8, ptr %definition, i64 8
  %function = load ptr, ptr %at.function, align 8
  %at.own = getelementptr i8, ptr %path, i64 24
  %own = load ptr, ptr %at.own, align 8
  %direct = call ptr %function(ptr %own, ptr %given, i64 %nargs)
  br label %tried
any:
  %called = call ptr @PyObject_Vectorcall(ptr %path, ptr %given, i64 %nargs, ptr null)
  br label %tried
tried:
  %result = phi ptr [ %direct, %native ], [ %called, %any ]
  %not = icmp eq ptr %result, @arc.other
  br i1 %not, label %other, label %done
other:
  call void @Py_DecRef(ptr %result)
  %k1 = add i64 %k, 1
  br label %test
done:
  call void @Py_DecRef(ptr %held)
  ret ptr %result
through:
  call void @Py_DecRef(ptr %held)
  br label %slow
slow:
  %method = call ptr @PyObject_GetAttr(ptr %self, ptr @arc.anything)
  %lost = icmp eq ptr %method, null
  br i1 %lost, label %failed, label %ask
ask:
  %found = call ptr @PyObject_Call(ptr %method, ptr %args, ptr %names)
  call void @Py_DecRef(ptr %method)
  ret ptr %found
failed:
  ret ptr null
}}
"""

_lock = threading.Lock()
#: Code and definitions that classes use: they stay.
_kept: list[Any] = []


@functools.cache
def _code(offset: int, anything: str) -> NativeCode:
    name = sys.intern(anything)
    _kept.append(name)
    functions = (
        "PyObject_GetAttr",
        "PyObject_Call",
        "PyObject_Vectorcall",
        "Py_IncRef",
        "Py_DecRef",
    )
    imports = {f: address(f) for f in functions} | {
        "arc.anything": id(name),
        "arc.other": id(NotImplemented),
        "arc.builtin": id(BuiltinFunctionType),
    }
    text = _TEXT.format(offset=offset, items=tuple.__basicsize__)
    return common_code(text, _NAME, imports)


def _word(where: int) -> int:
    return int(ctypes.c_uint64.from_address(where).value)


def calling_method(cls: type, paths: str, anything: str, doc: str) -> Any:
    """Return a method ``__call__`` for a class.

    ``paths`` names the slot of its objects with the tuple of direct paths, ``anything`` the method
    that takes what these do not.
    """
    slot = inspect.getattr_static(cls, paths)
    if not isinstance(slot, MemberDescriptorType):
        raise TypeError(f"{cls.__name__}.{paths} must be one of its __slots__")
    offset = _word(_word(id(slot) + _DESCRIPTOR) + _OFFSET)
    with _lock:
        code = _code(offset, anything)
        label = np.frombuffer(doc.encode() + b"\0", np.uint8)
        # That of any class with a call, with a description of its own.
        known = _word(id(FunctionType.__call__) + _DESCRIPTOR)
        base = np.array([_word(known + 8 * k) for k in range(_WRAPPER_BASE)], np.uint64)
        base[_DOC] = label.ctypes.data
        _kept.append((label, base))
    make = ctypes.pythonapi.PyDescr_NewWrapper
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p]
    return make(cls, base.ctypes.data, code.address)
