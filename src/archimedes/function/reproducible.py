"""Calls whose results have the same bits on every processor: as recorded code computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from archimedes.backends.registry import reference_backend
from archimedes.checks import is_traced
from archimedes.function.identity.store import Current, form_of, prepared
from archimedes.function.prepared_functions import prepared_function

__all__ = ["call"]


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)`` as recorded code computes it.

    The function is called as it is, too, so that it can look at known numbers and refuse them.

    >>> import numpy as np
    >>> call(lambda x: np.sqrt(x) + 1.0, 4.0)
    np.float64(3.0)
    """
    plain = function(*args)
    if is_traced(args, plain):
        return plain
    name = getattr(function, "__name__", "function")

    def make(current: Current) -> Any:
        return prepared_function(
            lambda *args: current.functions[0](*args),
            (current,),
            name,
            backend=reference_backend().name,
        )

    return prepared("call", (function,), form_of(args), make)(*args)
