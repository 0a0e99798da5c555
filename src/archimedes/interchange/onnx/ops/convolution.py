"""Convolutions and pooling over any number of axes.

Windows are views: ``windows(x)`` has the shape (N, C, outputs..., kernel...), and convolutions are
sums of products over them. They stay loops when they are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.shapes import pad_with
from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array, Scalar

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


_OUT, _KERNEL = "uvwxyz", "klmopq"
#: Axes of images beside instances and channels.
_MAX_AXES = 4


class Window:
    """How a kernel moves over an image: its lengths, strides, dilations and padding.

    Parameters
    ----------
    node : Node
        The node, with ONNX's attributes for them.
    sizes : sequence of int
        Lengths of the image along the axes that the kernel moves along.
    kernel : sequence of int
        Lengths of the kernel.
    """

    def __init__(self, node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> None:
        self.sizes, self.kernel = tuple(map(int, sizes)), tuple(map(int, kernel))
        n = len(self.sizes)
        if not 0 < n <= _MAX_AXES or len(self.kernel) != n or min(self.kernel) < 1:
            raise node.error(f"a kernel of shape {self.kernel} over axes of lengths {self.sizes}")
        self.strides = self._positive(node, "strides", n)
        self.dilations = self._positive(node, "dilations", n)
        self.span = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.pads = self._pads(node, n)
        #: Elements beyond the padding that windows may reach into where lengths are rounded up.
        self.beyond = [0] * n
        self.outputs = []
        ceil = bool(node.get("ceil_mode", 0))
        for k, (before, after) in enumerate(self.pads):
            room = self.sizes[k] + before + after - self.span[k]
            stride = self.strides[k]
            count = (-(-room // stride) if ceil else room // stride) + 1
            # The last window must begin inside the image or the padding before it.
            if ceil and (count - 1) * stride >= self.sizes[k] + before:
                count -= 1
            self.beyond[k] = max((count - 1) * stride - room, 0)
            self.outputs.append(max(count, 0))

    @staticmethod
    def _positive(node: Node, name: str, n: int) -> list[int]:
        values = [int(v) for v in node.get(name, [1] * n)]
        if len(values) != n or min(values) < 1:
            raise node.error(f"{name}={values} for {n} axes")
        return values

    def _pads(self, node: Node, n: int) -> list[tuple[int, int]]:
        auto = node.get("auto_pad", "NOTSET")
        if auto in ("NOTSET", ""):
            values = [int(v) for v in node.get("pads", [0] * 2 * n)]
            if len(values) != 2 * n or min(values) < 0:
                raise node.error(f"pads={values} for {n} axes")
            return list(zip(values[:n], values[n:]))
        if auto == "VALID":
            return [(0, 0)] * n
        pairs = []
        for size, stride, span in zip(self.sizes, self.strides, self.span):
            total = max((-(-size // stride) - 1) * stride + span - size, 0)
            small = total // 2
            pairs.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
        return pairs

    def windows(self, node: Node, x: Array, value: Scalar) -> Any:
        """Return windows of an array (N, C, ...), padded with a value."""
        pads = [(0, 0), (0, 0)]
        pads += [(a, b + extra) for (a, b), extra in zip(self.pads, self.beyond)]
        node.limit([a + n + b for (a, b), n in zip(pads, np.shape(x))])
        node.limit((*np.shape(x)[:2], *self.outputs))
        x = pad_with(x, pads, value)
        n = len(self.sizes)
        if 0 in self.outputs or any(a < b for a, b in zip(np.shape(x)[2:], self.span)):
            raise node.error(
                f"the kernel covers {self.span}, more than the padded image, {np.shape(x)[2:]}"
            )
        axes = tuple(range(2, 2 + n))
        view: Any = np.lib.stride_tricks.sliding_window_view(x, tuple(self.span), axis=axes)
        places = tuple(slice(None, None, s) for s in self.strides)
        taps = tuple(slice(None, None, d) for d in self.dilations)
        view = view[(slice(None), slice(None), *places, *taps)]
        return view[(slice(None), slice(None), *(slice(0, m) for m in self.outputs))]


def convolve(node: Node, x: Array, w: Array, zero: Scalar = 0) -> Any:
    """Return the convolution of images (N, C, ...) with kernels (M, C / groups, ...)."""
    groups = int(node.get("group", 1))
    kernel = np.shape(w)[2:]
    if node.get("kernel_shape") is not None and tuple(node.get("kernel_shape")) != kernel:
        raise node.error(f"kernel_shape={node.get('kernel_shape')} with kernels {np.shape(w)}")
    channels, kernels = np.shape(x)[1], np.shape(w)[0]
    if groups < 1 or channels != groups * np.shape(w)[1] or kernels % groups:
        raise node.error(
            f"{channels} channels, kernels of shape {np.shape(w)} and {groups} groups do not fit"
        )
    window = Window(node, np.shape(x)[2:], kernel)
    n = len(kernel)
    node.limit((np.shape(x)[0], kernels, *window.outputs))
    view = window.windows(node, x, zero)
    out, taps = _OUT[:n], _KERNEL[:n]
    if groups == 1:
        return np.einsum(f"nc{out}{taps},jc{taps}->nj{out}", view, w)
    shape = np.shape(view)
    if channels == groups == kernels:  # one kernel for each channel
        return np.einsum(f"nc{out}{taps},c{taps}->nc{out}", view, w[:, 0])
    view = view.reshape(shape[0], groups, channels // groups, *shape[2:])
    w = w.reshape(groups, kernels // groups, *np.shape(w)[1:])
    y = np.einsum(f"ngc{out}{taps},gjc{taps}->ngj{out}", view, w)
    return y.reshape(shape[0], kernels, *window.outputs)


def along_channels(bias: Array, rank: int) -> Any:
    """Return one number per channel in the shape of images (N, C, ...)."""
    return bias.reshape((-1,) + (1,) * (rank - 2))


@op("Conv")
def convolution(node: Node, x: Array, w: Array, bias: Array | None = None) -> Any:
    """Return a convolution."""
    y = convolve(node, x, w)
    return y if bias is None else y + along_channels(bias, np.ndim(x))


@op("ConvTranspose")
def transposed_convolution(node: Node, x: Array, w: Array, bias: Array | None = None) -> Any:
    """Return the transpose of a convolution: a convolution of an image with gaps."""
    n, sizes, kernel = np.ndim(x) - 2, np.shape(x)[2:], np.shape(w)[2:]
    groups = int(node.get("group", 1))
    strides, dilations = (
        Window._positive(node, "strides", n),
        Window._positive(node, "dilations", n),
    )
    extra = [int(v) for v in node.get("output_padding", [0] * n)]
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    full = [(s - 1) * t + k + e for s, t, k, e in zip(sizes, strides, span, extra)]
    wanted = node.get("output_shape")
    auto = node.get("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [s * t for s, t in zip(sizes, strides)]
    if wanted is not None:
        cut = [f - int(o) for f, o in zip(full, wanted[-n:], strict=True)]
        small = [c // 2 for c in cut]
        large = [c - s for c, s in zip(cut, small)]
        before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
    elif auto == "VALID":
        before, after = [0] * n, [0] * n
    else:
        pads = [int(v) for v in node.get("pads", [0] * 2 * n)]
        before, after = pads[:n], pads[n:]
    node.limit([max(v, 0) for v in full])
    channels = np.shape(x)[1]
    if groups < 1 or channels % groups or channels != np.shape(w)[0] or n > _MAX_AXES:
        raise node.error(f"{channels} channels and kernels of shape {np.shape(w)} do not fit")
    # Gaps of zeros between elements, and a border as wide as the kernel reaches.
    if any(t > 1 for t in strides):
        places = [np.arange((s - 1) * t + 1) for s, t in zip(sizes, strides)]
        node.limit((*np.shape(x)[:2], *map(len, places)))
        mask: Any = np.ones((), np.bool_)
        for k, (steps, t) in enumerate(zip(places, strides)):
            x = np.take(x, steps // t, axis=2 + k)
            mask = mask & (steps % t == 0).reshape([-1 if j == k else 1 for j in range(n)])
        x = np.where(mask, x, np.zeros((), x.dtype))
    border = [(0, 0), (0, 0)]
    border += [(k - 1 - b, k - 1 - a + e) for k, b, a, e in zip(span, before, after, extra)]
    node.limit([a + m + b for (a, b), m in zip(border, np.shape(x))])
    x = pad_with(x, border, 0)
    w = w.reshape(groups, channels // groups, *np.shape(w)[1:])
    w = np.flip(w, axis=tuple(range(3, 3 + n)))
    axes = tuple(range(2, 2 + n))
    view: Any = np.lib.stride_tricks.sliding_window_view(x, tuple(span), axis=axes)
    view = view[(..., *(slice(None, None, d) for d in dilations))]
    shape = np.shape(view)
    view = view.reshape(shape[0], groups, channels // groups, *shape[2:])
    out, taps = _OUT[:n], _KERNEL[:n]
    y = np.einsum(f"ngc{out}{taps},gcj{taps}->ngj{out}", view, w)
    y = y.reshape(shape[0], -1, *shape[2 : 2 + n])
    return y if bias is None else y + along_channels(bias, np.ndim(y))


def _pooling(node: Node, x: Array, value: Scalar) -> tuple[Window, Any, tuple[int, ...]]:
    window = Window(node, np.shape(x)[2:], node.get("kernel_shape"))
    view = window.windows(node, x, value)
    return window, view, tuple(range(-len(window.kernel), 0))


@op("MaxPool")
def max_pool(node: Node, x: Array) -> Any:
    """Return the greatest element of each window."""
    least = -np.inf if np.dtype(x.dtype).kind == "f" else -(2**63)
    window, view, axes = _pooling(node, x, least)
    if len(node.outputs) < 2:
        return np.max(view, axis=axes)
    sizes = np.shape(x)[2:]
    order: Any = "F" if node.get("storage_order", 0) else "C"
    n = len(sizes)
    each = int(np.prod(sizes, dtype=np.int64))
    places: Any = np.reshape(np.arange(each), sizes, order=order)
    lead = np.shape(x)[:2]
    # Where padding is greatest nothing is found, so its position does not matter.
    where = window.windows(node, places[None, None], 0)[0, 0]
    flat = view.reshape(*np.shape(view)[: 2 + n], -1)
    best = np.expand_dims(np.argmax(flat, axis=-1), -1)
    where = np.broadcast_to(where.reshape(*window.outputs, -1), np.shape(flat))
    index = np.take_along_axis(where, best, axis=-1)[..., 0]
    first = np.arange(lead[0] * lead[1]).reshape(*lead, *(1,) * n) * each
    return np.max(view, axis=axes), index + first


@op("AveragePool")
def average_pool(node: Node, x: Array) -> Any:
    """Return the mean of each window; padding counts if the node says so."""
    window, view, axes = _pooling(node, x, 0)
    inside = np.ones((1, 1, *window.sizes), x.dtype)
    pads = [(0, 0), (0, 0), *window.pads]
    if node.get("count_include_pad", 0):
        inside = np.pad(inside, pads, constant_values=1)
    else:
        inside = np.pad(inside, pads)
    inside = np.pad(inside, [(0, 0), (0, 0), *((0, extra) for extra in window.beyond)])
    free = Window.__new__(Window)
    free.__dict__.update(window.__dict__)
    free.pads, free.beyond = [(0, 0)] * len(window.sizes), [0] * len(window.sizes)
    count = np.sum(free.windows(node, inside, 0), axis=axes)
    return np.sum(view, axis=axes) / count


@op("LpPool")
def lp_pool(node: Node, x: Array) -> Any:
    """Return the p-norm of each window."""
    _, view, axes = _pooling(node, x, 0)
    p = node.get("p", 2)
    if p == 1:
        return np.sum(np.abs(view), axis=axes)
    if p == 2:
        return np.sqrt(np.sum(view * view, axis=axes))
    return np.sum(np.abs(view) ** p, axis=axes) ** (1.0 / p)


def _all_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(2, np.ndim(x)))


@op("GlobalAveragePool")
def global_average_pool(node: Node, x: Array) -> Any:
    """Return the mean of each channel."""
    return np.mean(x, axis=_all_axes(x), keepdims=True)


@op("GlobalMaxPool")
def global_max_pool(node: Node, x: Array) -> Any:
    """Return the greatest element of each channel."""
    return np.max(x, axis=_all_axes(x), keepdims=True)


@op("GlobalLpPool")
def global_lp_pool(node: Node, x: Array) -> Any:
    """Return the p-norm of each channel."""
    p = node.get("p", 2)
    return np.sum(np.abs(x) ** p, axis=_all_axes(x), keepdims=True) ** (1.0 / p)
