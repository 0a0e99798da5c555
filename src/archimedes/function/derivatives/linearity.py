"""Whether a function is linear or quadratic in an argument, found from its recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.function.derivatives.recorded_point import Derivative
from archimedes.function.derivatives.transforms import hess, jac
from archimedes.graph.dead_code import inputs_read
from archimedes.graph.derivatives.sparsity import has_kinks
from archimedes.symbolic import Trace

__all__ = ["is_linear", "is_quadratic"]


def is_linear(func: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that tells whether ``func`` is linear, plus a constant, in its first.

    It is asked with the arguments of ``func``, whose values do not matter: the program is linear
    if its Jacobian does not read x, and if x decides about nothing (``np.where``, ``np.floor``).
    What a loop decides inside is not seen.

    >>> import numpy as np
    >>> is_linear(lambda x, a: a * x[0] - x[1])(np.zeros(2), 2.0)
    True
    >>> is_linear(lambda x: np.maximum(x[0], x[1]))(np.zeros(2))
    False
    """
    return lambda *args: not (_reads(jac(func), args) or _has_kinks(func, args))


def is_quadratic(func: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that tells whether ``func``, a number, is quadratic in its first.

    >>> import numpy as np
    >>> is_quadratic(lambda x: x @ x)(np.zeros(2)), is_quadratic(np.linalg.norm)(np.zeros(2))
    (True, False)
    """
    return lambda *args: (
        not (_reads(hess(func), args) or _has_kinks(jac(func), args) or _has_kinks(func, args))
    )


def _reads(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Return whether a result needs the value of the first argument."""
    with Trace():
        point = Derivative(func, 0, "linearity").point(args, {})
        return not inputs_read(point.recording.blocks).isdisjoint(point.block_wrt)


def _has_kinks(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    with Trace():
        point = Derivative(func, 0, "linearity").point(args, {})
        return has_kinks(point.recording.blocks, point.block_wrt)
