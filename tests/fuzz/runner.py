"""Runs programs on executors and compares the results with what NumPy gave.

An executor is a function from source text and inputs to the tuple of results; another backend is
one more entry of ``EXECUTORS``.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes

from . import plain
from .programs import Expected, Program, generate

__all__ = ["EXECUTORS", "check", "load", "mismatch"]

Executor = Callable[[str, dict[str, np.ndarray]], tuple[Any, ...]]


def load(source: str, regions: Any) -> Callable[..., tuple[Any, ...]]:
    """The function that ``source`` defines, with ``arc`` bound to ``regions``."""
    filename = "<fuzz program>"
    namespace: dict[str, Any] = {"np": np, "arc": regions}
    exec(compile(source, filename, "exec"), namespace)
    # error messages quote the user's line, which they look up here
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return namespace["program"]


def run_plain(source: str, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """NumPy, with Python loops for regions: the oracle itself."""
    return load(source, plain)(*copies(inputs))


def run_eager(source: str, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """NumPy, with the package's regions called on concrete values."""
    return load(source, archimedes)(*copies(inputs))


def run_compiled(source: str, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """Traced and run by the package's default backend."""
    return archimedes.compile(load(source, archimedes))(*copies(inputs))


def run_native(source: str, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """Traced, run as native code; every bit must be the interpreter's."""
    function = load(source, archimedes)
    native = archimedes.compile(function, backend="llvm")(*copies(inputs))
    reference = archimedes.compile(function, backend="interpreter")(*copies(inputs))
    for a, b in zip(native, reference, strict=True):
        same_bits(np.asarray(a), np.asarray(b))
    return native


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless two arrays are equal to the bit; a nan is a nan."""
    bits = {"f8": np.int64, "f4": np.int32}.get(a.dtype.str[1:], a.dtype)
    equal = a.dtype == b.dtype and a.shape == b.shape
    if equal:
        numbers = ~(np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else np.ones(a.shape, bool)
        equal = np.array_equal(a.view(bits)[numbers], b.view(bits)[numbers])
    if not equal:
        raise AssertionError(f"native {a!r} differs from interpreted {b!r}")


EXECUTORS: dict[str, Executor] = {
    "plain": run_plain,
    "eager": run_eager,
    "compiled": run_compiled,
    "native": run_native,
}


def copies(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [value.copy() for value in inputs.values()]


def mismatch(want: Expected, got: Any) -> str | None:
    """Why ``got`` is not the expected value, or None."""
    got = np.asarray(got)
    if got.shape != want.value.shape or got.dtype != want.value.dtype:
        return f"{got.dtype}{got.shape} in place of {want.value.dtype}{want.value.shape}"
    if want.value.dtype.kind != "f":
        return None if np.array_equal(got, want.value) else "values differ"
    finite = np.isfinite(want.value)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(
        got[~finite], want.value[~finite], equal_nan=True
    ):
        return "nan or inf in different places"
    a, b = want.value[finite], got[finite]
    if want.err == 0.0:
        if not np.array_equal(a, b):
            return "exact values differ"
        if want.signed and not np.array_equal(np.signbit(a), np.signbit(b)):
            return "signs of zeros differ"
        return None
    error = np.max(np.abs(a - b), initial=0.0)
    return None if error <= 2.0 * want.err else f"off by {error:.2e}, bound {want.err:.2e}"


def check(seed: int, executor: str = "compiled") -> str | None:
    """Generates and runs one program; a report of what went wrong, or None."""
    program = generate(seed)
    try:
        with np.errstate(all="ignore"):
            results = EXECUTORS[executor](program.source, program.inputs)
    except Exception:
        return report(program, executor, traceback.format_exc(limit=-6))
    if len(results) != len(program.expected):
        return report(program, executor, f"{len(results)} results")
    for want, got in zip(program.expected, results):
        why = mismatch(want, got)
        if why:
            detail = f"{want.name}: {why}\n  NumPy {want.value!r}\n  here  {np.asarray(got)!r}"
            return report(program, executor, detail)
    return None


def report(program: Program, executor: str, detail: str) -> str:
    rule = "-" * 100
    return f"{rule}\nseed {program.seed}, executor {executor}\n\n{program.repro()}\n\n{detail}"
