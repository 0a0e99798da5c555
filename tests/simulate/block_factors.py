"""The factorization of sparse systems in NumPy: what native code must equal bit for bit."""

from __future__ import annotations

import itertools

import numpy as np

from archimedes.simulate.sparse.sparse_systems import SIZE, SparseSystem, flush


def invert_block(block: np.ndarray) -> np.ndarray:
    """Return the inverse of a block, columns one after the other as it is itself."""
    left, right = block.T.copy(), np.eye(SIZE)
    for c in range(SIZE):
        p = c
        for r in range(c + 1, SIZE):
            if abs(left[r, c]) > abs(left[p, c]):
                p = r
        if p != c:
            for part in (left, right):
                part[[c, p]] = part[[p, c]]
        scale = 1.0 / left[c, c]
        left[c] *= scale
        right[c] *= scale
        for r in range(SIZE):
            if r != c:
                factor = left[r, c]
                left[r] -= factor * left[c]
                right[r] -= factor * right[c]
    return right.T


def multiply_blocks(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left times right for blocks (m, ...)."""
    total = flush(left[:, None, 0, :] * right[:, :, 0, None])
    for k in range(1, SIZE):
        total = flush(total + flush(left[:, None, k, :] * right[:, :, k, None]))
    return total


def factorise(system: SparseSystem, blocks: np.ndarray) -> None:
    """Factorise the blocks of a system in place."""
    starts = system.starts.tolist()
    with np.errstate(all="ignore"):
        for k, (a, b) in enumerate(itertools.pairwise(starts)):
            blocks[k] = flush(invert_block(blocks[k].astype(np.float64)).astype(blocks.dtype))
            if a == b:
                continue
            lower, later = slice(system.count + a, system.count + b), system.later[a:b]
            blocks[lower] = multiply_blocks(blocks[lower], blocks[k][None])
            left, right = blocks[lower], blocks[system.pairs :][lower]
            target = system._block(later[:, None], later)
            for j in range(SIZE):
                product = flush(left[:, None, None, j, :] * right[:, :, j, None])
                blocks[target] = flush(blocks[target] - product)


def solve(system: SparseSystem, blocks: np.ndarray, x: np.ndarray) -> None:
    """Solve for the right side x, in place."""
    parts, count = x.reshape(system.count, SIZE), system.count
    blocks = blocks.astype(np.float64)
    lower, upper = blocks[count : count + system.pairs], blocks[count + system.pairs :]

    def product(block: np.ndarray, vector: np.ndarray) -> np.ndarray:
        total = block[0] * vector[0]
        for j in range(1, SIZE):
            total = total + block[j] * vector[j]
        return total

    spans = list(enumerate(itertools.pairwise(system.starts.tolist())))
    with np.errstate(all="ignore"):
        for k, (a, b) in spans:
            for p in range(a, b):
                parts[system.later[p]] -= product(lower[p], parts[k])
        for k, (a, b) in reversed(spans):
            for p in range(a, b):
                parts[k] -= product(upper[p], parts[system.later[p]])
            parts[k] = product(blocks[k], parts[k].copy())
