"""Classes that NumPy writes in Python and offers no protocol for: ``np.r_``, ``np.vectorize``.

While a recording is under way, their methods are replaced by ones that give them traced arrays as
arrays of objects, which they know how to handle, and make a traced array of what they return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.trace import is_tracing
from archimedes.symbolic.core.traced_content import holds_traced
from archimedes.symbolic.recorded.recorded_memory import as_recorded

__all__ = ["install", "uninstall"]


def _objects(x: Any) -> Any:
    """Return a traced array as an array of its elements; anything else unchanged."""
    if not holds_traced(x) or isinstance(x, (list, tuple)):
        return x
    traced = lift(x)
    made = np.empty(traced.shape, dtype=object)
    for at in np.ndindex(*traced.shape):
        made[at] = traced[at]
    return made


def _lifted(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_lifted(part) for part in result)
    return lift(result) if holds_traced(result) else as_recorded(result)


def _with_objects(original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return original(self, *args, **kwargs)
        if holds_traced(args) or holds_traced(tuple(kwargs.values())):
            args = tuple(_objects(a) for a in args)
            kwargs = {key: _objects(value) for key, value in kwargs.items()}
        return _lifted(original(self, *args, **kwargs))

    return method


def _of_key(original: Any) -> Any:
    def getitem(self: Any, key: Any) -> Any:
        if not is_tracing():
            return original(self, key)
        if holds_traced(key):
            key = tuple(map(_objects, key)) if isinstance(key, tuple) else _objects(key)
        return _lifted(original(self, key))

    return getitem


_CONCATENATOR = type(np.r_).__mro__[1]
_METHODS = {
    (_CONCATENATOR, "__getitem__"): _of_key,
    (np.vectorize, "__call__"): _with_objects,
    (np.ndenumerate, "__init__"): _with_objects,
}
_ORIGINALS = {place: getattr(*place) for place in _METHODS}
_REPLACEMENTS = {place: make(_ORIGINALS[place]) for place, make in _METHODS.items()}


def install() -> None:
    """Have the classes take traced arrays."""
    for (owner, name), method in _REPLACEMENTS.items():
        setattr(owner, name, method)


def uninstall() -> None:
    """Undo ``install``."""
    for (owner, name), method in _ORIGINALS.items():
        setattr(owner, name, method)
