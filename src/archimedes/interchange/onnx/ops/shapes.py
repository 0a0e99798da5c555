"""Operators that move elements: reshaping, slicing, gathering, scattering, constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array, Scalar

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


@op("Constant")
def constant(node: Node) -> Any:
    """Return the value of an attribute."""
    for name in ("value", "value_float", "value_floats", "value_int", "value_ints"):
        value = node.get(name)
        if value is not None:
            kind = np.float32 if "float" in name else np.int64
            return np.asarray(value, None if name == "value" else kind)
    raise node.error("no value that is a number or an array of numbers")


@op("ConstantOfShape")
def constant_of_shape(node: Node, shape: Array) -> Any:
    """Return an array of one value."""
    value = node.get("value", np.zeros(1, np.float32))
    return np.full(node.limit(node.integers(shape, "the shape")), value.reshape(-1)[0])


@op("EyeLike")
def eye_like(node: Node, x: Array) -> Any:
    """Return an identity matrix."""
    from archimedes.interchange.onnx.ops.elementwise import cast

    rows, columns = np.shape(x)
    return cast(np.eye(rows, columns, node.get("k", 0)), node.output_types[0])


@op("Range")
def arange(node: Node, start: Array, limit: Array, step: Array) -> Any:
    """Return numbers from start to before limit."""
    first, last, delta = (
        node.concrete(v, "the length").reshape(-1)[0] for v in (start, limit, step)
    )
    if delta == 0:
        raise node.error("the step is 0")
    length = (float(last) - float(first)) / float(delta)
    if not np.isfinite(length):
        raise node.error(f"a range from {first} to {last}")
    (count,) = node.limit([max(int(np.ceil(length)), 0)])
    return first + np.arange(count).astype(first.dtype) * delta


@op("Shape")
def shape_of(node: Node, x: Array) -> Any:
    """Return the shape, or a part of it."""
    return np.array(np.shape(x)[node.get("start", 0) : node.get("end")], np.int64)


@op("Size")
def size_of(node: Node, x: Array) -> Any:
    """Return the number of elements."""
    return np.array(np.size(x), np.int64)


@op("Reshape")
def reshape(node: Node, x: Array, shape: Array) -> Any:
    """Return the elements in another shape: -1 is what is left, 0 the length that was there."""
    lengths = node.integers(shape, "the shape")
    if not node.get("allowzero", 0):
        old = np.shape(x)
        if any(n == 0 and k >= len(old) for k, n in enumerate(lengths)):
            raise node.error(f"shape {lengths} copies a length that {old} has not")
        lengths = [old[k] if n == 0 else n for k, n in enumerate(lengths)]
    return np.reshape(x, lengths)


@op("Flatten")
def flatten(node: Node, x: Array) -> Any:
    """Return a matrix: axes before ``axis`` are rows."""
    axis = node.get("axis", 1)
    if not -np.ndim(x) <= axis <= np.ndim(x):
        raise node.error(f"axis {axis} of an array of {np.ndim(x)} dimensions")
    shape = np.shape(x)
    axis = axis + len(shape) if axis < 0 else axis
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    return np.reshape(x, (rows, int(np.prod(shape[axis:], dtype=np.int64))))


@op("Transpose")
def transpose(node: Node, x: Array) -> Any:
    """Return the array with its axes in another order."""
    return np.transpose(x, node.get("perm"))


def _axes(node: Node, axes: Array | None) -> list[int] | None:
    if axes is not None:
        return node.integers(axes, "axes")
    given = node.get("axes")
    return None if given is None else [int(k) for k in given]


@op("Squeeze")
def squeeze(node: Node, x: Array, axes: Array | None = None) -> Any:
    """Return the array without axes of length 1."""
    numbers = _axes(node, axes)
    return np.squeeze(x, None if numbers is None else tuple(numbers))


@op("Unsqueeze")
def unsqueeze(node: Node, x: Array, axes: Array | None = None) -> Any:
    """Return the array with new axes of length 1."""
    numbers = _axes(node, axes) or []
    if np.ndim(x) + len(numbers) > 32:
        raise node.error(f"{np.ndim(x) + len(numbers)} axes")
    return np.expand_dims(x, tuple(numbers))


@op("Concat")
def concatenate(node: Node, *values: Array) -> Any:
    """Return arrays one after the other along an axis."""
    axis = node.axis(node.get("axis", 1), np.ndim(values[0]))
    shape = list(np.shape(values[0]))
    shape[axis] = sum(np.shape(v)[axis] for v in values)
    node.limit(shape)
    return np.concatenate(values, axis=axis)


@op("Split")
def split(node: Node, x: Array, lengths: Array | None = None) -> Any:
    """Return parts of an array along an axis."""
    axis = node.axis(node.get("axis", 0), np.ndim(x))
    there, count = np.shape(x)[axis], len(node.outputs)
    if lengths is not None:
        sizes = node.integers(lengths, "split")
    elif node.get("split") is not None:
        sizes = list(node.get("split"))
    else:
        size = -(-there // count)
        sizes = [min(size, there - k * size) for k in range(count)]
    if sum(sizes) != there or min(sizes, default=0) < 0 or len(sizes) != count:
        raise node.error(f"{count} parts of lengths {sizes} from {there} elements")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=axis))


@op("Slice")
def slice_array(
    node: Node,
    x: Array,
    starts: Array | None = None,
    ends: Array | None = None,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Any:
    """Return a part of an array, with steps."""
    if node.version < 10:
        begin, end, numbers = node.get("starts"), node.get("ends"), node.get("axes")
        stride = [1] * len(begin)
    else:
        begin, end = node.integers(starts, "starts"), node.integers(ends, "ends")
        numbers = None if axes is None else node.integers(axes, "axes")
        stride = [1] * len(begin) if steps is None else node.integers(steps, "steps")
    numbers = range(len(begin)) if numbers is None else numbers
    index: list[Any] = [slice(None)] * np.ndim(x)
    for k, first, last, step in zip(numbers, begin, end, stride, strict=True):
        axis = node.axis(k, np.ndim(x))
        if step == 0:
            raise node.error("a step is 0")
        if step < 0 and last < -np.shape(x)[axis]:
            last = None  # down to the first element
        index[axis] = slice(first, last, step)
    return x[tuple(index)]


def _from_front(index: Array, length: int) -> Any:
    """Return indices with negative ones counted from the front."""
    return np.where(index < 0, index + length, index)


def _check_indices(node: Node, index: Array, length: int) -> None:
    if not is_traced(index) and np.size(index):
        low, high = int(np.min(index)), int(np.max(index))
        if low < -length or high >= length:
            wrong = low if low < -length else high
            raise node.error(f"index {wrong} of an axis of {length} elements")


@op("Gather")
def gather(node: Node, x: Array, index: Array) -> Any:
    """Return elements at indices along an axis."""
    axis = node.axis(node.get("axis", 0), np.ndim(x))
    length = np.shape(x)[axis]
    _check_indices(node, index, length)
    node.limit((*np.shape(x)[:axis], *np.shape(index), *np.shape(x)[axis + 1 :]))
    return np.take(x, _from_front(index, length), axis=axis)


@op("GatherElements")
def gather_elements(node: Node, x: Array, index: Array) -> Any:
    """Return the element at an index along an axis, for each position."""
    axis = node.axis(node.get("axis", 0), np.ndim(x))
    _check_indices(node, index, np.shape(x)[axis])
    index = _from_front(index, np.shape(x)[axis])
    kept = tuple(slice(None) if k == axis else slice(0, n) for k, n in enumerate(np.shape(index)))
    return np.take_along_axis(x[kept], index, axis=axis)


def _flat_positions(node: Node, shape: tuple[int, ...], index: Array) -> Any:
    """Return positions in an array that is ravelled, of indices in the last axis of ``index``."""
    position: Any = np.zeros((), np.int64)
    for k in range(np.shape(index)[-1]):
        one = index[..., k]
        _check_indices(node, one, shape[k])
        position = position * shape[k] + _from_front(one, shape[k])
    return position


@op("GatherND")
def gather_nd(node: Node, x: Array, index: Array) -> Any:
    """Return slices at indices that stand along the last axis."""
    batch = node.get("batch_dims", 0)
    if batch:
        lead = np.shape(x)[:batch]
        rows = int(np.prod(lead, dtype=np.int64))
        a, b = x.reshape(rows, *np.shape(x)[batch:]), index.reshape(rows, *np.shape(index)[batch:])
        parts = [_gather_nd(node, a[k], b[k]) for k in range(rows)]
        return np.stack(parts).reshape(*lead, *np.shape(parts[0]))
    return _gather_nd(node, x, index)


def _gather_nd(node: Node, x: Array, index: Array) -> Any:
    depth = np.shape(index)[-1]
    if not 0 < depth <= np.ndim(x):
        raise node.error(f"indices of {depth} axes into an array of {np.ndim(x)}")
    rest = np.shape(x)[depth:]
    node.limit((*np.shape(index)[:-1], *rest))
    flat = x.reshape(int(np.prod(np.shape(x)[:depth], dtype=np.int64)), *rest)
    return np.take(flat, _flat_positions(node, np.shape(x), index), axis=0)


def _combine(node: Node, flat: Array, positions: Array, updates: Array) -> Any:
    """Write, add, multiply... updates at positions of the first axis of a copy."""
    how = node.get("reduction", "none")
    positions = node.concrete(positions, "where elements are written")
    flat = np.array(flat)
    if how == "none":
        flat[positions] = updates
        return flat
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how]
    # One after the other where positions repeat: each round has every position once.
    left = np.arange(len(positions))
    while left.size:
        _, first = np.unique(positions[left], return_index=True)
        now = left[first]
        flat[positions[now]] = combine(flat[positions[now]], updates[now])
        left = np.delete(left, first)
    return flat


@op("ScatterElements", "Scatter")
def scatter_elements(node: Node, x: Array, index: Array, updates: Array) -> Any:
    """Return a copy with elements written at indices along an axis."""
    axis = node.axis(node.get("axis", 0), np.ndim(x))
    index = node.concrete(index, "where elements are written")
    _check_indices(node, index, np.shape(x)[axis])
    places = np.indices(np.shape(index))
    places[axis] = _from_front(index, np.shape(x)[axis])
    positions = np.ravel_multi_index(tuple(p.reshape(-1) for p in places), np.shape(x))
    return _combine(node, x.reshape(-1), positions, updates.reshape(-1)).reshape(np.shape(x))


@op("ScatterND")
def scatter_nd(node: Node, x: Array, index: Array, updates: Array) -> Any:
    """Return a copy with slices written at indices that stand along the last axis."""
    index = node.concrete(index, "where slices are written")
    depth, shape = np.shape(index)[-1], np.shape(x)
    if not 0 < depth <= len(shape):
        raise node.error(f"indices of {depth} axes into an array of {len(shape)}")
    positions = np.asarray(_flat_positions(node, shape, index)).reshape(-1)
    rest = shape[depth:]
    flat = x.reshape(int(np.prod(shape[:depth], dtype=np.int64)), *rest)
    return _combine(node, flat, positions, updates.reshape(-1, *rest)).reshape(shape)


@op("Expand")
def expand(node: Node, x: Array, shape: Array) -> Any:
    """Return an array repeated to a shape that it broadcasts to."""
    wanted = node.integers(shape, "the shape")
    try:
        full = np.broadcast_shapes(np.shape(x), tuple(wanted))
    except ValueError:
        raise node.error(f"shape {np.shape(x)} does not expand to {tuple(wanted)}") from None
    return np.broadcast_to(x, node.limit(full))


@op("Tile")
def tile(node: Node, x: Array, repeats: Array) -> Any:
    """Return an array repeated along its axes."""
    counts = node.integers(repeats, "repeats")
    if len(counts) != np.ndim(x):
        raise node.error(f"{len(counts)} repeats for {np.ndim(x)} axes")
    node.limit([n * length for n, length in zip(counts, np.shape(x))])
    return np.tile(x, counts)


def pad_with(x: Array, pads: list[tuple[int, int]], value: Scalar) -> Any:
    """Return an array with a constant around it; negative numbers cut off.

    What is padded is chosen by a constant mask, so that loops read one array and not its pieces.
    """
    if any(n < 0 for pair in pads for n in pair):
        index = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, np.shape(x)))
        x = x[index]
        pads = [(max(a, 0), max(b, 0)) for a, b in pads]
    if not any(n for pair in pads for n in pair):
        return x
    if 0 in np.shape(x):
        shape = [a + n + b for (a, b), n in zip(pads, np.shape(x))]
        return np.full(shape, value, x.dtype)
    value = np.asarray(value, x.dtype) if not is_traced(value) else value
    if not is_traced(x, value):
        return np.pad(x, pads, constant_values=value)
    mask = np.pad(np.ones(np.shape(x), np.bool_), pads)
    return np.where(mask, np.pad(x, pads), value)


@op("Pad")
def pad(
    node: Node,
    x: Array,
    pads: Array | None = None,
    value: Array | None = None,
    axes: Array | None = None,
) -> Any:
    """Return an array with elements around it."""
    rank = np.ndim(x)
    if node.version < 11:
        numbers, value = list(node.get("pads")), node.get("value", 0.0)
    else:
        numbers = node.integers(pads, "pads")
    where = range(rank) if axes is None else node.integers(axes, "axes")
    if len(numbers) != 2 * len(where):
        raise node.error(f"{len(numbers)} pads for {len(where)} axes")
    pairs = [(0, 0)] * rank
    for k, axis in enumerate(where):
        pairs[node.axis(axis, rank)] = (numbers[k], numbers[k + len(where)])
    node.limit([max(a + n + b, 0) for (a, b), n in zip(pairs, np.shape(x))])
    mode = node.get("mode", "constant")
    if mode == "constant":
        fill = np.zeros((), x.dtype) if value is None else value
        return pad_with(x, pairs, fill if is_traced(fill) else np.asarray(fill).reshape(()))
    # Other modes repeat elements: their positions are padded in place of them.
    for axis, (before, after) in enumerate(pairs):
        length = np.shape(x)[axis]
        keep = np.arange(max(-before, 0), length - max(-after, 0))
        if keep.size == 0:
            raise node.error("nothing is left to repeat")
        positions = np.pad(keep, (max(before, 0), max(after, 0)), mode=mode)
        if len(positions) != length or not np.array_equal(positions, np.arange(length)):
            x = np.take(x, positions, axis=axis)
    return x


@op("Trilu")
def triangle(node: Node, x: Array, k: Array | None = None) -> Any:
    """Return the upper or lower triangle of matrices, with zeros elsewhere."""
    diagonal = 0 if k is None else node.integers(k, "k")[0]
    rows, columns = np.shape(x)[-2:]
    mask = np.tri(rows, columns, diagonal - 1 if node.get("upper", 1) else diagonal)
    inside = mask == 0 if node.get("upper", 1) else mask != 0
    return np.where(inside, x, np.zeros((), x.dtype))


@op("DepthToSpace")
def depth_to_space(node: Node, x: Array) -> Any:
    """Return channels moved into blocks of the image."""
    n, c, h, w = np.shape(x)
    b = node.get("blocksize")
    if b < 1 or c % (b * b):
        raise node.error(f"{c} channels in blocks of {b} by {b}")
    if node.get("mode", "DCR") == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


@op("SpaceToDepth")
def space_to_depth(node: Node, x: Array) -> Any:
    """Return blocks of the image moved into channels."""
    n, c, h, w = np.shape(x)
    b = node.get("blocksize")
    if b < 1 or h % b or w % b:
        raise node.error(f"an image of {h} by {w} in blocks of {b}")
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose((0, 3, 5, 1, 2, 4) if node.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4))
    return y.reshape(n, c * b * b, h // b, w // b)


@op("OneHot")
def one_hot(node: Node, index: Array, depth: Array, values: Array) -> Any:
    """Return one value at each index and another elsewhere, along a new axis."""
    count = int(node.concrete(depth, "depth").reshape(-1)[0])
    rank = np.ndim(index)
    axis = node.axis(node.get("axis", -1), rank + 1)
    node.limit((*np.shape(index), count))
    if np.dtype(index.dtype).kind == "f":
        index = np.trunc(index).astype(np.int64)
    index = np.expand_dims(_from_front(index, count), axis)
    steps = np.arange(count).reshape([-1 if k == axis else 1 for k in range(rank + 1)])
    return np.where(index == steps, values[1], values[0])


@op("Compress")
def compress(node: Node, x: Array, condition: Array) -> Any:
    """Return the elements for which a condition, known in advance, holds."""
    chosen = np.flatnonzero(node.concrete(condition, "the condition"))
    axis = node.get("axis")
    if axis is None:
        return np.take(x.reshape(-1), chosen)
    return np.take(x, chosen, axis=node.axis(axis, np.ndim(x)))


@op("NonZero")
def non_zero(node: Node, x: Array) -> Any:
    """Return the indices of elements, known in advance, that are not zero."""
    return np.array(np.nonzero(np.atleast_1d(node.concrete(x, "which elements are not zero"))))


def _accumulate(node: Node, x: Array, axis: Array, function: Callable[..., Array]) -> Any:
    k = node.axis(node.integers(axis, "axis")[0], np.ndim(x))
    x = np.flip(x, k) if node.get("reverse", 0) else x
    y = function(x, axis=k)
    if node.get("exclusive", 0):
        first = np.full_like(np.take(y, np.arange(1), axis=k), 1 if function is np.cumprod else 0)
        y = np.concatenate([first, np.take(y, np.arange(np.shape(x)[k] - 1), axis=k)], axis=k)
    return node.wrap(np.flip(y, k) if node.get("reverse", 0) else y)


@op("CumSum")
def cumulative_sum(node: Node, x: Array, axis: Array) -> Any:
    """Return sums of all elements so far along an axis."""
    return _accumulate(node, x, axis, np.cumsum)


@op("CumProd")
def cumulative_product(node: Node, x: Array, axis: Array) -> Any:
    """Return products of all elements so far along an axis."""
    return _accumulate(node, x, axis, np.cumprod)


@op("ReverseSequence")
def reverse_sequence(node: Node, x: Array, lengths: Array) -> Any:
    """Return the first elements of each sequence in reverse order."""
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    moved = np.moveaxis(x, (time, batch), (0, 1))
    return np.moveaxis(reverse_steps(moved, lengths), (0, 1), (time, batch))


def reverse_steps(x: Array, lengths: Array) -> Any:
    """Return sequences (steps, batch, ...) with the first ``lengths`` steps of each reversed."""
    if lengths is None:
        return np.flip(x, 0)
    steps = np.arange(np.shape(x)[0])[:, None]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)
    order = order.reshape(np.shape(order) + (1,) * (np.ndim(x) - 2))
    return np.take_along_axis(x, np.broadcast_to(order, np.shape(x)), axis=0)
