"""Native checks that memory is as it was: what lets a call skip looking at what it reads.

What is looked at is laid out by ``backends/memory_guard.py``.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from archimedes.backends.llvm.python_entry.text_lines import literal
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["checker", "unchanged"]

_NAME = "arc_unchanged"
_TEXT = """
define i32 @arc_unchanged(ptr %guard) {{
entry:
  %count = load i64, ptr %guard, align 8
  %at1 = getelementptr i64, ptr %guard, i64 1
  %rows = load ptr, ptr %at1, align 8
  %some = icmp ne i64 %count, 0
  br i1 %some, label %word, label %blocks
word:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %row = phi ptr [ %rows, %entry ], [ %row1, %next ]
  %where = load ptr, ptr %row, align 8
  %atm = getelementptr i64, ptr %row, i64 1
  %mask = load i64, ptr %atm, align 8
  %atv = getelementptr i64, ptr %row, i64 2
  %old = load i64, ptr %atv, align 8
  %found = load i64, ptr %where, align 4
  %now = and i64 %found, %mask
  %same = icmp eq i64 %now, %old
  br i1 %same, label %next, label %changed
next:
  %k1 = add i64 %k, 1
  %row1 = getelementptr i64, ptr %row, i64 3
  %more = icmp ult i64 %k1, %count
  br i1 %more, label %word, label %blocks
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
  %differ = call i32 {memcmp}(ptr %mine, ptr %copy, i64 %size)
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
    text = _TEXT.format(memcmp=literal(memcmp))
    triple = f'target triple = "{host_target(None).triple}"\n'
    return NativeCode(host_target(None).compile(triple + text), _NAME, {})


@functools.cache
def _check() -> Any:
    # The GIL is held throughout: what is looked at cannot go away meanwhile.
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(checker().address)


def unchanged(address: int) -> bool:
    """Tell whether what the guard at this address describes is unchanged."""
    return bool(_check()(address))
