"""``x.flat`` of arrays made while recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.flat_view import FlatView
from archimedes.symbolic.recorded.recorded_memory import check_maker, root_of, traced_form, writable

__all__ = ["RecordedFlat"]


class RecordedFlat(FlatView):
    """``x.flat`` of an array made while recording."""

    __slots__ = ()

    def _numbers_of(self) -> Any:
        return np.ndarray.flat.__get__(self.base)

    def __iter__(self) -> Iterator[Any]:
        found = traced_form(self.base)
        return iter(self._numbers_of() if found is None else found.flat)

    def __getitem__(self, key: Any) -> Any:
        found = traced_form(self.base)
        return self._numbers_of()[key] if found is None else found.flat[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if traced_form(self.base) is None and not is_traced(value):
            check_maker(root_of(self.base))
            self._numbers_of()[key] = value
        else:
            writable(self.base).flat[key] = value
