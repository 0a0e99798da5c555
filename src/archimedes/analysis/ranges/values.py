"""What a sweep knows of a value: its interval, whether it may be nan, and its affine form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from archimedes.analysis.ranges import forms, rounding
from archimedes.analysis.ranges.forms import Form
from archimedes.analysis.ranges.rounding import INF, INT_MAX, Ends
from archimedes.graph.dtypes import B8, I64

Array = np.ndarray


class Value:
    """A value in many boxes: ``ends`` (2, boxes, ...), and ``nan`` (boxes, ...) and form, or None.

    The axis of boxes has length 1 for what is the same in all of them. A block has an axis for its
    elements behind it; inside a loop over an index space, every value has one for its points.
    """

    __slots__ = ("ends", "form", "nan", "version")

    def __init__(
        self, ends: Ends, nan: Array | None = None, form: Form | None = None, version: int = 0
    ) -> None:
        self.ends, self.nan, self.form, self.version = ends, nan, form, version

    @property
    def low(self) -> Array:
        """Lower ends."""
        return self.ends[0]

    @property
    def high(self) -> Array:
        """Upper ends."""
        return self.ends[1]

    @property
    def is_point(self) -> bool:
        """Whether the value is one number, the same in all boxes."""
        return self.ends.shape[1] == 1 and bool(np.array_equal(self.ends[0], self.ends[1]))

    def as_form(self) -> Form:
        """Return the form, made of the interval if there is none."""
        return forms.constant_form(self.ends) if self.form is None else self.form

    def change(self, index: Callable[[Array], Array]) -> Value:
        """Return the value with all arrays (axes: boxes, ...) indexed or reshaped alike."""
        ends = np.stack([index(self.ends[0]), index(self.ends[1])])
        nan = None if self.nan is None else index(self.nan)
        form = self.form
        if form is not None:
            a = np.array([index(row) for row in form.a]).reshape(len(form.symbols), *ends.shape[1:])
            form = Form(form.symbols, a, index(form.c), index(form.r), index(form.mag))
        return Value(ends, nan, form, self.version)


def constant(values: Any, trail: int = 0) -> Value:
    """Return a number, or an array of them (a block), that is the same in all boxes."""
    array = np.asarray(values)
    flat = np.atleast_1d(array).astype(np.float64)
    ends = np.stack([flat, flat])
    if array.dtype.kind == "i" and (np.abs(flat) > 2.0**53).any():
        ends = np.stack([np.nextafter(flat, -INF), np.nextafter(flat, INF)])
    nan = np.isnan(flat)
    ends = np.where(nan, rounding.outward_signs(ends) * INF, ends)
    shape = (1, *array.shape, *(1,) * trail)
    return Value(ends.reshape(2, *shape), nan.reshape(shape) if nan.any() else None)


def whole_range(kind: int, shape: tuple[int, ...]) -> Value:
    """Return a value of a type of which nothing is known."""
    most = {B8: 1.0, I64: INT_MAX}.get(kind & 3, INF)
    low = np.full(shape, 0.0 if kind & 3 == B8 else -most)
    nan = np.ones(shape, dtype=bool) if kind & 3 < I64 else None
    return Value(np.stack([low, np.full(shape, most)]), nan)


def either(*flags: Array | None) -> Array | None:
    """Return where one of several flags is set; None stands for nowhere."""
    result: Array | None = None
    for flag in flags:
        if flag is not None:
            result = flag if result is None else result | flag
    return result


def flag(mask: Array) -> Array | None:
    """Return a mask, or None where it is empty."""
    return mask if mask.any() else None


def choose(true: Array, false: Array, x: Value, y: Value) -> Value:
    """Return x where a condition holds, y where it does not, and what contains both elsewhere."""
    known = x.is_point and y.is_point and x.nan is None and y.nan is None
    if known and x.ends.tobytes() == y.ends.tobytes():  # the same number
        return Value(x.ends, version=max(x.version, y.version))
    # A block is chosen as a whole.
    axes = max(x.ends.ndim, y.ends.ndim) - 1
    true, false = (m.reshape(m.shape + (1,) * (axes - m.ndim)) for m in (true, false))
    both = rounding.hull(x.ends, y.ends)
    ends = np.where(true, x.ends, np.where(false, y.ends, both))
    nan = None
    if x.nan is not None or y.nan is not None:
        none = np.zeros(1, dtype=bool)
        of_x, of_y = (none if v.nan is None else v.nan for v in (x, y))
        nan = flag(np.where(true, of_x, np.where(false, of_y, of_x | of_y)))
    form = None
    if x.form is not None or y.form is not None:
        form = forms.choose(true, false, x.as_form(), y.as_form())
    return Value(ends, nan, form, max(x.version, y.version))


def join(x: Value, y: Value) -> Value:
    """Return what contains two values."""
    never = np.zeros(1, dtype=bool)
    return choose(never, never, x, y)


def stack(values: Sequence[Value]) -> Value:
    """Return values as the elements of a block, along a new last axis."""
    shape = np.broadcast_shapes(*(v.ends.shape[1:] for v in values))
    ends = np.stack([np.broadcast_to(v.ends, (2, *shape)) for v in values], axis=-1)
    nan = None
    if any(v.nan is not None for v in values):
        none = np.zeros(1, dtype=bool)
        flags = [none if v.nan is None else v.nan for v in values]
        nan = np.stack([np.broadcast_to(f, shape) for f in flags], axis=-1)
    form = None
    if any(v.form is not None for v in values):
        parts = [v.as_form() for v in values]
        symbols = tuple(sorted({s for part in parts for s in part.symbols}))
        at = {symbol: k for k, symbol in enumerate(symbols)}
        a = np.zeros((len(symbols), *shape, len(values)))
        for k, part in enumerate(parts):
            a[[at[s] for s in part.symbols], ..., k] = part.a
        c, r, mag = (
            np.stack([np.broadcast_to(getattr(p, name), shape) for p in parts], axis=-1)
            for name in ("c", "r", "mag")
        )
        form = Form(symbols, a, c, r, mag)
    return Value(ends, nan, form, max(v.version for v in values))


def concatenate(values: Sequence[Value]) -> Value:
    """Return blocks one behind the other."""
    if len(values) == 1:
        return values[0]
    return stack([element(v, k) for v in values for k in range(v.ends.shape[-1])])


def element(block: Value, at: int) -> Value:
    """Return the element of a block at a known position."""
    return block.change(lambda array: array[..., at])


def take(block: Value, positions: Array) -> Value:
    """Return the elements of a block at known positions, as a block."""
    return block.change(lambda array: array[..., positions])


def is_inside(x: Value, y: Value) -> bool:
    """Return whether x lies inside y in all boxes."""
    inside = (x.ends[0] >= y.ends[0]) & (x.ends[1] <= y.ends[1])
    of_x = False if x.nan is None else x.nan
    of_y = False if y.nan is None else y.nan
    return bool(np.all(inside) and np.all(~np.asarray(of_x) | of_y))
