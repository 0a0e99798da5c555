"""Control flow written with Python loops and ifs: the oracle of the ``arc`` regions.

A test program calls ``arc.scan``, ``arc.cond``, ... by that name; binding the name ``arc`` to this
module instead of the package turns it into the plain NumPy program that it stands for. Results are
combined with ``stack``, which works for NumPy, for object arrays of mpmath numbers and for JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["cond", "fori_loop", "scan", "switch", "vmap", "while_loop"]


def _stack(items: Sequence[Any], axis: int = 0) -> Any:
    first = items[0]
    if isinstance(first, (tuple, list)):
        return type(first)(_stack(column, axis) for column in zip(*items))
    if first is None:
        return None
    if type(first).__module__.startswith("jax"):
        import jax.numpy

        return jax.numpy.stack(items, axis)
    return np.stack(items, axis)


def _take(tree: Any, index: int, axis: int | None) -> Any:
    if axis is None:
        return tree
    if isinstance(tree, (tuple, list)):
        return type(tree)(_take(item, index, axis) for item in tree)
    return tree[(slice(None),) * (axis % len(tree.shape)) + (index,)]


def _length(tree: Any, axis: int) -> int:
    leaf = tree
    while isinstance(leaf, (tuple, list)):
        leaf = leaf[0]
    return leaf.shape[axis]


def scan(func: Callable, init: Any, xs: Any = None, length: int | None = None) -> tuple[Any, Any]:
    """``(carry, ys)`` of ``carry, y = func(carry, x)`` along the leading axis of ``xs``."""
    carry, ys = init, []
    for index in range(length if xs is None else _length(xs, 0)):
        carry, y = func(carry, None if xs is None else _take(xs, index, 0))
        ys.append(y)
    return carry, _stack(ys)


def cond(pred: Any, true_fn: Callable, false_fn: Callable, *args: Any) -> Any:
    """``true_fn(*args)`` or ``false_fn(*args)``."""
    return true_fn(*args) if pred else false_fn(*args)


def switch(index: Any, branches: Sequence[Callable], *args: Any) -> Any:
    """The branch at ``index``, which is clamped to the list."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*args)


def while_loop(cond: Callable, body: Callable, init: Any, max_steps: int = 1000) -> Any:
    """``body`` applied to the state while ``cond(state)``, at most ``max_steps`` times."""
    state = init
    for _ in range(max_steps):
        if not cond(state):
            break
        state = body(state)
    return state


def fori_loop(lower: int, upper: int, body: Callable, init: Any) -> Any:
    """``carry = body(i, carry)`` for i from lower to upper."""
    carry = init
    for i in range(int(lower), int(upper)):
        carry = body(i, carry)
    return carry


def vmap(func: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """``func`` on slices along ``in_axes`` (None: the whole), stacked along ``out_axes``."""

    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else in_axes
        size = next(_length(a, axis) for a, axis in zip(args, axes) if axis is not None)
        results = [
            func(*(_take(a, index, axis) for a, axis in zip(args, axes))) for index in range(size)
        ]
        return _stack(results, out_axes)

    return mapped
