"""Sums, products, extremes and their positions along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.elementwise import is_float
from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def log_sum_exp(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return ``log(sum(exp(x)))`` without overflow."""
    most = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    most = np.where(np.abs(most) < np.inf, most, np.zeros((), x.dtype))
    result = np.log(np.sum(np.exp(x - most), axis=axes, keepdims=True)) + most
    return result if keepdims else np.squeeze(result, axis=axes)


def _extreme(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    def reduce(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
        if np.dtype(x.dtype) == np.bool_:
            return reduce(x.astype(np.int64), axes, keepdims) > 0
        if 0 in np.shape(x):
            start: Any = -sign * np.inf if is_float(x) else -sign * (2**63 - 1)
            return function(x, axis=axes, keepdims=keepdims, initial=start)
        return function(x, axis=axes, keepdims=keepdims)

    return reduce


def _norm(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    if not is_float(x):
        floats = np.sqrt(np.sum((x * x).astype(np.float64), axis=axes, keepdims=keepdims))
        return floats.astype(np.int64)
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))


def _mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
    if is_float(x):
        return np.mean(x, axis=axes, keepdims=keepdims)
    count = np.size(x) // max(np.size(np.sum(x, axis=axes)), 1)
    total = np.sum(x, axis=axes, keepdims=keepdims)
    return np.where(total < 0, -(-total // count), total // count)


def _log(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(x: Array, axes: tuple[int, ...], keepdims: bool) -> Any:
        if is_float(x):
            return function(x, axes, keepdims)
        return function(x.astype(np.float64), axes, keepdims).astype(np.int64)

    return reduce


#: Functions of an array, axes, and whether axes are kept.
_REDUCTIONS: dict[str, Callable[[Any, Any, bool], Any]] = {
    "ReduceL1": lambda x, axes, keep: np.sum(np.abs(x), axis=axes, keepdims=keep),
    "ReduceL2": _norm,
    "ReduceLogSum": _log(lambda x, axes, keep: np.log(np.sum(x, axis=axes, keepdims=keep))),
    "ReduceLogSumExp": _log(log_sum_exp),
    "ReduceMax": _extreme(np.max, 1),
    "ReduceMean": _mean,
    "ReduceMin": _extreme(np.min, -1),
    "ReduceProd": lambda x, axes, keep: np.prod(x, axis=axes, keepdims=keep),
    "ReduceSum": lambda x, axes, keep: np.sum(x, axis=axes, keepdims=keep),
    "ReduceSumSquare": lambda x, axes, keep: np.sum(x * x, axis=axes, keepdims=keep),
}


def _enter(name: str, function: Callable[[Any, Any, bool], Any]) -> None:
    @op(name)
    def call(node: Node, x: Array, axes: Array | None = None) -> Any:
        chosen = node.get("axes") if axes is None else node.integers(axes, "axes")
        if chosen is None or len(chosen) == 0:
            if node.get("noop_with_empty_axes", 0):
                # Nothing is summed: what is done to each element before and after it remains.
                kept = np.expand_dims(x, -1)
                return node.wrap(function(kept, (np.ndim(kept) - 1,), False))
            chosen = range(np.ndim(x))
        numbers = tuple(node.axis(int(k), np.ndim(x)) for k in chosen)
        return node.wrap(function(x, numbers, bool(node.get("keepdims", 1))))


for _name, _function in _REDUCTIONS.items():
    _enter(_name, _function)


def _position(node: Node, x: Array, find: Callable[..., Any]) -> Any:
    axis = node.axis(node.get("axis", 0), np.ndim(x))
    if node.get("select_last_index", 0):
        position = np.shape(x)[axis] - 1 - find(np.flip(x, axis), axis=axis)
    else:
        position = find(x, axis=axis)
    return np.expand_dims(position, axis) if node.get("keepdims", 1) else position


@op("ArgMax")
def argmax(node: Node, x: Array) -> Any:
    """Return positions of the greatest elements along an axis."""
    return _position(node, x, np.argmax)


@op("ArgMin")
def argmin(node: Node, x: Array) -> Any:
    """Return positions of the least elements along an axis."""
    return _position(node, x, np.argmin)


@op("TopK")
def top_k(node: Node, x: Array, count: Array | None = None) -> Any:
    """Return the k greatest or least elements along an axis, in order, and their positions."""
    axis = node.axis(node.get("axis", -1), np.ndim(x))
    k = int(node.get("k", 0)) if count is None else node.integers(count, "k")[0]
    if not 0 <= k <= np.shape(x)[axis]:
        raise node.error(f"k={k} of {np.shape(x)[axis]} elements")
    # Of equal elements the first comes first: a stable order of the negated values.
    key = -x if node.get("largest", 1) else x
    order = np.argsort(key, axis=axis, kind="stable")
    order = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, order, axis=axis), order


@op("Hardmax")
def hardmax(node: Node, x: Array) -> Any:
    """Return 1 at the first of the greatest elements and 0 elsewhere."""
    flat, axis, shape = flatten_before_13(node, x)
    first = np.expand_dims(np.argmax(flat, axis=axis), axis)
    steps = np.arange(np.shape(flat)[axis]).reshape(
        [-1 if k == axis else 1 for k in range(np.ndim(flat))]
    )
    return np.where(first == steps, 1.0, 0.0).astype(x.dtype).reshape(shape)


def flatten_before_13(node: Node, x: Array) -> tuple[Any, int, tuple[int, ...]]:
    """Return an array, the axis to work along, and the shape of the result.

    Before version 13 softmax and its relatives work on all axes from ``axis`` on as one.
    """
    shape = np.shape(x)
    if node.version >= 13:
        return x, node.axis(node.get("axis", -1), np.ndim(x)), shape
    axis = node.get("axis", 1)
    axis = axis + np.ndim(x) if axis < 0 else axis
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    return x.reshape(rows, int(np.prod(shape[axis:], dtype=np.int64))), 1, shape


def softmax(x: Array, axis: int = -1) -> Any:
    """Return exponentials divided by their sum along an axis."""
    if np.shape(x)[axis] == 0:
        return x
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


@op("Softmax")
def softmax_node(node: Node, x: Array) -> Any:
    """Return exponentials divided by their sum."""
    flat, axis, shape = flatten_before_13(node, x)
    return softmax(flat, axis).reshape(shape)


@op("LogSoftmax")
def log_softmax(node: Node, x: Array) -> Any:
    """Return the logarithm of the softmax."""
    flat, axis, shape = flatten_before_13(node, x)
    shifted = flat - np.max(flat, axis=axis, keepdims=True)
    return (shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))).reshape(shape)
