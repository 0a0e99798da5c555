"""Native code that every process needs the same: compiled once, and then read from the disk."""

from __future__ import annotations

from collections.abc import Mapping

import llvmlite  # type: ignore[import-untyped]

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target

__all__ = ["common_code"]


def common_code(text: str, symbol: str, imports: Mapping[str, int]) -> NativeCode:
    """Return a module that names what it needs of the process: functions and objects by address."""
    target = host_target(None)
    key = cache.cache_key("common", text, target, llvmlite.__version__)
    code = cache.read(key)
    if code is None:
        code = target.compile(text)
        cache.write(key, code)
    return NativeCode(code, symbol, dict(imports))
