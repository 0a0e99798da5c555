"""Functions that move, write or fill in elements, or that ask about an array.

Those that only move elements NumPy runs on the ids.

Four kinds of function cover nearly all that move: of one array (``MOVE``), of one array with zeros
filled in (``FILL``), of several arrays that are joined (``JOIN``), and of several arrays each of
which is treated alone (``EACH``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import is_traced
from archimedes.graph.regions.block_regions import row_major
from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.conversion import cast_ids, code_of_dtype, lift, lift_many, wrap
from archimedes.symbolic.core.registry import FUNCTIONS, implements, target
from archimedes.symbolic.core.trace import current_trace, trace_error
from archimedes.symbolic.core.traced_value import DType, Operand, Traced, as_constant
from archimedes.symbolic.recorded.numpy_source import implement_by_source, numpy_source

__all__: list[str] = []


def _wrap_all(result: Operand, x: SymbolicArray) -> Traced:
    if isinstance(result, (list, tuple)):
        return type(result)(_wrap_all(r, x) for r in result)
    return x._like(result)


def static_argument(name: str, x: Operand) -> Traced:
    """Return an argument that decides a result's shape, which must be known."""
    x = as_constant(x)
    if isinstance(x, SymbolicArray):
        raise trace_error(
            f"np.{name} was given a traced count or position, so that the shape of its result "
            "would depend on values",
            "Declare the argument static (static_argnames), or index with x[k].",
        )
    return x


def _move(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Operand, *args: Any, **kwargs: Any) -> Traced:
        x = lift(x)
        args = tuple(static_argument(function.__name__, a) for a in args)
        kwargs = {k: static_argument(function.__name__, v) for k, v in kwargs.items()}
        return _wrap_all(function(x.ids, *args, **kwargs), x)

    return run


def _fill(function: Callable[..., Any]) -> Callable[..., Any]:
    """Ids are raised by one, so that the zeros NumPy fills in can be told from ids."""

    def run(x: Operand, *args: Any, **kwargs: Any) -> Traced:
        x = lift(x)
        trace = current_trace()
        args = tuple(static_argument(function.__name__, a) for a in args)
        moved = function(trace.elements_of(x) + 1, *args, **kwargs)
        zero = trace.graph.const(0, x.code)
        return wrap(np.where(moved == 0, zero, moved - 1), x.code, trace)

    return run


