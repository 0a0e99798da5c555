"""The module of a set of functions of arrays (``array_functions.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from archimedes.backends.llvm.lowering.assembler import Module
from archimedes.backends.llvm.lowering.guards import add_guarded
from archimedes.backends.llvm.lowering.spelling import Spelling
from archimedes.backends.llvm.runtime.array_writer import Writer
from archimedes.backends.llvm.runtime.machine import Target

__all__ = ["array_text"]


def array_text(functions: Mapping[str, tuple[str, Callable[..., None]]], target: Target) -> str:
    """Write the module of functions, given by the kinds of their arguments and what they do."""
    module = Module(Spelling(1), target)
    entries = []
    for name, (kinds, describe) in functions.items():
        writer = Writer(module, name, kinds)
        describe(writer, *writer.arguments)
        writer.f.finish("ret i32 0")
        add_guarded(module, f"arc_{name}", writer.parameters, name)
        entries.append(f"ptr @arc_{name}")
    # One address leads to all of them.
    table = f"@entries = internal constant [{len(entries)} x ptr] [{', '.join(entries)}]"
    module.global_lines.append(table)
    module.functions.append("define ptr @arc_entries() nounwind {\n  ret ptr @entries\n}")
    return module.text()
