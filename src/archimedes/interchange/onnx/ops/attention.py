"""Attention, and the rotary embedding of positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.interchange.onnx.ops.reductions import softmax
from archimedes.interchange.onnx.ops.table import op
from archimedes.typing import Array

if TYPE_CHECKING:
    from archimedes.interchange.onnx.graphs import Node


def _in_heads(node: Node, x: Array, heads: int) -> Any:
    """Return (batch, steps, heads * size) as (batch, heads, steps, size)."""
    batch, steps, width = np.shape(x)
    if heads < 1 or width % heads:
        raise node.error(f"{heads} heads of a width of {width}")
    return x.reshape(batch, steps, heads, width // heads).transpose(0, 2, 1, 3)


@op("Attention")
def attention(
    node: Node,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    lengths: Array | None = None,
) -> Any:
    """Return scaled dot-product attention of several heads, with keys and values of the past."""
    flat = np.ndim(q) == 3
    if flat:
        q_heads, kv_heads = node.get("q_num_heads", 0), node.get("kv_num_heads", 0)
        q, k, v = (_in_heads(node, x, n) for x, n in zip((q, k, v), (q_heads, kv_heads, kv_heads)))
    past = 0
    if past_key is not None:
        past = np.shape(past_key)[2]
        k = np.concatenate([past_key, k], axis=2)
        v = np.concatenate([past_value, v], axis=2)
    present = (k, v)
    heads, groups = np.shape(q)[1], np.shape(k)[1]
    if heads != groups:
        if groups < 1 or heads % groups:
            raise node.error(f"{heads} heads of queries for {groups} of keys")
        k, v = (np.repeat(x, heads // groups, axis=1) for x in (k, v))
    scale = node.get("scale", 1.0 / math.sqrt(max(np.shape(q)[-1], 1)))
    node.limit((*np.shape(q)[:3], np.shape(k)[2]))
    root = math.sqrt(scale)
    scores = np.matmul(q * root, np.swapaxes(k * root, -1, -2))
    rows, columns = np.shape(scores)[-2:]
    minus = -np.inf
    bias: Any = None
    if mask is not None:
        if np.shape(mask)[-1] < columns:
            extra = [(0, 0)] * (np.ndim(mask) - 1) + [(0, columns - np.shape(mask)[-1])]
            empty = False if np.dtype(mask.dtype) == np.bool_ else minus
            mask = np.pad(mask, extra, constant_values=empty)
        if np.dtype(mask.dtype) == np.bool_:
            bias = np.where(mask, 0.0, minus).astype(scores.dtype)
        else:
            bias = mask.astype(scores.dtype)
    # How far behind its query a key is.
    first: Any = past
    if lengths is not None and past_key is None:
        first = (lengths - rows).reshape(-1, 1, 1, 1)
    behind = np.arange(rows)[:, None] + first - np.arange(columns)[None, :]
    allowed = []
    if node.get("is_causal", 0):
        allowed.append(behind >= 0)
    if node.get("left_window_size", -1) >= 0:
        allowed.append(behind <= node.get("left_window_size"))
    if node.get("right_window_size", -1) >= 0:
        allowed.append(behind >= -node.get("right_window_size"))
    if lengths is not None:
        allowed.append(np.arange(columns) < lengths.reshape(-1, 1, 1, 1))
    for one in allowed:
        extra_bias = np.where(one, 0.0, minus).astype(scores.dtype)
        bias = extra_bias if bias is None else bias + extra_bias
    cap = node.get("softcap", 0.0)
    capped = cap * np.tanh(scores / cap) if cap else scores
    masked = capped if bias is None else capped + bias
    stages = [scores, capped, masked]
    # Rows that are masked as a whole give zeros.
    most = np.max(masked, axis=-1, keepdims=True)
    weights = softmax(np.where(most > minus, masked, np.zeros((), masked.dtype)))
    weights = np.where(most > minus, weights, np.zeros((), weights.dtype))
    y = np.matmul(weights, v)
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(np.shape(y)[0], np.shape(y)[2], -1)
    stages.append(weights)
    return y, *present, stages[node.get("qk_matmul_output_mode", 0)]


@op("RotaryEmbedding")
def rotary_embedding(
    node: Node, x: Array, cos: Array, sin: Array, positions: Array | None = None
) -> Any:
    """Return heads with pairs of their elements rotated by angles of their positions."""
    flat = np.ndim(x) == 3
    if flat:
        x = _in_heads(node, x, node.get("num_heads", 0))
    size = np.shape(x)[-1]
    turned = node.get("rotary_embedding_dim", 0) or size
    half = turned // 2
    if positions is not None:
        cos, sin = np.take(cos, positions, axis=0), np.take(sin, positions, axis=0)
    cos, sin = (np.expand_dims(t[..., :half], 1) for t in (cos, sin))
    turn, rest = x[..., :turned], x[..., turned:]
    if node.get("interleaved", 0):
        a, b = turn[..., 0::2], turn[..., 1::2]
    else:
        a, b = turn[..., :half], turn[..., half:]
    first, second = a * cos - b * sin, b * cos + a * sin
    if node.get("interleaved", 0):
        y: Array = np.stack([first, second], axis=-1).reshape(np.shape(turn))
    else:
        y = np.concatenate([first, second], axis=-1)
    y = np.concatenate([y, rest], axis=-1) if turned < size else y
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(np.shape(y)[0], np.shape(y)[2], -1)
    return y
