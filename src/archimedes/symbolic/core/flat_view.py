"""``x.flat`` of traced arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.indexing import static_key
from archimedes.symbolic.core.trace import trace_error

__all__ = ["FlatView"]


class FlatView:
    """The elements of a traced array as one dimension: what ``x.flat`` gives."""

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base

    def _numbers(self, key: Any) -> np.ndarray:
        static = static_key(key)
        if static is None:
            raise trace_error(
                "x.flat with a traced index cannot be recorded", "Use x.reshape(-1)[k] to read."
            )
        return np.arange(self.base.size)[static[0]]

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.flatten())

    def __getitem__(self, key: Any) -> Any:
        return self.base.flatten()[self._numbers(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        numbers = self._numbers(key)
        # Too few values are repeated, as in NumPy.
        values = np.resize(lift(value), numbers.size)
        for number, one in zip(numbers.ravel().tolist(), values):
            self.base[np.unravel_index(number, self.base.shape)] = one
