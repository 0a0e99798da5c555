"""Functions that ask about an array: its shape, dtype and memory, and numbering of its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.symbolic.core.array import SymbolicArray
from archimedes.symbolic.core.dispatch import lift
from archimedes.symbolic.core.registry import FUNCTIONS, implements

__all__: list[str] = []


@implements(np.shape)
def _shape(a: Any) -> tuple[int, ...]:
    return lift(a).shape


@implements(np.ndim)
def _ndim(a: Any) -> int:
    return lift(a).ndim


@implements(np.size)
def _size(a: Any, axis: Any = None) -> int:
    a = lift(a)
    return a.size if axis is None else a.shape[axis]


@implements(np.common_type)
def _common_type(*arrays: Any) -> type:
    return np.common_type(*(np.empty(0, lift(a).dtype) for a in arrays))


@implements(np.min_scalar_type)
def _min_scalar_type(a: Any, /) -> np.dtype:
    return lift(a).dtype


def _by_shape(function: Any) -> Callable[..., Any]:
    """Functions that look at an array's shape only."""

    def run(arr: Any, *args: Any, **kwargs: Any) -> Any:
        return function(np.broadcast_to(0, lift(arr).shape), *args, **kwargs)

    return run


def _by_memory(function: Any) -> Callable[..., Any]:
    def run(a: Any, b: Any, **kwargs: Any) -> bool:
        ids = [x.ids if isinstance(x, SymbolicArray) else x for x in (a, b)]
        return function(*ids, **kwargs)

    return run


for _name in ("diag_indices_from", "tril_indices_from", "triu_indices_from"):
    FUNCTIONS[getattr(np, _name)] = _by_shape(getattr(np, _name))
for _name in ("shares_memory", "may_share_memory"):
    FUNCTIONS[getattr(np, _name)] = _by_memory(getattr(np, _name))


@implements(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Combine traced coordinates, which are taken to lie inside ``dims``."""
    strides = np.array([np.prod(dims[k + 1 :], dtype=int) for k in range(len(dims))])
    if order == "F":
        strides = np.array([np.prod(dims[:k], dtype=int) for k in range(len(dims))])
    return sum(lift(index) * int(stride) for index, stride in zip(multi_index, strides))


@implements(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Split traced positions, which are taken to lie inside ``shape``."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, found = lift(indices), []
    for n in reversed(shape) if order == "C" else shape:
        rest, at = np.divmod(rest, n)
        found.append(at)
    return tuple(reversed(found) if order == "C" else found)


@implements(np.result_type)
def _result_type(*args: Any) -> np.dtype:
    return np.result_type(*(_promoting(a) for a in args))


def _promoting(x: Any) -> Any:
    """What stands for a value in NumPy's promotion: its dtype, or a number that is weak too."""
    if not isinstance(x, SymbolicArray):
        return x
    return x.dtype.type(0).item() if x.weak else x.dtype


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    source = from_.dtype if isinstance(from_, SymbolicArray) else from_
    return np.can_cast(source, to, casting)


@implements(np.iscomplexobj)
def _iscomplexobj(x: Any) -> bool:
    return False


@implements(np.isrealobj)
def _isrealobj(x: Any) -> bool:
    return True
