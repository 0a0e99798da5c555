"""The memory of result arrays, as native code that NumPy calls too (NEP 49).

What the numbers of a result lay in is kept for the next one of about its size, up to ``KEPT``
bytes in all: allocators hand such memory back to the system when many results are dropped at once,
and fetching it again takes longer than a short kernel. A block begins with its size in units of
64 bytes and, while nobody has it, the address of the next one of that size; so it does not matter
what whoever frees it believes its size to be. All of it happens under the GIL.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["KEPT", "memory_text"]

#: Bytes that are kept, and the longest blocks among them in units of 64 bytes.
KEPT, LONGEST = 4 << 20, 256
_TEXT = """
@heads = internal global [{heads} x ptr] zeroinitializer, align 64
@kept = internal global i64 0, align 8
declare ptr @libc.malloc(i64)
declare ptr @libc.calloc(i64, i64)
declare ptr @libc.realloc(ptr, i64)
declare void @libc.free(ptr)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)

define internal ptr @begun(ptr %block, i64 %units) {{
  %none = icmp eq ptr %block, null
  br i1 %none, label %nothing, label %some
some:
  store i64 %units, ptr %block, align 8
  %data = getelementptr i8, ptr %block, i64 16
  ret ptr %data
nothing:
  ret ptr null
}}
define internal ptr @allocate(ptr %context, i64 %size) {{
  %more = add i64 %size, 79
  %units = lshr i64 %more, 6
  %long = icmp ugt i64 %units, {longest}
  br i1 %long, label %fresh, label %look
look:
  %head = getelementptr ptr, ptr @heads, i64 %units
  %block = load ptr, ptr %head, align 8
  %none = icmp eq ptr %block, null
  br i1 %none, label %fresh, label %take
take:
  %at = getelementptr i8, ptr %block, i64 8
  %next = load ptr, ptr %at, align 8
  store ptr %next, ptr %head, align 8
  %bytes = shl i64 %units, 6
  %before = load i64, ptr @kept, align 8
  %after = sub i64 %before, %bytes
  store i64 %after, ptr @kept, align 8
  %data = getelementptr i8, ptr %block, i64 16
  ret ptr %data
fresh:
  %total = shl i64 %units, 6
  %new = call ptr @libc.malloc(i64 %total)
  %made = tail call ptr @begun(ptr %new, i64 %units)
  ret ptr %made
}}
define internal ptr @clear(ptr %context, i64 %count, i64 %item) {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %item)
  %over = extractvalue {{ i64, i1 }} %product, 1
  br i1 %over, label %nothing, label %some
some:
  %size = extractvalue {{ i64, i1 }} %product, 0
  %more = add i64 %size, 79
  %units = lshr i64 %more, 6
  %total = shl i64 %units, 6
  %new = call ptr @libc.calloc(i64 1, i64 %total)
  %made = tail call ptr @begun(ptr %new, i64 %units)
  ret ptr %made
nothing:
  ret ptr null
}}
define internal ptr @resize(ptr %context, ptr %old, i64 %size) {{
  %more = add i64 %size, 79
  %units = lshr i64 %more, 6
  %total = shl i64 %units, 6
  %none = icmp eq ptr %old, null
  %inside = getelementptr i8, ptr %old, i64 -16
  %block = select i1 %none, ptr null, ptr %inside
  %new = call ptr @libc.realloc(ptr %block, i64 %total)
  %made = tail call ptr @begun(ptr %new, i64 %units)
  ret ptr %made
}}
define internal void @free(ptr %context, ptr %old, i64 %size) {{
  %none = icmp eq ptr %old, null
  br i1 %none, label %done, label %some
some:
  %block = getelementptr i8, ptr %old, i64 -16
  %units = load i64, ptr %block, align 8
  %long = icmp ugt i64 %units, {longest}
  %bytes = shl i64 %units, 6
  %before = load i64, ptr @kept, align 8
  %after = add i64 %before, %bytes
  %much = icmp ugt i64 %after, {kept}
  %away = or i1 %long, %much
  br i1 %away, label %drop, label %keep
keep:
  %head = getelementptr ptr, ptr @heads, i64 %units
  %next = load ptr, ptr %head, align 8
  %at = getelementptr i8, ptr %block, i64 8
  store ptr %next, ptr %at, align 8
  store ptr %block, ptr %head, align 8
  store i64 %after, ptr @kept, align 8
  ret void
drop:
  tail call void @libc.free(ptr %block)
  ret void
done:
  ret void
}}
"""


def memory_text() -> tuple[str, dict[str, int]]:
    """Return the functions ``@allocate``, ``@clear``, ``@resize`` and ``@free`` of a handler.

    With them what they need, by name: the C library's functions.
    """
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    names = ("malloc", "calloc", "realloc", "free")
    text = _TEXT.format(heads=LONGEST + 1, longest=LONGEST, kept=KEPT)
    places = {f"libc.{n}": ctypes.cast(getattr(library, n), ctypes.c_void_p).value for n in names}
    return text, {name: place or 0 for name, place in places.items()}
