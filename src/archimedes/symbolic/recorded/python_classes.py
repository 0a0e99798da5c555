"""Classes that NumPy writes in Python and offers no protocol for: ``np.r_``, ``np.vectorize``.

While a recording is under way, their names lead to classes derived from them, which in a thread
that records give them traced arrays as arrays of objects, which they know how to handle, and make
a traced array of what they return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import is_traced
from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.trace import is_tracing
from archimedes.symbolic.recorded.recorded_memory import as_recorded
from archimedes.symbolic.recorded.stands import DERIVED

__all__ = ["VERSIONS"]


def _objects(x: Any) -> Any:
    """Return a traced array as an array of its elements; anything else unchanged."""
    if not is_traced(x) or isinstance(x, (list, tuple)):
        return x
    traced = lift(x)
    made = np.empty(traced.shape, dtype=object)
    for at in np.ndindex(*traced.shape):
        made[at] = traced[at]
    return made


def _lifted(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_lifted(part) for part in result)
    return lift(result) if is_traced(result) else as_recorded(result)


class _LikeBase(type):
    """The class of classes that take the place of others: instances of those count as theirs."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__bases__[0])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__bases__[0])


class _Vectorize(np.vectorize, metaclass=_LikeBase):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return super().__call__(*args, **kwargs)
        if is_traced(args) or is_traced(tuple(kwargs.values())):
            args = tuple(_objects(a) for a in args)
            kwargs = {key: _objects(value) for key, value in kwargs.items()}
        return _lifted(super().__call__(*args, **kwargs))


class _Ndenumerate(np.ndenumerate, metaclass=_LikeBase):
    def __init__(self, arr: Any) -> None:
        super().__init__(_objects(arr) if is_tracing() else arr)


def _taking_keys(concatenator: Any) -> Any:
    """Return what ``np.r_`` or ``np.c_`` is, with a key that may hold traced arrays."""

    class Concatenator(type(concatenator)):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            if not is_tracing():
                return concatenator[key]
            if is_traced(key):
                key = tuple(map(_objects, key)) if isinstance(key, tuple) else _objects(key)
            return _lifted(concatenator[key])

    return Concatenator()


#: Names in NumPy, and what takes their place while something is recorded.
VERSIONS: dict[str, Any] = {
    "r_": _taking_keys(np.r_),
    "c_": _taking_keys(np.c_),
    "vectorize": _Vectorize,
    "ndenumerate": _Ndenumerate,
}
DERIVED.update((id(version), (version, getattr(np, n))) for n, version in VERSIONS.items())
for _name in ("vectorize", "ndenumerate"):
    VERSIONS[_name].__name__ = VERSIONS[_name].__qualname__ = _name
