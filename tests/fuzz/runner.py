"""Runs programs on executors and compares the results with what NumPy gave.

An executor is a function from source text and inputs to the tuple of results; another backend is
one more entry of ``EXECUTORS``.
"""

from __future__ import annotations

import linecache
import traceback
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import archimedes
from archimedes.graph import DTYPES
from tests.programs.values import bits_equal, samples

from . import plain
from .programs import Expected, Program, generate

__all__ = ["EXECUTORS", "batch_of", "check", "compare", "copies", "load", "mismatch", "report"]

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


def run_alone(source: str, inputs: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """Traced, run as native code by itself; every bit must be the interpreter's.

    One call, and a batch over lanes and threads. ``bundles.py`` checks many programs at once.
    """
    function = load(source, archimedes)
    native = archimedes.compile(function, backend="llvm")
    reference = archimedes.compile(function, backend="interpreter")
    results = native(*copies(inputs))
    pairs = list(zip(results, reference(*copies(inputs)), strict=True))
    batch = batch_of(inputs, 11)
    for threads in (1, 2):
        many = archimedes.vmap(native, threads=threads)(*batch)
        pairs += zip(many, archimedes.vmap(reference)(*batch), strict=True)
    for a, b in pairs:
        same_bits(np.asarray(a), np.asarray(b))
    return results


def batch_of(inputs: dict[str, np.ndarray], count: int) -> list[np.ndarray]:
    """``count`` instances of the inputs: the given ones, then random and special values."""
    content = b"".join(value.tobytes() for value in inputs.values())
    rng = np.random.default_rng(zlib.crc32(content))
    batch = []
    for value in inputs.values():
        drawn = samples(DTYPES.index(value.dtype), count * value.size, rng)
        drawn = drawn.reshape(count, *value.shape)
        drawn[0] = value
        batch.append(drawn)
    return batch


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless two arrays are equal to the bit; a nan is a nan."""
    if a.dtype != b.dtype or a.shape != b.shape or not bits_equal(a, b).all():
        raise AssertionError(f"native {a!r} differs from interpreted {b!r}")


EXECUTORS: dict[str, Executor] = {
    "plain": run_plain,
    "eager": run_eager,
    "compiled": run_compiled,
    "alone": run_alone,
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
    why = compare(program, results)
    return report(program, executor, why) if why else None


def compare(program: Program, results: Sequence[Any]) -> str | None:
    """What makes the results of a program other than NumPy's, or None."""
    if len(results) != len(program.expected):
        return f"{len(results)} results"
    for want, got in zip(program.expected, results):
        why = mismatch(want, got)
        if why:
            return f"{want.name}: {why}\n  NumPy {want.value!r}\n  here  {np.asarray(got)!r}"
    return None


def report(program: Program, executor: str, detail: str) -> str:
    rule = "-" * 100
    return f"{rule}\nseed {program.seed}, executor {executor}\n\n{program.repro()}\n\n{detail}"
