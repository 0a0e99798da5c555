"""Normalisation by means, variances and norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def _along_channels(x: Array, rank: int) -> Any:
    """Return one number per channel in the shape of arrays (N, C, ...)."""
    return x.reshape((1, -1) + (1,) * (rank - 2)) if rank > 1 else x


def _standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    mean = np.mean(x, axis=axes, keepdims=True)
    centered = x - mean
    inverse = 1.0 / np.sqrt(np.mean(centered * centered, axis=axes, keepdims=True) + epsilon)
    return centered * inverse, mean, inverse


@op("BatchNormalization")
def batch_normalization(
    node: Node, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Any:
    """Return channels with given means and variances normalised, as in inference."""
    if node.get("training_mode", 0) or (node.version >= 14 and len(node.outputs) > 1):
        raise node.error("training_mode is set: export the network for inference (model.eval())")
    factor = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
    rank = np.ndim(x)
    y = (x - _along_channels(mean, rank)) * _along_channels(factor, rank)
    return (y + _along_channels(bias, rank)).astype(x.dtype)


@op("InstanceNormalization")
def instance_normalization(node: Node, x: Array, scale: Array, bias: Array) -> Any:
    """Return each channel of each instance with mean 0 and variance 1, scaled and shifted."""
    rank = np.ndim(x)
    y = _standardize(x, tuple(range(2, rank)), node.get("epsilon", 1e-5))[0]
    return y * _along_channels(scale, rank) + _along_channels(bias, rank)


@op("LayerNormalization")
def layer_normalization(node: Node, x: Array, scale: Array, bias: Array | None = None) -> Any:
    """Return values with mean 0 and variance 1 along the last axes, scaled and shifted."""
    first = node.axis(node.get("axis", -1), np.ndim(x))
    y, mean, inverse = _standardize(x, tuple(range(first, np.ndim(x))), node.get("epsilon", 1e-5))
    y = y * scale
    return (y if bias is None else y + bias), mean, inverse


@op("RMSNormalization")
def rms_normalization(node: Node, x: Array, scale: Array) -> Any:
    """Return values divided by their root mean square along the last axes, scaled."""
    axes = tuple(range(node.axis(node.get("axis", -1), np.ndim(x)), np.ndim(x)))
    square = np.mean(x * x, axis=axes, keepdims=True)
    return x / np.sqrt(square + node.get("epsilon", 1e-5)) * scale


@op("GroupNormalization")
def group_normalization(node: Node, x: Array, scale: Array, bias: Array) -> Any:
    """Return groups of channels with mean 0 and variance 1, scaled and shifted."""
    shape, groups = np.shape(x), node.get("num_groups")
    if groups < 1 or shape[1] % groups:
        raise node.error(f"{shape[1]} channels in {groups} groups")
    y = x.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
    y = _standardize(y, tuple(range(2, np.ndim(y))), node.get("epsilon", 1e-5))[0]
    if node.version < 21:  # one number per group
        scale, bias = (np.repeat(v, shape[1] // groups) for v in (scale, bias))
    rank = len(shape)
    return y.reshape(shape) * _along_channels(scale, rank) + _along_channels(bias, rank)


@op("LpNormalization")
def lp_normalization(node: Node, x: Array) -> Any:
    """Return vectors along an axis divided by their norm; zero where that is zero."""
    axis, p = node.axis(node.get("axis", -1), np.ndim(x)), node.get("p", 2)
    if p == 1:
        norm = np.sum(np.abs(x), axis=axis, keepdims=True)
    else:
        square = np.sum(x * x, axis=axis, keepdims=True)
        norm = np.sqrt(np.where(square == 0.0, 1.0, square).astype(x.dtype))
    norm = np.where(norm == 0.0, 1.0, norm).astype(x.dtype)
    return x / norm


@op("LRN")
def local_response_normalization(node: Node, x: Array) -> Any:
    """Return values divided by a power of the squares in channels nearby."""
    size, channels = node.get("size"), np.shape(x)[1]
    if size < 1:
        raise node.error(f"size={size}")
    square = x * x
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    sums = [np.sum(square[:, max(0, c - before) : c + after + 1], axis=1) for c in range(channels)]
    base = node.get("bias", 1.0) + node.get("alpha", 1e-4) / size * np.stack(sums, axis=1)
    return x / base ** node.get("beta", 0.75)
