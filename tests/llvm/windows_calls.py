"""Code for Windows, linked and called in this process, whose system is another.

The instructions are those of every x86-64; Windows differs in who saves which registers and where
arguments are. So functions of this system's convention call those of the other, and the reverse.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

import numpy as np

from archimedes.backends.llvm.calling_convention import BATCH, LOOP_THREADS, SAFEPOINT, SCALAR
from archimedes.backends.llvm.runtime.machine import NativeCode, Target, host_target

from ..programs.program import Program
from ..programs.values import assert_bits, leaves_of, packed, reference
from .emulated_kernels import tables_of

__all__ = ["run_windows_kernels"]

#: What kernels call, what calls them, and a table that leads there. Stacks of Linux grow without
#: ``__chkstk``; nothing is threaded, and Python gets no turn.
_TEXT = """
declare ptr @arc_malloc(i64)
declare void @arc_free(ptr)
declare double @fma(double, double, double)
declare float @fmaf(float, float, float)
define internal win64cc ptr @malloc.windows(i64 %n) nounwind {
  %p = call ptr @arc_malloc(i64 %n)
  ret ptr %p
}
define internal win64cc void @free.windows(ptr %p) nounwind {
  call void @arc_free(ptr %p)
  ret void
}
define internal win64cc double @fma.windows(double %a, double %b, double %c) nounwind {
  %d = call double @fma(double %a, double %b, double %c)
  ret double %d
}
define internal win64cc float @fmaf.windows(float %a, float %b, float %c) nounwind {
  %d = call float @fmaf(float %a, float %b, float %c)
  ret float %d
}
define internal void @nothing() nounwind {
  ret void
}
define internal win64cc i32 @look(ptr %budget) nounwind {
  store i64 9223372036854775807, ptr %budget
  ret i32 0
}
define internal i32 @scalar(ptr %f, ptr %in, ptr %out) nounwind {
  %status = call win64cc i32 %f(ptr %in, ptr %out)
  ret i32 %status
}
define internal i32 @batch(ptr %f, ptr %in, ptr %out, i64 %begin, i64 %end) nounwind {
  %status = call win64cc i32 %f(ptr %in, ptr %out, i64 %begin, i64 %end)
  ret i32 %status
}
@words = internal global [2 x ptr] [ptr @nothing, ptr @look]
@table = internal constant [9 x ptr] [
  ptr @malloc.windows, ptr @free.windows, ptr @fma.windows, ptr @fmaf.windows, ptr @nothing,
  ptr @words, ptr getelementptr (ptr, ptr @words, i64 1), ptr @scalar, ptr @batch]
define ptr @entries() nounwind {
  ret ptr @table
}
"""
_NAMES = ("arc_malloc", "arc_free", "fma", "fmaf", "__chkstk", LOOP_THREADS, SAFEPOINT)
_POINTER = ctypes.c_void_p


@cache
def _calls() -> tuple[dict[str, int], dict[str, ctypes._FuncPointer], NativeCode]:
    """Return what kernels import, by address, what calls their entries, and the code of both."""
    code = NativeCode(host_target(None).compile(_TEXT), "entries")
    table = ctypes.CFUNCTYPE(ctypes.POINTER(_POINTER))(code.address)()
    *imports, scalar, batch = (table[k] for k in range(len(_NAMES) + 2))
    counts = (ctypes.c_int64, ctypes.c_int64)
    callers = {
        SCALAR: ctypes.CFUNCTYPE(ctypes.c_int, *[_POINTER] * 3)(scalar),
        BATCH: ctypes.CFUNCTYPE(ctypes.c_int, *[_POINTER] * 3, *counts)(batch),
    }
    return dict(zip(_NAMES, imports, strict=True)), callers, code


def run_windows_kernels(made: Program, entries: Mapping[str, bytes], target: Target) -> None:
    """Link and call both entries of a program; compare with the interpreter."""
    imports, callers, _ = _calls()
    g, tables = made.graph, tables_of(made)
    given = packed(made.columns, leaves_of(g.input_dtypes))
    wanted = packed(reference(g, made.columns, made.count), leaves_of(g.output_dtypes))
    names = imports | {name: table.ctypes.data for name, table in tables.items()}
    for entry, code in entries.items():
        native = NativeCode(code, f"{made.name}_{entry}", names, target.triple)
        found = [np.zeros_like(x) for x in wanted]
        rows = range(made.count) if entry == SCALAR else [slice(None)]
        for row in rows:
            to, of = (
                np.array([x[row].ctypes.data for x in arrays], np.uint64)
                for arrays in (found, given)
            )
            counts = () if entry == SCALAR else (0, made.count)
            status = callers[entry](native.address, of.ctypes.data, to.ctypes.data, *counts)
            assert status == 0, (made.name, entry)
        for got, want in zip(found, wanted):
            assert_bits(got, want, f"windows {made.name} {entry}")
