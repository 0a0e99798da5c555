"""Where the search for a trajectory begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.errors import explained
from archimedes.optimize.problems.unknowns import as_unknowns

__all__ = ["Guess"]


@dataclass(eq=False)
class Guess:
    """States and controls along the way, s from 0 to 1; times and parameters.

    ``x`` and ``u`` are functions of many s (N,) that return matrices, a row for each; ``x_like``
    and ``u_like`` are trees.
    """

    x: Callable[[np.ndarray], np.ndarray]
    u: Callable[[np.ndarray], np.ndarray]
    x_like: Any
    u_like: Any
    p: Any
    t0: float
    tf: float

    @classmethod
    def of(cls, given: Mapping[str, Any], problem: Any) -> Guess:
        """Read a dict; see ``OptimalControl.solve``."""
        if not isinstance(given, Mapping) or not {"x", "u"} <= set(given):
            raise ValueError(
                explained("guess", "guess must be a dict with 'x' and 'u', or an earlier solution")
            )
        strangers = sorted(set(given) - {"x", "u", "p", "t0", "tf"})
        if strangers:
            raise ValueError(f"guess has unknown keys {strangers}: x, u, p, t0 and tf are known")
        x, x_like = _along(given["x"], "guess['x']")
        u, u_like = _along(given["u"], "guess['u']")
        p = None if given.get("p") is None else as_unknowns(given["p"], "guess['p']")
        t0, tf = _time("t0", given, problem), _time("tf", given, problem)
        if not tf > t0:
            raise ValueError(f"the guess goes from t0 = {t0:.6g} to tf = {tf:.6g}: give tf > t0")
        return cls(x, u, x_like, u_like, p, t0, tf)

    def form(self) -> Any:
        """Return what decides whether two guesses need the same equations."""
        leaves, treedef = tree.flatten((self.x_like, self.u_like, self.p))
        return treedef, tuple(np.shape(leaf) for leaf in leaves)


def _along(given: Any, what: str) -> tuple[Callable[[np.ndarray], np.ndarray], Any]:
    if callable(given):
        like = as_unknowns(given(0.0), what)

        return lambda many: _at_each(given, many, tree.ravel(like)[0].size, what), like
    like = as_unknowns(given, what)
    flat = tree.ravel(like)[0] * 1.0
    return lambda many: np.tile(flat, (many.size, 1)), like


def _at_each(given: Any, many: np.ndarray, size: int, what: str) -> np.ndarray:
    """Call the function for each s; vectors of finite numbers are taken as they are."""
    found = [given(s) for s in many.tolist()]
    if all(type(v) is np.ndarray and v.shape == (size,) for v in found):
        plain = np.array(found)
        if plain.dtype == np.float64 and isfinite(plain.sum()):
            return plain
    flat = [tree.ravel(as_unknowns(value, what))[0] * 1.0 for value in found]
    for s, value in zip(many, flat):
        if value.size != size:
            raise ValueError(
                f"{what} returns {size} numbers at s = 0, but {value.size} at s = {s:.6g}"
            )
    return np.array(flat)


def _time(name: str, given: Mapping[str, Any], problem: Any) -> float:
    limits = getattr(problem, name)
    if not isinstance(limits, (tuple, list)):
        return float(limits)
    if name in given:
        return float(given[name])
    if np.all(np.isfinite(limits)):
        return float(np.mean(limits))
    raise ValueError(explained("guess", f"{name} is free: give a guess of it, guess[{name!r}]"))
