"""Options of the original's functions that mean nothing here: accepted, with a word why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

__all__ = ["former_options"]

_REASONS = {
    "kind": "there is one kind of graph, and NumPy's semantics for all of it",
    "jit": "functions become native code by themselves (choose with backend=)",
    "buffered": "calls need no buffers of their own (out= reuses arrays)",
    "sparse": "sparsity of derivatives is found and used by itself",
}


def former_options(what: str, given: Mapping[str, Any]) -> None:
    """Warn of options that are no longer needed; raise TypeError for any other.

    >>> former_options("compile", {})
    """
    for name in given:
        if name not in _REASONS:
            raise TypeError(f"{what}() got an unexpected keyword argument {name!r}")
        warnings.warn(
            f"{what}({name}=...) means nothing here and will be refused one day: {_REASONS[name]}",
            DeprecationWarning,
            stacklevel=3,
        )
