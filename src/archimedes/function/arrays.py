"""Arrays that can hold traced values: what ``np.zeros`` and its like give inside a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.errors import TraceError
from archimedes.symbolic import is_tracing, lift
from archimedes.symbolic.core.traced_content import holds_traced
from archimedes.symbolic.recorded.recorded_memory import as_recorded

__all__ = ["array", "eye", "ones", "ones_like", "sym", "sym_like", "zeros", "zeros_like"]


def array(x: Any, dtype: Any = None) -> Any:
    """Return a new array of numbers and traced values, nested lists included.

    >>> array([1.0, 2.0])
    array([1., 2.])
    """
    if not is_tracing() or not holds_traced(x):
        return as_recorded(np.array(x, dtype=dtype))
    made = lift(x)
    return made.copy() if dtype is None else made.astype(dtype)


def zeros(shape: Any, dtype: Any = float) -> Any:
    """Return an array of zeros that traced values can be written to.

    >>> zeros(2)
    array([0., 0.])
    """
    return array(np.zeros(shape, dtype))


def ones(shape: Any, dtype: Any = float) -> Any:
    """Return an array of ones that traced values can be written to.

    >>> ones((1, 2))
    array([[1., 1.]])
    """
    return array(np.ones(shape, dtype))


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Return an identity matrix that traced values can be written to.

    >>> eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return array(np.eye(n, m, k, dtype))


def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Return zeros in the shape and dtype of ``x``.

    >>> zeros_like([1, 2])
    array([0, 0])
    """
    return np.zeros_like(x, dtype=dtype)


def ones_like(x: Any, dtype: Any = None) -> Any:
    """Return ones in the shape and dtype of ``x``.

    >>> ones_like([1.0, 2.0])
    array([1., 1.])
    """
    return np.ones_like(x, dtype=dtype)


def sym(name: str = "x", shape: Any = (), dtype: Any = float) -> Any:
    """Refuse, and say how: values without numbers live inside recorded functions here.

    >>> sym("x", shape=(2,))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    archimedes.errors.TraceError: sym('x', (2,)): symbolic values exist only inside a function...
    """
    raise TraceError(
        f"sym({name!r}, {shape!r}): symbolic values exist only inside a function that is being "
        f"recorded. Write the expression as a function, f = arc.compile(lambda {name}: ...), and "
        f"look at it with f.graph({name}) or f.statistics({name}), given an array of that shape "
        "and dtype; its derivatives are arc.grad(f), arc.jac(f), arc.hess(f)"
    )


def sym_like(x: Any, name: str = "x") -> Any:
    """Refuse, and say how; see :func:`sym`.

    >>> sym_like([1.0, 2.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    archimedes.errors.TraceError: sym('x', (2,)): symbolic values exist only inside a function...
    """
    return sym(name, np.shape(x))
