"""Which values are traced, hold traced values, or have values that are known.

Arrays of another class may hold traced values without being traced arrays (those of ``recorded/``
do). Their class enters how it is to be treated into ``HOLDERS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes.symbolic.core.traced_value import TracedValue

__all__ = ["HOLDERS", "UNTRACED", "Holder", "holds_traced", "is_traced", "known", "traced_or_same"]

_ndarray = np.ndarray
#: Types that need no closer look.
UNTRACED = frozenset(
    {float, int, bool, str, slice, type(None), type(...), np.float64, np.int64, np.bool_}
)


class Holder(NamedTuple):
    """What can be asked of an array that may hold traced values."""

    #: Whether it holds any.
    holds: Callable[[Any], bool]
    #: The traced array that it stands for, or None while it holds numbers.
    traced: Callable[[Any], Any]
    #: Its numbers, as NumPy's own array.
    plain: Callable[[Any], np.ndarray]
    #: The traced array that it stands for from now on, to write traced values to.
    writable: Callable[[Any], Any]


#: Classes of such arrays.
HOLDERS: dict[type, Holder] = {}


def holds_traced(x: Any) -> bool:
    """Return whether a value, or a part of a list or tuple, is traced.

    Parameters
    ----------
    x : object
        Any value.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.function import holds_traced
    >>> arc.compile(lambda x: holds_traced([x, 1.0]))(1.0)
    True
    """
    kind = type(x)
    if kind in UNTRACED:
        return False
    holder = HOLDERS.get(kind)
    if holder is not None:
        return holder.holds(x)
    if isinstance(x, TracedValue):
        return True
    if isinstance(x, (list, tuple)):
        for item in x:  # noqa: SIM110 - keys and lists of numbers are looked at all the time
            if type(item) not in UNTRACED and holds_traced(item):
                return True
        return False
    return kind is _ndarray and x.dtype == object and holds_traced(x.ravel().tolist())


def is_traced(x: Any) -> bool:
    """Return whether a value is a traced array, or an array that holds traced values.

    Parameters
    ----------
    x : object
        Any value.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.function import is_traced
    >>> is_traced(1.0), arc.compile(lambda x: is_traced(x))(1.0)
    (False, True)
    """
    holder = HOLDERS.get(type(x))
    return isinstance(x, TracedValue) if holder is None else holder.holds(x)


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
