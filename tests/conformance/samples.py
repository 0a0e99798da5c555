"""Sample arguments of the conformance forms, by the one-letter names that the forms use.

Values are fixed, without ties, and chosen away from discontinuities, so that a form's result does
not hang on one rounding. The ``nasty`` ones hold nan, infinities and signed zeros.
"""

from __future__ import annotations

import numpy as np

__all__ = ["SAMPLES"]

NAN, INF = np.nan, np.inf


def _spread(shape: tuple[int, ...], seed: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Distinct, irregular float64 values in (low, high)."""
    return np.random.default_rng(seed).uniform(low, high, shape)


SAMPLES: dict[str, np.ndarray | np.generic] = {
    # float64 vectors: any sign, any sign, positive, inside (-1, 1)
    "x": np.array([0.3, -1.7, 2.6, -0.4, 1.1]),
    "y": np.array([1.9, 0.8, -2.3, -1.2, 0.6]),
    "p": np.array([0.7, 2.2, 1.3, 3.9, 0.2]),
    "u": np.array([0.25, -0.6, 0.91, -0.13, 0.48]),
    # 3-vectors
    "a": np.array([0.4, -1.3, 2.1]),
    "d": np.array([-0.9, 0.5, 1.6]),
    # int64 vectors (j has no zero, l is non-negative and small), bool vectors, float32 vectors
    "i": np.array([7, -7, 3, 0, -12]),
    "j": np.array([3, 3, -2, 5, -5]),
    "l": np.array([2, 0, 1, 4, 3]),
    "b": np.array([True, False, True, True, False]),
    "c": np.array([False, False, True, False, True]),
    "f": np.array([0.3, -1.7, 2.6, -0.4, 1.1], dtype=np.float32),
    "g": np.array([1.9, 0.8, -2.3, -1.2, 0.6], dtype=np.float32),
    # scalars: float64, float64, int64, bool, float32
    "s": np.float64(0.7),
    "t": np.float64(-1.4),
    "k": np.int64(2),
    "q": np.bool_(True),
    "r": np.float32(0.35),
    # matrices: two square, a wide, a tall, a symmetric positive definite, an int, a bool one
    "A": np.array([[2.0, -0.3, 0.5], [0.1, 1.6, -0.7], [-0.4, 0.2, 1.1]]),
    "B": _spread((3, 3), 1),
    "M": _spread((3, 4), 2),
    "N": _spread((4, 2), 3),
    "S": np.array([[2.0, 0.4, -0.3], [0.4, 1.5, 0.2], [-0.3, 0.2, 0.9]]),
    "I": np.arange(12).reshape(3, 4) * 5 % 7 - 2,
    "K": _spread((3, 4), 4) > 0,
    "F": _spread((3, 4), 5).astype(np.float32),
    # three and four dimensions: two equal shapes, stacked square matrices, 4-D, ints, bools
    "T": _spread((2, 3, 4), 6),
    "U": _spread((2, 3, 4), 7),
    "E": _spread((2, 3, 3), 8) + 3.0 * np.eye(3),
    "H": _spread((2, 3, 2, 2), 9),
    "J": np.arange(24).reshape(2, 3, 4) * 7 % 11 - 4,
    "L": _spread((2, 3, 4), 10) > 0,
    # nasty: everything, everything in another order, without nan, a matrix, float32
    "z": np.array([NAN, INF, -INF, -0.0, 0.0, 1.5, -2.5]),
    "w": np.array([1.0, -INF, 2.0, 0.0, -0.0, NAN, 0.5]),
    "n": np.array([INF, -0.0, 0.0, 3.5, -INF, -1.25, 2.0]),
    "Z": np.array([[1.0, NAN, -3.0], [0.5, 4.0, -0.5], [2.0, -INF, 7.0]]),
    "h": np.array([NAN, INF, -INF, -0.0, 0.0, 1.5, -2.5], dtype=np.float32),
}