def _join(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(arrays: Operand, *args: Any, dtype: DType = None, **kwargs: Any) -> Traced:
        kwargs.pop("casting", None)
        ready = lift_many(list(arrays))
        result = wrap(function([a.ids for a in ready], *args, **kwargs), ready[0].code)
        return result if dtype is None else result.astype(dtype)

    return run


def _separate(x: SymbolicArray) -> np.ndarray:
    """Return ids that may be written to where the array may: a scalar's are a copy."""
    ids = current_trace().elements_of(x)
    return ids if x.form() is x.array else ids.copy()


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions of any number of arrays that treat each alone or only broadcast them."""

    def run(*arrays: Any, **kwargs: Any) -> Traced:
        ready = [lift(a) for a in arrays]
        trace = current_trace()
        results = function(*map(_separate, ready), **kwargs)
        if len(ready) == 1 and not isinstance(results, (list, tuple)):
            return wrap(results, ready[0].code, trace)
        return type(results)(wrap(r, a.code, trace) for r, a in zip(results, ready))

    return run


_MOVE = (
    "reshape ravel transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to tile "
    "repeat roll flip fliplr flipud rot90 delete diagonal split "
    "array_split hsplit vsplit dsplit resize permute_dims matrix_transpose unstack"
)
_FILL = "diag diagflat tril triu"
_JOIN = "concatenate stack vstack hstack dstack column_stack"
_EACH = "broadcast_arrays atleast_1d atleast_2d atleast_3d meshgrid"

for _names, _make in ((_MOVE, _move), (_FILL, _fill), (_JOIN, _join), (_EACH, _each)):
    for _name in _names.split():
        if hasattr(np, _name):  # a few exist only in newer NumPy
            FUNCTIONS[getattr(np, _name)] = _make(getattr(np, _name))


_window = np.lib.stride_tricks.sliding_window_view
implements(_window)(_move(_window))
implement_by_source(np.append, np.insert)
# Not by its source: a function recorded inside another may write into its copy of an outer array.
implements(np.copy)(lambda a, order="K", subok=False: lift(a).copy(order))
if hasattr(np, "astype"):  # since NumPy 2.1
    implement_by_source(np.astype)


@implements(np.block)
def _block(arrays: Operand) -> Traced:
    leaves, nesting = tree.flatten(arrays, is_leaf=lambda x: not isinstance(x, list))
    ready = lift_many(leaves)
    ids = np.block(tree.unflatten(nesting, [x.ids for x in ready]))
    return wrap(ids, ready[0].code)


@implements(np.take_along_axis)
def _take_along_axis(arr: Operand, indices: Operand, axis: int | None = -1) -> Traced:
    return numpy_source(np.take_along_axis)(lift(arr), lift(indices), axis)


@implements(np.compress)
def _compress(condition: Operand, a: Operand, axis: int | None = None, name: str = "") -> Traced:
    x, test = lift(a), as_constant(lift(condition))
    if isinstance(test, SymbolicArray):
        raise trace_error(
            f"np.{name or 'compress'} with a traced condition has a shape that depends on values",
            "Keep the shape: np.where(condition, x, 0.0), or np.sum(x, where=condition).",
        )
    return wrap(np.compress(test, x.ids, axis=axis), x.code, x.owner)


@implements(np.extract)
def _extract(condition: Operand, arr: Operand) -> Traced:
    return _compress(lift(condition).reshape(-1), lift(arr).reshape(-1), name="extract")


@implements(np.take)
def _take(a: Operand, indices: Operand, axis: int | None = None, mode: str = "raise") -> Traced:
    a = lift(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    indices = as_constant(indices)
    if is_traced(indices):
        indices = lift(indices)
        if mode == "wrap":
            indices = indices % a.shape[axis]
        elif mode == "clip":
            indices = np.clip(indices, 0, a.shape[axis] - 1)
        return a[(slice(None),) * (axis % a.ndim) + (indices,)]
    return a._like(np.take(a.ids, indices, axis=axis, mode=mode))  # type: ignore[call-overload]


@implements(np.full_like)
def full_like(
    a: Operand,
    fill_value: Operand,
    dtype: DType = None,
    order: str = "K",
    subok: bool = True,
    shape: Operand = None,
    *,
    device: str | None = None,
) -> Traced:
    """Return a new traced array of one value, in the shape and dtype of another."""
    code = lift(a).code if dtype is None else code_of_dtype(dtype)
    trace = current_trace()
    value = lift(fill_value)
    ids = cast_ids(trace.graph, trace.elements_of(value), value.code, code)
    filled = np.empty_like(lift(a).ids, order=order, shape=shape)  # type: ignore[call-overload]
    filled[...] = ids
    return wrap(filled, code, trace)


def _like(value: float) -> Callable[..., Traced]:
    return lambda a, *args, **kwargs: full_like(a, value, *args, **kwargs)


implements(np.zeros_like, np.empty_like)(_like(0))
implements(np.ones_like)(_like(1))


@implements(np.copyto)
def _copyto(dst: Operand, src: Operand, casting: str = "same_kind", where: Operand = True) -> None:
    into = target(dst, "np.copyto")
    into[...] = src if where is True else np.where(where, src, into)


# Ends of a geometric sequence must not be zero, and a step of zero is taken by another way.
implement_by_source(np.linspace, np.logspace, np.geomspace, unknown_is_false=True)
implement_by_source(np.vander, np.apply_along_axis, np.apply_over_axes)


@implements(np.pad)
def _pad(array: Operand, pad_width: Operand, mode: Any = "constant", **kwargs: Any) -> Traced:
    widths = static_argument("pad", pad_width)
    return numpy_source(np.pad)(array, widths, mode, **kwargs)


# ---- writing -----------------------------------------------------------------------------------


def _static_positions(name: str, positions: Operand) -> np.ndarray:
    positions = as_constant(positions)
    if isinstance(positions, SymbolicArray):
        raise trace_error(
            f"np.{name} at traced positions cannot be recorded",
            "Assign one by one, a[k] = value, or choose with np.where(condition, value, a).",
        )
    return np.asarray(positions)


@implements(np.put)
def _put(a: Operand, ind: Operand, v: Operand, mode: Any = "raise") -> None:
    into = target(a, "np.put")
    numbers = np.arange(into.size).take(_static_positions("put", ind), mode=mode)
    if np.size(v):
        into.flat[numbers] = v


def _write_by_source(function: Callable[..., None]) -> Callable[..., None]:
    write = numpy_source(function)
    return lambda a, *args, **kwargs: write(target(a, f"np.{function.__name__}"), *args, **kwargs)


for _function in (np.put_along_axis, np.fill_diagonal):
    implements(_function)(_write_by_source(_function))


@implements(np.putmask)
def _putmask(a: Operand, mask: Operand, values: Operand) -> None:
    into = target(a, "np.putmask")
    spread = np.resize(lift(values).astype(into.dtype), into.shape)
    into[...] = np.where(mask, spread, into)


@implements(np.place)
def _place(arr: Operand, mask: Operand, vals: Operand) -> None:
    if np.size(vals) == 1:
        _putmask(arr, mask, vals)
    elif np.size(vals) == 0:
        raise ValueError("Cannot insert from an empty array!")
    else:
        target(arr, "np.place").flat[np.flatnonzero(_static_positions("place", mask))] = vals


# ---- questions about an array -------------------------------------------------------------------


implements(np.real)(lambda val: val.real)
implements(np.imag)(lambda val: val.imag)
implements(np.iscomplexobj)(lambda x: False)
implements(np.isrealobj)(lambda x: True)
implements(np.shape)(lambda a: lift(a).shape)
implements(np.ndim)(lambda a: lift(a).ndim)
implements(np.size)(lambda a, axis=None: lift(a).size if axis is None else lift(a).shape[axis])
implements(np.min_scalar_type)(lambda a: lift(a).dtype)


implement_by_source(
    np.common_type, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from
)


def _by_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Operand, b: Operand, **kwargs: Any) -> bool:
        ids = [x.ids if isinstance(x, SymbolicArray) else x for x in (a, b)]
        return function(*ids, **kwargs)

    return run


for _name in ("shares_memory", "may_share_memory"):
    FUNCTIONS[getattr(np, _name)] = _by_memory(getattr(np, _name))


@implements(np.ravel_multi_index)
def _ravel_multi_index(
    multi_index: Operand, dims: Operand, mode: str = "raise", order: str = "C"
) -> Traced:
    """Combine traced coordinates, which are taken to lie inside ``dims``."""
    strides = row_major(dims) if order == "C" else row_major(dims[::-1])[::-1]
    return sum(lift(index) * stride for index, stride in zip(multi_index, strides))


@implements(np.unravel_index)
def _unravel_index(indices: Operand, shape: Operand, order: str = "C") -> tuple[Any, ...]:
    """Split traced positions, which are taken to lie inside ``shape``."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, coordinates = lift(indices), []
    for n in reversed(shape) if order == "C" else shape:
        rest, at = np.divmod(rest, n)
        coordinates.append(at)
    return tuple(reversed(coordinates) if order == "C" else coordinates)


@implements(np.result_type)
def _result_type(*args: Any) -> np.dtype:
    return np.result_type(*(_promoting(a) for a in args))


def _promoting(x: Operand) -> Traced:
    """What stands for a value in NumPy's promotion: its dtype, or a number that is weak too."""
    if not isinstance(x, SymbolicArray):
        return x
    return x.dtype.type(0).item() if x.weak else x.dtype


@implements(np.can_cast)
def _can_cast(from_: Operand, to: Operand, casting: Any = "safe") -> bool:
    source = from_.dtype if isinstance(from_, SymbolicArray) else from_
    return np.can_cast(source, to, casting)
