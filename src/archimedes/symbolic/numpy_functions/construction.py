"""Arrays made from traced values (linspace, vander, pad) and functions that write into arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import as_float, lift, lift_many, wrap
from archimedes.symbolic.core.registry import implements, target
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import DType, Operand, Traced, as_constant

__all__: list[str] = []


# ---- between two ends --------------------------------------------------------------------------


@implements(np.linspace)
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DType = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Traced:
    """Return evenly spaced numbers between traced ends; how many is static."""
    num = int(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    first, last = (as_float(x) for x in lift_many([start, stop], weak=True))
    delta = last - first
    parts = num - 1 if endpoint else num
    step = delta / parts if parts > 0 else np.full_like(delta, np.nan)
    numbers = np.arange(num, dtype=delta.dtype).reshape((-1,) + (1,) * delta.ndim)
    y = numbers * (step if parts > 0 else delta) + first
    if endpoint and num > 1:
        y[-1] = last
    y = np.moveaxis(y, 0, axis)
    if dtype is not None:
        whole = np.issubdtype(dtype, np.integer)
        y = (np.floor(y) if whole else y).astype(dtype)
    return (y, step) if retstep else y


@implements(np.logspace)
def logspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: DType = None,
    axis: int = 0,
) -> Traced:
    """Return numbers evenly spaced on a log scale between traced exponents."""
    y = np.power(base, np.moveaxis(linspace(start, stop, num, endpoint), 0, -1))
    y = np.moveaxis(y, -1, axis)
    return y if dtype is None else y.astype(dtype)


@implements(np.geomspace)
def _geomspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    dtype: DType = None,
    axis: int = 0,
) -> Traced:
    first, last = (as_float(x) for x in lift_many([start, stop], weak=True))
    sign = np.sign(first)
    a, b = first / sign, last / sign
    y = logspace(np.log10(a), np.log10(b), num, endpoint)
    if len(y):
        y[0] = a
    if len(y) > 1 and endpoint:
        y[-1] = b
    y = np.moveaxis(y * sign, 0, axis)
    return y if dtype is None else y.astype(dtype)


@implements(np.vander)
def _vander(x: Operand, N: Operand = None, increasing: bool = False) -> Traced:
    x = lift(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    x = x.astype(np.promote_types(x.dtype, int))
    count = len(x) if N is None else N
    if not count:
        return np.zeros_like(x, shape=(len(x), 0))
    powers = np.ones_like(x)[:, None]
    if count > 1:
        columns = np.broadcast_to(x[:, None], (len(x), count - 1))
        powers = np.concatenate([powers, np.multiply.accumulate(columns, axis=1)], axis=1)
    return powers if increasing else powers[:, ::-1]


# ---- padding -----------------------------------------------------------------------------------

_STATISTICS: dict[str, Any] = {
    "maximum": np.max,
    "minimum": np.min,
    "mean": np.mean,
    "median": np.median,
}


def _pairs(argument: Operand, ndim: int) -> Traced:
    """Spell out a pad argument as one pair (before, after) per axis."""
    return np.broadcast_to(np.asarray(None) if argument is None else lift(argument), (ndim, 2))


def _sides(x: Operand, axis: int, mode: str, widths: Operand, values: Operand) -> list[Any]:
    """Make the two blocks that are laid at the ends of one axis."""
    x = np.moveaxis(x, axis, 0)
    n, blocks = len(x), []
    for before, width, value in zip((True, False), widths, values):
        if mode == "linear_ramp":
            ramp = linspace(
                value, x[0 if before else -1], int(width), endpoint=False, dtype=x.dtype
            )
            block = ramp if before else ramp[::-1]
        elif mode == "constant":
            block = np.full_like(x, value, shape=(int(width), *x.shape[1:]))
        else:
            length = n if value is None else min(int(value), n)
            edge = _STATISTICS[mode](x[:length] if before else x[n - length :], axis=0)
            edge = np.round(edge) if x.dtype.kind == "i" and edge.dtype.kind == "f" else edge
            block = np.broadcast_to(edge.astype(x.dtype), (int(width), *x.shape[1:]))
        blocks.append(np.moveaxis(block, 0, axis))
    return blocks


@implements(np.pad)
def _pad(array: Operand, pad_width: Operand, mode: Any = "constant", **kwargs: Any) -> Traced:
    x = lift(array)
    if mode in ("edge", "reflect", "symmetric", "wrap") and kwargs.get("reflect_type") != "odd":
        return wrap(np.pad(x.ids, pad_width, mode=mode, **kwargs), x.code, x.owner)
    if mode == "empty":
        mode, kwargs = "constant", {}
    if mode not in ("constant", "linear_ramp", *_STATISTICS):
        raise trace_error(
            f"np.pad with mode={mode!r} {kwargs or ''} cannot be traced",
            "Use constant, edge, linear_ramp, maximum, mean, median, minimum, reflect, symmetric "
            "or wrap.",
        )
    defaults: dict[str, Any] = {
        "constant": ("constant_values", 0),
        "linear_ramp": ("end_values", 0),
    }
    keyword, default = defaults.get(mode, ("stat_length", None))
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(k, pad_width.get(k - x.ndim, 0)) for k in range(x.ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    widths = as_constant(_pairs(pad_width, x.ndim))
    if isinstance(widths, SymbolicArray):
        raise trace_error("np.pad was given a traced width", "Make it static (static_argnames).")
    values = _pairs(kwargs.get(keyword, default), x.ndim)
    for axis in range(x.ndim):
        before, after = _sides(x, axis, mode, widths[axis], values[axis])
        x = np.concatenate([before, x, after], axis=axis)
    return x if x.ndim < 2 else x.copy("F" if lift(array).ids.flags.fnc else "C")


# ---- writing -----------------------------------------------------------------------------------


def _scatter(
    function: Callable[..., Any], a: Operand, values: Operand, *args: Any, **kwargs: Any
) -> None:
    """Let NumPy write positions of the values, in the order ``function(a, *args, values)``."""
    into = target(a, f"np.{function.__name__}")
    source = lift(values)
    origin = np.full(into.shape, -1)
    function(origin, *args, np.arange(source.size).reshape(source.shape), **kwargs)
    if source.size:
        chosen = source.reshape(-1)[np.maximum(origin, 0)].astype(into.dtype)
        into[...] = np.where(origin >= 0, chosen, into)


def _no_traced_positions(name: str, *positions: Any) -> list[Any]:
    static = [as_constant(p) for p in positions]
    if any(isinstance(p, SymbolicArray) for p in static):
        raise trace_error(
            f"np.{name} at traced positions cannot be recorded",
            "Assign one by one, a[k] = value, or choose with np.where(condition, value, a).",
        )
    return static


@implements(np.put)
def _put(a: Operand, ind: Operand, v: Operand, mode: str = "raise") -> None:
    (ind,) = _no_traced_positions("put", ind)
    _scatter(np.put, a, v, ind, mode=mode)


@implements(np.put_along_axis)
def _put_along_axis(arr: Operand, indices: Operand, values: Operand, axis: int | None) -> None:
    (indices,) = _no_traced_positions("put_along_axis", indices)

    def put_along_axis(origin: Operand, numbers: Operand) -> None:
        np.put_along_axis(origin, indices, numbers, axis)

    _scatter(put_along_axis, arr, values)


@implements(np.fill_diagonal)
def _fill_diagonal(a: Operand, val: Operand, wrap: bool = False) -> None:
    _scatter(np.fill_diagonal, a, val, wrap=wrap)


@implements(np.putmask)
def _putmask(a: Operand, mask: Operand, values: Operand) -> None:
    into = target(a, "np.putmask")
    spread = np.resize(lift(values).astype(into.dtype), into.shape)
    into[...] = np.where(mask, spread, into)


@implements(np.place)
def _place(arr: Operand, mask: Operand, vals: Operand) -> None:
    mask = as_constant(mask)
    if not isinstance(mask, SymbolicArray):
        _scatter(np.place, arr, vals, mask)
    elif lift(vals).size == 1:
        _putmask(arr, mask, vals)
    else:
        _no_traced_positions("place", mask)


# ---- functions of slices -----------------------------------------------------------------------


@implements(np.apply_along_axis)
def _apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Operand, *args: Any, **kwargs: Any
) -> Traced:
    moved = np.moveaxis(lift(arr), axis, -1)
    results = [func1d(moved[at], *args, **kwargs) for at in np.ndindex(moved.shape[:-1])]
    if not results:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    stacked = lift(results)
    shape = moved.shape[:-1] + stacked.shape[1:]
    axis = axis % moved.ndim
    order = [*range(axis), *range(moved.ndim - 1, len(shape)), *range(axis, moved.ndim - 1)]
    return stacked.reshape(shape).transpose(order)


@implements(np.apply_over_axes)
def _apply_over_axes(func: Callable[..., Any], a: Operand, axes: Operand) -> Traced:
    value = lift(a)
    for axis in np.atleast_1d(axes).tolist():
        result = lift(func(value, axis))
        value = result if result.ndim == value.ndim else np.expand_dims(result, axis)
    return value
