"""Functions of arrays described by loops, as machine code: see ``Backend.array_functions``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numpy as np

from archimedes.backends import code_cache as cache
from archimedes.backends.llvm.runtime.machine import NativeCode, host_target
from archimedes.backends.llvm.runtime.pointers import pointer_reader

__all__ = ["ArrayFunction", "array_functions"]

_KINDS: dict[str, Any] = {"f": ctypes.c_double, "i": ctypes.c_int64}
_DTYPES = {"F": np.dtype(np.float64), "I": np.dtype(np.int64)}
_OWN = Path(__file__).parents[1]


class ArrayFunction:
    """A native function of arrays and numbers.

    ``kinds`` has a letter per parameter, as ``Backend.array_functions`` says. ``bind`` checks the
    arrays it is given; a call does not, and takes contiguous arrays of the right dtype.
    """

    def __init__(self, native: Callable[..., int], kinds: str, kept: Any = None) -> None:
        self._native, self._kinds, self._kept = native, kinds, kept
        self._is_array, self._address = [kind in _DTYPES for kind in kinds], pointer_reader()

    def __call__(self, *given: Any) -> int:
        """Run it, and return its code."""
        pairs, address = zip(given, self._is_array, strict=True), self._address
        return self._native(*[address(x) if is_array else x for x, is_array in pairs])

    def bind(self, *first: Any) -> ArrayFunction:
        """Return the function of the other parameters; it holds the arrays of these."""
        addresses: list[Any] = []
        for x, kind in zip(first, self._kinds):
            if kind in _DTYPES and (x.dtype != _DTYPES[kind] or not x.flags.c_contiguous):
                raise ValueError(
                    f"array {len(addresses)} must be C-contiguous {_DTYPES[kind]}, not {x.dtype} "
                    f"with strides {x.strides}; use np.ascontiguousarray"
                )
            addresses.append(self._address(x) if kind in _DTYPES else x)
        others = self._kinds[len(first) :]
        return ArrayFunction(partial(self._native, *addresses), others, (self, first))


def array_functions(
    functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
) -> dict[str, ArrayFunction]:
    """Return the functions by name, from the disk where they are there."""
    target = host_target(None)
    kinds = {name: given for name, (given, _) in functions.items()}
    text = b"".join(path.read_bytes() for path in sorted(sources.glob("*.py")))
    version = f"{llvmlite.__version__} {cache.sources_digest(_OWN)}"
    key = cache.cache_key("arrays", kinds, text, target, version)
    code = cache.read(key)
    if code is None:
        # Takes a while, and code from the disk does without.
        from archimedes.backends.llvm.runtime.array_text import array_text

        # Variables become registers.
        code = target.compile(array_text(functions, target), fused=True)
        cache.write(key, code)
    native = NativeCode(code, "arc_entries")
    table = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(native.address)()
    found: dict[str, ArrayFunction] = {}
    for k, (name, given) in enumerate(kinds.items()):
        types = [ctypes.c_void_p if kind.isupper() else _KINDS[kind] for kind in given]
        made = ctypes.CFUNCTYPE(ctypes.c_int, *types)(table[k])
        found[name] = ArrayFunction(made, given, native)
    return found
