"""Constraints as users give them: a function, or several by name, with limits for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.optimize.problems.limits import limits

__all__ = [
    "constraint_limits",
    "is_list",
    "list_names",
    "named_constraints",
    "residuals_by_name",
]

#: Without limits a constraint is an equation.
EQUATION = (0.0, 0.0)


def named_constraints(constr: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the names of constraints and their functions.

    ``constr`` is None, a function, whose name is None here, a dict of functions, or a list of
    them, which are named by their ``__name__`` (or constr0, constr1, ...).
    """
    if constr is None:
        return (), ()
    if callable(constr):
        return (None,), (constr,)
    if isinstance(constr, Mapping):
        named = dict(constr)
    elif is_list(constr):
        named = dict(zip(list_names(constr), constr))
    else:
        raise TypeError(
            f"constr must be a function, a dict of functions or a list of them, got "
            f"{type(constr).__name__}: write constr=c, not constr=c(x)"
        )
    for name, function in named.items():
        if not callable(function):
            raise TypeError(f"constr[{name!r}] must be a function, got {type(function).__name__}")
    return tuple(named), tuple(named.values())


def is_list(constr: Any) -> bool:
    """Whether constraints are given as a list."""
    return isinstance(constr, Sequence) and not isinstance(constr, str)


def list_names(constr: Sequence[Any]) -> list[str]:
    """Return names of functions in a list: their own where those tell them apart."""
    own = [getattr(function, "__name__", "<lambda>") for function in constr]
    count = Counter(own)
    unique = [name != "<lambda>" and count[name] == 1 for name in own]
    return [name if good else f"constr{k}" for k, (name, good) in enumerate(zip(own, unique))]


def constraint_limits(given: Any, like: Any, constr: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high (m,) of constraints whose values are like ``like``."""
    if is_list(constr) and given is not None and not isinstance(given, Mapping):
        if len(given) != len(constr):
            raise ValueError(
                f"constr_bounds lists {len(given)} pairs (lower, upper) for {len(constr)} "
                "constraints"
            )
        given = dict(zip(list_names(constr), given))
    return limits(given, like, "constr_bounds", EQUATION)


def residuals_by_name(
    g: np.ndarray, low: np.ndarray, high: np.ndarray, like: Any
) -> dict[str, float]:
    """Return by how much each leaf of the constraints is violated at most."""
    off = np.maximum(np.maximum(low - g, g - high), 0.0)
    leaves, treedef = tree.flatten(like)
    found, at = {}, 0
    for leaf, path in zip(leaves, treedef.paths("constr")):
        size = int(np.size(leaf))
        found[path] = float(np.max(off[at : at + size], initial=0.0))
        at += size
    return found
