"""One check for all models: eager, interpreter and native agree, alone and in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import tree


def check_everywhere(f: Callable[..., Any], *args: Any, rtol: float = 1e-13) -> None:
    """Compare eager with recorded to rounding, and the backends with each other to the bit."""
    eager = tree.leaves(f(*args))
    results = [tree.leaves(arc.compile(f, backend=b)(*args)) for b in ("interpreter", "llvm")]
    for plain, slow, native in zip(eager, *results, strict=True):
        scale = np.abs(plain).max(initial=1e-300)
        np.testing.assert_allclose(slow, plain, rtol=rtol, atol=rtol * scale)
        np.testing.assert_array_equal(native, slow)


def check_batched(f: Callable[..., Any], *columns: Any) -> None:
    """Compare a native batch with single native calls to the bit."""
    single = arc.compile(f, backend="llvm")
    batch = tree.leaves(arc.vmap(f)(*columns))
    for k in range(len(columns[0])):
        for whole, one in zip(batch, tree.leaves(single(*(c[k] for c in columns)))):
            np.testing.assert_array_equal(np.asarray(whole)[k], one)
