"""Resizing of images: each axis by a matrix of weights, or by the positions of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def _source(node: Node, mode: str, length: int, out: int, scale: float) -> Any:
    """Return where in an axis of ``length`` elements each of ``out`` elements lies."""
    k = np.arange(out, dtype=np.float64)
    if mode == "asymmetric":
        return k / scale
    if mode == "align_corners":
        exact = length * scale  # which need not be whole
        return k * ((length - 1) / (exact - 1)) if exact != 1 else np.zeros(out)
    if mode == "pytorch_half_pixel" and out == 1:
        return np.full(out, -0.5)
    if mode == "half_pixel_symmetric":
        adjustment = out / (scale * length)
        return length / 2.0 * (1.0 - adjustment) + (k + 0.5) / scale - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (k + 0.5) / scale - 0.5
    raise node.error(f"coordinate_transformation_mode={mode!r} is not known")


def _nearest(node: Node, place: Array, length: int, scale: float) -> Any:
    how = node.get("nearest_mode", "round_prefer_floor")
    if node.version < 11:  # whose nearest element is the one above in smaller images
        how = "ceil" if scale < 1.0 else "floor"
    if how == "round_prefer_floor":
        index = np.ceil(place - 0.5)
    elif how == "round_prefer_ceil":
        index = np.floor(place + 0.5)
    else:
        index = np.floor(place) if how == "floor" else np.ceil(place)
    return np.clip(index.astype(np.int64), 0, length - 1)


def _weights(node: Node, mode: str, place: Array, length: int, scale: float) -> Any:
    """Return the matrix (out, length) of an interpolation along one axis."""
    stretch = 1.0 / min(scale, 1.0) if node.get("antialias", 0) else 1.0
    reach = (1.0 if mode == "linear" else 2.0) * stretch
    matrix = np.zeros((len(place), length))
    a = node.get("cubic_coeff_a", -0.75)
    for row, at in enumerate(place):
        taps = np.arange(math.floor(at - reach), math.ceil(at + reach) + 1)
        d = np.abs(taps - at) / stretch
        if mode == "linear":
            w = np.maximum(1.0 - d, 0.0)
        else:
            inner = ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
            outer = ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
            w = np.where(d <= 1.0, inner, np.where(d < 2.0, outer, 0.0))
        inside = (taps >= 0) & (taps < length)
        if node.get("exclude_outside", 0):
            w = np.where(inside, w, 0.0)
        w = w / w.sum()
        np.add.at(matrix[row], np.clip(taps, 0, length - 1), w)
    return matrix


def _resize(
    node: Node,
    x: Array,
    scales: Sequence[float] | Array | None,
    sizes: Sequence[int] | None,
    axes: Sequence[int] | None,
    mode: str,
    place: str,
) -> Any:
    rank = np.ndim(x)
    chosen = range(rank) if axes is None else [node.axis(k, rank) for k in axes]
    lengths = [np.shape(x)[k] for k in chosen]
    if sizes is not None:
        factors = [out / max(n, 1) for out, n in zip(sizes, lengths, strict=True)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(factors) if policy == "not_larger" else max(factors)
            factors = [one] * len(factors)
            sizes = [math.floor(one * n + 0.5) for n in lengths]
    else:
        factors = [float(s) for s in scales] if scales is not None else []
        if len(factors) != len(lengths) or not all(0 < s < 2**31 for s in factors):
            raise node.error(f"scales={factors} for axes of lengths {lengths}")
        sizes = [math.floor(n * s) for n, s in zip(lengths, factors)]
    shape = list(np.shape(x))
    for k, out in zip(chosen, sizes):
        shape[k] = out
        node.limit(shape)
    for k, length, out, scale in zip(chosen, lengths, sizes, factors):
        if out == length and scale == 1.0:
            continue
        if min(out, length) < 1:
            raise node.error(f"an axis of {length} elements resized to {out}")
        where = _source(node, place, length, out, scale)
        if mode == "nearest":
            x = np.take(x, _nearest(node, where, length, scale), axis=k)
            continue
        node.limit((out, length))
        matrix = _weights(node, mode, where, length, scale).astype(x.dtype)
        x = np.moveaxis(np.tensordot(x, matrix, ((k,), (1,))), -1, k)
    return x


@op("Resize")
def resize(node: Node, x: Array, *rest: Array) -> Any:
    """Return an image of another size: nearest elements, linear or cubic interpolation."""
    if node.version < 11:
        given: list[Array | None] = [rest[0], None]
        place = "asymmetric"
    else:
        given = [*rest, None, None, None][1:3]
        place = node.get("coordinate_transformation_mode", "half_pixel")
    mode = node.get("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise node.error(f"mode={mode!r} is not known")
    factors, lengths = given
    scales = [] if factors is None else list(node.concrete(factors, "scales").reshape(-1))
    sizes = None if lengths is None else node.integers(lengths, "sizes") or None
    if not scales and sizes is None:
        raise node.error("neither scales nor sizes")
    return _resize(node, x, scales or None, sizes, node.get("axes"), mode, place)


@op("Upsample")
def upsample(node: Node, x: Array, scales: Array | None = None) -> Any:
    """Return a larger image, as old versions have it."""
    factors = node.get("scales") if scales is None else node.concrete(scales, "scales").reshape(-1)
    return _resize(node, x, factors, None, None, node.get("mode", "nearest"), "asymmetric")
