"""Means of quaternions, as arrays: the eigenvector of the largest eigenvalue of a 4x4 matrix.

It is found by squaring the matrix repeatedly, which uses products only: it works in traces, on
batches, and its derivative exists where the eigenvector is unique, also where the other eigenvalues
coincide.
Source: Markley, Cheng, Crassidis and Oshman, Averaging quaternions, J. Guidance 30, 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array, as_finite, check_shape, check_that
from archimedes.spatial.attitudes import quaternions
from archimedes.spatial.components import choose, components, join
from archimedes.typing import ArrayLike, Matrix

#: The matrix is raised to the power 2^24, enough for eigenvalues that differ by 1e-6.
SQUARINGS = 24


def dominant_quaternion(K: Matrix) -> Any:
    """Return the unit eigenvector (..., 4) of the largest eigenvalue of K (..., 4, 4) >= 0."""
    for _ in range(SQUARINGS):
        K = np.matmul(K, K)
        K = K / np.trace(K, axis1=-2, axis2=-1)[..., None, None]
    # Every column is a multiple of the eigenvector: take the longest.
    best, size = components(K[..., 0], 4), K[..., 0, 0]
    for k in range(1, 4):
        longer = K[..., k, k] > size
        longer = bool(longer) if type(longer) is np.bool_ else longer
        best = choose(longer, components(K[..., k], 4), best)
        size = np.where(longer, K[..., k, k], size)
    return quaternions.quaternion_normalize(join(best))


def check_weights(weights: ArrayLike | None, count: int) -> Any:
    """Return `count` weights, not negative and with a positive sum where known."""
    if weights is None:
        return np.ones(count)
    array = as_array(weights, "weights")
    check_shape(array, "weights", (count,))
    _check_signs(array, (0,))
    return array


def _check_signs(weights: Any, axes: tuple[int, ...]) -> None:
    check_that(
        lambda w: np.all(w >= 0.0) and np.all(w.max(axis=axes) > 0.0), weights, "weights",
        "must not be negative, nor all zero",
    )  # fmt: skip


def quaternion_mean(
    quaternion: ArrayLike, weights: ArrayLike | None, axis: int | Sequence[int] | None
) -> Any:
    """Return the mean (..., 4) of quaternions over axes of their batch."""
    q = as_array(quaternion, "attitudes")
    if q.ndim < 2:
        raise ValueError(f"mean needs a batch of attitudes, got shape {tuple(q.shape)}")
    batch = tuple(q.shape[:-1])
    given = range(len(batch)) if axis is None else np.atleast_1d(np.asarray(axis, int)).tolist()
    axes = tuple(sorted({k + len(batch) if k < 0 else k for k in given}))
    if not axes or len(axes) != len(given) or not 0 <= axes[0] <= axes[-1] < len(batch):
        raise ValueError(f"axis={axis!r} does not name axes of a batch of shape {batch}")
    over = tuple(batch[k] for k in axes)
    if 0 in over:
        raise ValueError(f"mean needs a batch of attitudes, got shape {tuple(q.shape)}")
    q = quaternions.quaternion_normalize(q)
    w = np.ones(over) if weights is None else as_finite(weights, "weights")
    if tuple(w.shape) == over:  # the same for the rest of the batch
        _check_signs(w, tuple(range(len(over))))
        w = np.reshape(w, [n if k in axes else 1 for k, n in enumerate(batch)])
    elif tuple(w.shape) == batch:
        _check_signs(w, axes)
    else:
        wanted = " or ".join(dict.fromkeys(map(str, (over, batch))))
        raise ValueError(f"weights must have shape {wanted}, got {tuple(w.shape)}")
    # Weights may be tiny, as likelihoods are: only their ratios count. They are scaled by a power
    # of two, which is exact and has no derivative.
    largest = np.maximum(np.max(w, axis=axes, keepdims=True), 1e-300)
    w = w * np.exp2(-np.floor(np.log2(largest)))
    return dominant_quaternion(np.sum(w[..., None, None] * q[..., :, None] * q[..., None, :], axes))
