"""``x.flat`` of traced arrays, and of arrays made while recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.indexing import static_key
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.recorded import recorded_array as recorded

if TYPE_CHECKING:
    from archimedes.symbolic.core.array import SymbolicArray

__all__ = ["FlatView", "RecordedFlat"]


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

    def __iter__(self) -> Iterator[SymbolicArray]:
        return iter(self.base.flatten())

    def __getitem__(self, key: Any) -> SymbolicArray:
        return self.base.flatten()[self._numbers(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        numbers = self._numbers(key)
        # Too few values are repeated, as in NumPy.
        values = np.resize(lift(value), numbers.size)
        for number, one in zip(numbers.ravel().tolist(), values):
            self.base[np.unravel_index(number, self.base.shape)] = one


class RecordedFlat(FlatView):
    """``x.flat`` of an array made while recording."""

    __slots__ = ()

    def _numbers_of(self) -> Any:
        return np.ndarray.flat.__get__(self.base)

    def __iter__(self) -> Iterator[Any]:
        found = recorded.traced_form(self.base)
        return iter(self._numbers_of() if found is None else found.flat)

    def __getitem__(self, key: Any) -> Any:
        found = recorded.traced_form(self.base)
        return self._numbers_of()[key] if found is None else found.flat[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if recorded.traced_form(self.base) is None and not recorded.holds_traced(value):
            recorded.check_maker(recorded.root_of(self.base))
            self._numbers_of()[key] = value
        else:
            recorded.writable(self.base).flat[key] = value
