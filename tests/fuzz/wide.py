"""Random programs of wide arrays, several in one kernel: native code, interpreter and NumPy agree.

Arrays of any number of elements up to ``WIDEST`` meet in them, so that loops, scalars and what
lies between are recorded side by side.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import archimedes

from .programs import Program, generate
from .runner import compare, copies, load, report, same_bits

__all__ = ["WIDEST", "check_wide", "check_wide_in_bundles"]

WIDEST = 5_000
#: Programs in one kernel.
TOGETHER = 8


def check_wide_in_bundles(seeds: Sequence[int], every: int = 1) -> list[str]:
    """Run the programs of these seeds; one bundle of ``every`` as native code too, as LLVM
    takes most of the time.
    """
    reports = []
    gc.disable()  # a fifth of the time, with all the nodes there are
    try:
        for k in range(0, len(seeds), TOGETHER):
            native = seeds[k] // TOGETHER % every == 0
            reports += check_wide(seeds[k : k + TOGETHER], native)
    finally:
        gc.enable()
    return reports


def check_wide(seeds: Sequence[int], native: bool = True) -> list[str]:
    """Run the programs of these seeds together; reports of those that went wrong."""
    programs = [generate(seed, WIDEST) for seed in seeds]
    try:
        interpreted = _run(programs, "interpreter")
        results = _run(programs, "llvm") if native else interpreted
    except Exception:
        if len(programs) == 1:
            return [report(programs[0], "wide", traceback.format_exc(limit=-6))]
        # Find out whose fault it is.
        return [text for seed in seeds for text in check_wide([seed], native)]
    found = []
    for program, here, there in zip(programs, results, interpreted, strict=True):
        why = compare(program, there) or _differs(here, there)
        if why:
            found.append(report(program, "wide", why))
    return found


def _run(programs: Sequence[Program], backend: str) -> tuple[Any, ...]:
    together = archimedes.compile(_side_by_side(programs), backend=backend)
    with np.errstate(all="ignore"):
        return together([copies(program.inputs) for program in programs])


def _side_by_side(programs: Sequence[Program]) -> Callable[..., Any]:
    functions = [load(program.source, archimedes) for program in programs]

    def together(inputs: list[list[Any]]) -> tuple[Any, ...]:
        return tuple(f(*given) for f, given in zip(functions, inputs, strict=True))

    return together


def _differs(native: Sequence[Any], interpreted: Sequence[Any]) -> str | None:
    for a, b in zip(native, interpreted, strict=True):
        try:
            same_bits(np.asarray(a), np.asarray(b))
        except AssertionError as error:
            return str(error)
    return None
