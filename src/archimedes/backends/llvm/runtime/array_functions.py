"""Functions of arrays described by loops, as machine code: see ``Backend.array_functions``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["array_functions"]

_KINDS: dict[str, Any] = {"f": ctypes.c_double, "i": ctypes.c_int64}
_OWN = Path(__file__).parents[1]


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
        # Takes a while, and code from the disk does without.
        from archimedes.backends.llvm.runtime.array_text import array_text

        # Variables become registers.
        code = target.compile(array_text(functions, target), fused=True)
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
