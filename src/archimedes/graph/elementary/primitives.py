"""The primitives that elementary programs are made of, on NumPy arrays.

A program is a function ``program(p, *operands)`` of a provider ``p``. It may use

* operators on values: ``+ - * /`` and unary ``-`` on floats, ``+ - * & | ^ << >>`` on int64,
  ``& | ~`` on bools, comparisons, with Python literals mixed in;
* the methods of :class:`Primitives`.

Each of these is exact or correctly rounded in IEEE 754, so a program gives the same bits whoever
provides the primitives: NumPy here, nodes of a graph in ``graph/expand.py``, which has the same
methods.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

INF, NAN = float("inf"), float("nan")

Value = Any
"""A float64, int64 or bool operand: an array, a NumPy scalar, a graph value or a literal."""

_SCALARS = (np.float64, np.int64, np.float32, np.bool_)


def _scalar(x: Value) -> Value:
    """Give a literal the type a value of the program has; Python floats trap on division by 0."""
    if isinstance(x, _SCALARS):
        return x
    return np.float64(x) if isinstance(x, float) else np.int64(x)


@lru_cache(maxsize=64)
def _array(table: tuple[float, ...] | tuple[int, ...]) -> np.ndarray:
    return np.array(table)


class Primitives:
    """What a program may ask of its provider: here on arrays of any shape, and on NumPy scalars.

    Functions given to ``branch`` and ``loop`` see only their arguments and literals, never values
    of the enclosing program: they are called on the subset of elements concerned.

    Example::

        def clip_to_one(p, x):
            return p.where(p.abs(x) > 1.0, p.copysign(1.0, x), x)

        NUMPY.run(clip_to_one, np.array([0.5, -9.0]))   # array([ 0.5, -1. ])
    """

    #: Magnitude of a float: clears the sign bit.
    abs = staticmethod(np.fabs)
    #: Correctly rounded square root; nan below zero.
    sqrt = staticmethod(np.sqrt)
    #: Largest integer not above a float, as a float.
    floor = staticmethod(np.floor)
    #: Nearest integer as a float, halves to even.
    rint = staticmethod(np.rint)
    #: Magnitude of ``a`` with the sign bit of ``b``.
    copysign = staticmethod(np.copysign)
    #: Remainder of int64 ``a >= 0`` by ``b > 0``.
    int_rem = staticmethod(np.fmod)
    #: A float64 within the int64 range, truncated to int64.
    to_int = staticmethod(np.int64)
    #: An int64 rounded to float64.
    to_float = staticmethod(np.float64)
    #: A float32 as float64.
    f64 = staticmethod(np.float64)
    #: A float64 rounded to float32.
    f32 = staticmethod(np.float32)

    def run(self, program: Callable[..., Value], *operands: Value) -> Value:
        """Call a program, without the warnings that its infinities and nans would raise."""
        with np.errstate(all="ignore"):
            return program(self, *operands)

    @staticmethod
    def where(c: Value, a: Value, b: Value) -> Value:
        """Return ``a`` where ``c`` holds, else ``b``; both are evaluated."""
        if isinstance(c, np.bool_):
            chosen = a if c else b
            return chosen if isinstance(chosen, np.ndarray) else _scalar(chosen)
        return np.where(c, a, b)

    @staticmethod
    def shift_right_logical(i: Value, n: int) -> Value:
        """Shift an int64 right, filling with zeros."""
        return (i.view(np.uint64) >> np.uint64(n)).view(np.int64)

    @staticmethod
    def bits(x: Value) -> Value:
        """Return the bits of a float64 as int64."""
        return x.view(np.int64)

    @staticmethod
    def from_bits(i: Value) -> Value:
        """Return the float64 whose bits are ``i``."""
        return i.view(np.float64)

    @staticmethod
    def lookup(table: tuple[float, ...] | tuple[int, ...], i: Value) -> Value:
        """Return entry ``i`` of a constant table of floats or of ints; ``i`` is clamped to it."""
        return _array(table)[np.clip(i, 0, len(table) - 1)]

    def branch(
        self,
        cond: Value,
        f_true: Callable[..., tuple[Value, ...]],
        f_false: Callable[..., tuple[Value, ...]],
        *args: Value,
    ) -> tuple[Value, ...]:
        """Return ``f_true(*args)`` where ``cond`` holds, else ``f_false(*args)``.

        Each side runs on the elements that take it.
        """
        if np.all(cond):
            return f_true(*args)
        if not np.any(cond):
            return f_false(*args)
        cond, *arrays = np.broadcast_arrays(cond, *args)
        results: list[np.ndarray] = []
        for mask, side in ((cond, f_true), (~cond, f_false)):
            parts = side(*(a[mask] for a in arrays))
            if not results:
                results = [np.empty(cond.shape, np.asarray(part).dtype) for part in parts]
            for result, part in zip(results, parts, strict=True):
                result[mask] = part
        return tuple(results)

    def loop(
        self,
        cond: Callable[..., Value],
        body: Callable[..., tuple[Value, ...]],
        state: tuple[Value, ...],
        limit: int,
    ) -> tuple[Value, ...]:
        """Repeat ``state = body(*state)`` while ``cond(*state)``, at most ``limit`` times."""
        for _ in range(limit):
            going = cond(*state)
            if not np.any(going):
                break
            state = self.branch(going, body, lambda *same: same, *state)
        return state


NUMPY = Primitives()
"""The provider; it has no state."""
