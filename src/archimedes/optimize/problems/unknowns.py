"""Trees of unknowns as users give them, and of numbers as their functions return them."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import TraceError
from archimedes.function import Compiled
from archimedes.optimize.problems.limits import name_of

__all__ = ["as_unknowns", "numbers_of", "shapes_of"]


def as_unknowns(x0: Any, what: str = "x0") -> Any:
    """Return a start as a tree of float64; a list of numbers is an array."""
    try:
        if isinstance(x0, (list, tuple)) and all(np.isscalar(x) or x is None for x in x0):
            x0 = np.array(x0, dtype=float)
        found = tree.map(lambda leaf: np.asarray(leaf, dtype=float)[()], x0)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a tree of numbers, got {x0!r}") from None
    flat = tree.ravel(found)[0]
    if flat.size == 0:
        raise ValueError(f"{what} holds no numbers to solve for")
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        k = int(bad[0])
        raise ValueError(f"{name_of(found, k, what)} is {flat[k]}: a start must be finite")
    return found


def shapes_of(function: Compiled, unknowns: Any, args: tuple[Any, ...], what: str) -> Any:
    """Return zeros like the result of a function, found by recording it."""
    recording = function.recording(unknowns, *args)
    if recording.captured:
        raise TraceError(
            f"{what} reads values of the recorded function around it, of which a solver knows "
            "nothing: pass them to the solver as arguments, nlp_solver(f)(x0, k) with f(x, k)"
        )
    found = []
    for out, path in zip(recording.outs, recording.out_tree.paths(what)):
        value = out.spec.value
        if not out.spec.traced and not isinstance(value, (int, float, np.ndarray, np.generic)):
            raise ValueError(f"{path} is a {type(value).__name__}, but numbers are needed")
        found.append(np.zeros(out.spec.shape if out.spec.traced else np.shape(value))[()])
    return recording.out_tree.unflatten(found)


def numbers_of(function: Compiled, unknowns: Any, args: tuple[Any, ...], what: str) -> Any:
    """Return the same for functions that must return something."""
    found = shapes_of(function, unknowns, args, what)
    if not tree.ravel(found)[0].size:
        raise ValueError(f"{what} returns no numbers: does it end with a return statement?")
    return found
