"""What stands for a frozen function among what others read."""

from __future__ import annotations

from typing import Any

from archimedes.function.identity.object_parts import PARTS

__all__ = ["Frozen"]


class Frozen:
    """Stands for a frozen function among what others read: it is the same while it exists."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._compiled is other._compiled

    def __hash__(self) -> int:
        return id(self._compiled)


PARTS[Frozen] = lambda frozen: ()
