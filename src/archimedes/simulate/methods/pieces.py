"""Parts of a solve that have the bits of a recording also where the loops around them have not.

NumPy adds up in an order of its own, and its elementary functions are others than ours. The loops
of a solve may run in Python (``stepping/stepwise.py``) or be recorded: what sums up or calls an
elementary function is a piece, compiled on its own in the former case.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from archimedes.function import Compiled
from archimedes.symbolic.core.trace import is_tracing

__all__ = ["piece"]

F = TypeVar("F", bound=Callable[..., Any])


def piece(*static: str, often: bool = False) -> Callable[[F], F]:
    """Decorate a function of arrays: on numbers it is compiled; ``static`` names are fixed.

    One that is called ``often`` is compiled at the first call, others when that is worth it.

    >>> import numpy as np
    >>> float(piece()(lambda x: np.sum(x))(np.ones(3)))
    3.0
    """

    def decorate(function: F) -> F:
        @functools.cache
        def compiled() -> Compiled:
            made = Compiled(function, static_argnames=static or None, freeze=True)
            return made.compile_at_once() if often else made

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args) if is_tracing() else compiled()(*args)

        return call  # type: ignore[return-value]

    return decorate
