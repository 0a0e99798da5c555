"""Native checks that memory is as it was: what lets a call skip looking at what it reads.

What is looked at is laid out by ``backends/memory_guard.py``.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from archimedes.backends.llvm.python_entry.common_code import common_code
from archimedes.backends.llvm.runtime.machine import NativeCode
from archimedes.backends.memory_guard import TOGETHER

__all__ = ["checker", "unchanged"]

_NAME = "arc_unchanged"
_TEXT = """
declare i32 @memcmp(ptr, ptr, i64)
define i32 @arc_unchanged(ptr %guard) {{
entry:
  %count = load i64, ptr %guard, align 8
  %at1 = getelementptr i64, ptr %guard, i64 1
  %rows = load ptr, ptr %at1, align 8
  %some = icmp ne i64 %count, 0
  br i1 %some, label %word0, label %blocks
word0:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %row = phi ptr [ %rows, %entry ], [ %row1, %next ]
{words}
next:
  %k1 = add i64 %k, {together}
  %row1 = getelementptr i64, ptr %row, i64 {length}
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %word0, label %blocks
blocks:
  %at2 = getelementptr i64, ptr %guard, i64 2
  %many = load i64, ptr %at2, align 8
  %at3 = getelementptr i64, ptr %guard, i64 3
  %table = load ptr, ptr %at3, align 8
  br label %test
test:
  %j = phi i64 [ 0, %blocks ], [ %j1, %equal ]
  %left = icmp ult i64 %j, %many
  br i1 %left, label %block, label %unchanged
block:
  %offset = mul i64 %j, 3
  %entry0 = getelementptr i64, ptr %table, i64 %offset
  %mine = load ptr, ptr %entry0, align 8
  %entry1 = getelementptr i64, ptr %entry0, i64 1
  %copy = load ptr, ptr %entry1, align 8
  %entry2 = getelementptr i64, ptr %entry0, i64 2
  %size = load i64, ptr %entry2, align 8
  %differ = call i32 @memcmp(ptr %mine, ptr %copy, i64 %size)
  %zero = icmp eq i32 %differ, 0
  br i1 %zero, label %equal, label %changed
equal:
  %j1 = add i64 %j, 1
  br label %test
unchanged:
  ret i32 1
changed:
  ret i32 0
}}
"""
_WORD = """
  %at.a{k} = getelementptr i64, ptr %row, i64 {first}
  %where{k} = load ptr, ptr %at.a{k}, align 8
  %at.m{k} = getelementptr i64, ptr %at.a{k}, i64 1
  %mask{k} = load i64, ptr %at.m{k}, align 8
  %at.v{k} = getelementptr i64, ptr %at.a{k}, i64 2
  %old{k} = load i64, ptr %at.v{k}, align 8
  %found{k} = load i64, ptr %where{k}, align 4
  %now{k} = and i64 %found{k}, %mask{k}
  %same{k} = icmp eq i64 %now{k}, %old{k}
  br i1 %same{k}, label %{following}, label %changed
"""

_lock = threading.Lock()


def checker() -> NativeCode:
    """Return the native function that tells whether what a guard describes is unchanged.

    There is only one: entries know its address, and it must not go away.
    """
    with _lock:
        return _compiled()


@functools.cache
def _compiled() -> NativeCode:
    memcmp = ctypes.cast(ctypes.CDLL(None).memcmp, ctypes.c_void_p).value or 0
    words = []
    for k in range(TOGETHER):
        following = "next" if k == TOGETHER - 1 else f"word{k + 1}"
        begin = f"word{k}:" if k else ""
        words.append(begin + _WORD.format(k=k, first=3 * k, following=following))
    text = _TEXT.format(words="".join(words), together=TOGETHER, length=3 * TOGETHER)
    return common_code(text, _NAME, {"memcmp": memcmp})


@functools.cache
def _check() -> Any:
    # The GIL is held throughout: what is looked at cannot go away meanwhile.
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(checker().address)


def unchanged(address: int) -> bool:
    """Tell whether what the guard at this address describes is unchanged."""
    return bool(_check()(address))
