"""Quantised networks: integers with scales and zero points, rounded half to even and saturated.

Products and sums of integers are exact, in int64; results are what ONNX's int32 accumulators hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.convolution import along_channels, convolve
from archimedes.interchange.onnx.ops.linear import matrix_product
from archimedes.interchange.onnx.ops.table import op
from archimedes.interchange.onnx.tensors import integer_range
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def saturate(x: Array, name: str) -> Any:
    """Return floats rounded half to even and limited to an integer type; nan gives its zero."""
    low, high = integer_range(name)
    rounded = np.clip(np.rint(x), float(low), float(high))
    return np.where(np.isnan(rounded), np.zeros((), x.dtype), rounded).astype(np.int64)


def _along(node: Node, x: Array, parameter: Array, axis: int) -> Any:
    """Return scales or zero points in a shape that broadcasts with x."""
    rank, shape = np.ndim(x), np.shape(x)
    if np.size(parameter) == 1 and np.ndim(parameter) <= 1:
        return parameter.reshape(())
    block = int(node.get("block_size", 0))
    axis = node.axis(axis, rank)
    if block:
        node.limit(shape)
        if np.ndim(parameter) != rank or np.shape(parameter)[axis] != -(-shape[axis] // block):
            raise node.error(
                f"blocks of {block} along axis {axis} of {shape} with {np.shape(parameter)}"
            )
        return np.take(parameter, np.arange(shape[axis]) // block, axis=axis)
    if np.ndim(parameter) != 1 or np.shape(parameter)[0] != shape[axis]:
        raise node.error(f"scales of shape {np.shape(parameter)} along axis {axis} of {shape}")
    return parameter.reshape([-1 if k == axis else 1 for k in range(rank)])


@op("QuantizeLinear")
def quantize(node: Node, x: Array, scale: Array, zero: Array | None = None) -> Any:
    """Return ``x / scale + zero``, rounded and saturated."""
    axis = node.get("axis", 1)
    step = _along(node, x, scale, axis)
    x = x.astype(scale.dtype) if np.dtype(x.dtype).kind != "f" else x
    y = np.rint(x / step)
    if zero is not None:
        y = y + _along(node, x, zero, axis).astype(x.dtype)
    return saturate(y, node.output_types[0])


@op("DequantizeLinear")
def dequantize(node: Node, x: Array, scale: Array, zero: Array | None = None) -> Any:
    """Return ``(x - zero) * scale``."""
    axis = node.get("axis", 1)
    if zero is not None:
        x = x - _along(node, x, zero, axis)
    return x.astype(scale.dtype) * _along(node, x, scale, axis)


@op("DynamicQuantizeLinear")
def dynamic_quantize(node: Node, x: Array) -> Any:
    """Return x as uint8 with the scale and zero point of its range, which contains 0."""
    low = np.minimum(np.min(x, initial=0.0), 0.0).astype(x.dtype)
    high = np.maximum(np.max(x, initial=0.0), 0.0).astype(x.dtype)
    scale = (high - low) / np.float32(255.0)
    safe = np.where(scale == 0.0, np.ones((), x.dtype), scale)
    zero = saturate(-low / safe, "UINT8")
    return saturate(np.rint(x / safe) + zero.astype(x.dtype), "UINT8"), scale, zero


def _rows(zero: Array, rank: int) -> Any:
    """Return zero points of the rows of the left matrix, one or each."""
    return zero[..., None] if np.ndim(zero) == 1 and np.shape(zero)[0] > 1 and rank > 1 else zero


@op("MatMulInteger")
def matmul_integer(
    node: Node, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None
) -> Any:
    """Return the product of two arrays of matrices of integers."""
    a = a if a_zero is None else a - _rows(a_zero, np.ndim(a))
    b = b if b_zero is None else b - b_zero
    return node.wrap(matrix_product(node, a, b))


@op("QLinearMatMul")
def quantized_matmul(
    node: Node,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    y_scale: Array,
    y_zero: Array,
) -> Any:
    """Return the product of quantised matrices, quantised."""
    rank = np.ndim(a)
    total = matrix_product(node, a - _rows(a_zero, rank), b - b_zero)
    factor = _rows(a_scale, rank) * b_scale / _rows(y_scale, rank)
    y = np.rint(total.astype(factor.dtype) * factor)
    return saturate(y + _rows(y_zero, rank).astype(y.dtype), node.output_types[0])


@op("ConvInteger")
def conv_integer(
    node: Node, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None
) -> Any:
    """Return the convolution of integers."""
    x = x if x_zero is None else x - x_zero.reshape(())
    return node.wrap(convolve(node, x, _kernels(w, w_zero)))


def _kernels(w: Array, zero: Array | None) -> Any:
    if zero is None:
        return w
    return w - (zero.reshape((-1,) + (1,) * (np.ndim(w) - 1)) if np.size(zero) > 1 else zero)


@op("QLinearConv")
def quantized_conv(
    node: Node,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    w: Array,
    w_scale: Array,
    w_zero: Array,
    y_scale: Array,
    y_zero: Array,
    bias: Array | None = None,
) -> Any:
    """Return the convolution of quantised images, quantised."""
    total = convolve(node, x - x_zero.reshape(()), _kernels(w, w_zero))
    rank = np.ndim(x)
    if bias is not None:
        total = total + along_channels(bias, rank)
    factor = x_scale.reshape(()) * w_scale / y_scale.reshape(())
    factor = along_channels(factor, rank) if np.size(factor) > 1 else factor.reshape(())
    y = np.rint(total.astype(factor.dtype) * factor)
    return saturate(y + y_zero.reshape(()).astype(y.dtype), node.output_types[0])
