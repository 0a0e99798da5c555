"""LLVM as a backend: scalar and lane kernels, threads, direct entries, a cache on disk.

Nothing of LLVM is imported before a program is built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from archimedes.backends.protocol import Backend, Kernel, Program


class LLVM(Backend):
    """Native code for this machine's CPUs."""

    name = "llvm"
    reads_tables_in_place = True

    def build(self, program: Program, unoptimized: bool = False) -> Kernel:
        """Compile, or read from the cache."""
        from archimedes.backends.llvm.runtime.kernel import build

        leaves = [[(x.size, x.code) for x in arrays] for arrays in program[1:3]]
        return build(program.graph, *leaves, name=program.name, unoptimized=unoptimized)

    def build_unoptimized(self, program: Program) -> Kernel:
        """Compile for the unoptimized tier, or read from the cache what was compiled before."""
        return self.build(program, unoptimized=True)

    def thread_dispatch(self, base: type, needed: bool) -> Any:
        """Return what makes callables that tell threads apart."""
        from archimedes.backends.llvm.python_api.c_api import is_supported

        if not is_supported() or not (needed or "llvmlite" in sys.modules):
            return None
        from archimedes.backends.llvm.python_api.thread_dispatch import thread_dispatch

        return thread_dispatch(base)

    def block_factors(self) -> Any:
        """Return the native factorisation."""
        from archimedes.backends.llvm.runtime import block_lu

        return block_lu

    def array_functions(
        self, functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
    ) -> Mapping[str, Callable[..., int]] | None:
        """Return the functions as native code."""
        from archimedes.backends.llvm.runtime.array_functions import array_functions

        return array_functions(functions, sources)

    def cache_folder(self) -> Path | None:
        """Return the folder of object code."""
        from archimedes.backends.code_cache import cache_folder

        return cache_folder()


BACKEND = LLVM()
