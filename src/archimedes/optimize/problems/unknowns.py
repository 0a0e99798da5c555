"""Bounds given as numbers or trees, as vectors.

Trees of unknowns as users give them, and of numbers as their functions return them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.errors import TraceError
from archimedes.function import Compiled

__all__ = [
    "as_unknowns",
    "as_vector",
    "check_order",
    "find_number_shapes",
    "find_result_shapes",
    "read_limits",
]


def read_limits(
    given: Any, like: Any, what: str, default: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits as vectors in the order of ``tree.ravel(like)``.

    ``given`` is None, a pair (lower, upper), or an object with ``lb`` and ``ub`` (SciPy's Bounds).
    Each of the two is None, a number, or a tree whose leaves broadcast to those of ``like``; parts
    that are None have no limit. A dict with the keys of ``like`` may give pairs by name.

    >>> read_limits((0.0, {"a": 1.0, "b": None}), {"a": np.zeros(2), "b": 0.0}, "bounds")
    (array([0., 0., 0.]), array([ 1.,  1., inf]))
    """
    if isinstance(given, Mapping) and isinstance(like, Mapping):
        return _by_name(given, like, what, default)
    if hasattr(given, "lb") and hasattr(given, "ub"):
        given = (given.lb, given.ub)
    pair = default if given is None else given
    if isinstance(given, list) and given and all(_is_pair(item) for item in given):
        raise ValueError(
            f"{what} must be a pair (lower, upper), not a list of pairs as in SciPy: write "
            f"{what}=({[item[0] for item in given]}, {[item[1] for item in given]})"
        )
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(
            f"{what} must be a pair (lower, upper) of numbers or of trees like what they are for, "
            f"got {_short(given)}"
        )
    lower = as_vector(pair[0], like, -np.inf, f"{what}[0]")
    upper = as_vector(pair[1], like, np.inf, f"{what}[1]")
    if not is_traced(lower, upper):
        check_order(lower, upper, like, what)
    return lower, upper


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and all(np.ndim(v) == 0 for v in item)


@dataclass(frozen=True)
class _Name:
    """A key on its way through a tree, to learn the order of the leaves."""

    name: Any


def _by_name(given: Any, like: Any, what: str, default: tuple[float, float]) -> Any:
    strangers = sorted(map(str, set(given) - set(like)))
    if strangers:
        raise ValueError(f"{what} names {strangers}, but there are {sorted(map(str, like))}")
    order = tree.leaves({name: _Name(name) for name in like})
    names = [entry.name for entry in order]
    parts = [
        read_limits(given.get(name), like[name], f"{what}[{name!r}]", default) for name in names
    ]
    return tuple(np.concatenate([part[k] for part in parts]) for k in (0, 1))


def as_vector(given: Any, like: Any, missing: float, what: str) -> np.ndarray:
    """Return numbers or a tree, whose leaves may be broader or None, as a vector like ``like``."""
    numbers = (int, float, np.ndarray, np.generic)
    if given is None:
        return np.full(sum(int(np.size(leaf)) for leaf in tree.leaves(like)), missing)
    leaves, treedef = tree.flatten(like)
    parts: list[Any]
    if isinstance(given, numbers) and np.ndim(given) == 0:
        parts = [given] * len(leaves)
    elif len(leaves) == 1 and tree.is_leaf(like):
        parts = [given]
    else:
        try:
            parts = tree.flatten_up_to(treedef, given, what)
        except ValueError as error:
            raise ValueError(
                f"{what} must have the structure of what it is for, {treedef!r}: {error}"
            ) from None
    vectors = []
    for part, leaf, path in zip(parts, leaves, treedef.paths(what)):
        if is_traced(part):
            vectors.append(np.broadcast_to(part * 1.0, np.shape(leaf)).ravel())
            continue
        values = np.asarray(missing if part is None else part)
        if values.dtype == object:  # lists with None in them
            values = np.where(values == None, missing, values)  # noqa: E711
        try:
            values = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"{path} must hold numbers, got {_short(part)}") from None
        try:
            full = np.broadcast_to(values, np.shape(leaf))
        except ValueError:
            raise ValueError(
                f"{path} has shape {values.shape}, which does not broadcast to {np.shape(leaf)}, "
                "the shape of what it is for"
            ) from None
        vectors.append(full.ravel())
    result = np.concatenate(vectors) if vectors else np.zeros(0)
    if not is_traced(result) and np.any(np.isnan(result)):
        raise ValueError(f"{what} holds nan; write None or an infinity where there is no limit")
    return result


def check_order(lower: np.ndarray, upper: np.ndarray, like: Any, what: str) -> None:
    """Raise where nothing is between limits."""
    if not np.any((lower > upper) | (lower == np.inf) | (upper == -np.inf)):
        return
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        k = int(crossed[0])
        raise ValueError(
            f"{what} are crossed: at {name_number(like, k)} the lower limit {lower[k]:.6g} is "
            f"above the upper one, {upper[k]:.6g}"
        )
    never = np.flatnonzero((lower == np.inf) | (upper == -np.inf))
    if never.size:
        raise ValueError(
            f"{what}: at {name_number(like, int(never[0]))} the lower limit is +inf or the upper "
            "one -inf, which nothing satisfies"
        )


def name_number(like: Any, number: int, root: str = "") -> str:
    """Return the path of one number among the ravelled leaves, such as ``x.pos[2]``."""
    leaves, treedef = tree.flatten(like)
    for leaf, path in zip(leaves, treedef.paths(root)):
        size = int(np.size(leaf))
        if number < size:
            if np.ndim(leaf) == 0:
                return path or "the number"
            place = ", ".join(str(int(i)) for i in np.unravel_index(number, np.shape(leaf)))
            return f"{path}[{place}]"
        number -= size
    raise IndexError(number)


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) < 60 else f"{text[:57]}..."


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
        raise ValueError(f"{name_number(found, k, what)} is {flat[k]}: a start must be finite")
    return found


def find_result_shapes(function: Compiled, unknowns: Any, args: tuple[Any, ...], what: str) -> Any:
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


def find_number_shapes(function: Compiled, unknowns: Any, args: tuple[Any, ...], what: str) -> Any:
    """Return the same for functions that must return something."""
    found = find_result_shapes(function, unknowns, args, what)
    if not tree.ravel(found)[0].size:
        raise ValueError(f"{what} returns no numbers: does it end with a return statement?")
    return found
