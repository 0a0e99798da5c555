"""Functions of arrays of any length, described by loops, as the default backend makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from archimedes.backends.registry import default_backend

__all__ = ["array_functions"]


def array_functions(
    functions: Mapping[str, tuple[str, Callable[..., None]]], sources: Path
) -> Mapping[str, Callable[..., int]] | None:
    """Return the functions by name, or None where they cannot be had.

    See ``Backend.array_functions`` for what describes them and how they are called.
    """
    return default_backend().array_functions(functions, sources)
