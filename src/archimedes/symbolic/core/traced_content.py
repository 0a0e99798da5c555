"""The traced array that a value stands for, and the numbers of a traced array that are known.

Arrays of another class may hold traced values without being traced arrays (those of ``recorded/``
do). Such a class has an attribute ``holds_traced_values``, which ``checks.is_traced`` asks, and
enters how it is to be treated into ``HOLDERS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes.symbolic.core.traced_value import TracedValue

__all__ = ["HOLDERS", "Holder", "known", "traced_or_same"]


class Holder(NamedTuple):
    """What can be asked of an array that may hold traced values, besides whether it does."""

    #: The traced array that it stands for, or None while it holds numbers.
    traced: Callable[[Any], Any]
    #: Its numbers, as NumPy's own array.
    plain: Callable[[Any], np.ndarray]
    #: The traced array that it stands for from now on, to write traced values to.
    writable: Callable[[Any], Any]


#: Classes of such arrays.
HOLDERS: dict[type, Holder] = {}


def traced_or_same(x: Any) -> Any:
    """Return an array that holds traced values as the traced array; lists and tuples likewise."""
    kind = type(x)
    holder = HOLDERS.get(kind)
    if holder is not None:
        found = holder.traced(x)
        return x if found is None else found
    if (kind is list or kind is tuple) and not HOLDERS.keys().isdisjoint(map(type, x)):
        return kind([traced_or_same(item) for item in x])
    return x


def known(x: Any) -> Any:
    """Return traced arrays whose values are known as NumPy arrays; anything else unchanged."""
    if isinstance(x, TracedValue):
        value = x.constant()
        return x if value is None else value
    if isinstance(x, (list, tuple)) and any(isinstance(i, (TracedValue, list, tuple)) for i in x):
        items = [known(i) for i in x]
        return type(x)(items) if type(x) in (list, tuple) else x
    return x
