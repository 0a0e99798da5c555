"""Functions of arrays described by loops, as machine code: see ``Backend.array_functions``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.lowering.assembler import Function, Module
from archimedes.backends.llvm.lowering.guards import add_guarded
from archimedes.backends.llvm.lowering.spelling import Spelling
from archimedes.backends.llvm.runtime.array_writer import Writer
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["array_functions"]

_KINDS: dict[str, Any] = {"f": ctypes.c_double, "i": ctypes.c_int64}
_OWN = Path(__file__).parents[1]


def _text(functions: Mapping[str, tuple[str, Callable[..., None]]], target: Any) -> str:
    module = Module(Spelling(1), target)
    entries = []
    for name, (kinds, describe) in functions.items():
        writer = Writer(module, name, kinds)
        describe(writer, *writer.arguments)
        writer.f.finish("ret i32 0")
        _add_opened(module, name, writer)
        add_guarded(module, f"arc_{name}", writer.parameters, f"{name}_opened")
        entries.append(f"ptr @arc_{name}")
    # One address leads to all of them.
    table = f"@entries = internal constant [{len(entries)} x ptr] [{', '.join(entries)}]"
    module.global_lines.append(table)
    module.functions.append("define ptr @arc_entries() {\n  ret ptr @entries\n}")
    return module.text()


def _add_opened(module: Module, name: str, writer: Writer) -> None:
    """Write the function of Python's arrays: of each the address of its numbers is taken."""
    f = Function(module, f"define internal i32 @{name}_opened({writer.parameters}) noinline")
    given = []
    for part in writer.parameters.split(", "):
        kind, parameter = part.split()
        if kind == "ptr":
            # The first field behind the object header of every array is its data pointer.
            at = f"getelementptr i8, ptr {parameter}, i64 {object.__basicsize__}"
            parameter = f.value(f"load ptr, ptr {f.value(at)}, align 8")
        given.append(f"{kind} {parameter}")
    status = f.value(f"call i32 @{name}({', '.join(given)})")
    f.finish(f"ret i32 {status}")


def array_functions(
    functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
) -> dict[str, Callable[..., int]]:
    """Return the functions by name, from the disk where they are there.

    Arrays are given by their ``id``, the quickest way; the caller keeps them meanwhile.
    """
    target = host_target(None)
    kinds = {name: given for name, (given, _) in functions.items()}
    text = b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))
    version = f"{llvmlite.__version__} {cache.sources_digest(_OWN)}"
    key = cache.cache_key("arrays", kinds, text, target, target.triple, version)
    code = cache.read(key)
    if code is None:
        # Variables become registers.
        code = target.compile(_text(functions, target), fused=True)
        cache.write(key, code)
    native = NativeCode(code, "arc_entries")
    table = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(native.address)()
    found: dict[str, Callable[..., int]] = {}
    for k, (name, given) in enumerate(kinds.items()):
        types = [ctypes.c_void_p if kind.isupper() else _KINDS[kind] for kind in given]
        made = ctypes.CFUNCTYPE(ctypes.c_int, *types)(table[k])
        made.code = native  # type: ignore[attr-defined]
        found[name] = made
    return found
