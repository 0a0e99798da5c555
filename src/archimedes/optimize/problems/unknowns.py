"""Trees of unknowns and bounds as users give them, as vectors; shapes of what functions return."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.errors import TraceError
from archimedes.function import Compiled
from archimedes.typing import Tree

NUMBERS = (int, float, np.ndarray, np.generic)


def read_limits(
    limits: Any, like: Tree, what: str, default: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits as vectors in the order of ``tree.ravel(like)``.

    ``limits`` is None, a pair (lower, upper), or an object with ``lb`` and ``ub`` (SciPy's Bounds).
    Each of the two is None, a number, or a tree whose leaves broadcast to those of ``like``; parts
    that are None have no limit. A dict with the keys of ``like`` may give pairs by name.

    >>> read_limits((0.0, {"a": 1.0, "b": None}), {"a": np.zeros(2), "b": 0.0}, "bounds")
    (array([0., 0., 0.]), array([ 1.,  1., inf]))
    """
    if isinstance(limits, Mapping) and isinstance(like, Mapping):
        return _read_by_name(limits, like, what, default)
    if hasattr(limits, "lb") and hasattr(limits, "ub"):
        limits = (limits.lb, limits.ub)
    if isinstance(limits, list) and limits and all(isinstance(item, tuple) for item in limits):
        raise ValueError(
            f"{what} must be a pair (lower, upper), not a list of pairs as in SciPy: write "
            f"{what}=({[item[0] for item in limits]}, {[item[1] for item in limits]})"
        )
    pair = default if limits is None else limits
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(
            f"{what} must be a pair (lower, upper) of numbers or of trees like what they are for, "
            f"got {reprlib.repr(limits)}"
        )
    lower = as_vector(pair[0], like, -np.inf, f"{what}[0]")
    upper = as_vector(pair[1], like, np.inf, f"{what}[1]")
    check_order(lower, upper, like, what)
    return lower, upper


def _read_by_name(
    limits: Mapping[Any, Any], like: Mapping[Any, Any], what: str, default: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    strangers = sorted(map(str, set(limits) - set(like)))
    if strangers:
        raise ValueError(f"{what} names {strangers}, but there are {sorted(map(str, like))}")
    names = list(like)
    # In the order of the leaves.
    order = [names[k] for k in tree.leaves({name: k for k, name in enumerate(names)})]
    parts = [read_limits(limits.get(n), like[n], f"{what}[{n!r}]", default) for n in order]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def as_vector(values: Any, like: Tree, missing: float, what: str) -> np.ndarray:
    """Return numbers or a tree, parts of which may be broad or None, as a vector like ``like``."""
    if values is None:
        return np.full(sum(int(np.size(leaf)) for leaf in tree.leaves(like)), missing)
    leaves, treedef = tree.flatten(like)
    parts: list[Any]
    if isinstance(values, NUMBERS) and np.ndim(values) == 0:
        parts = [values] * len(leaves)
    elif len(leaves) == 1 and tree.is_leaf(like):
        parts = [values]
    else:
        try:
            parts = tree.flatten_up_to(treedef, values, what, none_fills=True)
        except ValueError as error:
            raise ValueError(f"{what} must have the structure {treedef!r}: {error}") from None
    every = zip(parts, leaves, treedef.paths(what))
    vectors = [_broadcast(part, np.shape(leaf), missing, path) for part, leaf, path in every]
    vector = np.concatenate(vectors) if vectors else np.zeros(0)
    if not is_traced(vector) and np.any(np.isnan(vector)):
        raise ValueError(f"{what} holds nan; write None or an infinity where there is no limit")
    return vector


def _broadcast(part: Any, shape: tuple[int, ...], missing: float, path: str) -> np.ndarray:
    if is_traced(part):
        return np.broadcast_to(part * 1.0, shape).ravel()
    values = np.asarray(missing if part is None else part)
    if values.dtype == object:  # lists with None in them
        values = np.where(values == None, missing, values)  # noqa: E711
    try:
        return np.broadcast_to(np.asarray(values, dtype=float), shape).ravel()
    except (TypeError, ValueError):
        raise ValueError(
            f"{path} must hold numbers that broadcast to shape {shape}, got {reprlib.repr(part)}"
        ) from None


def check_order(lower: np.ndarray, upper: np.ndarray, like: Tree, what: str) -> None:
    """Raise where nothing is between limits that are known."""
    if is_traced(lower, upper):
        return
    wrong = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"{what}: no number lies between the lower limit {lower[k]:.6g} and the upper limit "
            f"{upper[k]:.6g} of {name_number(like, k)}"
        )


def name_number(like: Tree, number: int, root: str = "") -> str:
    """Return the path of one number among the ravelled leaves, such as ``x.pos[2]``."""
    leaves, treedef = tree.flatten(like)
    for leaf, path in zip(leaves, treedef.paths(root)):
        size = int(np.size(leaf))
        if number < size:
            if np.ndim(leaf) == 0:
                return path or "the number"
            index = ", ".join(str(int(i)) for i in np.unravel_index(number, np.shape(leaf)))
            return f"{path}[{index}]"
        number -= size
    raise IndexError(number)


def as_unknowns(x0: Tree, what: str = "x0") -> Tree:
    """Return a start as a tree of float64; a list of numbers is an array."""
    try:
        if isinstance(x0, (list, tuple)) and all(np.isscalar(x) or x is None for x in x0):
            x0 = np.array(x0, dtype=float)
        unknowns = tree.map(lambda leaf: np.asarray(leaf, dtype=float)[()], x0)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a tree of numbers, got {x0!r}") from None
    check_start(unknowns, tree.ravel(unknowns)[0], what)
    return unknowns


def check_start(x0: Tree, flat: np.ndarray, what: str = "x0") -> None:
    """Raise where a start has no numbers, or one that is not finite."""
    if flat.size == 0:
        raise ValueError(f"{what} holds no numbers to solve for")
    if not np.isfinite(flat).all():
        k = int(np.argmin(np.isfinite(flat)))
        raise ValueError(f"{name_number(x0, k, what)} is {flat[k]}: a start must be finite")


def find_result_shapes(
    function: Compiled, unknowns: Tree, args: tuple[Any, ...], what: str, some: bool = False
) -> Tree:
    """Return zeros like the result of a function, found by recording it.

    With ``some``, a result without numbers is an error.
    """
    recording = function.recording(unknowns, *args)
    if recording.captured:
        raise TraceError(
            f"{what} reads values of the recorded function around it, of which a solver knows "
            "nothing: pass them to the solver as arguments, nlp_solver(f)(x0, k) with f(x, k)"
        )
    zeros = []
    for out, path in zip(recording.outs, recording.out_tree.paths(what)):
        value = out.spec.value
        if not out.spec.traced and not isinstance(value, NUMBERS):
            raise ValueError(f"{path} is a {type(value).__name__}, but numbers are needed")
        zeros.append(np.zeros(out.spec.shape if out.spec.traced else np.shape(value))[()])
    if some and not any(np.size(leaf) for leaf in zeros):
        raise ValueError(f"{what} returns no numbers: does it end with a return statement?")
    return recording.out_tree.unflatten(zeros)
